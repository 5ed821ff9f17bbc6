"""Make what was written survive a loss of power, and readable by its owner alone.

LanceDB leaves its files to the operating system's cache; here the new ones are synced, with the folders that name
them, before a write is acknowledged. Modes are set on the way, whatever the process's umask.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, whose fsync is enough
    fcntl = None  # type: ignore[assignment]

from indexes.table_files import TableVersion, fragment_files, manifest_path

__all__ = ["TableSync", "make_private", "sync_folder", "sync_new_file"]

_FILE_MODE, _FOLDER_MODE = 0o600, 0o700
_POSIX = os.name == "posix"
_NOT_OFFERED = {errno.EINVAL, errno.ENOTSUP}


class TableSync:
    """Sync what the commits since the last call wrote to a table's folder.

    The first call syncs all that the newest version consists of: a process may have died before it synced its own.
    """

    def __init__(self, table: Path) -> None:
        self._table = table
        self._version: int | None = None
        self._fragments: frozenset[bytes] = frozenset()
        self._folders: set[Path] = set()

    def sync(self, version: int) -> None:
        """Return when every file of this version is on the disk. Raises OSError when that cannot be done."""
        if version == self._version:
            return
        if self._version is None or self._version > version:
            self._version, self._fragments = version - 1, frozenset()
        newest = TableVersion.read(manifest_path(self._table, version))
        fragments = frozenset(newest.fragments)
        written = [self._table / f.path for each in fragments - self._fragments for f in fragment_files(each)]
        manifests = [manifest_path(self._table, v) for v in range(self._version + 1, version + 1)]
        written += self._transactions(newest, manifests[:-1])
        written += self._new_indexes()
        self._sync_all(written)
        self._sync_all(manifests)  # last, so that a manifest on the disk never names a file that is not
        hint = self._table / "_versions" / "latest_version_hint.json"
        if hint.exists():
            make_private(hint)
        self._version, self._fragments = version, fragments

    def _transactions(self, newest: TableVersion, others: Iterable[Path]) -> Iterator[Path]:
        versions = [newest, *(TableVersion.read(path) for path in others if path.exists())]
        return (self._table / "_transactions" / each.transaction for each in versions if each.transaction)

    def _new_indexes(self) -> Iterator[Path]:
        for folder in _children(self._table / "_indices"):
            if folder not in self._folders:
                yield from _children(folder)

    def _sync_all(self, files: Iterable[Path]) -> None:
        folders = set()
        for path in files:
            if sync_new_file(path):
                folders.add(path.parent)
        for folder in folders:
            self._sync_named(folder)

    def _sync_named(self, folder: Path) -> None:
        """Sync a folder, and once also those that name it, up to the store's own."""
        store = self._table.parent.parent
        sync_folder(folder, private=folder != store)
        if folder not in self._folders and folder != store:
            self._folders.add(folder)
            self._sync_named(folder.parent)


def sync_new_file(path: Path) -> bool:
    """Write a file's content to the disk; False when it has been replaced since and is no longer there."""
    try:
        descriptor = os.open(path, os.O_RDONLY if _POSIX else os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        if _POSIX and stat.S_IMODE(os.fstat(descriptor).st_mode) != _FILE_MODE:
            os.fchmod(descriptor, _FILE_MODE)
        _flush(descriptor)
    finally:
        os.close(descriptor)
    return True


def _flush(descriptor: int) -> None:
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone leaves the data in the drive's own cache
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def sync_folder(folder: Path, *, private: bool = True) -> None:
    """Write to the disk which files a folder holds; where that is not offered, the file system does it by itself."""
    if not _POSIX:
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if private and stat.S_IMODE(os.fstat(descriptor).st_mode) != _FOLDER_MODE:
            os.fchmod(descriptor, _FOLDER_MODE)
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_OFFERED:
            raise
    finally:
        os.close(descriptor)


def make_private(path: Path) -> None:
    """Take a file, or a folder and the files in it, from everyone but its owner."""
    if not _POSIX:
        return
    for each in (path, *_children(path)):
        try:
            mode = stat.S_IMODE(each.stat().st_mode)
            wanted = _FOLDER_MODE if each.is_dir() else _FILE_MODE
            if mode != wanted:
                each.chmod(wanted)
        except FileNotFoundError:  # removed meanwhile by a merge of segments
            continue


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
