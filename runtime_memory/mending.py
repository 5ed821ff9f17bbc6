"""Repair a store's tables when it is opened and files of them were lost or cut off."""

from __future__ import annotations

import logging
from pathlib import Path

from indexes.lock import WriterLock
from indexes.recovery import StoredTables, finish, is_damaged, recover
from runtime_memory.manifest import Manifest
from runtime_memory.records import LAYOUT, OUTCOME_SCHEMA

__all__ = ["mend"]

_log = logging.getLogger(__name__)


def mend(folder: Path, manifest: Manifest, lock: WriterLock) -> tuple[str, ...]:
    """Repair what is damaged, and return in plain sentences what was done and what was lost; nothing when all is well.

    Then the manifest has another epoch: the text index is rebuilt, and every open store opens its tables again.
    """
    if not is_damaged(_tables(folder, manifest)):
        return ()
    with lock.held():
        manifest = Manifest.read(folder) or manifest
        tables = _tables(folder, manifest)
        if not is_damaged(tables):  # another process has repaired it, or was at work on it
            return ()
        said = recover(tables)
        manifest.replaced().write(folder)
        finish(tables)
    _log.warning("%s was damaged and has been repaired. %s", folder, " ".join(said))
    return tuple(said)


def _tables(folder: Path, manifest: Manifest) -> StoredTables:
    return StoredTables(
        folder, manifest.table, manifest.outcomes, manifest.epoch, LAYOUT, manifest.dimension, OUTCOME_SCHEMA
    )
