"""The formats that can be imported, in the order in which they are looked for, and which one a file is in."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from runtime_memory.errors import InvalidInputError
from runtime_memory.importers import (
    Item,
    agent_notes,
    basic_memory,
    delimited,
    hermes_sessions,
    jsonl,
    markdown,
    mem0,
    plain_text,
    sqlite_files,
    sqlite_stores,
)
from runtime_memory.importers.files import forget_folders, origin, walk
from runtime_memory.importers.hermes_sessions import Extract
from runtime_memory.importers.text_files import fault

__all__ = ["FORMATS", "Format", "Options", "Source", "by_name", "detect", "items", "read", "refuse_unused", "sources"]

# Text files that programs read, not people.
_FOR_PROGRAMS = re.compile(
    r"(?:.*requirements.*|constraints.*|licen[cs]e.*|copying.*|notice|robots|humans|ads|security|cmakelists|manifest|"
    r"sources|top_level|entry_points|dependency_links|requires|record|version)\.txt",
    re.IGNORECASE,
)


class Options(NamedTuple):
    """What a reader may be told: see ``fields.parse_mapping`` and ``hermes_sessions.read``."""

    mapping: Mapping[str, str] | None = None
    extract: Extract | None = None
    owners: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Format:
    """A form in which other programs keep notes or memories.

    ``detects`` looks at a file or a folder and never raises; ``find`` yields the files of a path, and items for what is
    passed over.
    """

    name: str
    detects: Callable[[Path], bool]
    find: Callable[[Path], Iterator[Path | Item]]
    reader: Callable[..., Iterator[Item]]
    takes: frozenset[str] = frozenset()

    def read(self, file: Path, root: Path, options: Options | None = None) -> Iterator[Item]:
        """Yield what a file holds; whatever is wrong with it is an item, and never raised."""
        told = {name: value for name, value in (options or Options())._asdict().items() if name in self.takes}
        return self.reader(file, root, **told)


class Source(NamedTuple):
    """A file to read, in which format, and the path that was asked for."""

    format: Format
    file: Path
    root: Path


def _format(module: ModuleType) -> Format:
    read: Any = module.read
    taken = set(inspect.signature(inspect.unwrap(read)).parameters) & set(Options._fields)
    return Format(module.NAME, module.detects, module.find, read, frozenset(taken))


_NOTES, _BASIC, _MARKDOWN = (_format(module) for module in (agent_notes, basic_memory, markdown))
_LOGS, _TEXT = _format(hermes_sessions), _format(plain_text)
_DATA = (_format(sqlite_stores), _LOGS, *(_format(module) for module in (mem0, jsonl, delimited)), _TEXT)

FORMATS = (*_DATA[:3], _NOTES, _BASIC, _MARKDOWN, *_DATA[3:])
"""The narrower forms come first: a log of sessions is JSON Lines too, and an agent's notes are Markdown."""


def by_name(name: str) -> Format:
    """Return the format of this name; raises InvalidInputError that lists the valid ones."""
    for each in FORMATS:
        if each.name == name.strip().lower():
            return each
    valid = ", ".join(each.name for each in FORMATS)
    raise InvalidInputError(f"unknown format {name!r}; valid are: {valid}")


def detect(path: Path) -> Format | None:
    """Return the first format that fits a file or a folder, None where none does."""
    return next((each for each in FORMATS if each.detects(path)), None)


def sources(path: Path, chosen: Format | None = None) -> Iterator[Source | Item]:
    """Yield the files to read below a path, each in its own format unless one is chosen, and what is passed over.

    Of the home folder of Hermes only its notes and its sessions are read: the rest is skills, logs and settings.
    """
    forget_folders()
    if not os.path.lexists(path):
        yield fault(origin(path), "there is no such file or folder")
    elif chosen:
        yield from _found(chosen, path, path)
    elif not path.is_dir():
        found = detect(path)
        yield Source(found, path, path) if found else fault(origin(path), _unknown())
    else:
        empty = True
        for each in _of_folder(path):
            empty &= isinstance(each, Item)
            yield each
        if empty:
            yield Item(origin(path), skipped=f"it holds nothing to import; {_unknown()}")


def items(path: Path, chosen: Format | None = None, options: Options | None = None) -> Iterator[Item]:
    """Yield all that a path holds; raises InvalidInputError for an option that the chosen format has no use for."""
    refuse_unused(chosen, options)
    for each in sources(path, chosen):
        yield from read(each, options)


def refuse_unused(chosen: Format | None, options: Options | None) -> None:
    """Raise InvalidInputError for an option that the chosen format has no use for."""
    if chosen and options and options.mapping and "mapping" not in chosen.takes:
        takers = ", ".join(each.name for each in FORMATS if "mapping" in each.takes)
        raise InvalidInputError(f"the format {chosen.name} has no fields to map; a mapping is for: {takers}")


def read(source: Source | Item, options: Options | None = None) -> Iterator[Item]:
    """Yield what a source holds; what is passed over yields itself."""
    return iter((source,)) if isinstance(source, Item) else source.format.read(source.file, source.root, options)


def _of_folder(folder: Path) -> Iterator[Source | Item]:
    homes = [each for each in (folder, *_profiles(folder)) if _is_hermes_home(each)]
    if homes or agent_notes.detects(folder):
        yield from _found(_NOTES, folder, folder)
        for home in homes:
            for logs in (home / "sessions", home / "state.db"):
                if logs.is_dir() or hermes_sessions.detects(logs):
                    yield from _found(_LOGS, logs, folder)
        return
    passed_over: set[str] = set()
    for each in markdown.find(folder):
        if isinstance(each, Item):
            passed_over.add(each.origin)
            yield each
        else:
            yield Source(_BASIC if basic_memory.is_note(each) else _MARKDOWN, each, folder)
    for each in walk(folder, _may_hold_data, lambda _: False):
        if isinstance(each, Path):
            yield from _data(each, folder)
        elif each.origin not in passed_over:
            yield each


def _data(file: Path, root: Path) -> Iterator[Source | Item]:
    found = next((known for known in _DATA if known.detects(file)), None)
    if found is _TEXT and _FOR_PROGRAMS.fullmatch(file.name):
        yield Item(origin(file), skipped="a file for programs; give it by itself to import it")
    elif found:
        yield Source(found, file, root)


def _found(chosen: Format, path: Path, root: Path) -> Iterator[Source | Item]:
    for each in chosen.find(path):
        yield each if isinstance(each, Item) else Source(chosen, each, root)


def _is_hermes_home(folder: Path) -> bool:
    """Tell a home of Hermes by two of the things in it, one of which nothing else has."""
    own = ("SOUL.md", "state.db", "memories/MEMORY.md", "memories/USER.md")
    held = [name for name in (*own, "config.yaml", "sessions") if (folder / name).exists()]
    return len(held) > 1 and not {"state.db", "sessions"}.isdisjoint(held) and not set(own).isdisjoint(held)


def _profiles(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in (folder / "profiles").iterdir() if each.is_dir())
    except OSError:
        return []


_DATA_SUFFIXES = frozenset(
    (*sqlite_files.SUFFIXES, *jsonl.SUFFIXES, *delimited.SUFFIXES, *plain_text.SUFFIXES, ".json")
)


def _may_hold_data(file: Path) -> bool:
    return file.suffix.lower() in _DATA_SUFFIXES


def _unknown() -> str:
    return f"none of the known formats fits; name one with --as: {', '.join(each.name for each in FORMATS)}"
