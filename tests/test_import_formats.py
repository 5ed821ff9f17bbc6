"""Which format a file is in, and what a folder with several kinds holds; with the store: nothing twice."""

from __future__ import annotations

import json
import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_memory import Outcome
from runtime_memory.errors import InvalidInputError
from runtime_memory.importers import Item, formats
from runtime_memory.importers.formats import FORMATS, Options, Source, by_name, detect
from runtime_memory.importers.intake import Intake
from tests.conftest import OpenStore
from tests.test_import_basic_memory import NOTE
from tests.test_import_hermes_sessions import META, PORT, log, user
from tests.test_import_mem0 import ENTRY, export
from tests.test_import_sqlite import Old


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """Return a folder with one file of each kind."""
    folder = tmp_path / "several"
    folder.mkdir()
    old = Old(folder / "memories.db")
    old.add({"outcome_score": 0.4, "supersedes": "gone"})
    log(folder, META, user(PORT), name="session.jsonl")
    export(folder, [ENTRY])
    (folder / "AGENTS.md").write_text("# Rules\n\n- Run make lint first\n")
    (folder / "coffee.md").write_text(NOTE)
    (folder / "note.md").write_text("# Note\n\nThe mill is from 1962.\n")
    (folder / "facts.jsonl").write_text(json.dumps({"text": "Ada likes tea"}) + "\n")
    (folder / "table.csv").write_text("text,who\nBo likes coffee,bo\n")
    (folder / "plain.txt").write_text("Cy likes water\n")
    return folder


KINDS = {
    "memories.db": "runtime-memory",
    "session.jsonl": "hermes-sessions",
    "mem0.json": "mem0",
    "coffee.md": "basic-memory",
    "note.md": "markdown",
    "facts.jsonl": "jsonl",
    "table.csv": "csv",
    "plain.txt": "text",
}


def found(path: Path) -> dict[str, str]:
    return {each.file.name: each.format.name for each in formats.sources(path) if isinstance(each, Source)}


def test_each_format_is_found_by_its_name() -> None:
    assert [by_name(f" {each.name.upper()}") for each in FORMATS] == list(FORMATS)
    assert len({each.name for each in FORMATS}) == len(FORMATS) == 9
    with pytest.raises(InvalidInputError, match="valid are: runtime-memory, hermes-sessions, mem0, agent-notes"):
        by_name("word")


@pytest.mark.parametrize(("name", "expected"), [*KINDS.items(), ("AGENTS.md", "agent-notes")])
def test_a_file_is_detected_by_what_it_holds(several: Path, name: str, expected: str) -> None:
    each = detect(several / name)
    assert each is not None
    assert each.name == expected
    assert found(several / name) == {name: expected}


def test_a_folder_with_several_kinds_gives_all_of_them(several: Path) -> None:
    kinds = found(several)
    assert kinds.pop("AGENTS.md") in {"agent-notes", "markdown"}  # the reader of Markdown knows the file
    assert kinds == KINDS
    items = list(formats.items(several))
    assert [item for item in items if item.fault] == []
    assert {item.origin.partition("#")[0] for item in items if item.memory} == {
        str((several / name).resolve()) for name in (*KINDS, "AGENTS.md")
    }


def test_importing_it_again_adds_nothing(several: Path, open_store: OpenStore) -> None:
    store = open_store()
    for expected in (True, False):
        intake = Intake(store, embed=False)
        intake.take(formats.items(several))
        summary = intake.finish([several])
        assert summary.faults == 0
        assert bool(summary.added) == expected
        assert bool(summary.outcomes) == expected
        assert summary.updated == 0
    assert [(event.outcome, event.weight) for event in store.outcomes(["a"])] == [(Outcome.WORKED, 2.0)]
    assert store.check() == []


def test_the_record_of_an_older_store_is_taken_over_once(tmp_path: Path, open_store: OpenStore) -> None:
    old, store = Old(tmp_path / "memories.db"), open_store()
    old.add({"outcome_score": 0.4})
    for judged in ("2024-06-01T10:00:00+00:00", "2024-07-01T10:00:00+00:00"):  # it moved with every retrieval
        with closing(old.connect()) as connection:
            connection.execute("UPDATE memories SET updated_at = ?", (judged,))
        intake = Intake(store, embed=False)
        intake.take(formats.items(old.file))
        intake.finish([old.file])
    assert [(event.outcome, event.weight) for event in store.outcomes(["a"])] == [(Outcome.WORKED, 2.0)]


def test_what_was_reported_of_a_users_or_a_profiles_memory_comes_with_it(tmp_path: Path, open_store: OpenStore) -> None:
    at = "2024-05-01T00:00:00Z"
    exported = {"content": "a fact", "category": "gotcha", "scope": "global", "source": "explicit", "archived": False}
    exported |= {"created_at": at, "updated_at": at, "outcomes": [{"outcome": "worked", "weight": 1, "at": at}]}
    owners = {"a": {"user": "42"}, "b": {"profile": "work"}, "c": {}}
    lines = (json.dumps(exported | {"id": id_} | owner) for id_, owner in owners.items())
    (tmp_path / "facts.jsonl").write_text("\n".join(lines))
    store = open_store()
    intake = Intake(store, embed=False)
    intake.take(formats.items(tmp_path / "facts.jsonl"))
    assert intake.finish([tmp_path]).outcomes == 3
    for id_, owner in owners.items():
        assert [event.outcome for event in store.outcomes([id_], **owner)] == [Outcome.WORKED]


