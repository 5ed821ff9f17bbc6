"""JSON Lines: an export comes back the same in every field, other files by their fields; a bad line stops nothing."""

from __future__ import annotations

import json
import string
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_memory import Memory, MemoryCategory, MemoryScope, MemorySource, Outcome
from runtime_memory.errors import InvalidInputError
from runtime_memory.importers import Item, jsonl
from runtime_memory.importers.fields import TARGETS, parse_mapping
from runtime_memory.outcomes import OutcomeEvent
from runtime_memory.serialize import export_json

AT = datetime(2024, 5, 1, 9, 30, 0, 123456, UTC)


def read(file: Path, mapping: str | None = None) -> list[Item]:
    return list(jsonl.read(file, file, mapping=parse_mapping(mapping) if mapping else None))


def written(folder: Path, *records: dict[str, Any] | str, name: str = "facts.jsonl") -> Path:
    file = folder / name
    lines = (record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records)
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return file


def contents(items: list[Item]) -> list[str | None]:
    return [item.memory.content if item.memory else None for item in items]


# The export of a store

labels = st.one_of(st.none(), st.text(string.ascii_letters + "äж日'\" -", min_size=1, max_size=20))
moments = st.datetimes(datetime(1971, 1, 1), datetime(2190, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))  # noqa: DTZ001
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
plain = st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts, st.lists, max_leaves=5)
memories = st.builds(
    Memory,
    id=st.uuids().map(str),
    content=texts,
    category=st.sampled_from(MemoryCategory),
    scope=st.sampled_from(MemoryScope),
    source=st.sampled_from(MemorySource),
    tags=st.lists(texts, max_size=3, unique=True).map(tuple),
    metadata=st.dictionaries(texts, plain, max_size=3),
    created_at=moments,
    updated_at=moments,
    imported_at=st.none() | moments,
    archived=st.booleans(),
    **dict.fromkeys(("project", "user", "profile", "session", "supersedes", "origin", "origin_hash"), labels),
)
reports = st.lists(
    st.builds(
        OutcomeEvent,
        memory_id=st.just("x"),
        outcome=st.sampled_from(Outcome),
        weight=st.floats(1e-9, 1e6),
        at=moments,
        session=st.text(string.ascii_letters),
        turn=st.text(string.ascii_letters),
        origin=st.text(string.ascii_letters),
    ),
    max_size=3,
)


@given(memories, reports)
def test_every_field_and_every_report_of_an_exported_line_comes_back(memory: Memory, told: list[OutcomeEvent]) -> None:
    line = json.dumps(export_json(memory, told), ensure_ascii=False)
    again, outcomes = jsonl.from_export(json.loads(line))
    for name in {field.name for field in fields(Memory)} - {"tags", "outcome_score", "uses"}:
        assert getattr(again, name) == getattr(memory, name), name
    assert tuple(again.tags) == memory.tags
    assert [(each.outcome, each.weight, each.at, each.session, each.turn, each.origin) for each in outcomes] == [
        (each.outcome, each.weight, each.at, each.session, each.turn, each.origin) for each in told
    ]
    assert {each.memory_id for each in outcomes} <= {memory.id}


@pytest.fixture
def exported() -> dict[str, Any]:
    memory = Memory(
        id="0192f3c4-0000-7000-8000-000000000001",
        content="It is 6432.",
        category=MemoryCategory.GOTCHA,
        scope=MemoryScope.PROJECT,
        project="shop",
        user=None,
        profile=None,
        session=None,
        source=MemorySource.EXPLICIT,
        tags=("db",),
        metadata={"a": 1},
        created_at=AT,
        updated_at=AT,
        archived=True,
        supersedes="gone",
        origin="elsewhere.md#port",
    )
    return export_json(memory, [OutcomeEvent(memory.id, Outcome.FAILED, 0.125, AT, origin="tool")])


def test_a_file_of_exported_lines_is_read_by_its_fields_with_and_without_a_header(
    exported: dict[str, Any], tmp_path: Path
) -> None:
    for header in ([], [{"format": "runtime-memory", "version": 1}]):
        file = written(tmp_path, *header, exported)
        assert jsonl.detects(file)
        (item,) = read(file)
        assert item.memory is not None
        assert (item.memory.id, item.memory.archived, item.memory.supersedes) == (exported["id"], True, "gone")
        assert item.memory.origin == "elsewhere.md#port"
        assert item.origin == f"{file.resolve()}#id={exported['id']}"
        assert [(each.outcome, each.weight, each.origin) for each in item.outcomes] == [(Outcome.FAILED, 0.125, "tool")]


