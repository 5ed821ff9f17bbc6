"""The server is written into the configuration of clients, and nothing else there changes."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from runtime_memory.cli import app, mcp
from runtime_memory.errors import ClientConfigError, InvalidInputError
from runtime_memory.mcp.clients import CLIENTS, Launch, find_client
from runtime_memory.mcp.documents import entry_in, with_entry, without_entry
from runtime_memory.mcp.install import install, launch, uninstall

NAME = "runtime-memory"
START = Launch("/python", ("-m", "runtime_memory", "serve", "--mcp"), {"RUNTIME_MEMORY_PROJECT": "auto"})
OTHER = {"command": "npx", "args": ["-y", "something"], "env": {"KEY": "é"}}
TOML = """\
# how I like it
model = "best"   # the best one

[mcp_servers.other] # mine
command = "npx"
args = [
    "-y", # yes
    "something",
]

[profiles.fast]
model = "quick"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path / "AppData"))
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["mcp", *args])


def backups(file: Path) -> list[Path]:
    return sorted(file.parent.glob(f"{file.name}.*.bak"))


def read(file: Path, form: str) -> dict[str, Any]:
    text = file.read_text("utf-8")
    return tomllib.loads(text) if form == "toml" else json.loads(text)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_client_gets_its_entry_once_and_loses_it_again(client: Any) -> None:
    file = client.file()
    assert "Installed" in run("install", client.name, "--project", "auto").stdout
    entry = read(file, client.format)[client.key][NAME]
    assert entry["command"] == sys.executable
    assert entry["args"] == ["-P", "-m", "runtime_memory", "serve", "--mcp", "--project", "auto"]
    before = file.read_bytes()
    assert "Already installed" in run("install", client.name, "--project", "auto").stdout
    assert (file.read_bytes(), backups(file)) == (before, [])
    assert "Removed" in run("uninstall", client.name).stdout
    assert NAME not in file.read_text("utf-8")
    assert "Nothing to remove" in run("uninstall", client.name).stdout


def test_places_that_the_environment_names_are_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(home / "codex"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "claude"))
    assert find_client("codex").file() == home / "codex" / "config.toml"
    assert find_client("claude-code").file() == home / "claude" / ".claude.json"


def test_an_unknown_client_is_told_with_those_that_are_known() -> None:
    with pytest.raises(InvalidInputError, match="claude-code, claude-desktop, codex"):
        find_client("emacs")
    assert find_client("Claude Code").name == "claude-code"
    assert ", ".join(client.name for client in CLIENTS) in (mcp._ALL)


@pytest.mark.parametrize("indent", [2, 4, "\t"])
def test_other_entries_stay_and_a_backup_is_left(home: Path, indent: Any) -> None:
    file = home / "mcp.json"
    before = {"theme": "dark", "mcpServers": {"other": OTHER}, "big": 12345678901234567890, "z": [1.5, None, "ü"]}
    file.write_text(json.dumps(before, indent=indent, ensure_ascii=False), "utf-8")
    file.chmod(0o600)
    old = file.read_bytes()
    change = install(find_client("cursor"), file, NAME, START)
    assert change.backup is not None
    assert (change.backup.read_bytes(), change.backup.stat().st_mode & 0o777) == (old, 0o600)
    assert file.stat().st_mode & 0o777 == 0o600
    after = json.loads(file.read_text("utf-8"))
    assert list(after) == list(before)
    assert after["mcpServers"].pop(NAME)["command"] == "/python"
    assert after == before
    uninstall(find_client("cursor"), file, NAME)
    assert file.read_bytes().rstrip() == old
    assert len(backups(file)) == 2
    assert {path.name for path in home.iterdir()} == {file.name, *(path.name for path in backups(file))}


def test_comments_in_toml_stay(home: Path) -> None:
    file = home / "config.toml"
    file.write_text(TOML)
    install(find_client("codex"), file, NAME, START)
    added = file.read_text()
    assert tomllib.loads(added)["mcp_servers"][NAME]["env"] == {"RUNTIME_MEMORY_PROJECT": "auto"}
    kept = [line for line in TOML.splitlines() if line]
    assert [line for line in added.splitlines() if line in kept] == kept
    assert tomllib.loads(added)["mcp_servers"]["other"]["args"] == ["-y", "something"]
    uninstall(find_client("codex"), file, NAME)
    assert tomllib.loads(file.read_text()) == tomllib.loads(TOML)
    assert [line for line in file.read_text().splitlines() if line] == kept


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{\n  // mine\n  "servers": {}\n}', "comments"),
        ('{"servers": {"a": {},}}', "comments or trailing commas"),
        ('{"servers": {"a": "http://x"', "not valid JSON"),
        ("[]", "no object"),
        ('{"servers": []}', "no table"),
        ('{"servers": {"runtime-memory": 5}}', "no table"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"servers": {"runtime-memory": {"command": "another"}}}', "--name"),
    ],
)
def test_what_cannot_be_merged_without_loss_is_left_and_the_entry_shown(home: Path, text: str, says: str) -> None:
    file = home / "mcp.json"
    file.write_text(text)
    done = run("install", "vscode", "--file", str(file))
    assert done.exit_code == 1
    assert says in done.stderr
    assert str(file) in done.stderr
    assert '"command"' in done.stderr
    assert file.read_text() == text
    assert backups(file) == []


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"model = ["])
def test_what_is_no_text_or_no_toml_is_left(home: Path, raw: bytes) -> None:
    file = home / "config.toml"
    file.write_bytes(raw)
    with pytest.raises(ClientConfigError, match="left as it is"):
        install(find_client("codex"), file, NAME, START)
    assert file.read_bytes() == raw


