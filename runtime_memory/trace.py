"""A trace of recalls, writes, outcomes and errors: JSONL, one record a line, joined by ``turn_id``."""

from __future__ import annotations

import json
import logging
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runtime_memory.models import Explanation
from runtime_memory.secrets import mask
from runtime_memory.serialize import result_json, timestamp

__all__ = ["Trace", "recall_fields"]

_log = logging.getLogger(__name__)
_RETRIEVED = ("category", "score", "vector_rank", "text_rank", "outcome_score")


class Trace:
    """Append records to a file, or do nothing without a path; a failing trace is logged once and breaks nothing."""

    def __init__(self, path: str | None) -> None:
        self._path = Path(path).expanduser() if path else None
        self._lock = threading.Lock()

    def write(self, event: str, /, **fields: Any) -> None:
        """Append a record of an event: recall, write, outcome or error; secrets in its texts are masked."""
        if self._path is None:
            return
        told = {name: mask(value).text if isinstance(value, str) else value for name, value in fields.items()}
        record = {"ts": timestamp(datetime.now(UTC)), "event": event, **told}
        line = (
            json.dumps(record, default=str) + "\n"
        ).encode()  # ASCII alone: no character that a reader takes for a line end
        try:
            with self._lock:
                self._append(self._path, line)
        except OSError as error:
            _log.warning("the trace %s cannot be written and is off from now on: %s", self._path, error)
            self._path = None

    def _append(self, path: Path, line: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # One write to a file opened for appending: the lines of several processes do not mix.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


def recall_fields(explanation: Explanation) -> dict[str, Any]:
    """Return what a trace says of a recall."""
    retrieved = []
    for result in explanation.recalled:
        values = result_json(result)
        retrieved.append({"memory_id": result.memory.id} | {name: values[name] for name in _RETRIEVED})
    return {"query": explanation.query, "search_mode": explanation.mode.value, "retrieved": retrieved}
