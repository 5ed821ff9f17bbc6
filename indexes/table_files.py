"""The files of a LanceDB table, as its manifests list them: to make a commit durable, and to find what is damaged.

A table is a folder with ``_versions`` (a manifest for each commit), ``_transactions``, ``data``, ``_deletions`` and
``_indices``. A manifest is a protocol buffer between a length and a footer; only the fields that name files are read
here. Source: the format specification of Lance, "table format".
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

__all__ = ["StoredFile", "TableVersion", "is_whole", "manifest_path", "newest_manifests", "newest_version"]

_MAGIC = b"LANC"
_FOOTER = struct.Struct("<QHH4s")
_LARGEST = 2**64 - 1
_DIGITS = len(str(_LARGEST))
_SUFFIX = ".manifest"
_DELETION_SUFFIXES = (".arrow", ".bin")
# Fields of the messages Manifest, DataFragment, DataFile and DeletionFile.
_FRAGMENTS, _VERSION, _INDEXES, _TRANSACTION = 2, 3, 6, 12
_ID, _FILES, _DELETIONS, _ROWS = 1, 2, 3, 4
_HISTORY = {7, 9}
_PATH, _SIZE = 1, 6
_KIND, _READ_VERSION, _NUMBER = 1, 2, 3


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a table: its path in the table's folder, and its size in bytes where the manifest says it."""

    path: str
    size: int | None

    def is_sound(self, table: Path) -> bool:
        """Tell whether the file is there, with all its bytes."""
        try:
            size = (table / self.path).stat().st_size
        except FileNotFoundError:
            return False
        return size == self.size if self.size else size > 0


@dataclass(frozen=True, slots=True)
class TableVersion:
    """What one commit left: its number, its transaction's file, its fragments as they are encoded, its indexes' ids."""

    number: int
    transaction: str
    fragments: tuple[bytes, ...]
    indexes: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> TableVersion:
        """Read a manifest. Raises ValueError when it is cut off or empty, FileNotFoundError when it is not there."""
        content = path.read_bytes()
        number, transaction, fragments = 0, "", []
        indexes: tuple[str, ...] = ()
        try:
            position, _, _, magic = _FOOTER.unpack(content[-_FOOTER.size :])
            for field, value in _fields(_message(content, position)):
                if field == _FRAGMENTS and isinstance(value, bytes):
                    fragments.append(value)
                elif field == _VERSION and isinstance(value, int):
                    number = value
                elif field == _INDEXES and isinstance(value, int):
                    indexes = tuple(_index_ids(_message(content, value)))
                elif field == _TRANSACTION and isinstance(value, bytes):
                    transaction = value.decode()
        except (struct.error, OverflowError, IndexError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is cut off") from error
        if magic != _MAGIC:
            raise ValueError(f"{path} is cut off")
        return cls(number, transaction, tuple(fragments), indexes)

    def index_files(self, table: Path) -> list[Path]:
        """Return the files of its indexes that are there."""
        return [path for id_ in self.indexes for path in (table / "_indices" / id_).glob("*")]

    def history_bytes(self) -> int:
        """Return how long the record is of the versions in which each row was created and last updated."""
        fields = (each for fragment in self.fragments for each in _fields(fragment))
        return sum(len(value) for field, value in fields if field in _HISTORY and isinstance(value, bytes))

    def damaged(self, table: Path) -> list[int]:
        """Return the places of the fragments of which a file is missing or not whole."""
        return [
            place
            for place, fragment in enumerate(self.fragments)
            if not all(file.is_sound(table) for file in fragment_files(fragment))
        ]


def fragment_files(fragment: bytes) -> list[StoredFile]:
    """Return the data files of an encoded fragment, and its file of deletions when there is one."""
    id_, files, deletions = 0, [], None
    for field, value in _fields(fragment):
        if field == _ID and isinstance(value, int):
            id_ = value
        elif field == _FILES and isinstance(value, bytes):
            known = dict(_fields(value))
            path, size = known.get(_PATH, b""), known.get(_SIZE)
            files.append(StoredFile(f"data/{_text(path)}", size if isinstance(size, int) else None))
        elif field == _DELETIONS and isinstance(value, bytes):
            deletions = dict(_fields(value))
    if deletions is not None:
        kind, read_version, number = (int(deletions.get(f, 0)) for f in (_KIND, _READ_VERSION, _NUMBER))
        files.append(StoredFile(f"_deletions/{id_}-{read_version}-{number}{_DELETION_SUFFIXES[kind]}", None))
    return files


def fragment_rows(fragment: bytes) -> int:
    """Return how many rows an encoded fragment was written with and still has."""
    written = deleted = 0
    for field, value in _fields(fragment):
        if field == _ROWS and isinstance(value, int):
            written = value
        elif field == _DELETIONS and isinstance(value, bytes):
            deleted = int(dict(_fields(value)).get(4, 0))
    return written - deleted


def manifest_path(table: Path, version: int) -> Path:
    """Return where the manifest of a version is; the newest one's name sorts first."""
    return table / "_versions" / f"{_LARGEST - version:020}{_SUFFIX}"


def newest_manifests(table: Path) -> list[tuple[int, Path]]:
    """Return the versions that have a manifest, readable or not, newest first."""
    names = [path for path in (table / "_versions").glob(f"*{_SUFFIX}") if path.stem.isdigit()]
    return sorted(((_LARGEST - int(path.stem), path) for path in names), reverse=True)


def newest_version(table: Path) -> int | None:
    """Return the number of the newest commit, by the names of its manifests alone; None where they do not tell it."""
    try:
        names = os.listdir(table / "_versions")  # noqa: PTH208 - called before every search, and needs no paths
    except OSError:
        return None
    newest = min((name for name in names if name.endswith(_SUFFIX)), default="")
    number = newest.removesuffix(_SUFFIX)
    return _LARGEST - int(number) if len(number) == _DIGITS and number.isdecimal() else None


def is_whole(path: Path) -> bool:
    """Tell whether a file of Lance ends as all of them end."""
    try:
        with path.open("rb") as file:
            file.seek(-len(_MAGIC), 2)
            return file.read() == _MAGIC
    except OSError:  # not there, or shorter than that
        return False


def _message(content: bytes, position: int) -> bytes:
    (length,) = struct.unpack_from("<I", content, position)
    start = position + 4
    if start + length > len(content) - _FOOTER.size:
        raise ValueError("a manifest is shorter than it says")
    return content[start : start + length]


def _index_ids(section: bytes) -> Iterator[str]:
    for _, index in _fields(section):
        identity = dict(_fields(index if isinstance(index, bytes) else b"")).get(1, b"")
        yield str(UUID(bytes=bytes(dict(_fields(identity if isinstance(identity, bytes) else b"")).get(1, b""))))


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a protocol buffer: numbers as int, everything else as bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _varint(message, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a manifest holds a field of the unknown kind {kind}")
        if at + length > len(message):
            raise ValueError("a manifest holds a field that is cut off")
        yield key >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message):
            raise ValueError("a manifest holds a number that is cut off")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _text(value: int | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
