"""Read JSON Lines: the lossless export of a store, and any others whose objects have a text.

A line of an export is a memory as the tools show it, with ``outcomes``: every report about it. A first line
``{"format": "runtime-memory", "version": 1}`` names the form. Of other files, ``fields`` says which field is what.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from runtime_memory.importers import Item
from runtime_memory.importers.fields import TARGETS, Fields, category, without_text
from runtime_memory.importers.files import below, origin
from runtime_memory.importers.text_files import fault, guarded, head, lines, noticed, open_text
from runtime_memory.importers.timestamps import file_date, moment
from runtime_memory.models import MemoryScope, MemorySource, NewMemory, Outcome
from runtime_memory.outcomes import OutcomeEvent

__all__ = ["NAME", "VERSION", "detects", "find", "from_export", "json_value", "objects", "read"]

NAME = "jsonl"
VERSION = 1
"""The newest form of the export that is understood."""

SUFFIXES = frozenset({".jsonl", ".ndjson", ".jsonlines"})
_EXPORTED = frozenset({"id", "content", "category", "scope", "source", "created_at", "updated_at", "archived"})
_CHAT = frozenset({"user", "assistant", "system", "tool", "function", "developer", "session_meta"})
_OF_CHATS = frozenset({"sessionId", "parentUuid", "conversations", "messages"})
_TEXT_SHOWN = re.compile(rf'"(?:{"|".join(TARGETS["content"])})"\s*:\s*"', re.IGNORECASE)
_MOST_BAD, _NEVER = 50, -(10**12)
_TIMES = ("created_at", "updated_at", "imported_at")
_TEXTS = ("project", "user", "profile", "session", "supersedes", "origin", "origin_hash")


def detects(path: Path) -> bool:
    """Tell whether a file holds objects with a text, a line each, that are no chat."""
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        return False
    begin = head(path)
    first = next(objects(begin), None)
    if first is None:  # a first line longer than what is looked at; what is no JSON is for the reader to tell
        return "\n" in begin.strip() or not begin.startswith("{") or bool(_TEXT_SHOWN.search(begin))
    if first.get("role") in _CHAT or not _OF_CHATS.isdisjoint(first):
        return False
    return _is_header(first) or bool(Fields(first, {}).text)


def find(path: Path) -> Iterator[Path | Item]:
    """Yield the files of a folder by their names, and what is passed over; a file yields itself."""
    return below(path, lambda file: file.suffix.lower() in SUFFIXES)


@guarded
def read(file: Path, root: Path, *, mapping: Mapping[str, str] | None = None) -> Iterator[Item]:  # noqa: ARG001
    """Yield an item a line, in a stream; ``mapping`` says for targets which field they are in."""
    opened = open_text(file)
    if isinstance(opened, Item):
        yield opened
        return
    with opened.stream as stream:
        reading = _Reading(origin(file), file_date(file), mapping or {})
        yield from noticed(reading.items(stream), opened.notice, reading.where)


@dataclass
class _Reading:
    """One file on its way: its origin and date, what the fields stand for, and the names of lines that were met."""

    where: str
    written: datetime
    mapping: Mapping[str, str]
    names: set[int] = field(default_factory=set)

    def items(self, stream: TextIO) -> Iterator[Item]:
        """Yield an item a line, up to where it is clear that the file holds no memories."""
        bad = 0
        for number, line in lines(stream):
            if line is not None and not line.strip():
                continue
            place = f"{self.where}#L{number}"
            record = _record(line, number, place)
            if not isinstance(record, Item) and not self.mapping and _is_header(record):
                if newer := _newer(record):
                    yield fault(place, newer)
                    return
                continue
            item = record if isinstance(record, Item) else self.item(record, number, place)
            yield item
            bad = _NEVER if item.memory else bad + 1
            if bad == _MOST_BAD:
                yield fault(self.where, f"none of its first {bad} lines gives a memory, and no more of it was read")
                return

    def item(self, record: Mapping[str, Any], number: int, place: str) -> Item:
        """Return the memory of a line, or why it has none."""
        if not self.mapping and record.keys() >= _EXPORTED:
            try:
                memory, outcomes = from_export(record)
            except (ValueError, TypeError, OverflowError) as error:
                return fault(place, f"line {number} is no exported memory ({error})")
            return Item(f"{self.where}#id={memory.id}", memory, outcomes=outcomes)
        given = Fields(record, self.mapping)
        if not given.text.strip():
            return fault(place, f"line {number}: {without_text(self.mapping)}")
        name = given.name
        if name and hash(name) not in self.names:  # a line keeps its name when others come before it
            self.names.add(hash(name))
            place = f"{self.where}#id={name}"
        memory, notice = given.memory(place, self.written)
        return Item(place, memory, notice=notice)


def objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of the whole lines of a text; what is none is left out."""
    for line in text.split("\n"):
        try:
            value = json_value(line) if line.lstrip()[:1] == "{" else None
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def json_value(text: str) -> Any:
    """Return what a JSON text says; raises ValueError. NaN and infinity, which are no JSON, count as null."""
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def from_export(record: Mapping[str, Any]) -> tuple[NewMemory, tuple[OutcomeEvent, ...]]:
    """Return the memory of an exported line, the same in every field, and what was reported of it.

    Raises ValueError for what no export writes.
    """
    kind, leftover = category(record.get("category"))
    texts: dict[str, Any] = {name: _optional(record, name) for name in _TEXTS}
    times: dict[str, Any] = {name: _moment(record.get(name)) for name in _TIMES}
    memory = NewMemory(
        _required(record, "content"),
        id=_required(record, "id"),
        category=kind,
        scope=MemoryScope(record["scope"]) if record.get("scope") else None,
        source=MemorySource(record.get("source") or MemorySource.IMPORTED),
        tags=[*_list(record, "tags", str), *leftover],
        metadata=_metadata(record),
        archived=record.get("archived") is True,
        **texts,
        **times,
    )
    reports = _list(record, "outcomes", dict)
    return memory, tuple(_event(report, str(memory.id)) for report in reports)


