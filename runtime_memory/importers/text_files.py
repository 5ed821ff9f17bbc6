"""Read text files of any size line by line: what fits in memory as every other file, what does not in a stream."""

from __future__ import annotations

import codecs
import io
import os
import stat
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import NamedTuple, TextIO

from runtime_memory.importers import Item
from runtime_memory.importers.files import MAX_BYTES, decode, load, origin

__all__ = ["LONGEST_LINE", "TextFile", "fault", "guarded", "head", "lines", "noticed", "open_text"]

LONGEST_LINE = 64_000_000
"""Characters; a longer line is passed over, so that a file without line ends is never held in memory."""

_CHUNK = 1 << 20


class TextFile(NamedTuple):
    """An open file, with line feeds at its line ends, and what its owner should know about how it is read."""

    stream: TextIO
    notice: str | None


Reader = Callable[..., Iterator[Item]]


def fault(where: str, why: str) -> Item:
    """Return the item of a place that should have given a memory and could not."""
    return Item(where, skipped=why, fault=True)


def guarded(read: Reader) -> Reader:
    """Return a reader that yields a fault, and ends, when its file cannot be read any further."""

    @wraps(read)
    def reading(file: Path, *args: object, **options: object) -> Iterator[Item]:
        try:
            yield from read(file, *args, **options)
        except OSError as error:
            yield fault(origin(file), error.strerror or str(error) or type(error).__name__)

    return reading


def open_text(file: Path) -> TextFile | Item:
    """Open a file, or return why it cannot be read; the caller closes it. Raises OSError where it fails later on.

    The encoding of a large file is UTF-16 where it is marked so, UTF-8 where all of it is, else Latin-1.
    """
    try:
        large = file.is_file() and file.stat().st_size > MAX_BYTES
    except (OSError, ValueError):
        large = False  # the whole reading says what is wrong
    if large:
        encoding, notice = _encoding(file)
        return TextFile(file.open(encoding=encoding, errors="replace"), notice)
    loaded = load(file)
    return loaded if isinstance(loaded, Item) else TextFile(io.StringIO(loaded.text, newline="\n"), loaded.notice)


def lines(stream: TextIO, longest: int = LONGEST_LINE) -> Iterator[tuple[int, str | None]]:
    """Yield the lines with their numbers, from 1; None for one that is longer than ``longest`` characters."""
    number = 0
    while line := stream.readline(longest + 1):
        number += 1
        if len(line) > longest and not line.endswith("\n"):
            while rest := stream.readline(_CHUNK):
                if rest.endswith("\n"):
                    break
            yield number, None
        else:
            yield number, line


def noticed(items: Iterator[Item], notice: str | None, where: str) -> Iterator[Item]:
    """Yield the items of a file, the first with a notice about the whole of it; one that says so where it is empty."""
    first = next(items, None)
    if first is None:
        yield Item(where, skipped="empty", notice=notice)
        return
    yield first._replace(notice="; ".join(filter(None, (notice, first.notice))) or None)
    yield from items


def head(file: Path, size: int = 1 << 16, *, needs: bytes = b"") -> str:
    """Return the first ``size`` bytes of a file as text, "" for what is no readable text file; never raises.

    A file in ASCII or UTF-8 that does not begin with ``needs`` gives "" too, before it is looked at any further.
    """
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):  # noqa: PTH116 - as in ``load``; a pipe would be waited for
            return ""
        with open(file, "rb", buffering=0) as stream:  # noqa: PTH123
            data = stream.read(size)
    except (OSError, ValueError):
        return ""
    if needs and data[:1].isascii() and not data.startswith(needs) and b"\0" not in data[:4]:
        return ""
    text, _ = decode(data)
    return (text or "").replace("\r\n", "\n").replace("\r", "\n")


def _encoding(file: Path) -> tuple[str, str | None]:
    with file.open("rb") as stream:
        data = stream.read(_CHUNK)
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16", None
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while data:
                decoder.decode(data)
                data = stream.read(_CHUNK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "latin-1", "not UTF-8, read as Latin-1"
    return "utf-8-sig", None
