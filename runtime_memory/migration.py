"""Bring the folder of an earlier version up to the format of this one; nothing in it is lost."""

from __future__ import annotations

from pathlib import Path

from indexes.lock import WriterLock
from indexes.vectors import VectorTable
from runtime_memory.manifest import FORMAT_VERSION, Manifest
from runtime_memory.records import LAYOUT

__all__ = ["upgrade"]


def upgrade(folder: Path, lock: WriterLock) -> None:
    """Add what the format has gained; safe to repeat, should it be cut short.

    Format 2 has where imported memories came from (``origin_hash``) and when (``imported_at``).
    """
    with lock.held():
        manifest = Manifest.read(folder)
        if manifest is not None and manifest.format < FORMAT_VERSION:
            VectorTable.add_missing_columns(str(folder / "lance"), manifest.table, LAYOUT)
            manifest.replaced(format=FORMAT_VERSION).write(folder)