def test_an_export_of_a_newer_form_is_refused_as_a_whole(exported: dict[str, Any], tmp_path: Path) -> None:
    (item,) = read(written(tmp_path, {"format": "runtime-memory", "version": 2}, exported))
    assert item.fault
    assert "update runtime-memory" in (item.skipped or "")


@pytest.mark.parametrize(
    "broken",
    [
        {"id": ""},
        {"content": 5},
        {"created_at": "yesterday"},
        {"scope": "planet"},
        {"tags": "db"},
        {"metadata": ["x"]},
        {"project": 1},
        {"outcomes": [{"outcome": "great", "at": "2024-05-01T00:00:00Z"}]},
        {"outcomes": [{"outcome": "worked"}]},
        {"outcomes": [{"outcome": "worked", "weight": True, "at": "2024-05-01T00:00:00Z"}]},
    ],
)
def test_a_line_that_no_export_writes_is_a_fault_and_the_next_is_read(
    exported: dict[str, Any], broken: dict[str, Any], tmp_path: Path
) -> None:
    first, second = read(written(tmp_path, exported | broken, exported))
    assert (first.memory, first.fault) == (None, True)
    assert "line 1" in (first.skipped or "")
    assert second.memory is not None


def test_a_category_of_a_later_version_is_kept_as_a_tag(exported: dict[str, Any], tmp_path: Path) -> None:
    (item,) = read(written(tmp_path, exported | {"category": "recipe"}))
    assert item.memory is not None
    assert (item.memory.category, item.memory.tags) == (MemoryCategory.GENERAL, ["db", "recipe"])


# Other files


@pytest.mark.parametrize("name", TARGETS["content"])
def test_the_text_is_found_by_its_usual_names(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, {"id": 7, name.upper(): "a fact", "vector": [0.5] * 1000, "who": "me"})
    assert jsonl.detects(file)
    (item,) = read(file)
    assert item.memory is not None
    assert item.memory.content == "a fact"
    assert item.memory.id is None
    assert item.origin == item.memory.origin == f"{file.resolve()}#id=7"
    assert item.memory.metadata == {"who": "me"}


