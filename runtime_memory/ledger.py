"""The record of outcomes: events in the store, folded to evidence in memory."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from indexes.events import EventLog
from indexes.link import Link
from runtime_memory.models import Outcome
from runtime_memory.outcomes import Evidence, OutcomeEvent, fold

__all__ = ["OutcomeLedger"]


class OutcomeLedger:
    """Append reports, and give the evidence that those of every process amount to."""

    def __init__(self, log: EventLog, link: Link | None = None) -> None:
        self._log = log
        self._link = link or Link()
        self._lock = threading.Lock()
        self._evidence: dict[str, Evidence] = {}

    def evidence(self) -> Mapping[str, Evidence]:
        """Return the evidence by memory id, as of the newest commit that can be read."""
        with self._lock:
            events, anew = self._link.ask(self._log.unread) or ([], False)
            if events or anew:
                self._evidence = fold((_event(row) for row in events), {} if anew else self._evidence)
            return self._evidence

    def append(self, events: Sequence[OutcomeEvent]) -> None:
        """Record reports in one commit."""
        self._log.append([{**asdict(event), "outcome": event.outcome.value} for event in events])

    def missing(self, events: Iterable[OutcomeEvent]) -> list[OutcomeEvent]:
        """Return the reports that are not recorded yet; of equal ones, as many as there are too few."""
        wanted = list(events)
        recorded = Counter(self.history({event.memory_id for event in wanted}))
        return [event for event in wanted if not _take(recorded, event)]

    def history(self, ids: Collection[str]) -> Iterator[OutcomeEvent]:
        """Yield every report about these memories, in no order."""
        yield from (_event(row) for row in self._log.about("memory_id", ids))


def _take(recorded: Counter[OutcomeEvent], event: OutcomeEvent) -> bool:
    recorded[event] -= 1
    return recorded[event] >= 0


def _event(row: Mapping[str, Any]) -> OutcomeEvent:
    return OutcomeEvent(**{**row, "outcome": Outcome(row["outcome"])})
