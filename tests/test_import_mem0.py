"""What mem0 holds: its exports in every shape, and the memories that its history leaves."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runtime_memory import MemoryCategory, MemorySource
from runtime_memory.importers import Item, mem0

ENTRY = {
    "id": "9a1c3f8e-2b5d-4c7a-8f10-6d2e4b8a0c31",
    "memory": "Dev works at a bakery",
    "hash": "0123456789abcdef0123456789abcdef",
    "metadata": {"type": "professional"},
    "created_at": "2024-07-20T01:30:36.275141-07:00",
    "updated_at": None,
    "user_id": "dev",
    "agent_id": None,
}


def export(folder: Path, value: Any) -> Path:
    file = folder / "mem0.json"
    file.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), "utf-8")
    return file


def read(file: Path) -> list[Item]:
    return list(mem0.read(file, file))


@pytest.mark.parametrize(
    "shape",
    [
        {"results": [ENTRY]},
        {"count": 1, "next": None, "previous": None, "results": [ENTRY]},
        [ENTRY],
        {"memories": [ENTRY]},
        {"result": {"points": [{"id": ENTRY["id"], "payload": {**ENTRY, "data": ENTRY["memory"], "memory": None}}]}},
    ],
)
def test_an_export_is_read_in_every_shape(shape: Any, tmp_path: Path) -> None:
    file = export(tmp_path, shape)
    assert mem0.detects(file)
    (item,) = read(file)
    memory = item.memory
    assert memory is not None
    assert (memory.id, memory.content, memory.source) == (ENTRY["id"], ENTRY["memory"], MemorySource.EXTRACTED)
    assert memory.created_at == memory.updated_at == datetime(2024, 7, 20, 8, 30, 36, 275141, UTC)
    assert memory.metadata == {"type": "professional", "user_id": "dev"}
    assert memory.user is None
    assert item.origin == f"{file.resolve()}#id={ENTRY['id']}"


def test_categories_become_our_category_and_tags(tmp_path: Path) -> None:
    (item,) = read(export(tmp_path, [ENTRY | {"categories": ["food", "preference", "travel"]}]))
    assert item.memory is not None
    assert item.memory.category == MemoryCategory.PREFERENCE
    assert item.memory.tags == ["food", "travel"]


def test_a_broken_entry_stops_nothing(tmp_path: Path) -> None:
    items = read(export(tmp_path, [5, {"id": "x"}, ENTRY | {"created_at": "soon"}, {"memory": "no id", "hash": "h"}]))
    assert [item.fault for item in items] == [True, True, False, False]
    assert "created_at" in (items[2].notice or "")
    assert items[3].memory is not None
    assert (items[3].memory.id, items[3].memory.origin_hash) == (None, "h")
    assert items[3].memory.origin == items[3].origin


@pytest.mark.parametrize(
    ("text", "fault"), [("", False), ("[]", False), ("{", True), ("5", True), ('{"a": 1}', True), ("[" * 10**5, True)]
)
def test_what_holds_no_memories_says_so(text: str, fault: bool, tmp_path: Path) -> None:
    assert [item.fault for item in read(export(tmp_path, text))] == [fault]


def test_other_json_is_not_taken_for_an_export(tmp_path: Path) -> None:
    for value in ({"name": "x", "memory": 5}, {"memory": "512 MB", "cpu": 2}, []):
        assert not mem0.detects(export(tmp_path, value))
    assert not mem0.detects(tmp_path / "gone.json")


HISTORY = """CREATE TABLE history (
    id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, created_at DATETIME,
    updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT
)"""


def test_a_history_gives_the_memories_as_they_are_now(tmp_path: Path) -> None:
    file = tmp_path / "history.db"
    first, later, last = (f"2024-07-2{day}T10:00:00+00:00" for day in range(3))
    events = [
        ("1", "a", None, "likes tea", "ADD", first, None, 0, None, "user"),
        ("2", "b", None, "lives in Rome", "ADD", first, None, 0, None, None),
        ("3", "a", "likes tea", "likes coffee", "UPDATE", first, later, 0, None, "user"),
        ("4", "b", "lives in Rome", None, "DELETE", first, last, 1, None, None),
        ("5", "a", "likes coffee", None, "NONE", first, last, 0, None, None),
    ]
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(HISTORY)
        connection.executemany(f"INSERT INTO history VALUES ({', '.join('?' * 10)})", events)
    assert mem0.detects(file)
    (item,) = read(file)
    assert item.memory is not None
    assert (item.memory.id, item.memory.content) == ("a", "likes coffee")
    assert item.memory.created_at == datetime(2024, 7, 20, 10, tzinfo=UTC)
    assert item.memory.updated_at == datetime(2024, 7, 21, 10, tzinfo=UTC)
    assert item.memory.metadata == {"role": "user"}
    assert list(mem0.find(tmp_path)) == [file.resolve()]
