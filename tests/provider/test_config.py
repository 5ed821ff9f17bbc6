"""Where settings come from inside Hermes: the environment, above its config.yaml, above the defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from provider import RuntimeMemoryProvider
from provider.config import load_settings
from runtime_memory.settings import Settings
from tests.conftest import contents
from tests.provider.conftest import Begin, Stored, remember


def configure(home: Path, section: str, around: str = "  provider: runtimememory\n") -> None:
    (home / "config.yaml").write_text(f"model: {{default: m}}\nmemory:\n{around}  {section}\nskills: {{}}\n", "utf-8")


def test_what_the_dashboard_saved_counts(home: Path) -> None:
    configure(home, "runtimememory: {recall_limit: '3', mirror_writes: false, owners: 'a, b', project: ''}")
    settings = load_settings(str(home))
    assert (settings.recall_limit, settings.mirror_writes, settings.owners) == (3, False, ("a", "b"))
    assert settings.project is None


def test_a_folder_from_the_dashboard_counts(
    home: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RUNTIME_MEMORY_DB")
    configure(home, f"runtimememory: {{db_path: '{tmp_path}/elsewhere'}}")
    remember(begin())
    assert (tmp_path / "elsewhere" / "manifest.json").exists()
    assert RuntimeMemoryProvider().backup_paths() == [f"{tmp_path}/elsewhere"]


def test_the_environment_wins(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(home, "runtimememory: {recall_limit: 3, owners: a}")
    monkeypatch.setenv("RUNTIME_MEMORY_RECALL_LIMIT", "5")
    monkeypatch.setenv("RUNTIME_MEMORY_OWNERS", "")
    settings = load_settings(str(home))
    assert (settings.recall_limit, settings.owners) == (5, ("a",))


def test_each_home_has_its_own(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "profiles" / "work"
    other.mkdir(parents=True)
    configure(home, "runtimememory: {recall_limit: 3}")
    configure(other, "runtimememory: {recall_limit: 4}")
    assert [load_settings(str(each)).recall_limit for each in (home, other, home)] == [3, 4, 3]
    assert load_settings().recall_limit == 3  # HERMES_HOME


def test_a_change_is_seen_by_the_next_agent(home: Path) -> None:
    configure(home, "runtimememory: {recall_limit: 3}")
    assert load_settings().recall_limit == 3
    configure(home, "runtimememory: {recall_limit: 44}")
    assert load_settings().recall_limit == 44


@pytest.mark.parametrize("layer", ["config.yaml", "environment"])
def test_a_bad_value_keeps_the_default_with_one_warning(
    layer: str, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if layer == "environment":
        monkeypatch.setenv("RUNTIME_MEMORY_RECALL_LIMIT", "many")
    else:
        configure(home, "runtimememory: {recall_limit: many}")
    for _ in range(3):
        one = RuntimeMemoryProvider()
        one.initialize(session_id="s1", hermes_home=str(home))
        assert one._load_settings().recall_limit == 8
    (record,) = caplog.records
    assert "recall_limit" in record.message.lower()
    assert "'many'" in record.message


@pytest.mark.parametrize(
    "section",
    ["runtimememory: [1]", "runtimememory: text", "runtimememory:", "runtimememory: {", "runtimememory: {1: 2}"],
)
def test_a_section_that_is_none_is_left_out(section: str, home: Path) -> None:
    configure(home, section)
    assert load_settings(str(home)).recall_limit == 8


@pytest.mark.parametrize("text", ["", "memory: runtimememory: x", "memory: [runtimememory: 1]", "\x00runtimememory:"])
def test_a_config_that_is_none_is_left_out(text: str, home: Path) -> None:
    (home / "config.yaml").write_text(text, "utf-8")
    assert load_settings(str(home)).recall_limit == 8


def test_profiles_with_other_limits_share_one_store(begin: Begin, stored: Stored, home: Path) -> None:
    from provider.shared import shared_store

    first = begin()
    configure(home, "runtimememory: {recall_limit: 3, owners: anna}")
    second = begin()
    remember(first, "a fact")
    assert second._load_settings().recall_limit == 3
    assert shared_store(first._load_settings()) is shared_store(second._load_settings())
    assert contents(stored()) == ["a fact"]


def test_the_recall_limit_is_that_of_the_session(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = begin()
    for port in "5433 5434 5435".split():
        remember(wide, f"A staging database listens on port {port}")
    monkeypatch.setenv("RUNTIME_MEMORY_RECALL_LIMIT", "2")
    question = "On which port does a staging database listen?"
    assert [each.prefetch(question).count("\n- ") for each in (wide, begin())] == [3, 2]


def test_a_host_can_ask_for_every_setting() -> None:
    schema = RuntimeMemoryProvider().get_config_schema()
    by_key: dict[str, dict[str, Any]] = {field["key"]: field for field in schema}
    for field in schema:
        assert set(field) >= {"key", "description", "default", "env_var", "type"}
        assert field["env_var"].removeprefix("RUNTIME_MEMORY_").lower() in Settings.model_fields
    assert by_key["db_path"] == {
        "key": "db_path",
        "description": Settings.model_fields["db"].description,
        "default": "~/.runtime-memory",
        "env_var": "RUNTIME_MEMORY_DB",
        "type": "string",
    }
    limit = by_key["recall_limit"]
    assert (limit["type"], limit["minimum"], limit["maximum"], limit["default"]) == ("integer", 1, 50, 8)
    assert [(by_key[k]["type"], by_key[k]["default"]) for k in ("mirror_writes", "extract_on_end")] == [
        ("boolean", True),
        ("boolean", False),
    ]


def test_what_a_host_writes_to_its_env_for_every_default_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in RuntimeMemoryProvider().get_config_schema():
        monkeypatch.setenv(field["env_var"], str(field["default"]))
    settings, problems = Settings.load_valid()
    assert problems == []
    for field in RuntimeMemoryProvider().get_config_schema():
        monkeypatch.delenv(field["env_var"])
    assert settings == Settings.load()


def test_the_schema_is_a_fresh_copy() -> None:
    one = RuntimeMemoryProvider()
    one.get_config_schema()[0].clear()
    assert one.get_config_schema()[0]["key"] == "db_path"
