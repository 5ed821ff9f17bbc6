"""Bring what other programs keep into a store: formats turn files into items, ``sync`` settles and stores them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from runtime_memory.models import NewMemory
    from runtime_memory.outcomes import OutcomeEvent

__all__ = ["Item", "Skipped", "Summary"]


class Item(NamedTuple):
    """What an importer made of a place in a file: a memory, or a reason why there is none.

    ``origin`` is the file's absolute path and, after a ``#``, the place in it. ``outcomes`` are what was reported of a
    memory with an id. ``fault`` tells a file that should have been read from one that there is no need to read.
    ``notice`` is what its owner should know about how it was read.
    """

    origin: str
    memory: NewMemory | None = None
    skipped: str | None = None
    fault: bool = False
    notice: str | None = None
    outcomes: tuple[OutcomeEvent, ...] = ()


class Skipped(NamedTuple):
    """A place that gave no memory, and why; ``fault`` when it should have given one."""

    origin: str
    reason: str
    fault: bool


@dataclass
class Summary:
    """What an import did, or would do in a dry run.

    ``read`` counts files. ``updated`` memories have the new text of a place that changed, ``moved`` ones were found in
    another place, ``unchanged`` ones had been there before. ``vanished`` names the places that are gone: their memories
    are archived when the import prunes.
    """

    read: int = 0
    added: int = 0
    updated: int = 0
    moved: int = 0
    unchanged: int = 0
    outcomes: int = 0
    archived: int = 0
    vanished: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)

    @property
    def faults(self) -> int:
        """How much should have been read, and could not be."""
        return sum(each.fault for each in self.skipped)

    @property
    def memories(self) -> int:
        """How many memories the files held."""
        return self.added + self.updated + self.moved + self.unchanged

    def skip(self, origin: str, reason: str, *, fault: bool) -> None:
        """Count a place that gave no memory."""
        self.skipped.append(Skipped(origin, reason, fault))

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        counts = ("read", "added", "updated", "moved", "unchanged", "outcomes", "archived")
        return {name: getattr(self, name) for name in counts} | {
            "vanished": self.vanished,
            "skipped": [{"file": each.origin, "reason": each.reason, "fault": each.fault} for each in self.skipped],
            "notices": [{"file": origin, "notice": notice} for origin, notice in self.notices],
        }