def test_an_entry_of_ours_is_brought_up_to_date_and_keeps_what_its_owner_added(home: Path) -> None:
    file = home / "mcp.json"
    older = {"command": "/gone", "args": ["serve", "--mcp"], "disabled": True, "env": {"MINE": "1"}}
    file.write_text(json.dumps({"mcpServers": {NAME: older}}))
    install(find_client("cursor"), file, NAME, START)
    assert json.loads(file.read_text())["mcpServers"][NAME] == {
        "command": "/python",
        "args": list(START.args),
        "disabled": True,
        "env": {"MINE": "1", "RUNTIME_MEMORY_PROJECT": "auto"},
    }


def test_a_link_stays_a_link(home: Path) -> None:
    target = home / "dotfiles.json"
    target.write_text("{}")
    file = home / "mcp.json"
    file.symlink_to(target)
    install(find_client("cursor"), file, NAME, START)
    assert file.is_symlink()
    assert NAME in target.read_text()


def test_a_file_that_cannot_be_written_is_told(home: Path) -> None:
    (home / "a file").write_text("")
    done = run("install", "cursor", "--file", str(home / "a file" / "mcp.json"))
    assert done.exit_code == 1
    assert "Traceback" not in done.output


def test_print_writes_nothing(home: Path) -> None:
    printed = run("install", "codex", "--print", "--name", "memory")
    assert tomllib.loads(printed.stdout)["mcp_servers"]["memory"]["command"] == sys.executable
    as_json = json.loads(run("install", "vscode", "--print", "--json").stdout)
    assert as_json["entry"]["type"] == "stdio"
    assert list(home.iterdir()) == []


def test_the_settings_of_this_environment_go_along_but_no_secret(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("RUNTIME_MEMORY_DB", "memories")
    monkeypatch.setenv("RUNTIME_MEMORY_EMBEDDING", "null")
    monkeypatch.setenv("RUNTIME_MEMORY_MCP_TOKEN", "a secret of enough length")
    entry = json.loads(run("install", "cursor", "--print", "--json").stdout)["entry"]
    assert entry["args"][-2:] == ["--db", str(home / "memories")]
    assert entry["env"] == {"RUNTIME_MEMORY_EMBEDDING": "null"}


def test_the_status_tells_what_is_installed_and_what_is_broken(home: Path) -> None:
    run("install", "cursor")
    gone = Launch("/gone/python", START.args, {})
    install(find_client("windsurf"), find_client("windsurf").file(), NAME, gone)
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text("{ // comment\n}")
    states = {each["client"]: each["installed"] for each in json.loads(run("status", "--json").stdout)["clients"]}
    assert states["cursor"] is True
    assert states["windsurf"] is False
    assert states["gemini"] is None
    assert states["vscode"] is False
    assert "which is gone" in run("status").stdout


VALUES = st.recursive(
    st.booleans() | st.integers() | st.text() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.dictionaries(st.text(), st.just(OTHER), max_size=3))
def test_whatever_else_a_json_file_holds_stays(others: dict[str, Any], servers: dict[str, Any]) -> None:
    before = {**others, "mcpServers": {name: entry for name, entry in servers.items() if name != NAME}}
    entry = find_client("cursor").entry(launch({"project": "auto"}, {}))
    text = with_entry(json.dumps(before), "json", "mcpServers", NAME, entry)
    assert entry_in(text, "json", "mcpServers", NAME) == entry
    assert json.loads(without_entry(text, "json", "mcpServers", NAME)) == before


@given(st.dictionaries(st.from_regex(r"[a-z\-_]{1,9}", fullmatch=True), st.text() | st.integers(0, 9), max_size=4))
def test_whatever_else_a_toml_file_holds_stays(others: dict[str, Any]) -> None:
    before = tomlkit.dumps({name: value for name, value in others.items() if name != "mcp_servers"})
    text = with_entry(before, "toml", "mcp_servers", NAME, find_client("codex").entry(START))
    assert tomllib.loads(without_entry(text, "toml", "mcp_servers", NAME)).items() >= tomllib.loads(before).items()
