"""Read tables of comma- or tab-separated values: a row a memory, by the names in the first row."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TextIO

from runtime_memory.importers import Item
from runtime_memory.importers.fields import TARGETS, Fields, without_text
from runtime_memory.importers.files import below, origin
from runtime_memory.importers.text_files import fault, guarded, head, noticed, open_text
from runtime_memory.importers.timestamps import file_date

__all__ = ["NAME", "detects", "find", "read"]

NAME = "csv"

SUFFIXES = frozenset({".csv", ".tsv", ".tab"})
MAX_CELL = 4_000_000
_SEPARATORS = (",", "\t", ";", "|")
_NONE = "\x1f"


def detects(path: Path) -> bool:
    """Tell whether a file is a table with a column for the text."""
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        return False
    begin = head(path)
    return not begin.strip() or bool(_columns(_first_row(begin), {}))


def find(path: Path) -> Iterator[Path | Item]:
    """Yield the files of a folder by their names, and what is passed over; a file yields itself."""
    return below(path, lambda file: file.suffix.lower() in SUFFIXES)


@guarded
def read(file: Path, root: Path, *, mapping: Mapping[str, str] | None = None) -> Iterator[Item]:  # noqa: ARG001
    """Yield an item a row, in a stream; ``mapping`` says for targets which column they are in.

    Cells may hold line ends in quotes. What has more cells than there are columns is a fault: its text was cut at the
    wrong places.
    """
    opened = open_text(file)
    if isinstance(opened, Item):
        yield opened
        return
    with opened.stream as stream:
        where = origin(file)
        rows = _rows(stream, head(file), where)
        yield from noticed(_items(rows, where, mapping or {}, file_date(file)), opened.notice, where)


def _items(
    rows: Iterator[tuple[int, list[str]] | Item], where: str, mapping: Mapping[str, str], written: datetime
) -> Iterator[Item]:
    first = next(rows, None)
    if first is None or isinstance(first, Item):
        yield from [first] if first else []
        return
    columns = [name.strip().lstrip("\ufeff") for name in first[1]]
    if not _columns(columns, mapping):
        yield fault(where, f"of its columns ({', '.join(columns)[:200]}), {without_text(mapping)}")
        return
    for row in rows:
        if isinstance(row, Item):
            yield row
            continue
        line, cells = row
        place = f"{where}#L{line}"
        if len(cells) > len(columns) and any(cells[len(columns) :]):
            yield fault(place, f"the row in line {line} has {len(cells)} cells for {len(columns)} columns")
            continue
        given = Fields(dict(zip(columns, cells, strict=False)), mapping)
        if not given.text.strip():
            yield fault(place, f"the row in line {line} has no text")
            continue
        memory, notice = given.memory(place, written)
        yield Item(place, memory, notice=notice)


def _rows(stream: TextIO, begin: str, where: str) -> Iterator[tuple[int, list[str]] | Item]:
    """Yield the rows that hold something with the number of their first line, and items for broken ones."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))
    reader = csv.reader(stream, delimiter=_separator(begin), strict=True)
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            lines = f"line {start}" if reader.line_num == start else f"the lines {start} to {reader.line_num}"
            yield fault(f"{where}#L{start}", f"{lines} cannot be read as a row: {error}")
            continue
        if any(cell.strip() for cell in cells):
            yield start, cells


def _first_row(begin: str) -> list[str]:
    try:
        return next(csv.reader(begin.lstrip("\n").splitlines(keepends=True), delimiter=_separator(begin)), [])
    except csv.Error:
        return []


def _separator(begin: str) -> str:
    """Return what separates the names in the first row; a table of one column has commas in its text alone."""
    first = begin.lstrip("\n").partition("\n")[0]
    likeliest = max(_SEPARATORS, key=first.count)
    return likeliest if likeliest in first else _NONE


def _columns(columns: Sequence[str], mapping: Mapping[str, str]) -> bool:
    """Tell whether one of the columns is the text."""
    if "content" in mapping:
        return mapping["content"] in columns
    return not {name.casefold().strip() for name in columns}.isdisjoint(TARGETS["content"])
