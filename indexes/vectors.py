"""The LanceDB table: every record and its passages' vectors, and the one source of truth.

One row a passage; the rows of a record share its id and are written in one commit. Deleting wipes the rows and marks
them, so that other processes see it through the row versions; the rows themselves go when the table is purged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from lancedb.expr import col, lit
from lancedb.index import IvfSq

from indexes.filters import All, AnyOf, Filter, In
from indexes.lance import (
    Location,
    clean,
    create_table,
    fragments,
    is_cleaned,
    open_table,
    read,
    rewrite_long_history,
    syncing,
    versions,
)
from indexes.layout import Change, Entry, Layout, Record, Vectors

if TYPE_CHECKING:
    from lancedb.table import Table

__all__ = ["ANN_ROWS", "Changes", "VectorHit", "VectorTable"]

_T = TypeVar("_T")

ANN_ROWS = 20_000
"""From this many vectors on, a search uses an index: a linear scan takes longer than the embedding of the query."""

_ANN_INDEX = "vector_idx"
_SCAN_BATCH, _PASSAGES_BATCH = 1_024, 32_768
_ATTEMPTS = 5
_PROBES, _PROBES_AMONG_FEW = 20, 32


class VectorHit(NamedTuple):
    """A record found by one of its passages: that passage's cosine similarity, and which it is."""

    id: str
    cosine: float
    part: int


class Changes(NamedTuple):
    """What was written after some version: the records as they are now, and the ids of the deleted ones."""

    written: list[Record]
    deleted: list[str]