def test_files_of_other_kinds_and_files_for_programs_are_not_taken(tmp_path: Path) -> None:
    for name in ("photo.png", "package.json", "data.csv", "events.jsonl", "note.md"):
        (tmp_path / name).write_text('{"n": 1}\n')
    (tmp_path / "requirements-dev.txt").write_text("pytest\n")
    assert found(tmp_path) == {"note.md": "markdown"}
    skipped = [item for item in formats.sources(tmp_path) if isinstance(item, Item)]
    assert [(Path(item.origin).name, item.fault) for item in skipped] == [("requirements-dev.txt", False)]
    assert found(tmp_path / "requirements-dev.txt") == {"requirements-dev.txt": "text"}


def test_hidden_things_and_links_are_passed_over_once(tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian" / "x.txt").write_text("text")
    (tmp_path / "a.md").write_text("text")
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.md")
    origins = [Path(each.origin).name for each in formats.sources(tmp_path) if isinstance(each, Item)]
    assert sorted(origins) == [".obsidian", "link.txt"]


def test_of_hermes_home_its_notes_and_sessions_are_read_and_nothing_else(tmp_path: Path) -> None:
    for home in (tmp_path, tmp_path / "profiles" / "work"):
        (home / "memories").mkdir(parents=True)
        (home / "memories" / "MEMORY.md").write_text("one\n§\ntwo")
        log(home / "sessions", META, user(PORT))
        (home / "config.yaml").write_text("model: x\n")
        (home / "skills").mkdir()
        (home / "skills" / "SKILL.md").write_text("# A skill")
        (home / "notes.txt").write_text("not for us")
    files = [each for each in formats.sources(tmp_path) if isinstance(each, Source)]
    assert [(each.file.name, each.format.name) for each in files] == [
        ("MEMORY.md", "agent-notes"),
        ("MEMORY.md", "agent-notes"),
        ("20260102_abc.jsonl", "hermes-sessions"),
        ("20260102_abc.jsonl", "hermes-sessions"),
    ]
    profiles = [item.memory.profile for item in formats.items(tmp_path) if item.memory]
    assert sorted(map(str, profiles)) == ["None"] * 3 + ["work"] * 3


def test_a_hermes_home_with_sessions_alone_is_one(tmp_path: Path) -> None:
    log(tmp_path / "sessions", META, user(PORT))
    (tmp_path / "config.yaml").write_text("model: x\n")
    (tmp_path / "SOUL.md").write_text("You are kind.")
    assert found(tmp_path) == {"20260102_abc.jsonl": "hermes-sessions"}


def test_a_chosen_format_is_taken_at_its_word(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("one\n\ntwo")
    (item, other) = formats.items(tmp_path / "readme.md", by_name("text"))
    assert [each.memory.content for each in (item, other) if each.memory] == ["one", "two"]
    assert list(formats.items(tmp_path, by_name("jsonl"))) == []


def test_options_reach_the_readers_that_have_a_use_for_them(tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text(json.dumps({"fact": "Ada likes tea", "when": "2024-05-01"}) + "\n")
    options = Options(mapping={"content": "fact", "created_at": "when"}, owners=frozenset({"x"}))
    (item,) = formats.items(file, by_name("jsonl"), options)
    assert item.memory is not None
    assert item.memory.created_at == datetime(2024, 5, 1, 12, tzinfo=UTC)
    with pytest.raises(InvalidInputError, match="a mapping is for: jsonl, csv"):
        list(formats.items(file, by_name("markdown"), options))


@pytest.mark.parametrize("name", ["picture.png", "gone.md"])
def test_what_fits_nothing_or_is_not_there_is_a_fault_that_says_what_to_do(name: str, tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (item,) = formats.items(tmp_path / name)
    assert (item.memory, item.fault) == (None, True)
    assert ("--as" in (item.skipped or "")) == (name == "picture.png")


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    assert [(item.memory, item.fault) for item in formats.items(tmp_path)] == [(None, False)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    for suffix in ("jsonl", "json", "csv", "txt", "db", "md"):
        os.mkfifo(tmp_path / f"pipe.{suffix}")
        for each in formats.items(tmp_path / f"pipe.{suffix}"):
            assert each.memory is None
    assert not [item for item in formats.items(tmp_path) if item.memory]


@given(data=st.binary(max_size=400), suffix=st.sampled_from(["jsonl", "json", "csv", "tsv", "txt", "db", "md"]))
def test_any_file_is_read_without_an_error(data: bytes, suffix: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / f"any-file.{suffix}"
    file.write_bytes(data)
    for each in FORMATS:
        each.detects(file)
        assert all(item.memory or item.skipped for item in each.read(file, file))
