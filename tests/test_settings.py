"""Settings come from environment variables, and a bad one is named with what is valid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from runtime_memory import MemoryStore, Settings
from runtime_memory.errors import SettingsError
from tests.tiny_embedder import TinyEmbedder

DEFAULTS = {
    "db": "~/.runtime-memory",
    "embedding": "local",
    "embedding_model": None,
    "recall_limit": 8,
    "min_score": 0.0,
    "project": None,
    "mirror_writes": True,
    "extract_on_end": False,
    "owners": (),
    "profile": None,
    "profiles": "separate",
    "hermes_trace": None,
}
GIVEN: list[tuple[str, str, Any]] = [
    ("DB", "/srv/memories", "/srv/memories"),
    ("EMBEDDING", "null", "null"),
    ("EMBEDDING_MODEL", "intfloat/multilingual-e5-small", "intfloat/multilingual-e5-small"),
    ("RECALL_LIMIT", "1", 1),
    ("RECALL_LIMIT", "50", 50),
    ("MIN_SCORE", "0.25", 0.25),
    ("PROJECT", "我的项目", "我的项目"),
    ("MIRROR_WRITES", "false", False),
    ("MIRROR_WRITES", "0", False),
    ("EXTRACT_ON_END", "true", True),
    ("OWNERS", "12345, anna ,,bob", ("12345", "anna", "bob")),
    ("OWNERS", "*", ("*",)),
    ("OWNERS", "12345", ("12345",)),
    ("PROFILE", "work", "work"),
    ("PROFILES", "shared", "shared"),
    ("HERMES_TRACE", "/tmp/trace.jsonl", "/tmp/trace.jsonl"),
    ("LOCK_TIMEOUT", "2.5", 2.5),
]
BAD = [
    ("EMBEDDING", "openai", ["local", "null"]),
    ("RECALL_LIMIT", "0", ["greater than or equal to 1"]),
    ("RECALL_LIMIT", "51", ["less than or equal to 50"]),
    ("RECALL_LIMIT", "many", ["integer"]),
    ("RECALL_LIMIT", "2.5", ["integer"]),
    ("MIN_SCORE", "1.5", ["less than or equal to 1"]),
    ("MIN_SCORE", "nan", ["less than or equal to 1"]),
    ("MIRROR_WRITES", "perhaps", ["boolean"]),
    ("PROFILES", "none", ["separate", "shared"]),
    ("LOCK_TIMEOUT", "0", ["greater than 0"]),
]


def test_every_setting_has_the_documented_default() -> None:
    settings = Settings.load()
    assert {name: getattr(settings, name) for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize(("name", "text", "value"), GIVEN)
def test_a_variable_sets_it(monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: Any) -> None:
    monkeypatch.setenv(f"RUNTIME_MEMORY_{name}", text)
    assert getattr(Settings.load(), name.lower()) == value


@pytest.mark.parametrize("name", DEFAULTS)
def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"RUNTIME_MEMORY_{name.upper()}", "")
    assert getattr(Settings.load(), name) == DEFAULTS[name]


@pytest.mark.parametrize(("name", "text", "valid"), BAD)
def test_a_bad_value_names_the_variable_the_value_and_what_is_valid(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, valid: list[str]
) -> None:
    monkeypatch.setenv(f"RUNTIME_MEMORY_{name}", text)
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    for expected in (f"RUNTIME_MEMORY_{name}", text, *valid):
        assert expected in str(caught.value)


def test_all_bad_values_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_RECALL_LIMIT", "many")
    monkeypatch.setenv("RUNTIME_MEMORY_MIN_SCORE", "high")
    with pytest.raises(SettingsError, match=r"(?s)RECALL_LIMIT.*MIN_SCORE"):
        Settings.load()


def test_a_host_goes_on_with_the_defaults_of_what_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_RECALL_LIMIT", "many")
    monkeypatch.setenv("RUNTIME_MEMORY_PROFILES", "shared")
    settings, problems = Settings.load_valid()
    assert (settings.recall_limit, settings.profiles) == (8, "shared")
    assert len(problems) == 1
    assert "RUNTIME_MEMORY_RECALL_LIMIT='many'" in problems[0]
    assert "the default is used" in problems[0]


def test_without_a_bad_value_there_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_RECALL_LIMIT", "5")
    settings, problems = Settings.load_valid(project="shop")
    assert (settings.recall_limit, settings.project, problems) == (5, "shop", [])


def test_what_the_program_gives_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_DB", "/from/the/environment")
    assert Settings.load(db="/from/the/program").db == "/from/the/program"
    assert Settings.load(db=None).db == "/from/the/environment"


def test_a_bad_value_of_the_program_is_named_as_it_was_given() -> None:
    with pytest.raises(SettingsError, match=r"^recall_limit=99 is not valid"):
        Settings.load(recall_limit=99)


def test_variables_of_others_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_SOMETHING_NEW", "x")
    monkeypatch.setenv("RECALL_LIMIT", "3")
    monkeypatch.setenv("PROJECT", "not ours")
    assert (Settings.load().recall_limit, Settings.load().project) == (8, None)


def test_settings_do_not_change_after_they_were_read() -> None:
    with pytest.raises(ValidationError):
        Settings.load().recall_limit = 5


def test_the_home_folder_is_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings.load().folder == tmp_path / ".runtime-memory"
    assert Settings.load(db="~/elsewhere").folder == tmp_path / "elsewhere"


def test_the_home_folder_of_an_unknown_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_DB", "~nobody-by-this-name/memories")
    with pytest.raises(SettingsError, match="RUNTIME_MEMORY_DB"), MemoryStore(embedder=TinyEmbedder()) as store:
        store.list()


def test_a_store_is_opened_where_the_settings_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_DB", str(tmp_path / "by variable"))
    with MemoryStore.open(embedder=TinyEmbedder()) as store:
        store.add("a fact")
    with MemoryStore(Settings.load(), embedder=TinyEmbedder()) as store:
        assert len(store.list()) == 1
    assert (tmp_path / "by variable" / "manifest.json").exists()


def test_an_empty_path_is_not_the_working_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="db"), MemoryStore.open("", embedder=TinyEmbedder()) as store:
        store.add("a fact")
    assert list(tmp_path.iterdir()) == []


def test_an_object_store_is_not_taken_for_a_local_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(Exception, match="s3"),
        MemoryStore.open("s3://bucket/memories", embedder=TinyEmbedder()) as store,
    ):
        store.add("a fact")
    assert list(tmp_path.iterdir()) == []
