"""Copy a store to one file while others write, and put such a copy in the place of a store.

A backup is a ``.tar.gz``: ``backup.json`` (what it is, and the size and checksum of every other file),
``manifest.json``, and both tables made anew, so that it holds nothing of what was forgotten. The text index is not in
it, as it is made from the table.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from indexes.filters import All
from runtime_memory.database import Database
from runtime_memory.errors import InvalidInputError, StoreDamagedError, StoreFormatError, StoreUnavailableError
from runtime_memory.leftovers import remove, upkeep_lock
from runtime_memory.purge import copy_tables

__all__ = ["MANIFEST", "BackedUp", "Contents", "back_up", "read_backup"]

_FORMAT = 1
_KIND = "runtime-memory backup"
_INDEX = "backup.json"
MANIFEST = "manifest.json"
_FILE_NAME = re.compile(r"manifest\.json|lance/(memories|outcomes)\.lance(/[\w-][\w.-]*)+", re.ASCII)
_ENDINGS = (".tar.gz", ".tgz")
_CHUNK = 1 << 20
_INDEX_LIMIT = 64 << 20
_FAST = 1  # vectors hardly shrink, whatever the effort


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A backup that was made and read back: where it is, how large in bytes, and how many memories it holds."""

    path: Path
    bytes: int
    memories: int


@dataclass(frozen=True, slots=True)
class Contents:
    """What a backup says of itself; ``files`` has the size in bytes and the SHA-256 of each."""

    created_at: str
    memories: int
    files: dict[str, tuple[int, str]]


def back_up(database: Database, path: Path, *, lock_timeout: float) -> BackedUp:
    """Write a backup to a file, or to a new file in a folder, and read it back before it gets its name.

    Writers wait while the tables are copied. A file that is there is replaced when it is a backup. Raises
    InvalidInputError for a path that will not do, TableReplaced.
    """
    target = _target(path.expanduser().absolute(), database.folder)
    staging, beside = database.folder / "backup.new", target.with_name(f"{target.name}.new")
    with upkeep_lock(database.folder, lock_timeout):
        try:
            remove(staging)
            with database.index.writing():
                copy_tables(database, str(staging / "lance"), "memories", "outcomes")
                memories = database.index.table.count(All())
                manifest = replace(database.manifest, table="memories", outcomes="outcomes")
            manifest.write(staging)
            with _written(target):
                _pack(staging, beside, memories)
                read_backup(beside)
                beside.replace(target)
                return BackedUp(target, target.stat().st_size, memories)
        finally:
            remove(staging)
            remove(beside)


def read_backup(path: Path, into: Path | None = None) -> Contents:
    """Read a backup through, with every checksum, and unpack it into a folder when one is given.

    Only files that its index names are written, and the index may name none outside the folder. Raises
    InvalidInputError for what is no backup, StoreFormatError for a newer one, StoreDamagedError for a damaged one.
    """
    with _readable(path), tarfile.open(path, "r:gz") as archive:
        contents = _contents(archive, path)
        missing = dict(contents.files)
        while member := archive.next():
            expected = missing.pop(member.name, None)
            stream = archive.extractfile(member) if member.isreg() else None
            if stream is None or expected is None or _copied(stream, into and into / member.name) != expected:
                raise StoreDamagedError(f"{path} is damaged at {member.name!r}; use another backup")
        if missing:
            raise StoreDamagedError(f"{path} lacks {min(missing)!r}; use another backup")
        return contents


def _target(path: Path, folder: Path) -> Path:
    if path.is_dir():
        path /= f"runtime-memory-{datetime.now(UTC):%Y%m%dT%H%M%SZ}{_ENDINGS[0]}"
    if not path.name.endswith(_ENDINGS):
        raise InvalidInputError(f"{path} is no name for a backup; give a folder, or a file that ends in .tar.gz")
    if not path.parent.is_dir():
        raise InvalidInputError(f"there is no folder {path.parent} for the backup; make it first")
    if path.resolve().is_relative_to(folder.resolve()):
        raise InvalidInputError(f"{path} lies in the store's own folder; keep backups elsewhere")
    if path.exists():
        try:
            with _readable(path), tarfile.open(path, "r:gz") as archive:
                _contents(archive, path)
        except (InvalidInputError, StoreDamagedError) as error:
            raise InvalidInputError(f"{path} is there already and is no whole backup; give another name") from error
    return path


