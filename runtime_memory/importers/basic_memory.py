"""Read the notes of Basic Memory: every observation is a memory, so are the note's relations and the rest of its text.

The form is that of its documentation ("Knowledge Format") and of ``basic_memory/markdown/plugins.py``: Markdown with
the frontmatter ``title``, ``type``, ``permalink`` and ``tags``, observations as ``- [category] text #tag (context)``
and relations as ``- relation_type [[Target]] (context)``, anywhere in the text. Tasks (``- [x]``), links and timecodes
in brackets are no observations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from runtime_memory.importers import Item
from runtime_memory.importers.dates import undated
from runtime_memory.importers.fields import category
from runtime_memory.importers.files import below, load, origin, walk
from runtime_memory.importers.frontmatter import scalar, split_frontmatter
from runtime_memory.importers.notes import LONGEST, About, about, headed, memory, part_anchors
from runtime_memory.importers.sections import Section, blocks, cut, sections
from runtime_memory.importers.text_files import guarded, head
from runtime_memory.importers.wikilinks import readable

__all__ = ["NAME", "detects", "find", "is_note", "read"]

NAME = "basic-memory"

SUFFIXES = frozenset({".md", ".markdown"})
_OPENING = 4_096
_FIELD = re.compile(r"^(title|type|permalink):[ \t]*\S", re.MULTILINE)
_ITEM = re.compile(r"[ \t]*[-*+][ \t]+")
_OBSERVATION = re.compile(r"\[(?P<category>[^\[\]()\n]+)\][ \t]+(?P<text>\S.*)", re.DOTALL)
_RELATION = re.compile(
    r"(?P<type>[^\s\[\"'][^\s\[]*|\"[^\"\n]+\"|'[^'\n]+')[ \t]+\[\[(?P<target>[^\[\]\n]+)\]\]"
    r"[ \t]*(?P<context>\([^()\n]*\))?\s*"
)
_NO_CATEGORY = re.compile(r"[xX]?|[^\w]|\d{1,3}:\d\d.*")
_TAG = re.compile(r"(?<!\S)#([^\s#]+)")
_TAGS_AT_END = re.compile(r"(?:\s+#[^\s#]+)+(?=\s*(?:\([^()]*\))?\s*$)")


class _Note(NamedTuple):
    """The parts of a note: observations, relations, and the text around them."""

    observations: Sequence[tuple[str, str]]
    relations: Sequence[str]
    rest: str


def detects(path: Path) -> bool:
    """Tell whether a file is such a note, or a folder has one among its first files."""
    if path.is_dir():
        notes = (each for each in walk(path, lambda file: file.suffix.lower() in SUFFIXES))
        return any(isinstance(each, Path) and is_note(each) for each, _ in zip(notes, range(20), strict=False))
    return is_note(path)


def is_note(path: Path) -> bool:
    """Tell whether a file is such a note."""
    if path.suffix.lower() not in SUFFIXES:
        return False
    begin = head(path, _OPENING, needs=b"---")
    if not begin.startswith("---\n") or "permalink:" not in begin:
        return False
    fenced = begin.partition("\n---")[0]
    return set(_FIELD.findall(fenced)) == {"title", "type", "permalink"}


def find(path: Path) -> Iterator[Path | Item]:
    """Yield the notes of a folder, and what is passed over; a file yields itself."""
    return below(path, lambda file: file.suffix.lower() in SUFFIXES)


@guarded
def read(file: Path, root: Path) -> Iterator[Item]:  # noqa: ARG001
    """Yield the observations of a note, its relations as one memory, and the sections of its other text."""
    document = load(file)
    if isinstance(document, Item):
        yield document
        return
    front = split_frontmatter(document.text)
    known, problem = about(front.fields, file.name, lambda: undated(file, document.modified))
    known = replace(known, metadata={key: value for key, value in known.metadata.items() if key != "permalink"})
    notice = "; ".join(filter(None, (document.notice, front.problem, problem))) or None
    note = _split(front.body)
    found = sections(note.rest)
    title = scalar(front.fields, "title") or next((each.path[-1] for each in found if each.path), file.stem)
    items = [*_texts(found, title, known, file), *_facts(note, title, known, file)]
    if not items:
        yield Item(origin(file), skipped="empty", notice=notice)
        return
    yield items[0]._replace(notice=notice)
    yield from items[1:]


def _texts(found: Sequence[Section], title: str, known: About, file: Path) -> Iterator[Item]:
    """Yield the sections of the text that is left without observations and relations."""
    for section in found:
        headings = [title, *(each for each in section.path if each.casefold() != title.casefold())]
        pieces = cut(section.text, LONGEST) if any(map(str.isalnum, section.text)) else []
        for anchor, piece in zip(part_anchors(section.anchor, len(pieces)), pieces, strict=False):
            place = origin(file, anchor)
            yield Item(place, memory(known, place, headed(headings, piece)))


def _facts(note: _Note, title: str, known: About, file: Path) -> Iterator[Item]:
    for number, (name, text) in enumerate(note.observations, start=1):
        place = origin(file, f"o:{number}")
        kind, leftover = category(name)
        tags = tuple(dict.fromkeys([*known.tags, *_TAG.findall(text), *leftover]))
        content = f"{title}: {_TAGS_AT_END.sub('', text)}"
        yield Item(place, memory(replace(known, category=kind, tags=tags), place, content))
    if note.relations:
        place = origin(file, "~relations")
        yield Item(place, memory(known, place, f"{title}: {'; '.join(note.relations)}"))


def _split(text: str) -> _Note:
    lines = text.split("\n")
    observations, relations, rest = [], [], []
    for block in blocks(text):
        here = "\n".join(lines[block.start : block.end]).rstrip()
        item = _ITEM.match(here) if "item" in block.kind else None
        said = here[item.end() :] if item else ""
        observed, related = _OBSERVATION.fullmatch(said), _RELATION.fullmatch(said)
        if related:
            relations.append(_told(related))
        elif observed and not _NO_CATEGORY.fullmatch(observed["category"].strip()):
            observations.append((observed["category"].strip(), " ".join(readable(observed["text"]).split())))
        else:
            rest.append("\n".join(lines[block.start : block.end]))
    return _Note(observations, relations, "\n".join(rest))


def _told(relation: re.Match[str]) -> str:
    """Return a relation as words: ``depends_on [[API]] (later)`` is "depends on API (later)"."""
    kind = relation["type"].strip("\"'").replace("_", " ")
    target = relation["target"].rpartition("|")[2].strip()
    return " ".join(filter(None, (kind, target, relation["context"])))
