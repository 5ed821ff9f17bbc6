"""Keep the two indexes telling the same: the table is the truth, the text index follows it.

A write takes the lock, brings the text index up to the table should a crash have left it behind, commits to the table
(from here on it is durable), applies the same to the text index together with the table's version, and returns. Each
step can be repeated, so a crash anywhere only repeats work. A reader that finds the text index behind catches it up
when the lock is free, and goes on with what is there when it is not.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from indexes.filters import All, Filter
from indexes.layout import Change, Layout, Record, Vectors
from indexes.lock import WriterLock
from indexes.resident import ResidentVectors
from indexes.text import TextIndex, TextState
from indexes.vectors import VectorHit, VectorTable

__all__ = ["HybridIndex", "Writer"]

_log = logging.getLogger(__name__)


class HybridIndex:
    """Write records to both indexes as one, and search either; safe for several threads and processes."""

    def __init__(self, table: VectorTable, folder: Path, layout: Layout, *, epoch: str, lock: WriterLock) -> None:
        self.table = table
        self.text = TextIndex(folder, layout)
        self._epoch = epoch
        self._lock = lock
        self._refreshing = threading.Lock()
        self._resident = ResidentVectors(table)

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Hold the writers' lock, with both indexes at the newest commit."""
        with self._lock.held():
            self._catch_up()
            yield Writer(self)

    def refresh(self) -> bool:
        """See the newest commit in both indexes; False when the text index is still behind the table."""
        with self._refreshing:  # of several threads one does the work
            if self._is_current():
                return True
            with self._lock.held(wait=False) as free:
                if free:
                    self._catch_up()
            return free

    def search_vectors(self, vector: Vectors, where: Filter, limit: int) -> list[VectorHit]:
        """Return the records nearest to the vector, best first."""
        hits = self._resident.search(vector, where, limit, self.table.version)
        return self.table.search(vector, where, limit) if hits is None else hits

    def get(self, ids: Collection[str]) -> dict[str, Record]:
        """Return records by id: the text index's copies, and from the table what it lacks."""
        found = self.text.get(ids) if self.text.state else {}
        return found | self.table.get([id_ for id_ in ids if id_ not in found])

    def disagreements(self) -> list[str]:
        """Return in words what one index holds and the other does not."""
        with self.writing():
            stored, indexed = {record["id"] for record in self.table.scan(All(), ["id"])}, self.text.ids()
        missing = [f"{id_} is in the table but not in the text index" for id_ in sorted(stored - indexed)]
        return missing + [f"{id_} is in the text index but not in the table" for id_ in sorted(indexed - stored)]

    def close(self) -> None:
        """Let go of the files."""
        self.text.close()

    def mark(self) -> TextState:
        """Return the state of a text index that has applied the table's newest commit."""
        return TextState(self._epoch, self.table.version)

    def _is_current(self) -> bool:
        expected = self.mark()
        return self.text.state == expected or self.text.reload() == expected

    def _catch_up(self) -> None:
        """Bring the text index up to the table, under the lock."""
        if self._is_current():
            return
        state, expected = self.text.state, self.mark()
        if state is None or state[::2] != expected[::2] or state.version > expected.version:
            _log.info("rebuilding the text index from the table")
            self.text.rebuild(self.table.scan(All()), expected)
        else:
            changes = self.table.changes_since(state.version)
            self.text.apply(changes.written, changes.deleted, expected)


class Writer:
    """Write to both indexes; obtained from ``HybridIndex.writing``, and valid inside it."""

    def __init__(self, index: HybridIndex) -> None:
        self._index = index

    def write(self, change: Change) -> None:
        """Write a change in one commit of each index; it is durable, and seen by others, when this returns."""
        self._index.table.write(change)
        self._index.text.apply(change.written, change.deleted, self._index.mark())

    def optimize(self) -> None:
        """Compact the table and let its vector index follow growth."""
        self._index.table.optimize()
        self._index.text.apply((), (), self._index.mark())

    def find(self, where: Filter) -> list[Record]:
        """Return the stored records that pass the filter."""
        return self._index.text.find(where)

    def get(self, ids: Collection[str]) -> dict[str, Record]:
        """Return stored records by id, from the table."""
        return self._index.table.get(ids)
