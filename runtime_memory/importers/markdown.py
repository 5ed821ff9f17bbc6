"""Markdown notes as memories: one a file, with what its YAML frontmatter says about it."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import yaml

from runtime_memory.importers import Item
from runtime_memory.models import MemoryCategory, MemorySource, NewMemory

__all__ = ["Frontmatter", "decode", "find", "parse", "read", "split_frontmatter"]

SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd"})
MAX_BYTES = 16_000_000

_FENCED = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DATE_IN_NAME = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")
_FIRST_HEADING = re.compile(r"#{1,6}[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*(?:\n|\Z)|(\S.*)\n(?:=+|-+)[ \t]*(?:\n|\Z)")


class Frontmatter(NamedTuple):
    """The fields before a note's text, as text, lists and mappings; ``problem`` when they could not be read."""

    fields: Mapping[str, Any]
    body: str
    problem: str | None = None


def find(path: Path) -> Iterator[Path | Item]:
    """Yield the Markdown files of a folder, in order, and what is passed over; a file yields itself.

    Hidden files and folders are passed over, and symbolic links: what they lead to inside the folder is found anyway,
    what is outside was not asked for.
    """
    if not path.is_dir():
        yield path
        return
    unreadable: list[OSError] = []
    for folder, below, files in os.walk(path, onerror=unreadable.append):
        kept = []
        for name in sorted(below):
            reason = _not_wanted(Path(folder, name))
            if reason:
                yield Item(_origin(Path(folder, name), path) + "/", skipped=reason)
            else:
                kept.append(name)
        below[:] = kept
        for name in sorted(files):
            file = Path(folder, name)
            if file.suffix.lower() not in SUFFIXES:
                continue
            reason = _not_wanted(file)
            yield Item(_origin(file, path), skipped=reason) if reason else file
    for error in unreadable:
        yield Item(_origin(Path(error.filename), path), skipped=error.strerror or str(error), fault=True)


def read(file: Path, root: Path) -> Item:
    """Return what one file holds; whatever is wrong with it is said, and never raised."""
    origin = _origin(file, root) if file != root else file.name
    try:
        about = file.stat()
        if not stat.S_ISREG(about.st_mode):
            return Item(origin, skipped="not a regular file", fault=True)
        if about.st_size > MAX_BYTES:
            return Item(origin, skipped=f"larger than {MAX_BYTES // 1_000_000} MB", fault=True)
        data = file.read_bytes()
    except OSError as error:
        return Item(origin, skipped=error.strerror or str(error), fault=True)
    text, notice = decode(data)
    if "\0" in text:
        return Item(origin, skipped="not a text file", fault=True)
    memory, problem = parse(text, origin, datetime.fromtimestamp(about.st_mtime, UTC))
    notices = "; ".join(filter(None, (notice, problem)))
    return Item(origin, memory, skipped=None if memory else "empty", notice=notices or None)


def decode(data: bytes) -> tuple[str, str | None]:
    """Return the text of a file, and a notice when its encoding had to be guessed."""
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if marked else "utf-8-sig"), None
    except UnicodeDecodeError:
        return data.decode("latin-1"), f"not {'UTF-16' if marked else 'UTF-8'}, read as Latin-1"


def split_frontmatter(text: str) -> Frontmatter:
    """Return the YAML frontmatter of a note and the text after it; all is text where there is none."""
    fenced = _FENCED.match(text)
    if not fenced:
        return Frontmatter({}, text)
    try:
        # Every scalar stays text: no is no boolean, 2024-13-45 no error, and 007 no number.
        fields = yaml.load(fenced[1], yaml.BaseLoader)  # noqa: S506 - it builds text, lists and mappings only
    except (yaml.YAMLError, RecursionError) as error:
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        return Frontmatter({}, text, f"its frontmatter is not YAML ({problem}) and was taken as text")
    if not isinstance(fields := fields or {}, dict):
        return Frontmatter({}, text)
    return Frontmatter({str(key).strip().lower(): value for key, value in fields.items()}, text[fenced.end() :])


def parse(text: str, origin: str, modified: datetime) -> tuple[NewMemory | None, str | None]:
    """Return the memory of a note, None for an empty one, and what is wrong with the note.

    ``modified`` is the date of a note that gives none.
    """
    note = split_frontmatter(text.replace("\r\n", "\n").replace("\r", "\n"))
    content = _content(_scalar(note.fields, "title"), note.body)
    if not content:
        return None, note.problem
    category, leftover = _category(_scalar(note.fields, "category"))
    created, problem = _created(note.fields, origin, modified)
    memory = NewMemory(
        content,
        category=category,
        project=_scalar(note.fields, "project") or None,
        source=MemorySource.IMPORTED,
        tags=list(dict.fromkeys([*_tags(note.fields), *leftover])),
        created_at=created,
        origin=origin,
    )
    return memory, note.problem or problem


def _content(title: str, body: str) -> str:
    kept = body.strip("\n").rstrip()
    heading = _FIRST_HEADING.match(kept)
    if not title or (heading and (heading[1] or heading[2]).strip().casefold() == title.casefold()):
        return kept
    return f"{title}\n\n{kept}" if kept else title


def _category(given: str) -> tuple[MemoryCategory, list[str]]:
    """Return the category, and what was given as a tag when it is none of ours."""
    try:
        return MemoryCategory(given.lower().replace(" ", "_").replace("-", "_")), []
    except ValueError:
        return MemoryCategory.GENERAL, [given] if given else []


def _tags(fields: Mapping[str, Any]) -> list[str]:
    given = fields.get("tags") or fields.get("tag") or []
    if isinstance(given, str):
        given = given.split(",") if "," in given else given.split()
    texts = (each for each in given if isinstance(each, str)) if isinstance(given, list) else ()
    return [tag for tag in (each.strip().lstrip("#") for each in texts) if tag]


def _created(fields: Mapping[str, Any], origin: str, modified: datetime) -> tuple[datetime, str | None]:
    """Return when a note was made: by its frontmatter, else its name, else when its file was changed last."""
    given = _scalar(fields, "date") or _scalar(fields, "created")
    if given:
        try:
            return _moment(given), None
        except (ValueError, OverflowError):
            problem = f"its date {given!r} is not understood"
            return _named(origin) or modified, problem
    return _named(origin) or modified, None


def _moment(given: str) -> datetime:
    """Return a date and time as text; without a zone it is local, as its author meant it."""
    normal = re.sub(r"\s+(?=[+-]\d|Z$)", "", given.strip().replace("/", "-"))
    if len(normal) <= len("2024-01-01"):
        return _noon(date.fromisoformat(normal))
    return datetime.fromisoformat(normal).astimezone(UTC)


def _named(origin: str) -> datetime | None:
    for found in _DATE_IN_NAME.finditer(PurePosixPath(origin).name):
        try:
            return _noon(date(int(found[1]), int(found[3]), int(found[4])))
        except ValueError:
            continue
    return None


def _noon(day: date) -> datetime:
    """Return noon, UTC: the same date nearly everywhere on earth."""
    return datetime.combine(day, time(12), UTC)


def _scalar(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return " ".join(value.split()) if isinstance(value, str) else ""


def _not_wanted(path: Path) -> str | None:
    if path.name.startswith("."):
        return "hidden"
    return "a symbolic link" if path.is_symlink() else None


def _origin(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
