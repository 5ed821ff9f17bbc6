"""The stores of Runtime Memory 3 and 4: every memory with its record, in use or not, and no trace left beside them."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_memory import MemoryCategory, MemoryScope, MemorySource, Outcome
from runtime_memory.importers import Item, sqlite_files, sqlite_stores
from runtime_memory.outcomes import OutcomeEvent, fold, outcome_score

MADE, JUDGED = "2024-05-01T09:30:00.123456+00:00", "2024-06-01T10:00:00+00:00"
VERSION_3 = """
CREATE TABLE memories (
    id TEXT PRIMARY KEY, content TEXT NOT NULL, category TEXT NOT NULL, outcome_score REAL DEFAULT 0.0,
    confidence REAL DEFAULT 1.0, importance REAL DEFAULT 0.5, use_count INTEGER DEFAULT 0, project TEXT,
    scope TEXT DEFAULT 'project', source TEXT DEFAULT 'explicit', tags TEXT DEFAULT '[]', entities TEXT DEFAULT '[]',
    supersedes TEXT, archived INTEGER DEFAULT 0, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, embedding TEXT,
    metadata TEXT DEFAULT '{}'
)"""
VERSION_4 = ("worked REAL DEFAULT 0.0", "failed REAL DEFAULT 0.0", "evidence_at TEXT")


class Old:
    """A store as versions 3 and 4 made them."""

    def __init__(self, file: Path, version: int = 3, journal: str = "wal") -> None:
        self.file = file
        with closing(self.connect()) as connection:
            connection.execute(f"PRAGMA journal_mode = {journal}")
            connection.execute(VERSION_3)
            for column in VERSION_4 if version == 4 else ():
                connection.execute(f"ALTER TABLE memories ADD COLUMN {column}")

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.file, isolation_level=None, timeout=0)

    def add(self, *rows: dict[str, Any]) -> None:
        with closing(self.connect()) as connection:
            insert(connection, *rows)

    def read(self) -> list[Item]:
        return list(sqlite_stores.read(self.file, self.file))


def insert(connection: sqlite3.Connection, *rows: dict[str, Any]) -> None:
    for row in rows:
        full = {"id": "a", "content": "a fact", "category": "gotcha", "created_at": MADE, "updated_at": JUDGED} | row
        names, marks = ", ".join(full), ", ".join("?" * len(full))
        connection.execute(f"INSERT INTO memories ({names}) VALUES ({marks})", tuple(full.values()))


@pytest.fixture
def old(tmp_path: Path) -> Old:
    return Old(tmp_path / "memories.db")


def score(events: tuple[OutcomeEvent, ...]) -> float:
    """Return the score as of when the record was taken."""
    return outcome_score(fold(events, {})["a"], events[0].at) if events else 0.0


def marker(value: float) -> int:
    """Return 1 for "has worked before", -1 for "has failed before", as the block rounds a score."""
    return (round(value, 2) >= 0.2) - (round(value, 2) <= -0.2)


def test_every_field_of_a_memory_is_kept(old: Old) -> None:
    old.add(
        {
            "project": "shop",
            "source": "extracted",
            "tags": json.dumps(["db", "net"]),
            "supersedes": "b",
            "archived": 1,
            "entities": json.dumps(["api.py"]),
            "importance": 0.9,
            "metadata": json.dumps({"who": "me"}),
            "embedding": json.dumps([0.5] * 10),
            "use_count": 7,
        }
    )
    (item,) = old.read()
    memory = item.memory
    assert memory is not None
    assert (memory.id, memory.content, memory.category) == ("a", "a fact", MemoryCategory.GOTCHA)
    assert (memory.scope, memory.project) == (MemoryScope.PROJECT, "shop")
    assert (memory.source, memory.tags, memory.supersedes) == (MemorySource.EXTRACTED, ["db", "net"], "b")
    assert memory.archived
    assert memory.created_at == datetime(2024, 5, 1, 9, 30, 0, 123456, UTC)
    assert memory.updated_at == datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert memory.metadata == {"who": "me", "entities": ["api.py"], "importance": 0.9}
    assert item.origin == memory.origin == f"{old.file.resolve()}#id=a"
    assert item.outcomes == ()
    assert item.notice is None


def test_what_has_no_place_any_more_is_seen_where_it_was_and_noted(old: Old) -> None:
    old.add(
        {"id": "a", "category": "recipe", "scope": "session", "project": "shop"},
        {"id": "b", "scope": "project", "source": "dream"},
        {"id": "c", "scope": "global", "project": "shop"},
    )
    first, second, third = [item.memory for item in old.read() if item.memory]
    assert (first.category, first.tags, first.scope) == (MemoryCategory.GENERAL, ["recipe"], None)
    assert first.metadata == {"scope": "session"}
    assert (second.scope, second.source) == (None, MemorySource.IMPORTED)
    assert third.scope == MemoryScope.GLOBAL


@pytest.mark.parametrize("steps", range(-20, 21))
def test_a_score_of_version_3_earns_the_marker_that_it_had(old: Old, steps: int) -> None:
    given_score = steps * 0.05
    old.add({"outcome_score": given_score})
    (item,) = old.read()
    assert marker(score(item.outcomes)) == marker(given_score)
    assert all(event.at == datetime(2024, 6, 1, 10, tzinfo=UTC) for event in item.outcomes)


@pytest.mark.parametrize(("given_score", "outcome", "count"), [(0.6000000000000001, "worked", 3), (-0.6, "failed", 2)])
def test_a_score_of_version_3_becomes_the_reports_that_moved_it(
    old: Old, given_score: float, outcome: str, count: float
) -> None:
    old.add({"outcome_score": given_score})
    (item,) = old.read()
    assert [(event.outcome.value, event.weight) for event in item.outcomes] == [(outcome, count)]


@given(st.floats(0, 100), st.floats(0, 100))
def test_counts_of_version_4_weigh_as_many_reports(worked: float, failed: float) -> None:
    told = dict(sqlite_stores.reports_of_counts(worked, failed))
    assert told.get(Outcome.WORKED, 0.0) == pytest.approx(worked, abs=1e-5)
    assert told.get(Outcome.FAILED, 0.0) == pytest.approx(failed, abs=1e-5)


def test_counts_of_version_4_keep_their_date_and_their_marker(tmp_path: Path) -> None:
    old = Old(tmp_path / "memories.db", version=4)
    at = "2024-05-20T08:00:00+00:00"
    old.add({"worked": 2.999999, "failed": 1.0, "evidence_at": at, "outcome_score": 0.3})
    (item,) = old.read()
    assert {(event.outcome, event.weight) for event in item.outcomes} == {
        (Outcome.WORKED, 2.999999),
        (Outcome.FAILED, 1.0),
    }
    assert {event.at for event in item.outcomes} == {datetime(2024, 5, 20, 8, tzinfo=UTC)}
    assert score(item.outcomes) == pytest.approx((3 - 12 / 7) / (3 + 12 / 7 + 4), abs=1e-5)


def test_reading_again_gives_the_same_reports(old: Old) -> None:
    old.add({"outcome_score": 0.25})
    assert old.read() == old.read()


def test_a_memory_may_supersede_one_that_comes_later_or_is_gone(old: Old) -> None:
    old.add({"id": "a", "supersedes": "b"}, {"id": "b", "supersedes": "gone"})
    assert [item.memory.supersedes for item in old.read() if item.memory] == ["b", "gone"]


def test_a_broken_row_stops_nothing(old: Old) -> None:
    old.add(
        {"id": "a", "content": " "},
        {"id": "b", "tags": "not json", "metadata": "[1]", "created_at": "yesterday"},
        {"id": "c", "outcome_score": "high"},
        {"id": "d", "content": b"caf\xe9".decode("latin-1")},
    )
    with closing(old.connect()) as connection:
        connection.execute("UPDATE memories SET content = CAST(x'636166E9' AS TEXT) WHERE id = 'd'")
    first, second, third, fourth = old.read()
    assert (first.memory, first.fault) == (None, True)
    assert second.memory is not None
    assert "tags" in (second.notice or "")
    assert "created_at" in (second.notice or "")
    assert third.outcomes == ()
    assert fourth.memory is not None
    assert fourth.memory.content == "caf\ufffd"


# Opening


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {each.name: (each.stat().st_size, each.stat().st_mtime_ns) for each in folder.iterdir()}


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_store_that_nobody_uses_is_left_as_it_is(tmp_path: Path, journal: str) -> None:
    old = Old(tmp_path / "memories.db", journal=journal)
    old.add({})
    before = listing(tmp_path)
    assert sqlite_stores.detects(old.file)
    assert [item.memory is not None for item in old.read()] == [True]
    assert listing(tmp_path) == before


def test_a_store_in_use_is_read_with_what_only_its_log_holds(old: Old) -> None:
    with closing(old.connect()) as user:
        insert(user, {"id": "a"})
        assert old.file.with_name("memories.db-wal").stat().st_size
        user.execute("BEGIN IMMEDIATE")
        insert(user, {"id": "uncommitted"})
        assert [item.memory.id for item in old.read() if item.memory] == ["a"]
        user.execute("COMMIT")
        insert(user, {"id": "b"})
        assert [item.memory.id for item in old.read() if item.memory] == ["a", "uncommitted", "b"]


def test_a_write_while_it_is_read_is_not_blocked_and_not_seen(old: Old) -> None:
    with closing(old.connect()) as user:
        insert(user, *({"id": f"{number}"} for number in range(50)))
        items = sqlite_stores.read(old.file, old.file)
        next(items)
        insert(user, {"id": "late"})
        assert "late" not in {item.memory.id for item in items if item.memory}


def test_a_log_that_cannot_be_shared_is_read_from_a_copy(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(old.connect()) as user:
        insert(user, {"id": "a"})
        connect = sqlite3.connect

        def refuse(name: str, **options: Any) -> sqlite3.Connection:
            if "copy.db" not in name:
                raise sqlite3.OperationalError("unable to open database file")
            return connect(name, **options)

        monkeypatch.setattr(sqlite_files.sqlite3, "connect", refuse)
        assert [item.memory.id for item in old.read() if item.memory] == ["a"]


def test_a_locked_store_is_waited_for_and_then_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_files, "_WAIT", 0.05)
    old = Old(tmp_path / "memories.db", journal="delete")
    old.add({})
    with closing(old.connect()) as user:
        user.execute("BEGIN EXCLUSIVE")
        (item,) = old.read()
        assert item.fault
        assert "locked" in (item.skipped or "")
    assert old.read()[0].memory is not None


@pytest.mark.parametrize("damage", [0, 4096 + 100])
def test_a_damaged_store_is_a_fault_and_no_error(old: Old, damage: int) -> None:
    old.add(*({"id": f"{number}", "content": "x" * 500} for number in range(100)))
    whole = old.file.read_bytes()
    old.file.write_bytes(whole[:damage] + os.urandom(4000) + whole[damage + 4000 :])
    items = old.read()
    assert items[-1].fault
    assert "cannot be read" in (items[-1].skipped or "")


def other_database(file: Path) -> Path:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE memories (id TEXT, body TEXT)")
    return file


def not_a_database(file: Path) -> Path:
    file.write_bytes(b"SQLite format 3")
    return file


def folder(file: Path) -> Path:
    file.mkdir()
    return file


@pytest.mark.parametrize("make", [other_database, not_a_database, folder, lambda file: file])
def test_other_files_are_not_taken_for_a_store(make: Any, tmp_path: Path) -> None:
    file = make(tmp_path / "x.db")
    assert not sqlite_stores.detects(file)
    assert [item.fault for item in sqlite_stores.read(file, file)] == [True]


def test_a_store_is_found_by_what_it_holds_among_other_files(old: Old) -> None:
    other_database(old.file.with_name("other.db"))
    old.file.with_name("notes.txt").write_text("text")
    assert list(sqlite_stores.find(old.file.parent)) == [old.file.resolve()]
    assert list(sqlite_stores.find(old.file)) == [old.file]


def test_an_empty_store_says_so(old: Old) -> None:
    assert [(item.skipped, item.fault) for item in old.read()] == [("empty", False)]


@pytest.fixture(params=["a b#c?d%e.db", "базa.db"])
def odd_name(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def test_any_path_can_be_opened(odd_name: Path) -> None:
    old = Old(odd_name)
    old.add({})
    assert [item.memory is not None for item in old.read()] == [True]


def test_the_record_fades_as_of_its_own_date(old: Old) -> None:
    old.add({"outcome_score": 0.2})
    (item,) = old.read()
    later = item.outcomes[0].at + timedelta(days=90)
    assert outcome_score(fold(item.outcomes, {})["a"], later) == pytest.approx(0.5 / 4.5)
