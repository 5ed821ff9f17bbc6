"""Markdown folders and vaults (Obsidian, Foam, plain): one memory a section, with what its note says of itself."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from runtime_memory.importers import Item, agent_notes
from runtime_memory.importers.dates import committed
from runtime_memory.importers.files import load, place, printable, real, stem, walk
from runtime_memory.importers.frontmatter import scalar, split_frontmatter, texts
from runtime_memory.importers.notes import LONGEST, about, headed, memory, part_anchors
from runtime_memory.importers.sections import Section, cut, sections, shortened, slug

__all__ = ["NAME", "detects", "find", "parse", "read"]

NAME = "markdown"
SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd"})
_LOOKED_AT = 5_000
_MOST_ALIASES = 20
_SAYS_NOTHING = re.compile(r"(?:index|readme|untitled|note|notes|new note|home|memory)[ _-]?\d*", re.IGNORECASE)


class _Piece(NamedTuple):
    """A section of a note, named by the headings below the note's title."""

    headings: tuple[str, ...]
    anchor: str
    text: str


def detects(path: Path) -> bool:
    """Tell whether a path is a Markdown file, or a folder with one among the first few thousand files."""
    if not os.path.isdir(path):  # noqa: PTH112 - it does not raise for a name that is too long
        return path.suffix.lower() in SUFFIXES
    below = (name for _, _, names in os.walk(path) for name in names)
    return any(PurePath(name).suffix.lower() in SUFFIXES for name in islice(below, _LOOKED_AT))


def find(path: Path) -> Iterator[Path | Item]:
    """Yield the Markdown files of a folder, in order, and what is passed over; a file yields itself.

    The instructions for agents that are kept in hidden places (``.cursor/rules``) are found, nothing else hidden is.
    """
    if not os.path.isdir(path):  # noqa: PTH112
        yield path
        return
    root = os.path.realpath(path)

    def wanted(file: Path) -> bool:
        return file.suffix.lower() in SUFFIXES or agent_notes.is_rules(file)

    yield from walk(Path(root), wanted, lambda each: agent_notes.hidden_place(each, root))


def read(file: Path, root: Path) -> Iterator[Item]:  # noqa: ARG001 - other formats name things by their place below it
    """Yield what one file holds; whatever is wrong with it is said, and never raised. Agent notes are read as such."""
    document = load(file)
    if isinstance(document, Item):
        yield document
    elif agent_notes.recognises(file, document.text):
        yield from agent_notes.items(file, document)
    else:
        path = real(file)
        yield from parse(
            document.text, printable(path), lambda: committed(path) or document.modified, notice=document.notice
        )


def parse(text: str, file: str, otherwise: Callable[[], datetime], *, notice: str | None = None) -> Iterator[Item]:
    """Yield the memories of a note, or an item that says it is empty.

    ``file`` is its absolute path; ``otherwise`` is asked for the date of a note that gives none. What there is to
    notice comes with the first item. A note's fields that have no place in a memory become metadata of the first one.
    """
    front = split_frontmatter(text)
    name = os.path.basename(file)  # noqa: PTH119 - this runs once a note
    known, problem = about(front.fields, name, otherwise)
    notice = "; ".join(filter(None, (notice, front.problem, problem))) or None
    pieces, title, named = _pieces(front.fields, sections(front.body), " ".join(stem(name).split()))
    if not pieces:
        yield Item(place(file), skipped="empty", notice=notice)
        return
    for headings, anchor, body in _memories(pieces):
        content = headed((title, *headings), body)
        hashed = headed(headings, body) if named else None
        origin = place(file, anchor)
        yield Item(origin, memory(known, origin, content, hashed=hashed), notice=notice)
        known, notice = replace(known, metadata={}) if known.metadata else known, None


def _pieces(fields: Mapping[str, Any], found: Sequence[Section], called: str) -> tuple[list[_Piece], str, bool]:
    """Return the pieces of a note, its title with its other names, and whether the title is only its file's name.

    The title is that of the frontmatter, else the first heading where it is of the first level, else the file's name
    where that says something.
    """
    given = scalar(fields, "title")
    first = next((section for section in found if section.level), None)
    heading = first.path[-1] if first else ""
    same = heading.casefold() == given.casefold() if given else slug(heading) == slug(called) != ""
    titled = first if first and (same or (not given and first.level == 1)) else None
    title = given or (heading if titled else "")
    named = not title
    if named:
        title = "" if _SAYS_NOTHING.fullmatch(called) else called
    others = [each for each in texts(fields, "aliases", "alias") if each.casefold() != title.casefold()]
    pieces = _below_title(found, titled)
    if not pieces and (given or titled or others):
        pieces = [_Piece((), "", "")]
    if others := [shortened(each) for each in others[:_MOST_ALIASES]]:
        return pieces, f"{shortened(title)} ({', '.join(others)})".strip(), named and not others
    return pieces, shortened(title), named


def _below_title(found: Sequence[Section], titled: Section | None) -> list[_Piece]:
    """Return the sections that hold something, their headings without the title's.

    What stands before or right below the title belongs to the note itself, and has no anchor: it keeps its place when
    sections are put below it. A heading with nothing below it stays with the section before.
    """
    pieces: list[_Piece] = []
    texts_of: list[list[str]] = []
    inside = False
    for number, section in enumerate(found):
        level, path, anchor, text = section
        if section is titled:
            inside = True
            path, anchor = (), ""
        elif inside:
            inside = titled is not None and level > titled.level
            path = path[1:] if inside else path
        parent = number + 1 < len(found) and found[number + 1].level > level
        if not text and (parent or section is titled):
            continue
        if pieces and (not text or not (path or pieces[-1].headings)):
            texts_of[-1].append(text or f"{'#' * level} {path[-1] if path else ''}")
        else:
            pieces.append(_Piece(path, anchor, ""))
            texts_of.append([text])
    return [piece._replace(text="\n\n".join(filter(None, each))) for piece, each in zip(pieces, texts_of, strict=True)]


def _memories(pieces: Sequence[_Piece]) -> Iterator[tuple[Sequence[str], str, str]]:
    """Yield headings, anchor and text of each memory."""
    for piece in pieces:
        parts = cut(piece.text, LONGEST)
        for anchor, part in zip(part_anchors(piece.anchor, len(parts)), parts, strict=True):
            yield piece.headings, anchor, part
