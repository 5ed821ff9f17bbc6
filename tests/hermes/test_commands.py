"""The commands of the real Hermes: what they show of the provider, and what they carry to another home."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime_memory import MemoryStore

from .harness import Hermes
from .scripted_server import ToolCall

if TYPE_CHECKING:
    from .harness import HermesVenv
    from .scripted_server import ScriptedServer

PORT = "The staging database listens on port 5433"
PORT_QUESTION = "On which port does the staging database listen?"


def remember(content: str) -> ToolCall:
    return ToolCall("runtimememory_remember", {"content": content, "category": "environment"})


def without(hermes: Hermes, module: str) -> Hermes:
    """Return the same installation with a module of our dependencies gone."""
    folder = hermes.root / "gone"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules[{module!r}] = None\n")
    path = os.pathsep.join([str(folder), hermes.environment()["PYTHONPATH"]])
    return replace(hermes, env={**hermes.env, "PYTHONPATH": path})


def test_the_commands_show_the_provider_and_why_it_cannot_be_used(hermes: Hermes) -> None:
    hermes.configure("")
    assert "runtimememory" in hermes.command("memory", "setup", "runtimememory").stdout
    status = hermes.command("memory", "status")
    assert "Provider:  runtimememory" in status.stdout
    assert "available ✓" in status.stdout
    assert f"store: {hermes.root / '.runtime-memory'}" in status.stdout
    assert status.stderr == ""
    assert "runtimememory provider active" in hermes.command("doctor").stdout
    assert not (hermes.root / ".runtime-memory").exists()

    broken = without(hermes, "lancedb")
    status = broken.command("memory", "status")
    assert "not available ✗" in status.stdout
    assert "lancedb cannot be imported" in status.stderr
    assert "install runtime-memory" in status.stderr
    assert str(hermes.venv.script("python")) in status.stderr
    assert "configured but not available" in broken.command("doctor").stdout
    going_on = broken.ask("hello", "hi")
    assert (going_on.code, going_on.stdout) == (0, "hi\n")
    assert not [name for name in going_on.requests[0].tool_names if name.startswith("runtimememory")]


def test_a_folder_that_cannot_be_used_is_told_by_status_and_log_alone(hermes: Hermes) -> None:
    (hermes.root / "file").touch()
    misplaced = replace(hermes, env={"RUNTIME_MEMORY_DB": str(hermes.root / "file" / "store")})
    status = misplaced.command("memory", "status")
    reason = f"as {hermes.root / 'file'} is not a folder; set RUNTIME_MEMORY_DB to another folder"
    assert "not available ✗" in status.stdout
    assert f"problem: {hermes.root / 'file' / 'store'} cannot be made, {reason}" in status.stdout
    assert status.stderr == ""
    assert (hermes.home / "logs" / "agent.log").read_text().count(reason) == 1
    going_on = misplaced.ask("hello", "hi")
    assert (going_on.code, going_on.stdout, going_on.stderr) == (0, "hi\n", "")


def test_a_backup_during_a_session_restores_the_newest_write(
    hermes: Hermes, equipped_venv: HermesVenv, model: ScriptedServer, tmp_path_factory: Any
) -> None:
    archive = hermes.root / "backup.zip"

    def back_up(body: dict[str, Any]) -> str:
        assert json.loads(body["messages"][-1]["content"])["stored"] is True
        done = hermes.command("backup", "-o", str(archive))
        return f"saved {done.code}"

    run = hermes.ask("note it", remember(PORT), back_up)
    assert run.stdout == "saved 0\n", run.stdout + run.stderr

    fresh = Hermes(equipped_venv, tmp_path_factory.mktemp("fresh"), model)
    fresh.configure("")
    restored = fresh.command("import", str(archive), "--force")
    assert restored.code == 0, restored.stdout + restored.stderr
    with MemoryStore.open(fresh.root / ".runtime-memory") as store:
        assert [memory.content for memory in store.list()] == [PORT]
        assert store.check() == []
    assert PORT in fresh.ask(PORT_QUESTION, "5433").requests[0].recalled


DASHBOARD = """
from inside import agent, ask, provider, report
from hermes_cli import web_server
fields = web_server._normalize_memory_provider_schema("runtimememory", provider(agent()))
report({field["key"]: field["kind"] for field in fields})
web_server._save_memory_provider_native_config("runtimememory", provider(agent()), {"recall_limit": "2", "owners": "a"})
settings = provider(agent())._load_settings()
report([settings.recall_limit, settings.owners])
"""


def test_what_the_dashboard_saves_counts_for_the_next_agent(hermes: Hermes) -> None:
    run = hermes.python(DASHBOARD)
    assert run.code == 0, run.stderr
    kinds, settings = run.reports
    assert (kinds["mirror_writes"], kinds["db_path"]) == ("boolean", "text")
    assert settings == [2, ["a"]]


def test_a_profile_has_memories_of_its_own(hermes: Hermes) -> None:
    work = hermes.in_profile("work", "runtimememory")
    shutil.copytree(hermes.home / "plugins", work.home / "plugins")
    work.ask("note it", remember(PORT), "noted")
    assert PORT in work.ask(PORT_QUESTION, "5433").requests[0].recalled
    assert hermes.ask(PORT_QUESTION, "unknown").requests[0].recalled == ""
    with MemoryStore.open(Path(hermes.root) / ".runtime-memory") as store:
        assert [memory.profile for memory in store.list(profile="work")] == ["work"]