def _record(line: str | None, number: int, place: str) -> Mapping[str, Any] | Item:
    if line is None:
        return fault(place, f"line {number} is too long")
    try:
        value = json_value(line)
    except ValueError as error:
        cut = "" if line.endswith("\n") else "; the file ends in it, and may be incomplete"
        return fault(place, f"line {number} is not JSON ({error}){cut}")
    return value if isinstance(value, dict) else fault(place, f"line {number} holds no object")


def _is_header(record: Mapping[str, Any]) -> bool:
    return record.get("format") == "runtime-memory" and "content" not in record


def _newer(header: Mapping[str, Any]) -> str | None:
    version = header.get("version")
    if isinstance(version, int) and version <= VERSION:
        return None
    return f"its form is version {version!r}, newer than {VERSION}; update runtime-memory to import it"


def _required(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is missing")
    return value


def _optional(record: Mapping[str, Any], name: str) -> str | None:
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value


def _list(record: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    values = record.get(name) or []
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise ValueError(f"{name} is no list of them")
    return values


def _metadata(record: Mapping[str, Any]) -> Mapping[str, Any]:
    value = record.get("metadata") or {}
    if not isinstance(value, dict):
        raise TypeError("metadata is no object")
    return value


def _moment(value: Any) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value) if isinstance(value, str) else moment(value)


def _event(report: Mapping[str, Any], memory_id: str) -> OutcomeEvent:
    weight = report.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise TypeError("the weight of an outcome is no number")
    at = _moment(report.get("at"))
    if at is None:
        raise ValueError("an outcome has no date")
    told = {name: _optional(report, name) or "" for name in ("session", "turn", "origin")}
    return OutcomeEvent(memory_id, Outcome(_required(report, "outcome")), float(weight), at, **told)
