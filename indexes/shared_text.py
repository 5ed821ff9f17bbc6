"""A short text that several machines read and replace: a table of one row, whatever the object store."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from indexes.lance import Location, create_table, open_table

if TYPE_CHECKING:
    from lancedb.table import Table

__all__ = ["Revision", "SharedText"]

_SCHEMA = pa.schema([pa.field("revision", pa.int64(), nullable=False), pa.field("text", pa.string(), nullable=False)])


class Revision(NamedTuple):
    """A text, and the number by which it can be told from earlier and later ones."""

    number: int
    text: str


class SharedText:
    """Read the text, and replace the one that was read. Errors of LanceDB pass through."""

    def __init__(self, table: Table) -> None:
        self._table = table

    @classmethod
    def open(cls, where: str | Location, name: str) -> SharedText | None:
        """Open the text of this name; None where there is none."""
        table = open_table(where, name)
        return cls(table) if table is not None else None

    @classmethod
    def create(cls, where: str | Location, name: str, text: str) -> SharedText | None:
        """Make a text of this name; None where another one was first."""
        try:
            table = create_table(where, name, _SCHEMA, rows=[{"revision": 1, "text": text}])
        except ValueError as error:
            if "already exists" not in str(error):
                raise
            return None
        return cls(table)

    @property
    def version(self) -> int:
        """A number that changes with every writing."""
        return int(self._table.version)

    def read(self) -> Revision:
        """Return the newest text."""
        rows = self._table.search().select(["revision", "text"]).to_arrow().to_pylist()
        newest = max(rows, key=lambda row: row["revision"])
        return Revision(newest["revision"], newest["text"])

    def replace(self, read: Revision, text: str) -> bool:
        """Put a text in the place of the one that was read; False when another one has got there first."""
        values = {"revision": read.number + 1, "text": text}
        return bool(self._table.update(where=f"revision = {int(read.number)}", values=values).rows_updated)
