"""Keep the two indexes telling the same: the table is the truth, the text index follows it.

A write takes the lock, brings the text index up to the table should a crash have left it behind, commits to the table
(from here on it is durable), applies the same to the text index together with the table's version, and returns. Each
step can be repeated, so a crash anywhere only repeats work. A reader that finds the text index behind catches it up
when the lock is free, and goes on with what is there when it is not.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from indexes.filters import All, Filter
from indexes.layout import Change, Layout, Record, Vectors
from indexes.link import Link, is_unreachable
from indexes.lock import WriterLock
from indexes.resident import ResidentVectors
from indexes.rows import RowMap
from indexes.text import TextIndex, TextState, is_damage
from indexes.vectors import VectorHit, VectorTable

__all__ = ["HybridIndex", "TableReplaced", "Writer"]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_RETRY_SECONDS = 10.0
"""Between two attempts of readers to write a text index that could not be written, on a full disk for example."""


class TableReplaced(Exception):  # noqa: N818 - what happened, and no fault
    """Another process has put a new table in the place of this one; nothing was written. Open the index again."""


class HybridIndex:
    """Write records to both indexes as one, and search either; safe for several threads and processes."""

    most_resident = 2_000_000
    """So many vectors are held in memory at most: some 0.5 KB each."""

    def __init__(
        self,
        table: VectorTable,
        folder: Path,
        layout: Layout,
        *,
        epoch: str,
        lock: WriterLock,
        is_replaced: Callable[[], bool] = lambda: False,
        link: Link | None = None,
    ) -> None:
        self.table = table
        self.text = TextIndex(folder, layout)
        self._epoch = epoch
        self.lock = lock
        self._is_replaced = is_replaced
        self.link = link or Link()
        self._refreshing = threading.Lock()
        self._retry_at: float | None = None
        self._resident = ResidentVectors(table, self.most_resident)
        self.rows = RowMap(table)

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Hold the writers' lock, with both indexes at the newest commit; raises TableReplaced, Unreachable."""
        self.link.insist()
        with self.lock.held():
            if self._is_replaced():
                raise TableReplaced
            self._catch_up()
            yield Writer(self)

    def refresh(self) -> bool:
        """See the newest commit in both indexes; False when the text index is still behind the table."""
        with self._refreshing:  # of several threads one does the work
            expected = self.link.look(self.mark)
            seen = None if expected is None else self.link.ask(lambda: self._brought_to(expected))
        return self._is_readable() if seen is None else seen

    def _brought_to(self, expected: TextState) -> bool:
        if self._has(expected):
            return True
        if self._retry_at is not None and time.monotonic() < self._retry_at:
            self.text.discard()
            return False
        with self.lock.held(wait=False) as free:
            current = free and not self._is_replaced()  # else the text index is another table's by now
            if current:
                self._catch_up()
        if not free and not self.text.is_writable():  # nobody brings it up to the table
            self.text.discard()
        return current and self._retry_at is None

    def search_vectors(self, vector: Vectors, where: Filter, limit: int) -> list[VectorHit]:
        """Return the records nearest to the vector as of the last refresh, best first."""
        state = self.text.state  # a poll of the table's version costs as much as the search
        version = state.version if state else self.table.version
        hits = self._resident.search(vector, where, limit, version)
        if hits is not None:
            return hits
        if not self._resident.is_beyond:
            return self.table.search(vector, where, limit)
        share = self.read_text(lambda text: text.share(where)) or 0.0
        return self.rows.search(vector, where, limit, share=share, version=version)

    def held_vectors(self, vector: Vectors, where: Filter, limit: int) -> list[VectorHit] | None:
        """Return what ``search_vectors`` does, of the vectors held in memory alone; None where there are none."""
        return self._resident.held(vector, where, limit)

    @property
    def is_warming(self) -> bool:
        """Whether something is being read into memory that makes searches faster."""
        return self._resident.is_loading or self.rows.is_loading

    def has_vectors(self) -> bool:
        """Tell whether vectors can be searched now: while the tables cannot be reached, those in memory."""
        return not self.link.is_down or self._resident.is_held

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
        missing = [id_ for id_ in ids if id_ not in found]
        return found | (self.link.ask(lambda: self.table.get(missing)) or {})

    def stored(self, ids: Collection[str]) -> dict[str, Record]:
        """Return records by id as of the newest commit; as last known while the table cannot be reached."""
        found = self.link.ask(lambda: self.table.get(ids))
        return self.get(ids) if found is None else found

    def scan(self, where: Filter, columns: Sequence[str]) -> Iterator[Record]:
        """Yield these columns of the records that pass the filter: the table's, or the last known ones."""
        if not self.link.reaches(self.mark) and self._is_readable():
            return iter(self.read_text(lambda text: text.find(where)) or ())
        return self.table.scan(where, columns)

    def disagreements(self) -> list[str]:
        """Return in words what one index holds and the other does not, and what of the text index is damaged."""
        with self.writing():
            damaged = [f"{name} of the text index is damaged" for name in self.text.damaged_files()]
            stored = self._stored_ids()
            indexed = set() if damaged else self.text.ids()
        if damaged:
            return damaged
        missing = [f"{id_} is in the table but not in the text index" for id_ in sorted(stored - indexed)]
        return missing + [f"{id_} is in the text index but not in the table" for id_ in sorted(indexed - stored)]

    def _stored_ids(self) -> set[str]:
        return {record["id"] for record in self.table.scan(All(), ["id"])}

    def close(self) -> None:
        """Let go of the files."""
        self.link.close()
        self.text.close()

    def mark(self) -> TextState:
        """Return the state of a text index that has applied the table's newest commit."""
        return TextState(self._epoch, self.table.version)

    def _is_readable(self) -> bool:
        """Tell whether there is a text index of these tables, however old."""
        state = self.text.state or self.text.reload()
        return state is not None and state[::2] == TextState(self._epoch, 0)[::2]

    def _has(self, expected: TextState) -> bool:
        return self.text.state == expected or self.text.reload() == expected

    def _catch_up(self) -> None:
        """Bring the text index up to the table, under the lock."""
        expected = self.mark()  # before the changes are read: what comes later is applied again
        if self._has(expected):
            return
        state = self.text.state
        if state is None or state[::2] != expected[::2] or state.version > expected.version:
            self._rebuild_or_leave()
        else:
            changes = self.table.changes_since(state.version)
            self._apply(changes.written, changes.deleted, expected)

    def write(self, change: Change) -> bool:
        """Write a change to both indexes under the lock; True when others wrote since the lock was taken."""
        self.table.write(change)
        self._apply(change.written, change.deleted, self.mark())
        return False

    def optimize(self) -> None:
        """Compact the table under the lock, and let its vector index follow growth."""
        self.table.optimize()
        self._apply((), (), self.mark())

    def _apply(self, written: Sequence[Record], deleted: Collection[str], state: TextState) -> None:
        """Bring to the text index what the table has got up to a state; a damaged index is rebuilt."""
        try:
            self.text.apply(written, deleted, state)
            self._retry_at = None
        except BaseException as error:
            if not is_damage(error):
                raise
            self._rebuild_or_leave()

    def _rebuild_or_leave(self) -> None:
        """Build the text index anew; where that cannot be done now, a later use tries again: the table has it all."""
        try:
            self.rebuild_text()
        except BaseException as error:
            if not is_damage(error) or is_unreachable(error):
                raise
            self.text.discard()  # rather none than one that still holds what was forgotten
            if self._retry_at is None:
                _log.warning("the text index stays behind until it can be written: %s", error)
            self._retry_at = time.monotonic() + _RETRY_SECONDS
        else:
            self._retry_at = None

    def rebuild_text(self) -> None:
        """Build the text index anew from the table, under the lock."""
        _log.info("rebuilding the text index from the table")
        self.text.rebuild(self.table.scan(All()), self.mark())


class Writer:
    """Write to both indexes; obtained from ``HybridIndex.writing``, and valid inside it."""

    def __init__(self, index: HybridIndex) -> None:
        self._index = index

    def write(self, change: Change) -> bool:
        """Write a change in one commit of each index; it is durable, and seen by others, when this returns.

        True when others wrote since the lock was taken, which only those of another machine can.
        """
        return self._index.write(change)

    def rebuild_text(self) -> None:
        """Build the text index anew from the table, whatever it holds."""
        self._index.rebuild_text()

    def optimize(self) -> None:
        """Compact the table and let its vector index follow growth."""
        self._index.optimize()

    def find(self, where: Filter) -> list[Record]:
        """Return the stored records that pass the filter."""
        found = self._index.read_text(lambda text: text.find(where))
        return list(self._index.table.scan(where)) if found is None else found

    def get(self, ids: Collection[str]) -> dict[str, Record]:
        """Return stored records by id, from the table."""
        return self._index.table.get(ids)
