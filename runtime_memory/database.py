"""Open a store's folder: make it when it is new, check what is in it, and hold its indexes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from indexes.consistency import HybridIndex
from indexes.events import EventLog
from indexes.filters import All
from indexes.lock import WriterLock
from indexes.vectors import VectorTable
from runtime_memory.embedding import Embedder
from runtime_memory.errors import StoreDamagedError, StoreUnavailableError
from runtime_memory.lazy_embedder import LazyEmbedder
from runtime_memory.leftovers import retire, sweep
from runtime_memory.manifest import FORMAT_VERSION, Manifest, manifest_stamp
from runtime_memory.mending import mend
from runtime_memory.migration import upgrade
from runtime_memory.place import Place
from runtime_memory.records import LAYOUT, OUTCOME_SCHEMA

__all__ = ["Database", "StoredManifest", "first_manifest", "make_private", "open_database"]

_DEFAULT_DIMENSION = 384
"""That of the default model."""

_ATTEMPTS = 5


class StoredManifest(Protocol):
    """What an open store knows of its manifest, wherever that is."""

    @property
    def manifest(self) -> Manifest:
        """The manifest as it was last read."""

    def is_replaced(self) -> bool:
        """Tell whether the store has other tables by now."""

    def change(self, update: Callable[[Manifest], Manifest]) -> None:
        """Replace the manifest, under the writers' lock, by what ``update`` makes of it."""


@dataclass
class ManifestState:
    """What an open store knows of the manifest in its folder; ``stamp`` is that of the file when it was last read."""

    folder: Path
    manifest: Manifest
    stamp: tuple[int, int, int] | None

    def is_replaced(self) -> bool:
        """Tell whether the folder holds other tables by now: a process has re-embedded, purged or restored it."""
        stamp = manifest_stamp(self.folder)
        if stamp == self.stamp:
            return False
        manifest = Manifest.read(self.folder)
        if manifest is None or manifest.epoch != self.manifest.epoch:
            return True
        self.manifest, self.stamp = manifest, stamp
        return False

    def change(self, update: Callable[[Manifest], Manifest]) -> None:
        """Replace the manifest, under the writers' lock, by what ``update`` makes of it."""
        self.manifest = update(self.manifest)
        self.manifest.write(self.folder)


@dataclass
class Database:
    """An open store: its indexes, the log of outcomes, and what the manifest says.

    It stays with the tables that it was opened with. ``model_name`` is the name by which the configured model is
    loaded, None for the default one; ``recovered`` says what had to be repaired when it was opened.
    """

    place: Place
    state: StoredManifest
    index: HybridIndex
    outcomes: EventLog
    model_name: str | None
    pid: int
    recovered: tuple[str, ...] = ()

    @property
    def manifest(self) -> Manifest:
        """What the manifest says of these tables."""
        return self.state.manifest

    @property
    def folder(self) -> Path:
        """The store's folder on this machine."""
        return self.place.folder

    @property
    def uri(self) -> str:
        """Where the tables of a store in a folder are."""
        return str(self.folder / "lance")

    def is_replaced(self) -> bool:
        """Tell whether the folder holds other tables by now."""
        return self.state.is_replaced()

    def mend(self) -> bool:
        """Repair the tables if files of them were lost or cut off; True when they are to be opened again."""
        return bool(mend(self.folder, self.manifest, self.index.lock))

    def model_problem(self, embedder: Embedder) -> str | None:
        """Say why vectors of this embedder cannot be compared with the stored ones; None when they can."""
        stored = self.manifest.embedding
        if stored in (None, embedder.identity) and embedder.dimension == self.manifest.dimension:
            return None
        back = "unset RUNTIME_MEMORY_EMBEDDING_MODEL" if self.manifest.model is None else "set it to that model"
        way_back = f", or {back} to go on with the former" if stored else ""
        return (
            f"the store's vectors are of {stored or 'no model'} with {self.manifest.dimension} dimensions, the "
            f"configured model (RUNTIME_MEMORY_EMBEDDING_MODEL) is {embedder.identity} with {embedder.dimension}: "
            f"memories are found by their words only. Embed them anew with mem reindex --embeddings{way_back}."
        )

    def claim_model(self, embedder: Embedder) -> None:
        """Note, under the writers' lock, whose vectors the table holds from its first vector on."""
        self.state.is_replaced()  # under the lock it is not; but another process may have claimed the table
        if self.manifest.embedding is None and embedder.dimension == self.manifest.dimension:
            self.state.change(
                lambda now: now if now.embedding else now.with_embedding(embedder.identity, self.model_name)
            )

    def set_weights(self, weights: Mapping[str, Any] | None) -> None:
        """Note the weights of the fusion, under the writers' lock; every open store uses them from its next call on."""
        self.state.change(lambda now: replace(now, weights=weights))

    def replace_tables(self, manifest: Manifest) -> None:
        """Let a manifest name other tables, under the writers' lock; every open store notices at its next call."""
        for name in {self.manifest.table, self.manifest.outcomes} - {manifest.table, manifest.outcomes}:
            retire(self.folder, name)
        manifest.write(self.folder)


