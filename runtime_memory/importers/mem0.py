"""Read what mem0 holds: an export as JSON, or the history that it keeps in SQLite.

The shape is that of ``get_all()`` in its API reference and in ``mem0/memory/main.py``: ``{"results": [{"id", "memory",
"hash", "created_at", "updated_at", "user_id", "agent_id", "run_id", "metadata"}]}``, on its platform also with
``categories``; older versions give the list alone. ``memories`` for ``results`` and the payloads of its vector stores
(``data`` for ``memory``) are understood too. ``history.db`` is the table of ``mem0/memory/storage.py``; its events, put
one after the other, give the memories as they are now. Whom a memory is about (``user_id`` and the like) becomes
metadata: it is a name given by a program, not a user of a gateway.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from runtime_memory.importers import Item
from runtime_memory.importers.fields import category, tag_list
from runtime_memory.importers.files import below, load, origin
from runtime_memory.importers.jsonl import json_value
from runtime_memory.importers.sqlite_files import SUFFIXES, has_columns, is_sqlite, opened, why
from runtime_memory.importers.text_files import fault, guarded, head, noticed
from runtime_memory.importers.timestamps import file_date, noticed_moment
from runtime_memory.models import MemoryCategory, MemorySource, NewMemory

__all__ = ["NAME", "detects", "find", "read"]

NAME = "mem0"

_HISTORY = frozenset({"memory_id", "old_memory", "new_memory", "event", "created_at", "is_deleted"})
_LISTS = ("results", "memories", "points", "data", "result")
_TEXTS = ("memory", "data", "text", "content")
_ABOUT = ("user_id", "agent_id", "app_id", "run_id", "actor_id", "role")
_SHOWN = re.compile(r'"(?:memory|data)"\s*:\s*"')
_TOLD = re.compile(r'"(?:hash|user_id|agent_id|run_id)"\s*:')


def detects(path: Path) -> bool:
    """Tell whether a file is such an export, or such a history."""
    if path.suffix.lower() == ".json":
        begin = head(path)
        return bool(_SHOWN.search(begin) and _TOLD.search(begin))
    return path.suffix.lower() in SUFFIXES and has_columns(path, "history", _HISTORY)


def find(path: Path) -> Iterator[Path | Item]:
    """Yield the exports and histories of a folder, and what is passed over; a file yields itself."""
    return below(path, detects)


@guarded
def read(file: Path, root: Path) -> Iterator[Item]:  # noqa: ARG001
    """Yield an item a memory; one that was deleted in mem0 is none."""
    if is_sqlite(file):
        yield from noticed(_of_history(file), None, origin(file))
        return
    document = load(file)
    if isinstance(document, Item):
        yield document
        return
    try:
        listed = _listed(json_value(document.text)) if document.text.strip() else []
    except ValueError as error:
        yield fault(origin(file), f"it is not JSON ({error})")
        return
    if listed is None:
        yield fault(origin(file), "it holds no list of memories; export them with get_all()")
        return
    written = file_date(file)
    items = (_item(each, number, file, written) for number, each in enumerate(listed, start=1))
    yield from noticed(items, document.notice, origin(file))


def _listed(value: Any) -> list[Any] | None:
    """Return the list of memories in an export, however deep it lies."""
    if isinstance(value, list):
        return value
    if isinstance(value, Mapping):
        for name in _LISTS:
            if (found := _listed(value.get(name))) is not None:
                return found
    return None


def _item(given: Any, number: int, file: Path, written: datetime) -> Item:
    place = origin(file, f"e{number}")
    if not isinstance(given, Mapping):
        return fault(place, f"entry {number} is no object")
    payload = given.get("payload")
    record = {**payload, **given} if isinstance(payload, Mapping) else given
    text = next((record[name] for name in _TEXTS if isinstance(record.get(name), str) and record[name].strip()), None)
    if text is None:
        return fault(place, f"entry {number} has no text in memory")
    notices: list[str] = []
    created = noticed_moment(record.get("created_at"), "created_at", notices) or written
    kind, tags = _categories(record)
    id_ = record.get("id") or record.get("memory_id")
    place = origin(file, f"id={id_}") if id_ else place
    memory = NewMemory(
        text,
        id=str(id_) if id_ else None,
        category=kind,
        source=MemorySource.EXTRACTED,
        tags=tags,
        metadata=_metadata(record),
        created_at=created,
        updated_at=noticed_moment(record.get("updated_at"), "updated_at", notices) or created,
        origin=place,
        origin_hash=str(record["hash"])[:64] if record.get("hash") and not id_ else None,
    )
    return Item(place, memory, notice="; ".join(notices) or None)


def _categories(record: Mapping[str, Any]) -> tuple[MemoryCategory, list[str]]:
    """Return the first of mem0's categories that is one of ours, and the others as tags."""
    kinds = [category(each) for each in tag_list(record.get("categories"))]
    kind = next((kind for kind, leftover in kinds if not leftover), MemoryCategory.GENERAL)
    return kind, [tag for _, leftover in kinds for tag in leftover]


def _metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    held = record.get("metadata")
    metadata = dict(held) if isinstance(held, Mapping) else {}
    for name in _ABOUT:
        if record.get(name):
            metadata.setdefault(name, record[name])
    return metadata


def _of_history(file: Path) -> Iterator[Item]:
    """Yield the memories that the events of a history leave."""
    now: dict[str, dict[str, Any]] = {}
    try:
        with opened(file) as connection:
            for row in connection.execute("SELECT * FROM history ORDER BY COALESCE(updated_at, created_at), rowid"):
                _apply(dict(row), now)
    except sqlite3.Error as error:
        yield fault(origin(file), why(error))
        return
    written = file_date(file)
    for number, record in enumerate(now.values(), start=1):
        yield _item(record, number, file, written)


def _apply(event: Mapping[str, Any], now: dict[str, dict[str, Any]]) -> None:
    id_ = str(event["memory_id"])
    if event["event"] == "DELETE" or event["is_deleted"]:
        now.pop(id_, None)
        return
    if event["new_memory"] is None:  # nothing was said anew
        return
    before = now.get(id_, {})
    now[id_] = {
        "id": id_,
        "memory": event["new_memory"],
        "created_at": before.get("created_at") or event["created_at"],
        "updated_at": event.get("updated_at") or event["created_at"],
        **{name: event[name] for name in ("actor_id", "role") if event.get(name)},
    }
