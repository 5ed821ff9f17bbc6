"""Keep an open store fast: compact what single writes left behind, and embed what had to wait for the model."""

from __future__ import annotations

import logging
import threading
import time

from indexes.consistency import TableReplaced
from runtime_memory.database import Database
from runtime_memory.leftovers import sweep
from runtime_memory.writing import Writing

__all__ = ["Maintenance"]

_log = logging.getLogger(__name__)
_WRITES_BETWEEN = 16
_MANY_FRAGMENTS = 48
_TOO_MANY_FRAGMENTS = 192
_PAUSE_SECONDS = 5.0
"""Between two runs, unless there are far too many files: each run writes the table anew."""


class Maintenance:
    """Run in the background, at a pace set by writes; one run at a time, and never an error of the writer's."""

    def __init__(self, database: Database, writing: Writing) -> None:
        self._database = database
        self._writing = writing
        self._writes = _WRITES_BETWEEN - 1  # the first write of a process looks, as a process may be short-lived
        self._thread: threading.Thread | None = None
        self._last_run = -_PAUSE_SECONDS
        self._stopping = threading.Event()

    def after_writes(self, count: int) -> None:
        """Count writes, and start a run when they have left many small files."""
        self._writes += count
        if self._writing.owes_vectors:
            self.start()
        if self._writes < _WRITES_BETWEEN or (self._thread and self._thread.is_alive()):
            return
        self._writes = 0
        try:
            if self._is_needed():
                self.start()
        except Exception as error:  # noqa: BLE001 - the write is done, whatever becomes of what it left behind
            _log.warning("maintenance of %s is left for later: %s", self._database.folder, error)

    def start(self) -> None:
        """Run in the background: compact, then embed what has no vector yet; nothing while such a run is under way."""
        if (self._thread and self._thread.is_alive()) or self._stopping.is_set():
            return
        self._thread = threading.Thread(target=self._run_quietly, name="runtime-memory-maintenance", daemon=True)
        self._thread.start()

    def run(self) -> None:
        """Embed what has no vector yet, compact, drop old versions, and let the vector index follow growth."""
        self._writing.fill_vectors()
        self._compact()

    def finish(self, seconds: float) -> None:
        """Let a run that is under way come to its end."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(seconds)

    def _is_needed(self) -> bool:
        paused = time.monotonic() - self._last_run < _PAUSE_SECONDS
        fragments = max(self._database.index.table.fragments, self._database.outcomes.fragments)
        return fragments >= (_TOO_MANY_FRAGMENTS if paused else _MANY_FRAGMENTS)

    def _compact(self) -> None:
        with self._database.index.writing() as writer:
            writer.optimize()
            self._database.outcomes.optimize()
        sweep(self._database.folder, self._database.index.lock)
        self._last_run = time.monotonic()

    def _run_quietly(self) -> None:
        try:
            self._compact()  # first, as it takes no time compared with what a model may need
            self._writing.fill_vectors(self._stopping.is_set)
        except TableReplaced:
            _log.info("maintenance of %s is left to those who opened its new tables", self._database.folder)
        except BaseException as error:  # noqa: BLE001 - nobody waits for this thread; the next run tries again
            _log.warning("maintenance of %s failed and is tried again later: %s", self._database.folder, error)
