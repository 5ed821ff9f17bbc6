"""A copy in memory of a small table's vectors: one matrix product instead of a scan of files.

Up to some ten thousand vectors this takes less time than LanceDB needs to start a query; beyond, its index is faster
and the copy would be large. The copy follows the table's versions, so that it shows every commit of every process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indexes.filters import All, AnyOf, Filter, In
from indexes.layout import Vectors
from indexes.vectors import ANN_ROWS, VectorHit, VectorTable

__all__ = ["ResidentVectors"]

_FILTERS_KEPT = 64


@dataclass(frozen=True)
class _Snapshot:
    """The passages of one version of the table; ``columns`` holds the filterable values of each."""

    version: int
    ids: NDArray[np.object_]
    parts: NDArray[np.int32]
    vectors: Vectors
    columns: Mapping[str, NDArray[np.object_]]
    _passing: dict[Filter, NDArray[np.bool_] | None] = field(default_factory=dict)

    def passing(self, where: Filter) -> NDArray[np.bool_] | None:
        """Return which passages pass the filter; None for a filter on a column of lists."""
        if where not in self._passing:  # a session asks with the same filter turn after turn
            if len(self._passing) >= _FILTERS_KEPT:
                self._passing.clear()
            self._passing[where] = _passing(where, self)
        return self._passing[where]


class ResidentVectors:
    """Search the vectors of a table in memory, as long as they are few."""

    def __init__(self, table: VectorTable) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._snapshot: _Snapshot | None = None
        self._asked = False
        self._too_many = False

    def search(self, vector: Vectors, where: Filter, limit: int, version: int) -> list[VectorHit] | None:
        """Return the records nearest to a vector as of a version, best first; None where the table must be asked.

        The first search of a process leaves it to the table: a short-lived one does not pay for the copy.
        """
        return self._search(self._at(version), vector, where, limit)

    def held(self, vector: Vectors, where: Filter, limit: int) -> list[VectorHit] | None:
        """Return the same of the copy as it is, however old; None where there is none."""
        return self._search(self._snapshot, vector, where, limit)

    @property
    def is_held(self) -> bool:
        """Whether there is a copy."""
        return self._snapshot is not None

    @staticmethod
    def _search(snapshot: _Snapshot | None, vector: Vectors, where: Filter, limit: int) -> list[VectorHit] | None:
        passing = None if snapshot is None else snapshot.passing(where)
        if snapshot is None or passing is None:
            return None
        # One core does it in half the time that BLAS takes, whose threads would wait for each other on a busy machine.
        products = np.einsum("ij,j->i", snapshot.vectors, np.asarray(vector, np.float32))
        cosines = np.where(passing, products, -np.inf)
        best: dict[str, VectorHit] = {}
        for row in _descending(cosines, 4 * limit):
            id_ = snapshot.ids[row]
            best.setdefault(id_, VectorHit(id_, float(cosines[row]), int(snapshot.parts[row])))
            if len(best) == limit:
                break
        return sorted(best.values(), key=lambda hit: (hit.cosine, hit.id), reverse=True)

    def _at(self, version: int) -> _Snapshot | None:
        with self._lock:
            if not self._too_many and (self._snapshot is None or self._snapshot.version < version):
                self._snapshot = self._load(version)
            return self._snapshot

    def _load(self, version: int) -> _Snapshot | None:
        if not self._asked:
            self._asked = True
            return None
        old = self._snapshot
        self._too_many = old is None and self._table.count_vectors() >= ANN_ROWS
        if self._too_many:
            return None
        changed = self._table.passages_since(old.version if old else 0)
        new = _snapshot(changed, version)
        if old is not None:
            new = _joined(old, np.isin(old.ids, _strings(changed["id"]), invert=True), new)
        self._too_many = len(new.ids) >= ANN_ROWS
        return None if self._too_many else new


def _snapshot(rows: pa.Table, version: int) -> _Snapshot:
    kept = rows.filter(pa.compute.and_(pa.compute.invert(rows["deleted"]), pa.compute.is_valid(rows["vector"])))
    flat = kept["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    names = [name for name in kept.column_names if name not in {"id", "part", "deleted", "vector"}]
    vectors = np.asarray(flat, np.float32).reshape(len(kept), rows.schema.field("vector").type.list_size)
    return _Snapshot(
        version,
        _strings(kept["id"]),
        kept["part"].to_numpy().astype(np.int32),
        vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12)),
        {name: kept[name].to_numpy(zero_copy_only=False) for name in names},
    )


def _joined(old: _Snapshot, unchanged: NDArray[np.bool_], new: _Snapshot) -> _Snapshot:
    return _Snapshot(
        new.version,
        np.concatenate([old.ids[unchanged], new.ids]),
        np.concatenate([old.parts[unchanged], new.parts]),
        np.concatenate([old.vectors[unchanged], new.vectors]),
        {name: np.concatenate([values[unchanged], new.columns[name]]) for name, values in old.columns.items()},
    )


def _strings(column: pa.ChunkedArray) -> NDArray[np.object_]:
    return np.asarray(column.to_numpy(zero_copy_only=False), object)


def _descending(cosines: Vectors, expected: int) -> Iterator[int]:
    """Yield the rows of finite cosines, greatest first; sorts the first ``expected`` ones, and the rest on demand."""
    rows = np.arange(len(cosines))
    if expected < len(cosines):
        rows = np.argpartition(-cosines, expected)
        yield from _sorted(rows[:expected], cosines)
        rows = rows[expected:]
    yield from _sorted(rows, cosines)


def _sorted(rows: NDArray[np.intp], cosines: Vectors) -> Iterator[int]:
    order = rows[np.argsort(-cosines[rows], kind="stable")]
    yield from order[np.isfinite(cosines[order])].tolist()


def _passing(where: Filter, snapshot: _Snapshot) -> NDArray[np.bool_] | None:
    everything = np.ones(len(snapshot.ids), bool)
    match where:
        case In(column, values):
            held = snapshot.ids if column == "id" else snapshot.columns.get(column)
            return None if held is None else _any_of([held == value for value in values], everything)
        case All(clauses):
            passing = [_passing(clause, snapshot) for clause in clauses]
            failing = [~each for each in passing if each is not None]
            return None if len(failing) < len(passing) else ~_any_of(failing, everything)
        case AnyOf(clauses):
            passing = [_passing(clause, snapshot) for clause in clauses]
            known = [each for each in passing if each is not None]
            return None if len(known) < len(passing) else _any_of(known, everything)


def _any_of(passing: Sequence[NDArray[np.bool_]], everything: NDArray[np.bool_]) -> NDArray[np.bool_]:
    result = ~everything
    for each in passing:
        result |= np.asarray(each, bool)
    return result
