"""Read plain text: a memory a paragraph."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TextIO

from runtime_memory.importers import Item
from runtime_memory.importers.fields import fingerprint
from runtime_memory.importers.files import below, origin
from runtime_memory.importers.text_files import guarded, noticed, open_text
from runtime_memory.importers.timestamps import file_date
from runtime_memory.models import MemoryCategory, MemorySource, NewMemory

__all__ = ["LONGEST", "NAME", "detects", "find", "read"]

NAME = "text"

SUFFIXES = frozenset({".txt", ".text"})
LONGEST = 20_000
"""Characters; a longer paragraph is cut at its lines, and a longer line at a space."""


def detects(path: Path) -> bool:
    """Tell whether a file is plain text by its name."""
    return path.suffix.lower() in SUFFIXES and path.is_file()


def find(path: Path) -> Iterator[Path | Item]:
    """Yield the files of a folder by their names, and what is passed over; a file yields itself."""
    return below(path, lambda file: file.suffix.lower() in SUFFIXES)


@guarded
def read(file: Path, root: Path) -> Iterator[Item]:  # noqa: ARG001
    """Yield an item a paragraph, in a stream; blank lines separate them, and what holds no word is none."""
    opened = open_text(file)
    if isinstance(opened, Item):
        yield opened
        return
    with opened.stream as stream:
        where = origin(file)
        yield from noticed(_items(stream, where, file_date(file)), opened.notice, where)


def _items(stream: TextIO, where: str, written: datetime) -> Iterator[Item]:
    for number, paragraph in enumerate(_paragraphs(stream), start=1):
        place = f"{where}#p{number}"
        memory = NewMemory(
            paragraph,
            source=MemorySource.IMPORTED,
            created_at=written,
            origin=place,
            origin_hash=fingerprint(paragraph, MemoryCategory.GENERAL, (), {}, None),
        )
        yield Item(place, memory)


def _paragraphs(stream: TextIO) -> Iterator[str]:
    held: list[str] = []
    size = 0
    rest = ""
    while line := stream.readline(LONGEST):
        line, rest = _at_a_space(rest + line)
        if held and (not line.strip() or size + len(line) > LONGEST):
            yield from _told(held)
            held, size = [], 0
        if line.strip():
            held.append(line)
            size += len(line)
    yield from _told([*held, rest])


def _at_a_space(line: str) -> tuple[str, str]:
    """Return a line, and what comes after its last space where it is only the beginning of a longer one."""
    if line.endswith("\n") or len(line) < LONGEST:
        return line, ""
    at = line.rfind(" ", LONGEST // 2)
    return (line, "") if at < 0 else (line[: at + 1], line[at + 1 :])


def _told(lines: list[str]) -> Iterator[str]:
    text = "".join(lines).strip("\n").rstrip()
    if any(character.isalnum() for character in text):
        yield text
