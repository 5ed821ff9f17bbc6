"""Keep an open store fast: compact what single writes left behind, and embed what had to wait for the model."""

from __future__ import annotations

import logging
import threading

from runtime_memory.database import Database
from runtime_memory.writing import Writing

__all__ = ["Maintenance"]

_log = logging.getLogger(__name__)
_WRITES_BETWEEN = 16
_MANY_FRAGMENTS = 48


class Maintenance:
    """Run in the background, at a pace set by writes; one run at a time, and never an error of the writer's."""

    def __init__(self, database: Database, writing: Writing) -> None:
        self._database = database
        self._writing = writing
        self._writes = _WRITES_BETWEEN - 1  # the first write of a process looks, as a process may be short-lived
        self._thread: threading.Thread | None = None

    def after_writes(self, count: int) -> None:
        """Count writes, and start a run when they have left many small files."""
        self._writes += count
        if self._writes < _WRITES_BETWEEN or (self._thread and self._thread.is_alive()):
            return
        self._writes = 0
        if (
            self._database.index.table.fragments >= _MANY_FRAGMENTS
            or self._database.outcomes.fragments >= _MANY_FRAGMENTS
        ):
            self._thread = threading.Thread(target=self._run_quietly, name="runtime-memory-maintenance", daemon=True)
            self._thread.start()

    def run(self) -> None:
        """Embed what has no vector yet, compact, drop old versions, and let the vector index follow growth."""
        self._writing.fill_vectors()
        with self._database.index.writing() as writer:
            writer.optimize()
            self._database.outcomes.optimize()

    def finish(self, seconds: float) -> None:
        """Wait for a run that is under way."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run_quietly(self) -> None:
        try:
            self.run()
        except Exception:  # noqa: BLE001 - nobody waits for this thread; the next run tries again
            _log.warning("maintenance of %s failed and is tried again later", self._database.folder, exc_info=True)