def open_database(
    folder: Path, model: LazyEmbedder | None, *, lock_timeout: float, model_name: str | None = None
) -> Database:
    """Open the store in a folder, and make it where there is none; ``model`` says how long its vectors are."""
    make_private(folder)
    lock = WriterLock(folder / "lock", lock_timeout)
    recovered: tuple[str, ...] = ()
    for _ in range(_ATTEMPTS):
        stamp = manifest_stamp(folder)
        manifest = Manifest.read(folder) or _create(folder, lock, model, model_name)
        if manifest.format < FORMAT_VERSION:
            upgrade(folder, lock)
            continue
        if mended := mend(folder, manifest, lock):
            recovered += mended
            continue
        database = _opened(folder, manifest, stamp, lock, model_name)
        if database is not None:
            database.recovered = recovered
            sweep(folder, lock)
            return database
        if manifest_stamp(folder) == stamp:  # else the tables have been replaced in the meantime
            break
    raise StoreDamagedError(
        f"{folder} has a manifest but its table {manifest.table!r} or {manifest.outcomes!r} is missing. Restore the "
        "folder from a backup (mem restore), or set RUNTIME_MEMORY_DB to another one."
    )


def _opened(
    folder: Path, manifest: Manifest, stamp: tuple[int, int, int] | None, lock: WriterLock, model_name: str | None
) -> Database | None:
    uri = str(folder / "lance")
    table = VectorTable.open(uri, manifest.table, LAYOUT)
    outcomes = EventLog.open(uri, manifest.outcomes)
    if table is None or outcomes is None:
        return None
    state = ManifestState(folder, manifest, stamp)
    index = HybridIndex(table, folder / "text", LAYOUT, epoch=manifest.epoch, lock=lock, is_replaced=state.is_replaced)
    return Database(Place(folder), state, index, outcomes, model_name, os.getpid())


def make_private(folder: Path) -> None:
    """Make a store's folder, readable by its owner alone, if it is not there. Raises StoreUnavailableError."""
    if folder.exists() and not folder.is_dir():
        raise StoreUnavailableError(
            f"{folder} is a file, not a folder; move it, or set RUNTIME_MEMORY_DB to another folder"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def first_manifest(model: LazyEmbedder | None, model_name: str | None) -> Manifest:
    """Return the manifest of a store that is about to be made, with the model where that is there by now."""
    embedder = model.get() if model else None
    return Manifest.new(
        dimension=embedder.dimension if embedder else _DEFAULT_DIMENSION,
        embedding=embedder.identity if embedder else None,
        model=model_name if embedder else None,
    )


def _create(folder: Path, lock: WriterLock, model: LazyEmbedder | None, model_name: str | None) -> Manifest:
    manifest = first_manifest(model, model_name)
    with lock.held():
        if made := Manifest.read(folder):
            return made
        uri = str(folder / "lance")
        left = VectorTable.open(uri, manifest.table, LAYOUT)
        if left is not None and left.count(All()):
            raise StoreDamagedError(
                f"{folder} holds memories but no manifest.json, which says of which model their vectors are. Restore "
                "it from a backup (mem restore), or set RUNTIME_MEMORY_DB to another folder."
            )
        VectorTable.create(uri, manifest.table, LAYOUT, manifest.dimension)
        EventLog.create(uri, manifest.outcomes, OUTCOME_SCHEMA)
        manifest.write(folder)
        return manifest
