"""Instructions for agents (AGENTS.md, CLAUDE.md, rule files): one memory a bullet, or a section where it has none."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import NamedTuple

from runtime_memory.importers import Item
from runtime_memory.importers.dates import undated
from runtime_memory.importers.files import Document, origin
from runtime_memory.importers.frontmatter import scalar, split_frontmatter
from runtime_memory.importers.notes import LONGEST, about, headed, memory, part_anchors
from runtime_memory.importers.rule_categories import categorize
from runtime_memory.importers.sections import Section, blocks, cut, sections, shortened
from runtime_memory.models import MemoryCategory

__all__ = ["items"]

_MARKER = re.compile(r"[ \t]*[-*+](?:[ \t]+|$)")
_LONGEST_LEAD = 200
# The first heading of such files is often their own name, which says nothing about what they are for.
_OWN_NAME = re.compile(
    r"(?:claude|agents?|gemini|hermes|copilot|cursor|memory)(?:[. ]?md)?"
    r"(?: (?:code )?(?:instructions|rules|guidelines|index))?",
    re.IGNORECASE,
)
_AGENTS = ("claude", "cursor", "copilot", "windsurf", "gemini", "cline", "kiro", "junie", "hermes", "agents")


class _Rule(NamedTuple):
    """One instruction: its anchor, the headings above it, and its text."""

    anchor: str
    headings: tuple[str, ...]
    text: str


def items(
    file: Path,
    document: Document,
    *,
    unknown: MemoryCategory = MemoryCategory.CONVENTION,
    project: str | None = None,
) -> Iterator[Item]:
    """Yield the memories of a file of instructions, or an item that says it is empty.

    ``unknown`` is the category of an instruction that gives no cue of another.
    """
    front = split_frontmatter(document.text)
    fields = {key: value for key, value in front.fields.items() if key not in {"title", "description", "alwaysapply"}}
    known, problem = about(fields, file.name, lambda: undated(file, document.modified), unknown=unknown)
    known = replace(known, project=known.project or project, tags=tuple(dict.fromkeys([*_tags(file), *known.tags])))
    fixed = scalar(front.fields, "category")
    title = shortened(scalar(front.fields, "title", "description"))
    notice = "; ".join(filter(None, (document.notice, front.problem, problem))) or None
    empty = True
    for section in sections(front.body):
        for rule in _rules(section, title):
            empty = False
            place = origin(file, rule.anchor)
            category = known.category if fixed else categorize(rule.headings, rule.text, known.category)
            made = memory(replace(known, category=category), place, headed(rule.headings, rule.text))
            yield Item(place, made, notice=notice)
            known, notice = replace(known, metadata={}) if known.metadata else known, None
    if empty:
        yield Item(origin(file), skipped="empty", notice=notice)


def _rules(section: Section, title: str) -> Iterator[_Rule]:
    """Yield the instructions of one section: first its text, numbered steps and code, then its bullets."""
    headings = tuple(filter(None, [title, *(each for each in section.path if not _OWN_NAME.fullmatch(each))]))
    headings = tuple(dict.fromkeys(headings))
    text, bullets = _split(section.text)
    parts = cut(text, LONGEST) if text else []
    for anchor, part in zip(part_anchors(section.anchor, len(parts)), parts, strict=False):
        yield _Rule(anchor, headings, part)
    for number, bullet in enumerate(bullets, start=1):
        parts = cut(bullet, LONGEST)
        for anchor, part in zip(part_anchors(f"{section.anchor}:{number}", len(parts)), parts, strict=True):
            yield _Rule(anchor, headings, part)


def _split(text: str) -> tuple[str, list[str]]:
    """Return the text of a section without its bullets, and the bullets, each after the line that leads to them."""
    lines = text.split("\n")
    kept: list[str] = []
    bullets: list[str] = []
    found = blocks(text) if text else []
    lead = ""
    for number, block in enumerate(found):
        piece = "\n".join(lines[block.start : block.end]).strip("\n").rstrip()
        if block.kind == "list_item":
            bullets.append(f"{lead}\n{_unmarked(piece)}".strip("\n"))
            continue
        lead = ""
        before_list = number + 1 < len(found) and found[number + 1].kind == "list_item"
        if before_list and block.kind == "paragraph" and _leads(piece):
            lead = piece
        elif block.kind != "hr":
            kept.append("\n".join(lines[block.start : block.end]))
    return "\n".join(kept).strip("\n").rstrip(), [bullet for bullet in bullets if bullet.strip()]


def _leads(paragraph: str) -> bool:
    """Tell whether a paragraph before a list is what its bullets are about: an announcement, or a name in bold."""
    return len(paragraph) <= _LONGEST_LEAD and (paragraph.endswith(":") or paragraph.startswith("**"))


def _unmarked(item: str) -> str:
    first, _, rest = item.partition("\n")
    return "\n".join(filter(None, (_MARKER.sub("", first, count=1), textwrap.dedent(rest))))


def _tags(file: Path) -> Sequence[str]:
    """Return the agent that a file is for: by its name, else by the folders that it is in."""
    places = [file.name, *(part for part in PurePath(file).parent.parts[-3:] if part.startswith("."))]
    return next(([name] for place in places for name in _AGENTS if name in place.lower()), [])