def _pack(staging: Path, beside: Path, memories: int) -> None:
    paths = {path.relative_to(staging).as_posix(): path for path in sorted(staging.rglob("*")) if path.is_file()}
    files = {name: (path.stat().st_size, _checksum(path)) for name, path in paths.items()}
    now = datetime.now(UTC)
    contents = Contents(now.isoformat(timespec="seconds"), memories, files)
    index = json.dumps({"kind": _KIND, "format": _FORMAT, **asdict(contents)}, indent=1).encode()
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=_FAST) as archive:
            archive.addfile(_member(_INDEX, len(index), now), io.BytesIO(index))
            for name, path in paths.items():
                with path.open("rb") as content:
                    archive.addfile(_member(name, files[name][0], now), content)
        file.flush()
        os.fsync(file.fileno())


def _member(name: str, size: int, now: datetime) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, int(now.timestamp())
    return member


def _contents(archive: tarfile.TarFile, path: Path) -> Contents:
    """Return what the archive's first member says, checked."""
    first = archive.next()
    stream = archive.extractfile(first) if first and first.isreg() and first.name == _INDEX else None
    if stream is None or not first or first.size > _INDEX_LIMIT:
        raise InvalidInputError(f"{path} is no backup of Runtime Memory; mem backup makes one")
    try:
        stored = json.loads(stream.read())
        format_ = int(stored["format"]) if stored["kind"] == _KIND else 0
        files = {str(name): (int(size), str(checksum)) for name, (size, checksum) in stored["files"].items()}
        contents = Contents(str(stored["created_at"]), int(stored["memories"]), files)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreDamagedError(f"{path} is damaged, its index says nothing ({error}); use another backup.") from error
    if format_ < 1:
        raise InvalidInputError(f"{path} is no backup of Runtime Memory; mem backup makes one")
    if format_ > _FORMAT:
        raise StoreFormatError(
            f"{path} has format {format_}, written by a newer version; this one reads up to {_FORMAT}. "
            "Upgrade: pip install --upgrade runtime-memory"
        )
    strange = next((name for name in files if not _FILE_NAME.fullmatch(name)), None)
    if strange is not None:
        raise StoreDamagedError(f"{path} names a file that no backup has: {strange!r}. Nothing was unpacked.")
    if MANIFEST not in files:
        raise StoreDamagedError(f"{path} lacks {MANIFEST!r}; use another backup.")
    return contents


def _copied(stream: IO[bytes], to: Path | None) -> tuple[int, str]:
    """Read a stream to its end, write it to a file when one is given, and return its size and checksum."""
    size, checksum = 0, hashlib.sha256()
    with _sink(to) as write:
        while chunk := stream.read(_CHUNK):
            write(chunk)
            checksum.update(chunk)
            size += len(chunk)
    return size, checksum.hexdigest()


@contextmanager
def _sink(path: Path | None) -> Iterator[Callable[[bytes], Any]]:
    if path is None:
        yield lambda _: None
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        yield file.write
        file.flush()
        os.fsync(file.fileno())


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    if not path.is_file():
        raise InvalidInputError(f"there is no backup file {path}")
    with path.open("rb") as file:
        if file.read(2) != b"\x1f\x8b":
            raise InvalidInputError(f"{path} is no backup of Runtime Memory; mem backup makes one")
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise StoreDamagedError(f"{path} is damaged or cut off ({error}); use another backup.") from error


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailableError(f"the backup {path} cannot be written: {error.strerror or error}") from error
