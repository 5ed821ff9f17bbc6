"""The text index of a table that several machines write to: a replica, caught up by the table's versions.

No lock holds between machines. Each writes optimistically: it reads, commits, and then looks who committed in between.
Appending never conflicts. What another machine changed of the same records between the reading and the commit, this
commit has written over; so it is joined in with a further one, column by column. Forgetting wins.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from indexes.consistency import HybridIndex, Writer
from indexes.filters import All
from indexes.lance import is_conflict
from indexes.layout import Change, Entry, Record
from indexes.pinned import PinnedRows
from indexes.text import TextState
from indexes.vectors import ANN_ROWS, VectorTable

__all__ = ["Replica", "retried"]

_T = TypeVar("_T")
_ATTEMPTS = 8
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class Replica(HybridIndex):
    """Write to a shared table, and follow it. ``open_at`` opens the table as of a version."""

    most_resident = ANN_ROWS  # more would take long to bring over

    def __init__(self, *args: Any, open_at: Callable[[int], VectorTable], **options: Any) -> None:
        super().__init__(*args, **options)
        self._open_at = open_at
        self.rows = PinnedRows(self.table, open_at)
        self._since = 0

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Hold the lock of this machine, with the replica at the newest commit; raises TableReplaced, Unreachable."""
        with super().writing() as writer:
            self._since = self._seen()
            yield writer

    def write(self, change: Change) -> bool:
        """Write a change, join it with what others wrote of the same records, and catch the replica up."""
        since = self._since
        self._since = retried(lambda: self.table.write(change))
        if self._since == since + 1:  # nobody else has written
            self._apply(change.written, change.deleted, TextState(self._epoch, self._since))
            return False
        if change.replaced or change.amended or change.deleted:
            self._join(change, since)
        self.link.ask(self._catch_up)  # the commit stands, whether or not it can be read again at once
        return True

    def optimize(self) -> None:
        """Compact the table; another machine's compaction or change at the same moment leaves it for later."""
        try:
            self.table.optimize()
        except RuntimeError as error:
            if not is_conflict(error):
                raise
        self._catch_up()

    def _join(self, change: Change, since: int) -> None:
        """Bring back what others wrote between a version and this change, which it has written over."""
        for _ in range(_ATTEMPTS):
            before, others = self._open_at(since), self._open_at(self._since - 1)
            joined = _joined(change, before, others)
            if joined is None:
                return
            since, change = self._since, joined
            self._since = retried(lambda change=change: self.table.write(change))  # type: ignore[misc]
            if self._since == since + 1:
                return

    def _stored_ids(self) -> set[str]:
        """Return the ids as of the version that the replica has: others may be writing."""
        return {record["id"] for record in self._open_at(self._seen()).scan(All(), ["id"])}

    def _seen(self) -> int:
        return self.text.state.version if self.text.state else self.table.version


def retried(commit: Callable[[], _T]) -> _T:
    """Return what a commit gives; tried again, after a random pause, when another one came first."""
    pause = _FIRST_PAUSE
    for _ in range(_ATTEMPTS):
        try:
            return commit()
        except (RuntimeError, ValueError, OSError) as error:
            if not is_conflict(error):
                raise
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - it only keeps writers apart
        pause = min(2 * pause, _LONGEST_PAUSE)
    return commit()


@dataclass(frozen=True)
class _Written:
    """One record of a change, with its vectors where the change has new ones."""

    record: Record
    entry: Entry | None


def _joined(change: Change, before: VectorTable, others: VectorTable) -> Change | None:
    """Return what joins a change with that of others; None when they changed nothing of the same records."""
    ours = {entry.record["id"]: _Written(entry.record, entry) for entry in change.replaced}
    ours |= {record["id"]: _Written(record, None) for record in change.amended}
    ids = [*ours, *change.deleted]
    base, theirs = before.get(ids), others.get(ids)
    moved = [id_ for id_ in ids if id_ in base and not _same(base[id_], theirs.get(id_))]
    if not moved:
        return None
    deleted = [id_ for id_ in moved if id_ not in theirs or id_ in change.deleted]
    kept = [id_ for id_ in moved if id_ not in deleted]
    entries = [_entry(ours[id_], base[id_], theirs[id_], others) for id_ in kept]
    return Change(replaced=entries, deleted=deleted)


def _entry(ours: _Written, base: Record, theirs: Record, others: VectorTable) -> Entry:
    changed = {name: value for name, value in ours.record.items() if not _equal(value, base[name])}
    record = {**theirs, **changed, "updated_at": max(ours.record["updated_at"], theirs["updated_at"])}
    if ours.entry is not None and record["content"] == ours.record["content"]:
        return Entry(record, ours.entry.vectors)
    return Entry(record, others.vectors([record["id"]]).get(record["id"]))


def _same(one: Record, other: Record | None) -> bool:
    return other is not None and all(_equal(value, other[name]) for name, value in one.items())


def _equal(one: object, other: object) -> bool:
    return list(one) == list(other) if _is_list(one) and _is_list(other) else one == other  # type: ignore[call-overload]


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
