"""The documentation names everything there is, and nothing that is not there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from provider import tools
from runtime_memory.cli import app
from runtime_memory.mcp.catalogue import ToolSpec, tool_specs
from runtime_memory.mcp.clients import CLIENTS, Client
from runtime_memory.settings import ENV_PREFIX, Settings
from tests.api_reference import PAGE, reference

ROOT = Path(__file__).parent.parent
PAGES = {path.name: path.read_text("utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}
TEXT = "\n".join(PAGES.values())
VARIABLES = {ENV_PREFIX + name.upper() for name in Settings.model_fields}
TOOLS = {schema["name"] for schema in tools.schemas()}


def commands(group: object, name: str = "mem") -> Iterator[tuple[str, set[str]]]:
    """Yield every command with its options."""
    children = getattr(group, "commands", None)
    if children is None:
        yield name, {option for parameter in group.params for option in (*parameter.opts, *parameter.secondary_opts)}  # type: ignore[attr-defined]
        return
    for child, command in children.items():
        yield from commands(command, f"{name} {child}")


SNIPPETS = {
    f"{name}-{number}": code
    for name, page in PAGES.items()
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
}
COMMANDS = dict(commands(get_command(app)))
LINES = sorted(
    {
        line.partition("#")[0].strip()
        for page in PAGES.values()
        for block in re.findall(r"^```(?:sh|bash)?\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if line.startswith("mem ")
    }
    | set(re.findall(r"`(mem [^`\n]*)`", TEXT))
)


@pytest.mark.parametrize("variable", sorted(VARIABLES))
def test_every_setting_is_documented(variable: str) -> None:
    assert f"`{variable}`" in TEXT


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_every_tool_is_documented(tool: str) -> None:
    assert f"`{tool}`" in TEXT


@pytest.mark.parametrize("spec", tool_specs(), ids=lambda spec: spec.name)
def test_every_tool_of_the_mcp_server_is_documented(spec: ToolSpec) -> None:
    assert f"| `{spec.name}` |" in PAGES["mcp.md"]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_client_is_documented(client: Client) -> None:
    assert f"| {client.title} | `{client.name}` |" in PAGES["mcp.md"]


def test_every_option_of_the_server_is_documented() -> None:
    own = {option for option in COMMANDS["mem serve"] if option.startswith("--")} - {"--help", "--json", "--db"}
    assert {option for option in own if option not in PAGES["mcp.md"]} == set()


def test_the_reference_of_the_library_is_current() -> None:
    assert PAGE.read_text("utf-8") == reference(), "write it anew with: python -m tests.api_reference"


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_documented_snippet_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RUNTIME_MEMORY_EMBEDDING", "null")
    monkeypatch.chdir(tmp_path)
    exec(compile(SNIPPETS[name], name, "exec"), {"__name__": "__main__"})


def test_documented_snippets_were_found() -> None:
    assert SNIPPETS


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_documented(command: str) -> None:
    assert re.search(rf"\b{command}\b", TEXT)


def test_no_setting_is_documented_that_does_not_exist() -> None:
    assert set(re.findall(rf"{ENV_PREFIX}[A-Z_]*[A-Z]", TEXT)) - VARIABLES == set()


def test_no_tool_is_documented_that_does_not_exist() -> None:
    assert set(re.findall(r"runtimememory_\w+", TEXT)) - TOOLS == set()


@pytest.mark.parametrize("line", LINES)
def test_a_documented_command_exists_with_its_options(line: str) -> None:
    words = shlex.split(line)
    command = next((name for name in COMMANDS if words[: len(name.split())] == name.split()), None)
    assert command, line
    assert {word for word in words if word.startswith("-")} - COMMANDS[command] - {"-"} == set()


def test_documented_commands_were_found() -> None:
    assert len(LINES) > 10


@pytest.mark.parametrize("page", PAGES)
def test_links_within_the_project_lead_somewhere(page: str) -> None:
    folder = next(path for path in (ROOT, ROOT / "docs") if (path / page).exists())
    targets = [target for target in re.findall(r"\]\(([^)#]+)[^)]*\)", PAGES[page]) if "://" not in target]
    assert [target for target in targets if not (folder / target).exists()] == []
