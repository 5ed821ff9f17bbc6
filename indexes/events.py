"""An append-only LanceDB table: appends of several processes never conflict and never rewrite a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indexes.lance import KEEP_VERSIONS, create_table, fragments, open_table

if TYPE_CHECKING:
    from lancedb.table import Table

__all__ = ["EventLog"]


class EventLog:
    """Append events, and read those that came since the last reading. Errors of LanceDB pass through."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._read_version = 0

    @classmethod
    def open(cls, uri: str, name: str) -> EventLog | None:
        """Open the log of this name, or return None where there is none."""
        table = open_table(uri, name)
        return cls(table) if table is not None else None

    @classmethod
    def create(cls, uri: str, name: str, schema: pa.Schema) -> EventLog:
        """Create the log, empty; one of the same name is replaced."""
        return cls(create_table(uri, name, schema))

    def append(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Write events in one commit."""
        self._table.add(pa.Table.from_pylist([dict(event) for event in events], schema=self._table.schema))

    def unread(self) -> list[dict[str, Any]]:
        """Return the events of every process that this log has not returned before."""
        version = int(self._table.version)
        if version == self._read_version:
            return []
        since = f"_row_created_at_version > {self._read_version} AND _row_created_at_version <= {version}"
        events: list[dict[str, Any]] = self._table.search().where(since).to_arrow().to_pylist()
        self._read_version = version
        return events

    @property
    def fragments(self) -> int:
        """The number of data files."""
        return fragments(self._table)

    def optimize(self) -> None:
        """Compact the small files of single appends, and drop old versions."""
        self._table.optimize(cleanup_older_than=KEEP_VERSIONS)
