"""Put a backup in the place of a store, while others have it open."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path

from indexes import recovery
from indexes.durable import sync_folder
from indexes.filters import All
from indexes.lock import WriterLock
from indexes.vectors import VectorTable
from runtime_memory.backup import MANIFEST, read_backup
from runtime_memory.errors import RuntimeMemoryError, StoreDamagedError, StoreUnavailableError
from runtime_memory.failures import store_errors
from runtime_memory.leftovers import NOTE, new_table_name, remove, table_folder, upkeep_lock
from runtime_memory.manifest import Manifest
from runtime_memory.records import LAYOUT

__all__ = ["Restored", "memories_in", "restore"]


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did: how many memories there are now, and the folder that keeps what was there before."""

    memories: int
    created_at: str
    kept: Path | None


def memories_in(folder: Path) -> int | None:
    """Return how many memories a folder's store has; None when it cannot be read."""
    try:
        with store_errors(folder):
            manifest = Manifest.read(folder)
            if manifest is None:
                return None if (folder / "lance").exists() else 0
            table = VectorTable.open(str(folder / "lance"), manifest.table, LAYOUT)
            return None if table is None else table.count(All())
    except RuntimeMemoryError:
        return None


def restore(folder: Path, path: Path, *, lock_timeout: float) -> Restored:
    """Replace what a folder holds by a backup, checked before anything changes; open stores notice at their next call.

    What was there stays beside, in a folder ``replaced-…`` that is a store of its own, until someone removes it.
    Raises InvalidInputError for what is no backup, StoreErrors.
    """
    with store_errors(folder):
        if folder.exists() and not folder.is_dir():
            raise StoreUnavailableError(f"{folder} is a file, not a folder; move it, or name another folder")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with upkeep_lock(folder, lock_timeout):
            staging = folder / "restore.new"
            try:
                remove(staging)
                contents = read_backup(path.expanduser().absolute(), staging)
                manifest = _checked(staging, contents.memories, path)
                kept = _swap(folder, staging, manifest, lock_timeout)
            finally:
                remove(staging)
    return Restored(contents.memories, contents.created_at, kept)


def _checked(staging: Path, memories: int, path: Path) -> Manifest:
    """Return the manifest of an unpacked backup whose tables can be opened and hold what they should."""
    try:
        manifest = Manifest.parse((staging / MANIFEST).read_bytes(), str(path))
    except ValueError as error:
        raise StoreDamagedError(f"{path} holds no valid manifest ({error}); use another backup.") from error
    table = VectorTable.open(str(staging / "lance"), "memories", LAYOUT)
    whole = table is not None and table.dimension == manifest.dimension and table.count(All()) == memories
    if not whole or not table_folder(staging, "outcomes").is_dir():
        raise StoreDamagedError(f"{path} does not hold the {memories} memories that it says; use another backup.")
    return manifest


def _swap(folder: Path, staging: Path, manifest: Manifest, lock_timeout: float) -> Path | None:
    had = memories_in(folder)
    with WriterLock(folder / "lock", lock_timeout).held():
        old = _present(folder)
        (folder / "lance").mkdir(mode=0o700, exist_ok=True)
        names = {kind: new_table_name(folder, kind) for kind in ("memories", "outcomes")}
        kept = _place_to_keep(folder) if had != 0 else None
        if kept is not None:
            _copy_manifest(folder, kept)
        for kind, name in names.items():
            table_folder(staging, kind).rename(table_folder(folder, name))
        for place in (folder / "lance", *(each for name in names.values() for each in _folders(folder, name))):
            sync_folder(place)
        for note in (NOTE, recovery.NOTE):  # of work at the tables that go
            remove(folder / note)
        manifest.replaced(table=names["memories"], outcomes=names["outcomes"]).write(folder)
        for table in old:  # from here on the folder is the backup's, whatever happens
            if kept is not None:
                table.rename(kept / "lance" / table.name)
            else:
                remove(table)
    return kept


def _folders(folder: Path, name: str) -> list[Path]:
    return [path for path in (table_folder(folder, name), *table_folder(folder, name).rglob("*")) if path.is_dir()]


def _place_to_keep(folder: Path) -> Path:
    """Return a folder that is not there yet, named by the time."""
    first = folder / f"replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    numbered = (first.with_name(f"{first.name}-{number}") for number in count(2))
    return next(path for path in chain([first], numbered) if not path.exists())


def _present(folder: Path) -> list[Path]:
    """Return the tables of the store that is there, all that look like some when it cannot be read."""
    try:
        manifest = Manifest.read(folder)
    except StoreDamagedError:
        manifest = None
    if manifest is not None:
        found = [table_folder(folder, name) for name in (manifest.table, manifest.outcomes)]
        return [path for path in found if path.exists()]
    return sorted((folder / "lance").glob("*")) if (folder / "lance").is_dir() else []


def _copy_manifest(folder: Path, kept: Path) -> None:
    (kept / "lance").mkdir(mode=0o700, parents=True)
    if (folder / MANIFEST).exists():
        descriptor = os.open(kept / MANIFEST, os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write((folder / MANIFEST).read_bytes())
