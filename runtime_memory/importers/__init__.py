"""Bring notes of other programs into a store: importers turn files into items, this module stores them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from runtime_memory.models import NewMemory
    from runtime_memory.store import MemoryStore

__all__ = ["Item", "Summary", "store_items"]

_BATCH = 64


class Item(NamedTuple):
    """What an importer made of one file: a memory, or a reason why there is none.

    ``fault`` tells a file that should have been read from one that there is no need to read. ``notice`` is what its
    owner should know about how it was read.
    """

    origin: str
    memory: NewMemory | None = None
    skipped: str | None = None
    fault: bool = False
    notice: str | None = None


@dataclass
class Summary:
    """What an import did; ``unchanged`` memories had been there before."""

    read: int = 0
    added: int = 0
    unchanged: int = 0
    faults: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)

    def skip(self, origin: str, reason: str, *, fault: bool) -> None:
        """Count a file that gave no memory."""
        self.skipped.append((origin, reason))
        self.faults += fault

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {
            "read": self.read,
            "added": self.added,
            "unchanged": self.unchanged,
            "skipped": [{"file": origin, "reason": reason} for origin, reason in self.skipped],
            "notices": [{"file": origin, "notice": notice} for origin, notice in self.notices],
        }


def store_items(store: MemoryStore | None, items: Iterable[Item]) -> Summary:
    """Store what was read, in batches, and return what became of it; without a store, only count.

    A memory that the store refuses is skipped, and the others are stored.
    """
    summary = Summary()
    batch: list[Item] = []
    for item in items:
        if item.notice:
            summary.notices.append((item.origin, item.notice))
        if item.memory is None:
            summary.skip(item.origin, item.skipped or "", fault=item.fault)
            continue
        summary.read += 1
        batch.append(item)
        if len(batch) == _BATCH:
            _write(store, batch, summary)
            batch = []
    _write(store, batch, summary)
    return summary


def _write(store: MemoryStore | None, batch: Sequence[Item], summary: Summary) -> None:
    if store is None or not batch:
        return
    memories = [item.memory for item in batch if item.memory]
    try:
        written = store.write(memories)
    except InvalidInputError as error:
        if len(batch) == 1:
            summary.skip(batch[0].origin, str(error), fault=True)
        else:
            for item in batch:
                _write(store, [item], summary)
    else:
        unchanged = sum(each.duplicate for each in written)
        summary.unchanged += unchanged
        summary.added += len(written) - unchanged
