"""What a note says about itself, and the memory of a piece of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from runtime_memory.importers.dates import named
from runtime_memory.importers.frontmatter import moment, scalar, texts
from runtime_memory.importers.wikilinks import BELOW
from runtime_memory.models import MemoryCategory, MemoryScope, MemorySource, NewMemory

__all__ = ["LONGEST", "About", "about", "category_of", "headed", "memory", "part_anchors"]

LONGEST = 2_000
"""Longest part of a section, in characters; the store embeds it in passages that fit the model."""

_LABEL = 500
_METADATA = 2_000
# What has a field of its own in a memory, and what changes whenever a note is saved.
_NOT_METADATA = frozenset(
    "title alias aliases tag tags category project date created updated modified lastmod last_modified".split()
)


@dataclass(frozen=True, slots=True)
class About:
    """What holds for every memory of a file; ``dated`` where the file itself gives the date, by a field or its name."""

    created_at: datetime
    dated: bool = True
    updated_at: datetime | None = None
    category: MemoryCategory = MemoryCategory.GENERAL
    scope: MemoryScope | None = None
    project: str | None = None
    profile: str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


def about(
    fields: Mapping[str, Any], name: str, undated: Callable[[], datetime], *, unknown: MemoryCategory | None = None
) -> tuple[About, str | None]:
    """Return what the frontmatter and the name of a file say, and which date of it is not understood.

    ``undated`` is asked for the date of a file that gives none. ``unknown`` is the category of one that gives none.
    """
    updated, problem = _date(scalar(fields, "updated", "modified", "lastmod", "last_modified"))
    created, wrong = _date(scalar(fields, "date", "created"))
    stated = created or (None if updated else named(name))
    category, leftover = category_of(scalar(fields, "category"), unknown or MemoryCategory.GENERAL)
    project = scalar(fields, "project")
    return About(
        stated or updated or undated(),
        dated=stated is not None,
        updated_at=updated if updated and created and updated > created else None,
        category=category,
        project=project if 0 < len(project) <= _LABEL and project.isprintable() else None,
        tags=tuple(dict.fromkeys([*_tags(fields), *leftover])),
        metadata=dict(_metadata(fields)),
    ), wrong or problem


def category_of(given: str, unknown: MemoryCategory) -> tuple[MemoryCategory, list[str]]:
    """Return the category of this name, and the name as a tag when it is none of ours."""
    if not given:
        return unknown, []
    try:
        return MemoryCategory(given.lower().replace(" ", "_").replace("-", "_")), []
    except ValueError:
        return unknown, [given] if _is_label(given) else []


def memory(known: About, origin: str, content: str, *, hashed: str | None = None) -> NewMemory:
    """Return the memory of one place in a file.

    Its ``origin_hash`` depends on what the file says there: not on the date of its last change, nor on ``hashed``'s
    difference from the content, which is what does not stand in the file (a title that is only its name).
    """
    said = [
        content if hashed is None else hashed,
        known.category.value,
        *known.tags,
        json.dumps(known.metadata, ensure_ascii=False) if known.metadata else "",
        known.created_at.isoformat() if known.dated else "",
    ]
    return NewMemory(
        content,
        category=known.category,
        scope=known.scope,
        project=known.project,
        profile=known.profile,
        source=MemorySource.IMPORTED,
        tags=known.tags,
        metadata=known.metadata,
        created_at=known.created_at,
        updated_at=known.updated_at,
        origin=origin,
        origin_hash=hashlib.sha256("\0".join(said).encode("utf-8", "surrogatepass")).hexdigest()[:16],
    )


def headed(headings: Sequence[str], text: str) -> str:
    """Return a text under the line of its headings, so that it stands alone."""
    return "\n\n".join(filter(None, (BELOW.join(filter(None, headings)), text)))


def part_anchors(anchor: str, parts: int) -> list[str]:
    """Return the anchors of the parts of one section: its own, then with ``~2``, ``~3``, as no heading's has."""
    return [anchor] + [f"{anchor}~{number}" for number in range(2, parts + 1)]


def _date(given: str) -> tuple[datetime | None, str | None]:
    if not given:
        return None, None
    try:
        return moment(given), None
    except (ValueError, OverflowError):
        return None, f"its date {given[:60]!r} is not understood"


def _tags(fields: Mapping[str, Any]) -> list[str]:
    given = next((value for name in ("tags", "tag") if (value := fields.get(name))), None)
    separated = isinstance(given, str) and "," not in given
    found = given.split() if separated and given else texts(fields, "tags", "tag")
    return [tag for tag in (each.lstrip("#").strip() for each in found) if _is_label(tag)]


def _metadata(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the other fields that are text or a flat list of texts: nested ones may be endless (YAML has aliases)."""
    kept = {}
    for name in fields:
        value = None if name in _NOT_METADATA else scalar(fields, name) or texts(fields, name)
        if value and len(str(value)) <= _METADATA:
            kept[name] = value
    return kept


def _is_label(text: str) -> bool:
    if not 0 < len(text) <= _LABEL:
        return False
    return text.isprintable() or all(each.isprintable() or each in "\u200c\u200d" for each in text)