class VectorTable:
    """Store records with their vectors, and find them by id, filter or vector.

    Every call sees the newest commit of every process. Writers must hold the store's lock: LanceDB would let two of
    them insert the same id. Errors of LanceDB pass through.
    """

    def __init__(self, table: Table, layout: Layout) -> None:
        self._table = table
        self._sync = syncing(table)
        self._version = versions(table)
        self.layout = layout
        self._schema = table.schema
        self._record_columns = ["id", "content", *(field.name for field in layout.columns)]

    @classmethod
    def open(
        cls, where: str | Location, name: str, layout: Layout, *, version: int | None = None
    ) -> VectorTable | None:
        """Open the table, or return None where there is none; with a version, as it was then, to read from."""
        table = open_table(where, name)
        if table is not None and version is not None:
            table.checkout(version)
        return cls(table, layout) if table is not None else None

    @classmethod
    def create(
        cls, where: str | Location, name: str, layout: Layout, dimension: int, *, keyed: bool = False
    ) -> VectorTable:
        """Create the table, empty; one of the same name in a folder is replaced. ``keyed`` is that of the layout."""
        made = cls(create_table(where, name, layout.schema(dimension, keyed=keyed)), layout)
        made._sync()
        return made

    @classmethod
    def add_missing_columns(cls, uri: str, name: str, layout: Layout) -> None:
        """Add the columns that a table of an earlier layout lacks; they are empty in every row."""
        table = open_table(uri, name)
        missing = [] if table is None else [each for each in layout.columns if each.name not in table.schema.names]
        if table is not None and missing:
            table.add_columns(missing)
            syncing(table)()

    def go_to(self, version: int) -> None:
        """Read the table as of a version from now on."""
        self._table.checkout(version)

    @property
    def version(self) -> int:
        """The number of the newest commit."""
        return self._version()

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self._schema.field("vector").type.list_size)

    def write(self, change: Change) -> int:
        """Write a change in one commit, durable when this returns, and return its version.

        The ids of its new records must be new.
        """
        version = self._commit(change)
        self._sync()
        return version

    def _commit(self, change: Change) -> int:
        entries = [*change.new, *change.replaced]
        rows = [row for entry in entries for row in self._rows(entry)]
        written = self._arrow(rows, [entry.vectors for entry in entries])
        if not (change.replaced or change.amended or change.deleted):
            return int(self._table.add(written, on_bad_vectors="null").version)
        kept = {(row["id"], row["part"]) for row in rows}
        replaced = [entry.record["id"] for entry in change.replaced]
        stale = [part for part in self._parts([*replaced, *change.deleted]) if part not in kept]
        wiped = self._arrow(_tombstones(stale), [None] * len(stale))
        merge = self._table.merge_insert(["id", "part"]).when_matched_update_all().when_not_matched_insert_all()
        rows_table = pa.concat_tables([written, wiped, self._amended(change.amended)])
        done = merge.use_index(False).execute(rows_table, on_bad_vectors="null")  # noqa: FBT003 - LanceDB's signature
        return int(done.version)

    def get(self, ids: Collection[str]) -> dict[str, Record]:
        """Return the stored records with these ids; unknown ids are left out."""
        if not ids:
            return {}
        found = self._select(In("id", tuple(ids)), self._record_columns, first_part=True)
        return {record["id"]: record for record in found.to_pylist()}

    def vectors(self, ids: Collection[str]) -> dict[str, Vectors]:
        """Return the vectors of the records with these ids; those that have none yet are left out."""
        if not ids:
            return {}
        found = self._select(In("id", tuple(ids)), ["id", "part", "vector"]).sort_by("part")
        found = found.filter(found["vector"].is_valid())
        values = found["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        rows: dict[str, list[Vectors]] = {}
        for id_, vector in zip(found["id"].to_pylist(), values.reshape(-1, self.dimension), strict=True):
            rows.setdefault(id_, []).append(vector)
        return {id_: np.stack(each) for id_, each in rows.items()}

    def scan(self, where: Filter, columns: Sequence[str] | None = None) -> Iterator[Record]:
        """Yield the records that pass the filter, in no order, without holding them all in memory."""
        query = self._table.search().where(self._sql(where, first_part=True))
        return _each(query.select(list(columns or self._record_columns)))

    def count(self, where: Filter) -> int:
        """Return how many records pass the filter."""
        return self._count(self._sql(where, first_part=True))

    def search(self, vector: Vectors, where: Filter, limit: int) -> list[VectorHit]:
        """Return the records nearest to a query vector of shape (dimension,), best first, each once."""
        wanted = 2 * limit
        while True:
            rows = self._nearest(vector, where, wanted)
            best: dict[str, VectorHit] = {}
            for row in rows:
                best.setdefault(row["id"], VectorHit(row["id"], 1.0 - row["_distance"], row["part"]))
            if len(best) >= limit or len(rows) < wanted:
                return sorted(list(best.values())[:limit], key=lambda hit: (hit.cosine, hit.id), reverse=True)
            wanted *= 4  # a long record fills many places with its passages

    def _nearest(self, vector: Vectors, where: Filter, limit: int) -> list[dict[str, Any]]:
        query: Any = self._table.search(vector, vector_column_name="vector")
        query = query.distance_type("cosine").where(self._sql(where), prefilter=True)
        if self.is_indexed():
            query = query.refine_factor(2).nprobes(_PROBES_AMONG_FEW)
        rows: list[dict[str, Any]] = read(query.select(["id", "part", "_distance"]).limit(limit).to_arrow).to_pylist()
        return rows

    def nearest_rows(self, vector: Vectors, limit: int) -> tuple[list[int], list[float]]:
        """Return the row ids of the passages nearest to a query vector, whatever they are, and their cosines."""
        query: Any = self._table.search(vector, vector_column_name="vector")
        query = query.distance_type("cosine").nprobes(_PROBES).refine_factor(1).with_row_id(True)  # noqa: FBT003 - LanceDB's signature
        found = read(query.select(["_distance", "_rowid"]).limit(limit).to_arrow)
        return found["_rowid"].to_pylist(), [1.0 - distance for distance in found["_distance"].to_pylist()]

    def without_vectors(self) -> Iterator[Record]:
        """Yield the records that have no vector yet."""
        query = self._table.search().where(f"{self._sql(All(), first_part=True)} AND vector IS NULL")
        return _each(query.select(self._record_columns))

    def count_without_vectors(self) -> int:
        """Return how many records have no vector yet."""
        return self._count(f"{self._sql(All(), first_part=True)} AND vector IS NULL")

    def deleted_ids(self) -> set[str]:
        """Return the ids of the records that were deleted since the table was made."""
        rows = self._table.search().where("deleted AND part = 0").select(["id"]).to_arrow()
        return set(rows["id"].to_pylist())

    def copied(self, uri: str, name: str) -> VectorTable:
        """Make a table that holds the records of this one, with their vectors, and nothing of the deleted ones."""
        copy = VectorTable.create(uri, name, self.layout, self.dimension)
        rows = self._table.search().where(self._sql(All())).select(self._schema.names)
        copy.load(rows.to_batches(_SCAN_BATCH))
        return copy

    def load(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Append rows as they are in another table of this layout, in one commit."""
        rows = pa.RecordBatchReader.from_batches(self._schema, (batch.cast(self._schema) for batch in batches))
        self._table.add(rows)
        self._sync()

    def changes_since(self, version: int) -> Changes:
        """Return what was written after a version."""
        changed = f"part = 0 AND _row_last_updated_at_version > {int(version)}"
        query = self._table.search().where(changed).select([*self._record_columns, "deleted"])
        rows = read(query.to_arrow).to_pylist()
        gone = [row["id"] for row in rows if row["deleted"]]
        written: list[Record] = [
            {name: row[name] for name in self._record_columns} for row in rows if not row["deleted"]
        ]
        return Changes(written, gone)

    def count_vectors(self) -> int:
        """Return how many passages have a vector."""
        return self._count("vector IS NOT NULL")

    def _count(self, condition: str) -> int:
        return read(lambda: int(self._table.count_rows(condition)))

    def passages_since(self, version: int) -> pa.Table:
        """Return every passage written after a version: id, part, deleted, vector and what searches filter by."""
        return read(self._passages(version).to_arrow)

    def read_passages(self, take: Callable[[pa.Table], _T]) -> list[_T]:
        """Return what ``take`` makes of all passages, some thousand at a time; of an empty table, of none."""

        def taken() -> list[_T]:
            batches = self._passages(0).to_batches(_PASSAGES_BATCH)
            return [take(pa.Table.from_batches([batch])) for batch in batches if batch.num_rows]

        return read(taken) or [take(self.passages_since(self.version))]

    def _passages(self, version: int) -> Any:
        query = self._table.search().where(f"_row_last_updated_at_version > {int(version)}")
        return query.select(["id", "part", "deleted", "vector", *self.layout.shared])

    def rows_since(self, version: int, columns: Sequence[str]) -> pa.Table:
        """Return every row written after a version: its row id, id, part, deleted, and these columns."""
        query: Any = self._table.search().where(f"_row_last_updated_at_version > {int(version)}")
        query = query.with_row_id(True).select(["id", "part", "deleted", *columns, "_rowid"])  # noqa: FBT003
        return read(query.to_arrow)

    def optimize(self) -> None:
        """Compact the small files of single writes, drop old versions, and let the vector index follow growth."""
        rewrite_long_history(self._table)
        if self.count_vectors() >= ANN_ROWS and not self.is_indexed():
            self._table.create_index("vector", config=IvfSq(distance_type="cosine"), name=_ANN_INDEX)
        clean(self._table)
        self._sync()

    @property
    def fragments(self) -> int:
        """The number of data files."""
        return fragments(self._table)

    def is_indexed(self) -> bool:
        """Tell whether there is an index of the vectors."""
        return any(index.name == _ANN_INDEX for index in self._table.list_indices())

    def _sql(self, where: Filter, *, first_part: bool = False) -> str:
        """Compile a filter to LanceDB's SQL; every value passes through its literal builder, which escapes it."""
        return self._clause(All((where, _LIVE))) + (" AND part = 0" if first_part else "")

    def _clause(self, where: Filter) -> str:
        match where:
            case In(_, ()):
                return "false"
            case In(column, values) if column in self.layout.lists:
                return _join("OR", [f"array_has({column}, {lit(value).to_sql()})" for value in values], empty="false")
            case In(column, values):
                return _isin(column, values)
            case All(clauses):
                return _join("AND", [self._clause(clause) for clause in clauses], empty="true")
            case AnyOf(clauses):
                return _join("OR", [self._clause(clause) for clause in clauses], empty="false")

    def _parts(self, ids: Collection[str]) -> list[tuple[str, int]]:
        rows = self._select(In("id", tuple(ids)), ["id", "part"]).to_pylist()
        return [(row["id"], row["part"]) for row in rows]

    def _select(self, where: Filter, columns: list[str], *, first_part: bool = False) -> pa.Table:
        return read(self._table.search().where(self._sql(where, first_part=first_part)).select(columns).to_arrow)

    def _amended(self, records: Sequence[Record]) -> pa.Table:
        """Return the rows of stored records with new columns and their vectors as they are."""
        amended = {record["id"]: record for record in records}
        current = self._select(In("id", tuple(amended)), ["id", "part", "vector"])
        rows = current.select(["id", "part"]).to_pylist()
        changed = [self._row(amended[row["id"]], row["part"]) for row in rows]
        return pa.Table.from_pylist(changed, self._schema).set_column(*self._vector_column(current["vector"]))

    def _rows(self, entry: Entry) -> Iterator[dict[str, Any]]:
        for part in range(1 if entry.vectors is None else len(entry.vectors)):
            yield self._row(entry.record, part)

    def _row(self, record: Record, part: int) -> dict[str, Any]:
        """Return a passage's row: part 0 is the record, the others repeat what a filter needs."""
        columns = self._record_columns if part == 0 else ["id", *self.layout.keywords]
        return {"part": part, "deleted": False, **{name: record[name] for name in columns}}

    def _arrow(self, rows: list[dict[str, Any]], vectors: Sequence[Vectors | None]) -> pa.Table:
        """Return rows as a table; ``vectors`` holds the passages of one record after the other."""
        if not rows:
            return self._schema.empty_table()
        missing = np.concatenate([[True] if v is None else np.zeros(len(v), bool) for v in vectors])
        blank = np.zeros((1, self.dimension), np.float32)
        values = np.concatenate([blank if v is None else v for v in vectors]).astype(np.float32, copy=False)
        column = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), self.dimension, mask=pa.array(missing))
        return pa.Table.from_pylist(rows, self._schema).set_column(*self._vector_column(column))

    def _vector_column(self, column: pa.Array) -> tuple[int, pa.Field, pa.Array]:
        at = self._schema.get_field_index("vector")
        return at, self._schema.field(at), column


def _tombstones(parts: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    return [{"id": id_, "part": part, "deleted": True} for id_, part in parts]


def _each(query: Any) -> Iterator[Record]:
    """Yield the records that a query finds; taken up again when the version that it reads is cleaned meanwhile."""
    seen: set[str] = set()
    for attempt in range(_ATTEMPTS):
        try:
            for batch in query.to_batches(_SCAN_BATCH):
                new = [record for record in batch.to_pylist() if record["id"] not in seen]
                seen.update(record["id"] for record in new)
                yield from new
        except RuntimeError as error:
            if attempt == _ATTEMPTS - 1 or not is_cleaned(error):
                raise
        else:
            return


_LIVE = In("deleted", (False,))


def _isin(column: str, values: tuple[str | bool, ...]) -> str:
    return (col(column) == values[0] if len(values) == 1 else col(column).isin(values)).to_sql()


def _join(operator: str, clauses: list[str], *, empty: str) -> str:
    return "(" + f" {operator} ".join(clauses) + ")" if clauses else empty
