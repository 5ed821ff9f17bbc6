"""A copy in memory of a table's vectors, as bytes: one pass over them instead of a query to files.

LanceDB needs 11 ms to look through the index of a hundred thousand vectors, and this 3. The copy follows the table's
versions, so that it shows every commit of every process: what was written since it was made is kept beside it until
that is much. A passage takes its vector's dimension and some 60 bytes more. Of a small table the vectors themselves are
kept as well, so that cosines are exact.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from indexes.codes import Codes, greatest
from indexes.filters import Filter
from indexes.layout import Vectors
from indexes.masks import asks_only, passing
from indexes.remembered import remembered
from indexes.vectors import ANN_ROWS, VectorHit, VectorTable

__all__ = ["ResidentVectors"]

_log = logging.getLogger(__name__)
_FILTERS_KEPT = 64
_BESIDE = 0.1
_LEAST_BESIDE = 500
"""As many passages are kept beside, or that share of the others, before they are joined."""


@dataclass(frozen=True)
class _Passages:
    """Passages: whose they are with what filters ask (id, part and columns), and their vectors."""

    rows: pa.Table
    codes: Codes
    exact: Vectors | None
    _passing: dict[Filter, NDArray[np.bool_]] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: pa.Table, *, exact: bool) -> _Passages:
        """Return those of a table's passages that are not deleted and have a vector; ``exact`` keeps that as well."""
        kept = stored.filter(
            pa.compute.and_(pa.compute.invert(stored["deleted"]), pa.compute.is_valid(stored["vector"]))
        )
        flat = kept["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        vectors = np.asarray(flat, np.float32).reshape(len(kept), stored.schema.field("vector").type.list_size)
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
        return cls(kept.drop_columns(["deleted", "vector"]), Codes.of(vectors), vectors / lengths if exact else None)

    @classmethod
    def joined(cls, parts: Sequence[_Passages]) -> _Passages:
        """Return the passages of several parts as one."""
        rows = pa.concat_tables([each.rows for each in parts]).combine_chunks()
        exact = [each.exact for each in parts if each.exact is not None]
        held = len(exact) == len(parts) and len(rows) < ANN_ROWS
        return cls(rows, Codes.joined([each.codes for each in parts]), np.concatenate(exact) if held else None)

    def __len__(self) -> int:
        return len(self.rows)

    def are_of(self, ids: pa.Array) -> NDArray[np.bool_]:
        """Return which passages are of these records."""
        return np.asarray(pa.compute.is_in(self.rows["id"], ids).to_numpy(zero_copy_only=False), bool)

    def kept(self, wanted: NDArray[np.bool_]) -> _Passages:
        """Return the passages that a mask keeps."""
        exact = None if self.exact is None else self.exact[wanted]
        return _Passages(self.rows.filter(pa.array(wanted)), self.codes.kept(wanted), exact)

    def nearest(self, vector: Vectors, where: Filter, limit: int, hidden: NDArray[np.bool_]) -> list[VectorHit]:
        """Return the records nearest to a unit vector, best first, but for hidden passages."""
        if not len(self):
            return []
        cosines = self.codes.cosines(vector)
        np.copyto(cosines, -np.inf, where=hidden | ~self._passes(where))
        for wanted in (limit + limit // 2, 8 * limit, len(cosines)):  # a long record fills places with its passages
            places = greatest(cosines, wanted)
            hits = self._hits(places, cosines, vector, limit)
            if len(hits) == limit or len(places) < wanted:
                break
        return sorted(hits, key=lambda hit: (hit.cosine, hit.id), reverse=True)

    def _passes(self, where: Filter) -> NDArray[np.bool_]:
        # a session asks with the same filter turn after turn
        return remembered(self._passing, where, lambda: passing(where, self.rows), most=_FILTERS_KEPT)

    def _hits(self, places: NDArray[np.intp], cosines: Vectors, vector: Vectors, limit: int) -> Collection[VectorHit]:
        """Return the best passage of each of the first records at some places, the best records first."""
        near = cosines[places] if self.exact is None else np.einsum("ij,j->i", self.exact[places], vector)
        order = np.argsort(-near, kind="stable")
        best = pa.array(places[order])
        ids, parts = (self.rows[name].chunk(0).take(best).to_pylist() for name in ("id", "part"))
        hits: dict[str, VectorHit] = {}
        for id_, cosine, part in zip(ids, near[order].tolist(), parts, strict=True):
            if id_ not in hits:
                hits[id_] = VectorHit(id_, cosine, part)
                if len(hits) == limit:
                    break
        return hits.values()


@dataclass(frozen=True)
class _Snapshot:
    """The passages of one version of the table: the many, which of them are stale by now, and those written since."""

    version: int
    many: _Passages
    stale: NDArray[np.bool_]
    newer: _Passages

    @classmethod
    def of(cls, version: int, parts: Sequence[_Passages]) -> _Snapshot:
        """Return a snapshot of passages with none beside."""
        many = _Passages.joined(parts)
        stale = np.zeros(len(many), bool)
        return cls(version, many, stale, many.kept(stale))

    def search(self, vector: Vectors, where: Filter, limit: int) -> list[VectorHit]:
        """Return the records nearest to a unit vector, best first."""
        found = self.many.nearest(vector, where, limit, self.stale)
        found += self.newer.nearest(vector, where, limit, np.zeros(len(self.newer), bool))
        return sorted(found, key=lambda hit: (hit.cosine, hit.id), reverse=True)[:limit]

    def brought_to(self, version: int, changed: pa.Table) -> _Snapshot:
        """Return the snapshot with passages written since in the place of those of the same records."""
        if not len(changed):
            return replace(self, version=version)
        ids = changed["id"].combine_chunks()
        stale = self.stale | self.many.are_of(ids)
        newer = _Passages.joined(
            [self.newer.kept(~self.newer.are_of(ids)), _Passages.of(changed, exact=self.many.exact is not None)]
        )
        if len(newer) <= max(_LEAST_BESIDE, _BESIDE * len(self.many)):
            return replace(self, version=version, stale=stale, newer=newer)
        return _Snapshot.of(version, [self.many.kept(~stale), newer])


class ResidentVectors:
    """Search the vectors of a table in memory, where they are at most ``most``."""

    def __init__(self, table: VectorTable, most: int) -> None:
        self._table = table
        self._most = most
        self._lock = threading.Lock()
        self._snapshot: _Snapshot | None = None
        self._loading: threading.Thread | None = None
        self._asked = False
        self.is_beyond = False
        """Whether there are too many vectors to hold."""

    def search(self, vector: Vectors, where: Filter, limit: int, version: int) -> list[VectorHit] | None:
        """Return the records nearest to a vector as of a version, best first; None where the table must be asked.

        The first search of a process leaves it to the table: a short-lived one does not pay for the copy. That of a
        large table is made in the background.
        """
        return self._search(self._at(version), vector, where, limit)

    def held(self, vector: Vectors, where: Filter, limit: int) -> list[VectorHit] | None:
        """Return the same of the copy as it is, however old; None where there is none."""
        return self._search(self._snapshot, vector, where, limit)

    @property
    def is_held(self) -> bool:
        """Whether there is a copy."""
        return self._snapshot is not None

    @property
    def is_loading(self) -> bool:
        """Whether the copy is being made."""
        return self._loading is not None and self._loading.is_alive()

    def _search(self, held: _Snapshot | None, vector: Vectors, where: Filter, limit: int) -> list[VectorHit] | None:
        if held is None or not asks_only(where, ["id", *self._table.layout.shared]):
            return None
        asked = np.asarray(vector, np.float32)
        return held.search(asked / max(float(np.linalg.norm(asked)), 1e-12), where, limit)

    def _at(self, version: int) -> _Snapshot | None:
        with self._lock:
            if self._snapshot is not None and self._snapshot.version < version:
                changed = self._table.passages_since(self._snapshot.version)
                self._keep(self._snapshot.brought_to(version, changed))
            elif self._snapshot is None and not (self.is_beyond or self.is_loading):
                self._begin(version)
            return self._snapshot

    def _begin(self, version: int) -> None:
        if not self._asked:
            self._asked = True
            return
        count = self._table.count_vectors()
        self.is_beyond = count > self._most
        if not self.is_beyond and count < ANN_ROWS:
            self._keep(self._made(version, exact=True))
        elif not self.is_beyond:
            self._loading = threading.Thread(target=self._load, args=(version,), name="runtime-memory-vectors")
            self._loading.daemon = True
            self._loading.start()

    def _load(self, version: int) -> None:
        try:
            made = self._made(version, exact=False)
        except Exception as error:  # noqa: BLE001 - nobody waits for this thread; searches ask the table meanwhile
            _log.info("the vectors could not be read into memory, which will be tried again: %s", error)
            return
        with self._lock:
            self._keep(made)

    def _made(self, version: int, *, exact: bool) -> _Snapshot:
        made = _Snapshot.of(version, self._table.read_passages(partial(_Passages.of, exact=exact)))
        pa.default_memory_pool().release_unused()  # it would keep what the reading took, more than is left of it
        return made

    def _keep(self, made: _Snapshot) -> None:
        self.is_beyond = len(made.many) > self._most
        self._snapshot = None if self.is_beyond else made
