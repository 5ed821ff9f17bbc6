"""Which project, user and profile a session is in, and what it therefore sees."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from provider.session import Session
from runtime_memory.settings import Settings
from tests.provider.conftest import PORT, PORT_QUESTION, Begin, Stored, call, remember

READ_ONLY: list[dict[str, Any]] = [
    {"agent_context": "subagent"},
    {"agent_context": "cron"},
    {"agent_context": "flush"},
    {"agent_context": "something new"},
    {"agent_context": "primary", "platform": "cron"},
]


def session(**given: Any) -> Session:
    return Session.begin("s1", given, Settings.load())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a git repository named shop, with a worktree named feature beside it."""
    shop = tmp_path / "shop"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run([*git, "init", "-q", str(shop)], check=True)
    subprocess.run([*git, "-C", str(shop), "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "-C", str(shop), "worktree", "add", "-q", str(tmp_path / "feature")], check=True)
    (tmp_path / "feature" / "deep").mkdir()
    (shop / "deep").mkdir()
    return shop


@pytest.mark.parametrize("where", ["shop", "shop/deep", "feature", "feature/deep"])
def test_auto_is_the_main_checkout(
    repository: Path, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # G6
    monkeypatch.setenv("RUNTIME_MEMORY_PROJECT", "auto")
    monkeypatch.chdir(tmp_path / where)
    assert session(agent_workspace="hermes").project == "shop"


def test_auto_is_the_repository_behind_a_worktree_of_a_bare_one(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare, tree = tmp_path / "store.git", tmp_path / "tree"
    subprocess.run(["git", "clone", "-q", "--bare", str(repository), str(bare)], check=True)
    subprocess.run(["git", "-C", str(bare), "worktree", "add", "-q", str(tree)], check=True, capture_output=True)
    monkeypatch.setenv("RUNTIME_MEMORY_PROJECT", "auto")
    monkeypatch.chdir(tree)
    assert session().project == "store"


def test_a_memory_outlives_its_worktree(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: Begin
) -> None:  # G6
    monkeypatch.setenv("RUNTIME_MEMORY_PROJECT", "auto")
    monkeypatch.chdir(tmp_path / "feature")
    remember(begin("s1"))
    monkeypatch.chdir(repository)
    assert PORT in begin("s2").prefetch(PORT_QUESTION)


@pytest.mark.parametrize("where", ["home", "home/docs", "/"])
def test_auto_is_none_at_home_and_at_the_root(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "docs").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(home)], check=True)  # dotfiles
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RUNTIME_MEMORY_PROJECT", "auto")
    monkeypatch.chdir(tmp_path / where)
    assert session(agent_workspace="hermes").project is None


def test_auto_is_none_where_the_folder_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.setenv("RUNTIME_MEMORY_PROJECT", "auto")
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert session(user_id="anna") == Session("s1", user="anna")


@pytest.mark.parametrize(
    ("setting", "workspace", "project"),
    [
        ("shop", "hermes", "shop"),
        ("", "hermes", "hermes"),
        ("", "/home/anna/work/shop/", "shop"),
        ("", r"C:\work\shop", "shop"),
        ("", "", None),
        ("", "/", None),
        ("", None, None),
        ("ap-erp / O'Brien", None, "ap-erp / O'Brien"),
    ],
)
def test_the_project_by_setting_and_workspace(
    setting: str, workspace: str | None, project: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_PROJECT", setting)
    assert session(agent_workspace=workspace).project == project


def test_a_project_sees_its_own_and_the_global_memories(begin: Begin) -> None:  # A11
    remember(begin(agent_workspace="other"))
    assert begin(agent_workspace="shop").prefetch(PORT_QUESTION) == ""
    assert PORT in begin(agent_workspace="other").prefetch(PORT_QUESTION)
    remember(begin(), "The staging database user is heron")
    assert "heron" in begin(agent_workspace="shop").prefetch("What is the staging database user?")


@pytest.mark.parametrize(
    ("given", "owners", "user"),
    [
        ({"user_id": "anna"}, "", "anna"),
        ({"user_id": " anna "}, "", "anna"),
        ({"user_id": 42}, "", "42"),
        ({"user_id": ""}, "", None),
        ({"user_id": None}, "", None),
        ({}, "", None),
        ({"user_id": "anna"}, "ben, anna", None),
        ({"user_id": "anna"}, "ben", "anna"),
        ({"user_id": "anna"}, "*", None),
        ({"user_id": "anna"}, "an", "anna"),
    ],
)
def test_the_user_of_a_session(
    given: dict[str, Any], owners: str, user: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:  # G2
    monkeypatch.setenv("RUNTIME_MEMORY_OWNERS", owners)
    assert session(**given).user == user


def test_users_do_not_see_each_other(begin: Begin) -> None:  # G1
    anna, ben = begin(user_id="anna"), begin(user_id="ben")
    id_ = remember(anna)
    for other in (ben, begin()):
        assert other.prefetch(PORT_QUESTION) == ""
        assert call(other, "recall", {"query": PORT_QUESTION})["count"] == 0
        assert call(other, "outcome", {"outcome": "failed", "memory_ids": id_})["recorded"] is False
        assert "error" in call(other, "remember", {"content": "no", "category": "general", "supersedes": id_})
        assert call(other, "stats")["total_memories"] == 0
    assert PORT in begin(user_id="anna").prefetch(PORT_QUESTION)


def test_owners_share_what_the_terminal_has(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_OWNERS", "anna")
    remember(begin(user_id="anna"))
    assert PORT in begin().prefetch(PORT_QUESTION)
    assert begin(user_id="ben").prefetch(PORT_QUESTION) == ""


@pytest.mark.parametrize(
    ("identity", "profile"), [("", None), (None, None), ("default", None), ("work", "work"), ("custom", "custom")]
)
def test_the_profile_of_a_session(identity: str | None, profile: str | None) -> None:
    assert session(agent_identity=identity).profile == profile


def test_a_profile_sees_its_own_and_what_the_default_wrote(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(begin(agent_identity="work"))
    assert begin().prefetch(PORT_QUESTION) == begin(agent_identity="play").prefetch(PORT_QUESTION) == ""
    assert PORT in begin(agent_identity="work").prefetch(PORT_QUESTION)
    remember(begin(), "The staging database user is heron")
    assert "heron" in begin(agent_identity="work").prefetch("What is the staging database user?")
    monkeypatch.setenv("RUNTIME_MEMORY_PROFILES", "shared")
    assert PORT in begin().prefetch(PORT_QUESTION)


@pytest.mark.parametrize("given", READ_ONLY, ids=str)
def test_a_read_only_session_recalls_and_never_writes(
    given: dict[str, Any], begin: Begin, stored: Stored
) -> None:  # G8
    id_ = remember(begin())
    before = stored(include_archived=True)
    one = begin("s2", **given)
    assert PORT in one.prefetch(PORT_QUESTION)
    assert "read-only" in call(one, "remember", {"content": "a fact", "category": "general"})["error"]
    assert "read-only" in call(one, "outcome", {"outcome": "failed", "memory_ids": id_})["error"]
    one.on_memory_write("add", "memory", "a note", {})
    one.on_memory_write("remove", "memory", "", {"old_text": "staging"})
    one.sync_turn("a fact", "noted", session_id="s2", messages=[])
    one.on_session_end([{"role": "user", "content": "a fact"}])
    assert stored(include_archived=True) == before


def test_after_a_switch_writes_carry_the_new_session(begin: Begin, stored: Stored) -> None:  # G10
    one = begin("s1", user_id="anna")
    one.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session", unknown=1)
    remember(one)
    one.on_session_switch("s3", parent_session_id="", rewound=True)
    remember(one, "another fact")
    assert [memory.session for memory in stored(user="anna")] == ["s3", "s2"]


def test_nothing_is_written_outside_the_home_and_the_store(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # G3
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("HERMES_HOME")
    one = begin(hermes_home=str(tmp_path / "hermes"), agent_identity="work")
    remember(one)
    one.on_session_end([])
    one.shutdown()
    assert {path.name for path in tmp_path.iterdir()} == {"hermes", "store"}
