"""The memory folders of Claude Code: ``projects/<slug>/memory`` with an index, MEMORY.md, and a file a topic."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runtime_memory.importers import Item, agent_rules
from runtime_memory.importers.dates import undated
from runtime_memory.importers.files import Document, origin
from runtime_memory.importers.frontmatter import scalar, split_frontmatter
from runtime_memory.importers.hermes_memory import Home
from runtime_memory.importers.notes import LONGEST, about, headed, memory, part_anchors
from runtime_memory.importers.sections import cut, unlinked
from runtime_memory.models import MemoryCategory

__all__ = ["folders", "items", "project_of", "recognises"]

_INDEX = "MEMORY.md"
_CATEGORIES = {
    "user": MemoryCategory.PREFERENCE,
    "feedback": MemoryCategory.PREFERENCE,
    "project": MemoryCategory.CONTEXT,
    "reference": MemoryCategory.GENERAL,
}
_TOPIC = re.compile(r"---[ \t]*\n(?=(?:.*\n){0,40}[ \t]*description:)(?:.*\n){0,40}?[ \t]*type:[ \t]*[\"']?(\w+)")
_ENTRY = re.compile(r"^[ \t]*[-*+][ \t]+.*?\]\(<?([^()<>\s]+\.md)>?\).*$", re.MULTILINE)
_SLUG = re.compile(r"-|[A-Za-z]--")
# The home of a person, and folders that people put their checkouts in.
_ABOVE_PROJECTS = re.compile(
    r"(?:[A-Za-z]-)?-(?:home|Users|root)(?:-[^-]+)?-|-(?:opt|srv|var|tmp|mnt|workspaces?)-", re.IGNORECASE
)
_HOME = re.compile(r"(?:[A-Za-z]-)?-(?:(?:home|Users)(?:-[^-]+)?|root)?", re.IGNORECASE)
_CONTAINERS = re.compile(
    r"(?:code|src|source|repos?|projects?|dev|develop|work|workspaces?|git|github|documents|desktop)-", re.IGNORECASE
)


def folders(path: Path) -> list[Home]:
    """Return the memory folders in Claude Code's home, in its ``projects``, in one project, or the folder itself."""
    real = Path(os.path.realpath(path))
    try:
        found = [
            each for pattern in (".", "memory", "*/memory", "projects/*/memory") for each in _matching(real, pattern)
        ]
        homes = [Home(each, _names(each)) for each in found if _is_memory(each, given=each == real)]
        instructions = [Home(real, frozenset({"CLAUDE.md"}))] if homes and (real / "projects").is_dir() else []
    except OSError:  # what cannot be looked into is not detected; reading it says why
        return []
    return instructions + homes


def recognises(file: Path, text: str) -> bool:
    """Tell an index, by its links or its folder, and a topic, by the type in its frontmatter, from other files."""
    if file.name == _INDEX:
        lines = sum(1 for line in text.split("\n") if line.strip() and not line.startswith("#"))
        return lines > 0 and (2 * len(_ENTRY.findall(text)) > lines or file.parent.name == "memory")
    topic = _TOPIC.match(text) if text.startswith("---") else None
    return topic is not None and topic[1] in _CATEGORIES


def items(file: Path, document: Document) -> Iterator[Item]:
    """Yield the memory of a topic; of an index what is in no topic's file, as its other lines only repeat those."""
    return _index(file, document) if file.name == _INDEX else _topic(file, document)


def project_of(slug: str) -> str | None:
    """Return the project of a folder's slug, its path with hyphens for all that is no letter or digit.

    The folder's own name where it is on this machine, else what is left after a home and folders such as ``code``.
    """
    if not _SLUG.match(slug) or _HOME.fullmatch(slug):
        return None
    here = _on_disk("/", slug[1:]) if slug.startswith("-") else None
    if here:
        return here
    name = _ABOVE_PROJECTS.sub("", slug, count=1)
    while _CONTAINERS.match(name):
        name = _CONTAINERS.sub("", name, count=1)
    return name.strip("-") or None if name != slug else None


def _topic(file: Path, document: Document) -> Iterator[Item]:
    front = split_frontmatter(document.text)
    nested = front.fields.get("metadata")
    fields = {**front.fields, **{str(key).lower(): value for key, value in _mapping(nested).items()}}
    fields.pop("metadata", None)
    kind, name, description = scalar(fields, "type"), scalar(fields, "name"), scalar(fields, "description")
    known, problem = about(
        {key: value for key, value in fields.items() if key not in {"type", "node_type", "description"}},
        file.name,
        lambda: undated(file, document.modified),
        unknown=_CATEGORIES.get(kind),
    )
    known = replace(
        known,
        project=known.project or (None if kind == "user" else _project(file)),
        tags=tuple(dict.fromkeys(["claude", *filter(None, [kind]), *known.tags])),
    )
    notice = "; ".join(filter(None, (document.notice, front.problem, problem))) or None
    heading = ": ".join(filter(None, (name, description)))
    parts = cut(unlinked(front.body).strip("\n").rstrip(), LONGEST)
    for anchor, part in zip(part_anchors("", len(parts)), parts, strict=True):
        place = origin(file, anchor)
        yield Item(place, memory(known, place, headed([heading], part)), notice=notice)
        known, notice = replace(known, metadata={}), None


def _index(file: Path, document: Document) -> Iterator[Item]:
    def repeats(line: re.Match[str]) -> str:
        return "" if _is_file(file.parent / line[1]) else line[0]

    rest = _ENTRY.sub(repeats, document.text)
    if any(line.strip() and not line.lstrip().startswith("#") for line in rest.split("\n")):
        yield from agent_rules.items(
            file, document._replace(text=rest), unknown=MemoryCategory.CONTEXT, project=_project(file)
        )
    else:
        yield Item(origin(file), skipped="an index of the other files", notice=document.notice)


def _project(file: Path) -> str | None:
    folder = Path(os.path.realpath(file)).parent
    return project_of(folder.parent.name) if folder.name == "memory" else None


def _on_disk(folder: str, rest: str) -> str | None:
    """Return the name of the folder below another that a slug's rest stands for."""
    try:
        below = sorted(os.listdir(folder), key=len, reverse=True)  # noqa: PTH208 - names are all that is needed
    except OSError:
        return None
    for name in below:
        slug = re.sub(r"[^A-Za-z0-9]", "-", name)
        if rest == slug:
            return name
        if rest.startswith(f"{slug}-") and (found := _on_disk(os.path.join(folder, name), rest[len(slug) + 1 :])):  # noqa: PTH118
            return found
    return None


def _is_memory(folder: Path, *, given: bool) -> bool:
    """Tell a project's memory from any folder of that name; the folder that was asked for itself needs no project."""
    return folder.name == "memory" and (given or bool(_SLUG.match(folder.parent.name))) and (folder / _INDEX).is_file()


def _names(folder: Path) -> frozenset[str]:
    return frozenset(each.name for each in folder.glob("*.md"))


def _matching(folder: Path, pattern: str) -> list[Path]:
    return [folder] if pattern == "." else sorted(folder.glob(pattern))


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - it does not raise for a name that is too long
