"""The record of outcomes: events in the store, folded to evidence in memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from indexes.events import EventLog
from runtime_memory.models import Outcome
from runtime_memory.outcomes import Evidence, OutcomeEvent, fold

__all__ = ["OutcomeLedger"]


class OutcomeLedger:
    """Append reports, and give the evidence that those of every process amount to."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._evidence: dict[str, Evidence] = {}

    def evidence(self) -> Mapping[str, Evidence]:
        """Return the evidence by memory id, as of the newest commit."""
        with self._lock:
            if events := self._log.unread():
                self._evidence = fold((_event(row) for row in events), self._evidence)
            return self._evidence

    def append(self, events: Sequence[OutcomeEvent], *, session: str, turn: str, origin: str) -> None:
        """Record reports in one commit."""
        self._log.append(
            [
                {
                    "memory_id": event.memory_id,
                    "outcome": event.outcome.value,
                    "weight": event.weight,
                    "at": event.at,
                    "session": session,
                    "turn": turn,
                    "origin": origin,
                }
                for event in events
            ]
        )


def _event(row: Mapping[str, Any]) -> OutcomeEvent:
    return OutcomeEvent(
        memory_id=row["memory_id"],
        outcome=Outcome(row["outcome"]),
        weight=row["weight"],
        at=row["at"],
    )
