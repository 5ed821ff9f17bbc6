"""What a store's folder holds beyond the store: replaced tables, work that was broken off, damaged parts set aside.

A replaced table stays for ten minutes, as another process may be reading it. A table that is being made is named by
``reindex.json``, so that the work can go on later; after a week without it, it is given up.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from indexes.lance import KEEP_VERSIONS
from indexes.lock import WriterLock
from runtime_memory.manifest import Manifest

__all__ = ["NOTE", "leftovers", "new_table_name", "remove", "retire", "sweep", "table_folder", "upkeep_lock"]

_log = logging.getLogger(__name__)

NOTE = "reindex.json"
"""The note of a table that is being made."""

_UPKEEP_LOCK = "upkeep.lock"
_GIVEN_UP_SECONDS = 7 * 24 * 3600.0
_ASIDE = re.compile(r"damaged-.*|replaced-.*|.*\.(new|old|tmp)")


@contextmanager
def upkeep_lock(folder: Path, timeout: float) -> Iterator[None]:
    """Hold the lock of those who replace tables or copy the store: one of them at a time, while others write."""
    with WriterLock(folder / _UPKEEP_LOCK, timeout).held():
        yield


def table_folder(folder: Path, name: str) -> Path:
    """Return where a table's files are."""
    return folder / "lance" / f"{name}.lance"


def new_table_name(folder: Path, kind: str) -> str:
    """Return a name for a new table that none has: ``memories-2``, ``memories-3`` and so on."""
    number = 2
    while table_folder(folder, f"{kind}-{number}").exists():
        number += 1
    return f"{kind}-{number}"


def retire(folder: Path, name: str) -> None:
    """Note that a table is replaced from now on."""
    if table_folder(folder, name).exists():
        os.utime(table_folder(folder, name))


def sweep(folder: Path, lock: WriterLock) -> None:
    """Drop replaced tables that nobody can be reading any more; when another process is at work, later."""
    try:
        if _unused_tables(folder):
            _sweep(folder, lock)
    except OSError as error:  # a folder that can only be read, say: what is left over does no harm
        _log.info("what is left over in %s stays for now: %s", folder, error)


def _sweep(folder: Path, lock: WriterLock) -> None:
    with ExitStack() as held:
        for each in (WriterLock(folder / _UPKEEP_LOCK, 0), lock):
            if not held.enter_context(each.held(wait=False)):
                return
        now = time.time()
        if (folder / NOTE).exists() and now - (folder / NOTE).stat().st_mtime >= _GIVEN_UP_SECONDS:
            (folder / NOTE).unlink()
        for path in _unused_tables(folder):
            if now - path.stat().st_mtime >= KEEP_VERSIONS.total_seconds():
                remove(path)


def leftovers(folder: Path) -> list[Path]:
    """Return everything in the folder that is of no use to the store, whatever its age."""
    aside = [path for path in folder.iterdir() if path.name == NOTE or _ASIDE.fullmatch(path.name)]
    return [*aside, *_unused_tables(folder, noted=False)]


def remove(path: Path) -> None:
    """Remove a file or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _unused_tables(folder: Path, *, noted: bool = True) -> list[Path]:
    manifest = Manifest.read(folder)
    if manifest is None or not (folder / "lance").is_dir():
        return []
    used = {manifest.table, manifest.outcomes} | ({_noted(folder)} if noted else set())
    return [path for path in (folder / "lance").iterdir() if path.name.removesuffix(".lance") not in used]


def _noted(folder: Path) -> str | None:
    try:
        return str(json.loads((folder / NOTE).read_bytes())["table"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
