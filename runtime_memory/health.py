"""Look an open store over: what its parts say about each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from indexes.filters import All
from runtime_memory.leftovers import leftovers
from runtime_memory.opening import Parts

__all__ = ["Health", "examine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What was found: in words where something disagrees, else as counts.

    ``orphans`` counts memories that are gone and have outcomes left; ``fragments`` the data files of the larger table.
    """

    disagreements: tuple[str, ...]
    without_vectors: int
    vectors: int
    orphans: int
    fragments: int
    recovered: tuple[str, ...]
    leftovers: tuple[Path, ...]


def examine(parts: Parts) -> Health:
    """Return the health of an open store; takes the writers' lock for a moment."""
    database = parts.database
    table = database.index.table
    judged = parts.ledger.evidence()
    there = {record["id"] for record in table.scan(All(), ["id"])} if judged else set()
    return Health(
        disagreements=tuple(database.index.disagreements()),
        without_vectors=table.count_without_vectors(),
        vectors=table.count_vectors(),
        orphans=len(judged.keys() - there),
        fragments=max(table.fragments, database.outcomes.fragments),
        recovered=database.recovered,
        leftovers=tuple(leftovers(database.folder)),
    )
