"""Which record each row of a large table is of, and what filters ask about it, held in memory.

LanceDB's index finds the nearest rows of a hundred thousand in 3 ms, and takes three times as long to look up whose
they are and whether they pass a filter. A row takes some 60 bytes here. The map is made in the background, and follows
the table's versions: rows written since are kept beside it until they are many.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from indexes.filters import Filter, matches
from indexes.layout import Vectors
from indexes.masks import asks_only, passing
from indexes.remembered import remembered
from indexes.vectors import VectorHit, VectorTable

__all__ = ["RowMap"]

_log = logging.getLogger(__name__)
_BESIDE = 10_000
_MANY = 0.25
_SPARES = (1.2, 5.0)
_FILTERS_KEPT = 16


@dataclass(frozen=True)
class _Snapshot:
    """The rows of one version of the table, by their row ids in order, and those written since, by their row id."""

    version: int
    numbers: NDArray[np.uint64]
    rows: pa.Table
    newer: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    _passing: dict[Filter, NDArray[np.bool_]] = field(default_factory=dict)

    def hits(self, numbers: Sequence[int], cosines: Sequence[float], where: Filter) -> list[VectorHit] | None:
        """Return those of some rows that pass the filter, in their order; None when one of them is not known."""
        wanted = np.asarray(numbers, np.uint64)
        places = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
        known = self.numbers[places] == wanted
        passing = known & self.passing(where)[places]
        rows: dict[int, Any] = {number: self.newer[number] for number in numbers if number in self.newer}
        if not all(held or number in rows for held, number in zip(known.tolist(), numbers, strict=True)):
            return None
        rows = {number: row for number, row in rows.items() if not row["deleted"] and matches(where, row)}
        passing &= ~np.isin(wanted, np.fromiter(self.newer, np.uint64, len(self.newer)))
        older = self.rows.select(["id", "part"]).take(pa.array(places[passing]))
        rows |= zip(wanted[passing].tolist(), older.to_pylist(), strict=True)
        return [
            VectorHit(row["id"], cosine, row["part"])
            for number, cosine in zip(numbers, cosines, strict=True)
            if (row := rows.get(number)) is not None
        ]

    def passing(self, where: Filter) -> NDArray[np.bool_]:
        """Return which of the rows, but for the newer ones, pass the filter."""

        def made() -> NDArray[np.bool_]:
            live: NDArray[np.bool_] = pa.compute.invert(self.rows["deleted"]).to_numpy(zero_copy_only=False)
            return live & passing(where, self.rows)

        # a session asks with the same filter turn after turn
        return remembered(self._passing, where, made, most=_FILTERS_KEPT)


class RowMap:
    """Search a large table by its vector index, and look up in memory whose the nearest rows are."""

    def __init__(self, table: VectorTable) -> None:
        self._table = table
        self._columns = table.layout.shared
        self._lock = threading.Lock()
        self._snapshot: _Snapshot | None = None
        self._loading: threading.Thread | None = None
        self._indexed = -1, False

    def search(self, vector: Vectors, where: Filter, limit: int, *, share: float, version: int) -> list[VectorHit]:
        """Return the records nearest to a vector, best first; ``share`` is how much of all passes the filter."""
        if share < _MANY or not self._is_indexed(version) or not asks_only(where, self._columns):
            return self._table.search(vector, where, limit)
        snapshot = self._at(version)
        for spare in _SPARES:
            if snapshot is not None and (
                found := self._among(snapshot, vector, where, limit, int(spare * limit / share))
            ):
                return found
        return self._table.search(vector, where, limit)

    @property
    def is_loading(self) -> bool:
        """Whether the map is being made."""
        return self._loading is not None and self._loading.is_alive()

    def _is_indexed(self, version: int) -> bool:
        if self._indexed[0] != version:  # to ask takes as long as to answer a question
            self._indexed = version, self._table.is_indexed()
        return self._indexed[1]

    def _among(
        self, snapshot: _Snapshot, vector: Vectors, where: Filter, limit: int, wanted: int
    ) -> list[VectorHit] | None:
        """Return the nearest that pass, of so many rows; None when they are too few, or one of them is not known."""
        hits = snapshot.hits(*self._table.nearest_rows(vector, wanted), where)
        best: dict[str, VectorHit] = {}
        for hit in hits or ():
            best.setdefault(hit.id, hit)
        if len(best) < limit:
            return None
        return sorted(list(best.values())[:limit], key=lambda hit: (hit.cosine, hit.id), reverse=True)

    def _at(self, version: int) -> _Snapshot | None:
        with self._lock:
            old = self._snapshot
            if old is not None and old.version < version:
                self._snapshot = self._brought_to(old, version)
            elif old is None and not self.is_loading:
                self._loading = threading.Thread(target=self._load, args=(version,), name="runtime-memory-rows")
                self._loading.daemon = True
                self._loading.start()
            return self._snapshot

    def _load(self, version: int) -> None:
        try:
            made = self._made(version)
        except Exception as error:  # noqa: BLE001 - nobody waits for this thread; searches ask the table meanwhile
            _log.info("the map of rows could not be made and will be tried again: %s", error)
            return
        with self._lock:
            self._snapshot = made

    def _made(self, version: int) -> _Snapshot:
        rows = self._table.rows_since(0, self._columns).combine_chunks().sort_by("_rowid")
        return _Snapshot(version, rows["_rowid"].to_numpy().astype(np.uint64), rows.drop_columns(["_rowid"]))

    def _brought_to(self, old: _Snapshot, version: int) -> _Snapshot | None:
        changed = self._table.rows_since(old.version, self._columns).to_pylist()
        newer = {**old.newer, **{row["_rowid"]: row for row in changed}}
        if len(newer) > _BESIDE:
            return None
        return replace(old, version=version, newer=newer)
