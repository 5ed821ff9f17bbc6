"""Keep the two indexes telling the same: the table is the truth, the text index follows it.

A write takes the lock, brings the text index up to the table should a crash have left it behind, commits to the table
(from here on it is durable), applies the same to the text index together with the table's version, and returns. Each
step can be repeated, so a crash anywhere only repeats work. A reader that finds the text index behind catches it up
when the lock is free, and goes on with what is there when it is not.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from indexes.filters import All, Filter
from indexes.layout import Change, Layout, Record, Vectors
from indexes.lock import WriterLock
from indexes.resident import ResidentVectors
from indexes.text import TextIndex, TextState, is_damage
from indexes.vectors import VectorHit, VectorTable

__all__ = ["HybridIndex", "Writer"]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


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
        """Return the records nearest to the vector as of the last refresh, best first."""
        state = self.text.state  # a poll of the table's version costs as much as the search
        hits = self._resident.search(vector, where, limit, state.version if state else self.table.version)
        return self.table.search(vector, where, limit) if hits is None else hits

    def read_text(self, read: Callable[[TextIndex], _T]) -> _T | None:
        """Return what a reading of the text index gives; None while there is no usable one."""
        if self.text.state is None:
            return None
        try:
            return read(self.text)
        except BaseException as error:
            if not is_damage(error):
                raise
            _log.warning("the text index is damaged and will be rebuilt: %s", error)
            self.text.discard()
            return None

    def get(self, ids: Collection[str]) -> dict[str, Record]:
        """Return records by id: the text index's copies, and from the table what it lacks."""
        found = self.read_text(lambda text: text.get(ids)) or {}
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
            self._rebuild()
        else:
            changes = self.table.changes_since(state.version)
            self.apply(changes.written, changes.deleted)

    def apply(self, written: Sequence[Record], deleted: Collection[str]) -> None:
        """Bring to the text index, under the lock, what the table has got; a damaged index is rebuilt."""
        try:
            self.text.apply(written, deleted, self.mark())
        except BaseException as error:
            if not is_damage(error):
                raise
            self._rebuild()

    def _rebuild(self) -> None:
        _log.info("rebuilding the text index from the table")
        self.text.rebuild(self.table.scan(All()), self.mark())


class Writer:
    """Write to both indexes; obtained from ``HybridIndex.writing``, and valid inside it."""

    def __init__(self, index: HybridIndex) -> None:
        self._index = index

    def write(self, change: Change) -> None:
        """Write a change in one commit of each index; it is durable, and seen by others, when this returns."""
        self._index.table.write(change)
        self._index.apply(change.written, change.deleted)

    def optimize(self) -> None:
        """Compact the table and let its vector index follow growth."""
        self._index.table.optimize()
        self._index.apply((), ())

    def find(self, where: Filter) -> list[Record]:
        """Return the stored records that pass the filter."""
        found = self._index.read_text(lambda text: text.find(where))
        return list(self._index.table.scan(where)) if found is None else found

    def get(self, ids: Collection[str]) -> dict[str, Record]:
        """Return stored records by id, from the table."""
        return self._index.table.get(ids)
