"""Make the indexes anew from what is stored: the text index at once, the vectors beside the old ones and then swapped.

Re-embedding takes as long as the model needs for every text, so others go on writing meanwhile. The new table is
filled in batches, each durable: what it holds is the progress, and a run that was broken off goes on from there.
What changed in the old table is brought over in ever smaller rounds, the last one under the writers' lock, and then
the manifest names the new table.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from indexes.filters import All
from indexes.layout import Change, Entry, Vectors
from indexes.vectors import VectorTable
from runtime_memory.database import Database
from runtime_memory.embedding import Embedder
from runtime_memory.errors import EmbeddingError
from runtime_memory.leftovers import NOTE, new_table_name, remove, table_folder, upkeep_lock
from runtime_memory.manifest import replace_file
from runtime_memory.records import LAYOUT
from runtime_memory.writing import Writing

__all__ = ["Progress", "Reindexed", "rebuild", "reembed"]

_log = logging.getLogger(__name__)

_BATCH = 64
_BATCHES_BETWEEN_COMPACTIONS = 64
_FEW_CHANGES = 16
_ROUNDS = 10

Progress = Callable[[int, int], None]
"""Called with the number of memories that are done, and of all."""


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What a reindexing did: ``embedded`` memories got new vectors, ``resumed`` had them from a run broken off."""

    memories: int
    embedded: int = 0
    resumed: int = 0
    embedding: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class _Job:
    """What the note says of a table that is being made: from the tables of which epoch, and with which model."""

    table: str
    epoch: str
    embedding: str
    dimension: int
    model: str | None


def rebuild(database: Database, writing: Writing) -> Reindexed:
    """Embed what has no vector yet, and build the text index anew. Raises TableReplaced."""
    filled = writing.fill_vectors()
    with database.index.writing() as writer:
        writer.rebuild_text()
        count = database.index.table.count(All())
    return Reindexed(count, filled, embedding=database.manifest.embedding, model=database.manifest.model)


def reembed(
    database: Database,
    embedder: Embedder,
    *,
    model: str | None,
    lock_timeout: float,
    progress: Progress | None = None,
) -> Reindexed:
    """Embed every memory anew with an embedder, into a new table that then replaces the old one.

    ``model`` is the name by which the embedder is loaded. Raises TableReplaced when the tables were replaced in the
    meantime, EmbeddingError when the model fails; what was done until then is kept for the next run.
    """
    with upkeep_lock(database.folder, lock_timeout):
        job = _begin(database, embedder, model)
        target = VectorTable.open(database.uri, job.table, LAYOUT) or VectorTable.create(
            database.uri, job.table, LAYOUT, job.dimension
        )
        return _Reembedding(database, target, embedder, job, progress).run()


def _begin(database: Database, embedder: Embedder, model: str | None) -> _Job:
    """Return the job of a run that was broken off, or else note a new one."""
    noted, manifest = _noted(database), database.manifest
    name = noted.table if noted else new_table_name(database.folder, "memories")
    job = _Job(name, manifest.epoch, embedder.identity, embedder.dimension, model)
    if noted and noted != job:  # of another model, or of tables that have been replaced since
        remove(table_folder(database.folder, noted.table))
    replace_file(database.folder / NOTE, json.dumps(asdict(job), indent=2).encode())
    return job


def _noted(database: Database) -> _Job | None:
    try:
        stored = json.loads((database.folder / NOTE).read_bytes())
        job = _Job(**stored)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        _log.warning("the note of a reindexing that was broken off cannot be read, it begins anew: %s", error)
        return None
    return job if job.table not in (database.manifest.table, database.manifest.outcomes) else None


class _Reembedding:
    """One run: bring the records of the store's table to ``target``, with new vectors."""

    def __init__(
        self, database: Database, target: VectorTable, embedder: Embedder, job: _Job, progress: Progress | None
    ) -> None:
        self._database = database
        self._source = database.index.table
        self._target = target
        self._embedder = embedder
        self._job = job
        self._progress = progress
        self._embedded = 0
        self._batches = 0

    def run(self) -> Reindexed:
        resumed = self._target.count(All())
        seen = self._source.version
        ids = sorted(_ids(self._source) | _ids(self._target))
        self._bring(ids, shown=True)
        for _ in range(_ROUNDS):
            now = self._source.version
            changed = self._changed_since(seen)
            seen = now
            self._bring(changed)
            if len(changed) <= _FEW_CHANGES:
                break
        self._target.optimize()
        with self._database.index.writing():
            self._bring(self._changed_since(seen))
            stored = _ids(self._source)
            self._bring(sorted(stored ^ _ids(self._target)))
            self._swap()
        return Reindexed(len(stored), self._embedded, resumed, self._job.embedding, self._job.model)

    def _changed_since(self, version: int) -> list[str]:
        changes = self._source.changes_since(version)
        return [*(record["id"] for record in changes.written), *changes.deleted]

    def _bring(self, ids: Sequence[str], *, shown: bool = False) -> None:
        """Let the target hold of these ids what the source holds."""
        for start in range(0, len(ids), _BATCH):
            self._bring_batch(ids[start : start + _BATCH])
            if shown and self._progress:
                self._progress(min(start + _BATCH, len(ids)), len(ids))

    def _bring_batch(self, ids: Sequence[str]) -> None:
        wanted, there = self._source.get(ids), self._target.get(ids)
        stale = [r for id_, r in wanted.items() if id_ not in there or there[id_]["content"] != r["content"]]
        vectors = _embed(self._embedder, [record["content"] for record in stale])
        entries = [Entry(record, rows) for record, rows in zip(stale, vectors, strict=True)]
        known = {record["id"] for record in stale}
        change = Change(
            new=[entry for entry in entries if entry.record["id"] not in there],
            replaced=[entry for entry in entries if entry.record["id"] in there],
            amended=[record for id_, record in wanted.items() if id_ not in known and record != there[id_]],
            deleted=[id_ for id_ in there if id_ not in wanted],
        )
        if not (change.written or change.deleted):
            return
        self._target.write(change)
        self._embedded += len(entries)
        self._batches += 1
        if self._batches % _BATCHES_BETWEEN_COMPACTIONS == 0:
            self._target.optimize()

    def _swap(self) -> None:
        job = self._job
        self._database.replace_tables(
            self._database.manifest.replaced(
                table=job.table, dimension=job.dimension, embedding=job.embedding, model=job.model
            )
        )
        with suppress(FileNotFoundError):
            (self._database.folder / NOTE).unlink()


def _ids(table: VectorTable) -> set[str]:
    return {record["id"] for record in table.scan(All(), ["id"])}


def _embed(embedder: Embedder, contents: Sequence[str]) -> list[Vectors]:
    """Return each text's vectors, a row a passage."""
    if not contents:
        return []
    try:
        passages = [embedder.passages(text) for text in contents]
        rows: Any = embedder.embed_passages([passage for cut in passages for passage in cut])
    except Exception as error:
        raise EmbeddingError(
            f"the model {embedder.identity} failed: {error}. Nothing has changed yet; run mem reindex --embeddings "
            "again, and it goes on where it was."
        ) from error
    ends, start = [], 0
    for cut in passages:
        ends.append(rows[start : start + len(cut)])
        start += len(cut)
    return ends
