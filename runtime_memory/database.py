"""Open a store's folder: make it when it is new, check what is in it, and hold its indexes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from indexes.consistency import HybridIndex
from indexes.events import EventLog
from indexes.filters import All
from indexes.lock import WriterLock
from indexes.vectors import VectorTable
from runtime_memory.embedding import Embedder
from runtime_memory.errors import StoreDamagedError, StoreUnavailableError
from runtime_memory.lazy_embedder import LazyEmbedder
from runtime_memory.manifest import Manifest
from runtime_memory.records import LAYOUT, OUTCOME_SCHEMA

__all__ = ["Database", "open_database"]

_DEFAULT_DIMENSION = 384
_OUTCOMES = "outcomes"


@dataclass
class Database:
    """An open store: its indexes, the log of outcomes, and what the manifest said when it was opened."""

    folder: Path
    manifest: Manifest
    index: HybridIndex
    outcomes: EventLog
    pid: int

    def model_problem(self, embedder: Embedder) -> str | None:
        """Say why vectors of this embedder cannot be compared with the stored ones; None when they can."""
        stored = self.manifest.embedding
        if stored in (None, embedder.identity) and embedder.dimension == self.manifest.dimension:
            return None
        return (
            f"the store's vectors are of {stored or 'no model'} with {self.manifest.dimension} dimensions, the "
            f"configured model is {embedder.identity} with {embedder.dimension}: memories are found by their words "
            "only. Set RUNTIME_MEMORY_EMBEDDING_MODEL back to the former."
        )

    def claim_model(self, embedder: Embedder) -> None:
        """Note, under the writers' lock, whose vectors the table holds from its first vector on."""
        self.manifest = Manifest.read(self.folder) or self.manifest
        if self.manifest.embedding is None and embedder.dimension == self.manifest.dimension:
            self.manifest = self.manifest.with_embedding(embedder.identity)
            self.manifest.write(self.folder)


def open_database(folder: Path, model: LazyEmbedder | None, *, lock_timeout: float) -> Database:
    """Open the store in a folder, and make it where there is none; ``model`` says how long its vectors are."""
    _make_private(folder)
    lock = WriterLock(folder / "lock", lock_timeout)
    manifest = Manifest.read(folder) or _create(folder, lock, model)
    uri = str(folder / "lance")
    table = VectorTable.open(uri, manifest.table, LAYOUT)
    outcomes = EventLog.open(uri, _OUTCOMES)
    if table is None or outcomes is None:
        missing = manifest.table if table is None else _OUTCOMES
        raise StoreDamagedError(
            f"{folder} has a manifest but its table {missing!r} is missing. Restore the folder from a backup, or set "
            "RUNTIME_MEMORY_DB to another one."
        )
    index = HybridIndex(table, folder / "text", LAYOUT, epoch=manifest.epoch, lock=lock)
    return Database(folder, manifest, index, outcomes, os.getpid())


def _make_private(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise StoreUnavailableError(
            f"{folder} is a file, not a folder; move it, or set RUNTIME_MEMORY_DB to another folder"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _create(folder: Path, lock: WriterLock, model: LazyEmbedder | None) -> Manifest:
    embedder = model.get() if model else None
    with lock.held():
        if made := Manifest.read(folder):
            return made
        uri = str(folder / "lance")
        manifest = Manifest.new(
            dimension=embedder.dimension if embedder else _DEFAULT_DIMENSION,
            embedding=embedder.identity if embedder else None,
        )
        left = VectorTable.open(uri, manifest.table, LAYOUT)
        if left is not None and left.count(All()):
            raise StoreDamagedError(
                f"{folder} holds memories but no manifest.json, which says of which model their vectors are. Restore "
                "it from a backup, or set RUNTIME_MEMORY_DB to another folder."
            )
        VectorTable.create(uri, manifest.table, LAYOUT, manifest.dimension)
        EventLog.create(uri, _OUTCOMES, OUTCOME_SCHEMA)
        manifest.write(folder)
        return manifest
