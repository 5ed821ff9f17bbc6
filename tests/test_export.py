"""Export and import again: nothing is lost on the way."""

from __future__ import annotations

import dataclasses
import itertools
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime_memory import Memory, MemoryCategory, MemorySource, MemoryStore, NewMemory, Outcome
from runtime_memory.export import jsonl_lines, markdown_notes
from runtime_memory.importers import Summary, jsonl
from runtime_memory.importers.intake import Intake
from tests.conftest import OpenStore

FOLDERS = itertools.count()


def everything(store: MemoryStore) -> dict[str, tuple[Memory, list[Any]]]:
    """Return all that a store holds, by id."""
    memories = {memory.id: memory for memory in store.list(include_archived=True)}
    events = {id_: store.outcomes([id_]) for id_ in memories}
    return {id_: (memory, events[id_]) for id_, memory in memories.items()}


def exported(store: MemoryStore, file: Path, **options: Any) -> Path:
    file.write_text("".join(jsonl_lines(store, include_archived=True, **options)), "utf-8")
    return file


def imported(store: MemoryStore, file: Path) -> Summary:
    intake = Intake(store)
    intake.take(jsonl.read(file, file))
    return intake.finish([file])


def test_an_export_comes_back_equal_in_every_field_with_its_outcomes(open_store: OpenStore, tmp_path: Path) -> None:
    source, target = open_store(), open_store(tmp_path / "other")
    old = source.add("the port is 5432", category="environment", project="shop", tags=["db", "порт"])
    source.record_outcome([old.id], Outcome.WORKED, session="s", turn="t")
    source.record_outcome([old.id], Outcome.FAILED, weight=0.25, origin="auto")
    source.add("the port is 5433\n\n  and *only* there", project="shop", supersedes=old.id, metadata={"a": [1, None]})
    source.add(
        "a note of old", created_at=datetime(2019, 5, 1, tzinfo=UTC), source=MemorySource.IMPORTED, origin="/n#x"
    )
    source.add("of one session", scope="session", session="s1")
    summary = imported(target, exported(source, tmp_path / "export.jsonl"))
    assert (summary.added, summary.outcomes) == (4, 2)
    assert everything(target) == everything(source)
    assert target.check() == []


def test_importing_an_export_again_changes_nothing(open_store: OpenStore, tmp_path: Path) -> None:
    source, target = open_store(), open_store(tmp_path / "other")
    source.record_outcome([source.add("the port is 5432").id], Outcome.WORKED)
    file = exported(source, tmp_path / "export.jsonl")
    imported(target, file)
    before = everything(target)
    summary = imported(target, file)
    assert (summary.added, summary.unchanged, summary.outcomes) == (0, 1, 0)
    assert everything(target) == before
    assert imported(source, file).unchanged == 1


def test_no_number_of_memories_is_too_many(open_store: OpenStore, tmp_path: Path) -> None:
    source, target = open_store(), open_store(tmp_path / "other")
    source.add_many([NewMemory(f"fact number {n}", tags=[f"t{n % 7}"], project=f"p{n % 3}") for n in range(1_501)])
    source.record_outcome([memory.id for memory in source.list(limit=40)], Outcome.PARTIAL)
    assert imported(target, exported(source, tmp_path / "export.jsonl")).added == 1_501
    assert everything(target) == everything(source)


texts = st.text(min_size=1, max_size=60).filter(lambda text: any(c.isalnum() for c in text))
labels = st.one_of(
    st.none(), st.text(alphabet="abc äß漢🙂'\"-", min_size=1, max_size=12).map(str.strip).map(lambda s: s or None)
)
moments = st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
memories = st.builds(
    NewMemory,
    texts,
    category=st.sampled_from(MemoryCategory),
    project=labels,
    session=labels,
    source=st.sampled_from(MemorySource),
    tags=st.lists(st.text(alphabet="abcé漢", min_size=1, max_size=6), max_size=3),
    metadata=st.dictionaries(st.text(max_size=6), json_values, max_size=3),
    created_at=moments,
    origin=st.one_of(st.none(), st.text(alphabet="abc/#. é", min_size=1, max_size=20)),
    archived=st.booleans(),
)
reports = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(Outcome), st.floats(0.01, 1.0)), max_size=5)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(memories, min_size=1, max_size=5), reports)
def test_any_store_comes_back_equal(
    open_store: OpenStore, tmp_path: Path, stored: list[NewMemory], judged: list[tuple[int, Outcome, float]]
) -> None:
    number = next(FOLDERS)
    source, target = open_store(tmp_path / f"a{number}"), open_store(tmp_path / f"b{number}")
    ids = [memory.id for memory in source.add_many(stored)]
    for place, outcome, weight in judged:
        source.record_outcome([ids[place % len(ids)]], outcome, weight=weight)
    imported(target, exported(source, tmp_path / f"{number}.jsonl"))
    assert everything(target) == everything(source)


def test_an_export_holds_what_its_caller_sees_and_no_more(open_store: OpenStore) -> None:
    store = open_store()
    store.add("of the owner")
    store.add("of a guest", user="guest")
    store.add("of the shop", project="shop")
    store.archive(store.add("of old").id)
    assert len(list(jsonl_lines(store))) == 2
    assert len(list(jsonl_lines(store, user="guest"))) == 1
    assert len(list(jsonl_lines(store, project="other", include_archived=True))) == 2


def test_an_export_does_not_hold_the_store_in_memory(open_store: OpenStore) -> None:
    store = open_store()
    peaks = []
    for count in (2_000, 4_000):
        store.write([NewMemory(f"{n} {'x' * 2_000}") for n in range(count - 2_000, count)], embed=False)
        tracemalloc.start()
        assert sum(1 for _ in jsonl_lines(store)) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_a_markdown_note_says_what_is_known_of_a_memory(store: MemoryStore) -> None:
    memory = store.add(
        "the port is 5433", category="environment", tags=["db"], created_at=datetime(2024, 5, 1, tzinfo=UTC)
    )
    name, note = next(markdown_notes(store))
    assert name == f"2024-05-01-{memory.id}.md"
    assert note == (
        f"---\nid: {memory.id}\ndate: '2024-05-01T00:00:00Z'\ncategory: environment\n"
        "tags:\n- db\n---\nthe port is 5433\n"
    )


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Memory)])
def test_every_field_of_a_memory_is_in_the_export(store: MemoryStore, field: str) -> None:
    store.add("a fact")
    assert f'"{field}": ' in next(jsonl_lines(store))
