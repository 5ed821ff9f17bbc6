"""What a record consists of: the columns that both indexes know, whatever they mean to the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["Change", "Entry", "Layout", "Record", "Vectors"]

Record = Mapping[str, Any]
"""One record: ``id``, ``content`` and the layout's columns."""

Vectors = NDArray[np.float32]
"""Unit vectors, one row a passage: shape (passages, dimension)."""


@dataclass(frozen=True)
class Layout:
    """The columns of a record besides ``id`` and ``content``.

    ``keywords`` names the columns (strings, booleans or lists of strings) by whose exact value a search can filter;
    ``unique`` those of them that have about as many values as there are records.
    """

    columns: tuple[pa.Field, ...]
    keywords: tuple[str, ...]
    unique: tuple[str, ...] = ()

    @cached_property
    def shared(self) -> tuple[str, ...]:
        """The keywords of one value a record that many records share, which searches filter by."""
        return tuple(name for name in self.keywords if name not in {*self.unique, *self.lists})

    @cached_property
    def lists(self) -> frozenset[str]:
        """The columns of lists."""
        return frozenset(field.name for field in self.columns if pa.types.is_list(field.type))

    def schema(self, dimension: int, *, keyed: bool = False) -> pa.Schema:
        """Return the table's schema: one row a passage, the record itself in part 0.

        With ``keyed`` LanceDB knows that id and part are a row's key, and lets no two writers insert the same.
        """
        key = {"lance-schema:unenforced-primary-key": "true"} if keyed else None
        return pa.schema(
            [
                pa.field("id", pa.string(), nullable=False, metadata=key),
                pa.field("part", pa.int32(), nullable=False, metadata=key),
                pa.field("content", pa.string()),
                *self.columns,
                pa.field("deleted", pa.bool_(), nullable=False),
                pa.field("vector", pa.list_(pa.float32(), dimension)),
            ]
        )


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit writes: new records, new versions with new vectors, new columns alone, and deletions."""

    new: Sequence[Entry] = ()
    replaced: Sequence[Entry] = ()
    amended: Sequence[Record] = ()
    deleted: Sequence[str] = ()

    @property
    def written(self) -> list[Record]:
        """The records that the commit leaves in another state."""
        return [*(entry.record for entry in (*self.new, *self.replaced)), *self.amended]


class Entry(NamedTuple):
    """A record to write, with its passages' vectors; without any it is found by its text only."""

    record: Record
    vectors: Vectors | None