def test_a_mapping_names_the_fields_also_inner_ones(tmp_path: Path) -> None:
    record = {"message": {"text": "a fact", "when": 1714555800}, "text": "not this", "kind": "Gotcha", "a.b": "shop"}
    file = written(tmp_path, record)
    (item,) = read(file, "content=message.text, created_at=message.when, category=kind, project=a.b")
    assert item.memory is not None
    assert (item.memory.content, item.memory.project) == ("a fact", "shop")
    assert item.memory.category == MemoryCategory.GOTCHA
    assert item.memory.created_at == datetime(2024, 5, 1, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("mapping", "told"),
    [
        ("content", "TARGET=FIELD"),
        ("content=", "TARGET=FIELD"),
        ("text=content", "valid are: content, created_at"),
        ("content=a,content=b", "twice"),
        (" , ", "empty"),
    ],
)
def test_a_wrong_mapping_is_refused_and_says_what_is_valid(mapping: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        parse_mapping(mapping)


@pytest.mark.parametrize(
    ("given", "created"),
    [
        ("2024-05-01T09:30:00Z", datetime(2024, 5, 1, 9, 30, tzinfo=UTC)),
        ("2024-05-01 11:30:00 +02:00", datetime(2024, 5, 1, 9, 30, tzinfo=UTC)),
        ("2024-05-01T09:30:00", datetime(2024, 5, 1, 9, 30, tzinfo=UTC)),
        ("2024-05-01 09:30:00 UTC", datetime(2024, 5, 1, 9, 30, tzinfo=UTC)),
        ("2024-05-01", datetime(2024, 5, 1, 12, tzinfo=UTC)),
        ("20240501", datetime(2024, 5, 1, 12, tzinfo=UTC)),
        (1714555800, datetime(2024, 5, 1, 9, 30, tzinfo=UTC)),
        ("1714555800.5", datetime(2024, 5, 1, 9, 30, 0, 500_000, UTC)),
        (1714555800123, datetime(2024, 5, 1, 9, 30, 0, 123_000, UTC)),
        (1714555800123456, datetime(2024, 5, 1, 9, 30, 0, 123_456, UTC)),
    ],
)
@pytest.mark.parametrize("name", TARGETS["created_at"])
def test_dates_come_as_iso_texts_and_as_counts(name: str, given: object, created: datetime, tmp_path: Path) -> None:
    (item,) = read(written(tmp_path, {"text": "a fact", name: given}))
    assert item.memory is not None
    assert item.memory.created_at == created
    assert item.notice is None


@pytest.mark.parametrize("given", ["soon", 1e300, "0001-01-01", True, -5e15, [1], "9" * 400])
def test_a_date_that_is_not_understood_is_said_and_that_of_the_file_taken(given: object, tmp_path: Path) -> None:
    (item,) = read(written(tmp_path, {"text": "a fact", "ts": given}, name="2024-05-01.jsonl"))
    assert item.memory is not None
    assert item.memory.created_at == datetime(2024, 5, 1, 12, tzinfo=UTC)
    assert "not understood" in (item.notice or "")


def test_a_line_keeps_its_name_and_its_hash_when_others_come_before_it(tmp_path: Path) -> None:
    one, two = {"id": "a", "text": "one"}, {"id": "b", "text": "two", "ts": 1714555800}
    before = {item.origin: item.memory.origin_hash for item in read(written(tmp_path, two)) if item.memory}
    after = {item.origin: item.memory.origin_hash for item in read(written(tmp_path, one, two)) if item.memory}
    assert before.items() <= after.items()
    for change in ({"text": "2"}, {"ts": 1714555801}, {"tags": "x"}, {"category": "todo"}, {"who": "me"}):
        changed = read(written(tmp_path, two | change))[0].memory
        assert changed is not None
        assert changed.origin_hash not in after.values()


def test_two_lines_of_the_same_name_are_two_places(tmp_path: Path) -> None:
    items = read(written(tmp_path, {"id": "a", "text": "one"}, {"id": "a", "text": "two"}))
    assert len({item.origin for item in items}) == 2


# What goes wrong


def test_bad_lines_are_faults_with_their_numbers_and_the_others_are_read(tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    lines = [
        b'\xef\xbb\xbf{"text": "one", "score": NaN}',
        b"",
        b"not json",
        b'["text"]',
        b'{"text": ""}',
        b'{"n": 1}',
        b"[" * 100_000,
        b'{"text": "two"}  ',
        b'{"text": "cut o',
    ]
    file.write_bytes(b"\r\n".join(lines))
    items = read(file)
    assert contents(items) == ["one", None, None, None, None, None, "two", None]
    assert [item.origin.rpartition("#")[2] for item in items] == ["L1", "L3", "L4", "L5", "L6", "L7", "L8", "L9"]
    assert [item.fault for item in items] == [False, True, True, True, True, True, False, True]
    assert "may be incomplete" in (items[-1].skipped or "")
    assert "--map content=FIELD" in (items[4].skipped or "")


def test_a_long_line_is_read_and_an_endless_one_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, {"text": "x" * 10_000_000}, {"text": "y"})
    assert [len(text or "") for text in contents(read(file))] == [10_000_000, 1]
    with file.open() as stream:
        assert [(n, line and len(line)) for n, line in jsonl.lines(stream, 1_000)] == [(1, None), (2, 14)]


def test_a_long_first_line_with_a_text_is_detected(tmp_path: Path) -> None:
    assert jsonl.detects(written(tmp_path, {"text": "x" * 100_000}))


def test_a_file_without_any_memory_is_not_read_to_its_end(tmp_path: Path) -> None:
    items = read(written(tmp_path, *({"n": number} for number in range(1_000))))
    assert len(items) == 51
    assert "no more of it was read" in (items[-1].skipped or "")
    items = read(written(tmp_path, {"text": "a fact"}, *({"n": number} for number in range(1_000))))
    assert len(items) == 1_001


def test_an_empty_file_and_one_that_is_gone_are_said(tmp_path: Path) -> None:
    (item,) = read(written(tmp_path, ""))
    assert (item.skipped, item.fault) == ("empty", False)
    (item,) = read(tmp_path / "gone.jsonl")
    assert item.fault


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_encodings_are_told_apart_also_in_large_files(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_bytes('{"text": "Café"}\n{"text": "naïve"}\n'.encode(encoding))
    assert contents(read(file)) == ["Café", "naïve"]
    monkeypatch.setattr("runtime_memory.importers.text_files.MAX_BYTES", 3)
    items = read(file)
    assert contents(items) == ["Café", "naïve"]
    assert [item.notice for item in items] == ["not UTF-8, read as Latin-1" if encoding == "latin-1" else None, None]


@pytest.mark.parametrize(
    "first",
    [
        '{"role": "user", "content": "hi"}',
        '{"type": "user", "message": {"role": "user"}}',
        '{"type": "queue", "content": "hi", "sessionId": "s"}',
        '{"n": 1}',
        '{"n": "' + "x" * 70_000 + '"}',
    ],
)
def test_chats_and_tables_without_a_text_are_not_taken_for_memories(first: str, tmp_path: Path) -> None:
    assert not jsonl.detects(written(tmp_path, first))


@given(data=st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "any.jsonl"
    file.write_bytes(data)
    assert read(file)
    jsonl.detects(file)
