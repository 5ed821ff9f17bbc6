"""An append-only LanceDB table: appends of several processes never conflict and never rewrite a row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lancedb.expr import col

from indexes.lance import (
    Location,
    clean,
    create_table,
    fragments,
    open_table,
    read,
    rewrite_long_history,
    syncing,
    versions,
)

if TYPE_CHECKING:
    from lancedb.table import Table

__all__ = ["EventLog"]

_COPY_BATCH = 65_536


class EventLog:
    """Append events, and read those that came since the last reading. Errors of LanceDB pass through."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._sync = syncing(table)
        self._version = versions(table)
        self._read_version = self._returned = 0

    @classmethod
    def open(cls, where: str | Location, name: str) -> EventLog | None:
        """Open the log of this name, or return None where there is none."""
        table = open_table(where, name)
        return cls(table) if table is not None else None

    @classmethod
    def create(cls, where: str | Location, name: str, schema: pa.Schema) -> EventLog:
        """Create the log, empty; one of the same name in a folder is replaced."""
        made = cls(create_table(where, name, schema))
        made._sync()
        return made

    def append(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Write events in one commit, durable when this returns."""
        self._table.add(pa.Table.from_pylist([dict(event) for event in events], schema=self._table.schema))
        self._sync()

    def unread(self) -> tuple[list[dict[str, Any]], bool]:
        """Return the events of every process that this log has not returned before.

        With them whether they are all there are, as the log was written anew and none counts as returned any more.
        """
        while (version := self._version()) != self._read_version:
            since = f"_row_created_at_version > {self._read_version} AND _row_created_at_version <= {version}"
            query = self._table.search().where(since).select(self._table.schema.names)
            events: list[dict[str, Any]] = read(query.to_arrow).to_pylist()
            anew = 0 < self._returned <= len(events) and self._none_before(self._read_version)
            if not anew or self._version() == version:
                self._read_version = version
                self._returned = len(events) if anew else self._returned + len(events)
                return events, anew
        return [], False

    def _none_before(self, version: int) -> bool:
        return read(lambda: self._table.count_rows(f"_row_created_at_version <= {version}")) == 0

    def about(self, column: str, values: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield the events with one of these values in a column, in no order."""
        if values:
            query = self._table.search().where(col(column).isin(list(values)).to_sql())
            yield from read(query.select(self._table.schema.names).to_arrow).to_pylist()

    def values(self, column: str) -> set[str]:
        """Return the values that a column has."""
        batches = self._table.search().select([column]).to_batches(_COPY_BATCH)
        return {value for batch in batches for value in pa.compute.unique(batch[column]).to_pylist()}

    def copied(self, uri: str, name: str, column: str, values: Collection[str]) -> EventLog:
        """Make a log of those events of this one that have one of these values in a column."""
        schema = self._table.schema
        copy, wanted = EventLog.create(uri, name, schema), pa.array(list(values), pa.string())
        batches = self._table.search().select(schema.names).to_batches(_COPY_BATCH)
        copy.load(batch.filter(pa.compute.is_in(batch[column], wanted)) for batch in batches)
        return copy

    def load(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Append events as they are in another log of the same columns, in one commit."""
        schema = self._table.schema
        self._table.add(pa.RecordBatchReader.from_batches(schema, (batch.cast(schema) for batch in batches)))
        self._sync()

    @property
    def fragments(self) -> int:
        """The number of data files."""
        return fragments(self._table)

    def optimize(self) -> None:
        """Compact the small files of single appends, and drop old versions."""
        rewrite_long_history(self._table)
        clean(self._table)
        self._sync()
