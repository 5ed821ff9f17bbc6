"""The files of a Tantivy index: whether they are what was written, and how to read them where nothing can be written.

Tantivy ends each file of a segment with a checksum, which it does not look at by itself. Source: its ``footer.rs``.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["LinkedFolder", "damaged_files", "segment_bytes"]

_META = "meta.json"
_ENDING = struct.Struct("<II")
_MAGIC = 1337


def damaged_files(folder: Path) -> list[str]:
    """Return the names of the files in use whose content is not what was written, as far as checksums tell.

    Raises OSError or ValueError when the list of files cannot be read.
    """
    return [path.name for path in _files_in_use(folder) if not _is_sound(path)]


def segment_bytes(folder: Path) -> int:
    """Return the size of the files in use."""
    return sum(path.stat().st_size for path in _files_in_use(folder))


class LinkedFolder:
    """A temporary folder of links to an index in a folder that cannot be written.

    Tantivy takes a lock to read, and makes a file for it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._links = tempfile.TemporaryDirectory(prefix="runtime-memory-", ignore_cleanup_errors=True)
        self.path = Path(self._links.name)

    def refresh(self) -> None:
        """Link to the files that are there now; their content is not copied."""
        for path in self._folder.iterdir():
            link = self.path / path.name
            if not path.name.endswith(".lock") and not link.is_symlink():
                link.symlink_to(path)

    def close(self) -> None:
        """Remove the links."""
        self._links.cleanup()


def _files_in_use(folder: Path) -> Iterator[Path]:
    meta: dict[str, Any] = json.loads((folder / _META).read_bytes())
    segments = {each["segment_id"].replace("-", ""): each["deletes"] for each in meta["segments"]}
    for path in folder.iterdir():
        segment, _, kind = path.name.partition(".")
        if segment not in segments:
            continue
        deletes = segments[segment]
        if not kind.endswith("del") or (deletes and kind == f"{deletes['opstamp']}.del"):
            yield path


def _is_sound(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _ENDING.size))
        ending = file.read()
        if len(ending) < _ENDING.size:
            return False
        length, magic = _ENDING.unpack(ending)
        body = size - _ENDING.size - length
        if magic != _MAGIC or body < 0:
            return False
        file.seek(body)
        try:
            expected = json.loads(file.read(length))["crc"]
        except (ValueError, KeyError, TypeError):
            return False
        file.seek(0)
        checksum = 0
        while body > 0 and (piece := file.read(min(body, 1 << 20))):
            checksum = zlib.crc32(piece, checksum)
            body -= len(piece)
        return bool(checksum == expected)
