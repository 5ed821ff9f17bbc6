"""The plugin folder for Hermes: written, removed, and never the reason that Hermes loses its memory in silence."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from runtime_memory import hermes_plugin, hermes_shim
from runtime_memory.cli import app

REPOSITORY = Path(__file__).parent.parent
NEXT = "hermes config set memory.provider runtimememory"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home of Hermes that is the default one, with the `hermes` command run by this Python."""
    home = tmp_path / "home of hermes"
    home.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    hermes_command(monkeypatch, tmp_path, f"#!{sys.executable}\nimport sys\n")
    return home


def hermes_command(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> Path:
    """Put a `hermes` command first on the PATH."""
    script = folder / "bin" / "hermes"
    script.parent.mkdir(exist_ok=True)
    script.write_text(text)
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return script


def other_python(folder: Path, missing: list[str]) -> Path:
    """Make an interpreter of another environment, which answers what it cannot import."""
    python = folder / "other env" / "bin" / "python3.11"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\necho '{json.dumps(missing)}'\n")
    python.chmod(0o755)
    return python


def hermes(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["hermes", *args])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def activate(home: Path) -> None:
    (home / "config.yaml").write_text("memory:\n  provider: runtimememory\n")


# Installing


def test_install_writes_what_hermes_looks_for_and_tells_the_next_command(home: Path) -> None:
    result = hermes("install")
    assert NEXT in result.stdout
    folder = home / "plugins" / "runtimememory"
    assert sorted(file.name for file in folder.iterdir()) == ["__init__.py", "plugin.yaml"]
    head = (folder / "__init__.py").read_text("utf-8")[:8192]
    assert "register_memory_provider" in head
    manifest = yaml.safe_load((folder / "plugin.yaml").read_text("utf-8"))
    assert manifest["name"] == "runtimememory"
    assert manifest["kind"] == "exclusive"
    assert manifest["pip_dependencies"] == ["runtime-memory"]


def test_install_twice_is_install_once_and_renews_what_is_of_another_version(home: Path) -> None:
    assert json.loads(hermes("install", "--json").stdout)["changed"] is True
    assert "Already installed" in hermes("install").stdout
    shim = home / "plugins" / "runtimememory" / "__init__.py"
    shim.write_text(shim.read_text("utf-8") + "# of an earlier version\n")
    assert "another version" in hermes("status", code=1).stdout
    assert hermes("install").stdout.startswith("Installed")
    assert shim.read_text("utf-8") == Path(hermes_plugin.__file__).read_text("utf-8")


@pytest.mark.parametrize("command", ["install", "uninstall"])
@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_not_ours_is_left_alone(home: Path, tmp_path: Path, command: str, kind: str) -> None:
    place = home / "plugins" / "runtimememory"
    place.parent.mkdir()
    target = tmp_path / "checkout" if kind == "link" else place
    if kind == "file":
        place.write_text("mine")
    else:
        target.mkdir()
        (target / "__init__.py").write_text("def register(ctx): ctx.register_memory_provider(None)\n")
    if kind == "link":
        place.symlink_to(target)
    result = hermes(command, code=1)
    assert "runtimememory" in result.stderr
    assert "mine" in place.read_text() if kind == "file" else "None" in (target / "__init__.py").read_text()


def test_uninstall_removes_ours_only(home: Path) -> None:
    assert "Nothing to remove" in hermes("uninstall").stdout
    hermes("install")
    folder = home / "plugins" / "runtimememory"
    (folder / "__pycache__").mkdir()
    (folder / "mine.txt").write_text("mine")
    hermes("uninstall")
    assert [file.name for file in folder.iterdir()] == ["mine.txt"]
    (folder / "mine.txt").unlink()
    hermes("install")
    hermes("uninstall")
    assert not folder.exists()
    assert folder.parent.exists()


def test_a_named_home_is_used_instead_of_the_default(home: Path, tmp_path: Path) -> None:
    profile = tmp_path / "profiles" / "work"
    hermes("install", "--home", str(profile))
    assert (profile / "plugins" / "runtimememory" / "__init__.py").exists()
    assert not (home / "plugins").exists()


def test_the_default_home_is_that_of_hermes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HERMES_HOME", raising=False)
    assert hermes_shim.default_home() == tmp_path / ".hermes"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs permissions that bind")
def test_a_home_that_cannot_be_written_is_one_line(home: Path) -> None:
    home.chmod(0o500)
    result = hermes("install", code=1)
    home.chmod(0o700)
    assert str(home) in result.stderr


# Status and warnings


def test_status_is_good_only_when_everything_is_in_place(home: Path) -> None:
    first = hermes("status", code=1).stdout
    assert "mem hermes install" in first
    hermes("install")
    assert NEXT in hermes("status", code=1).stdout
    activate(home)
    assert "active" in hermes("status").stdout
    found = json.loads(hermes("status", "--json").stdout)
    assert found["ok"] is True
    assert found["interpreter"] == sys.executable
    assert found["missing_modules"] == []
    assert NEXT not in hermes("install").stdout


@pytest.mark.parametrize(
    "config", ["", "memory: []", "memory:\n  provider:", ": not yaml ]", "memory:\n  provider: mem0"]
)
def test_status_survives_any_configuration(home: Path, config: str) -> None:
    hermes("install")
    (home / "config.yaml").write_text(config)
    assert NEXT in hermes("status", code=1).stdout


@pytest.mark.skipif(os.name == "nt", reason="scripts of POSIX")
@pytest.mark.parametrize(
    "script",
    [
        "#!{python}\nimport re\n",
        "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\nimport re\n",
        '#!/usr/bin/env bash\nexec "{python}" -m hermes_cli.main "$@"\n',
    ],
)
def test_an_interpreter_without_our_package_is_named_with_the_command_that_installs_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    python = other_python(tmp_path, ["runtime_memory", "provider", "lancedb"])
    hermes_command(monkeypatch, tmp_path, script.format(python=python))
    activate(home)
    warned = hermes("install").stderr
    assert str(python) in warned
    assert "pip install" in warned
    found = json.loads(hermes("status", "--json", code=1).stdout)
    assert found["interpreter"] == str(python)
    assert found["missing_modules"] == ["runtime_memory", "provider", "lancedb"]


@pytest.mark.skipif(os.name == "nt", reason="scripts of POSIX")
def test_another_interpreter_that_has_our_package_is_good(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = other_python(tmp_path, [])
    real = tmp_path / "other env" / "bin" / "hermes"
    real.write_text(f"#!{python}\n")
    hermes_command(monkeypatch, tmp_path, f'#!/bin/bash\nexec "{real}" "$@"\n')
    activate(home)
    assert hermes("install").stderr == ""
    assert json.loads(hermes("status", "--json").stdout)["interpreter"] == str(python)


def test_without_a_hermes_command_install_works_and_says_what_it_could_not_check(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))
    assert "no hermes command" in hermes("install").stderr
    hermes("status", code=1)


# The plugin itself, loaded as Hermes loads it

LOAD = """
import importlib.util, json, sys
class Context:
    provider = None
    def register_memory_provider(self, provider): self.provider = provider
spec = importlib.util.spec_from_file_location("_hermes_user_memory.runtimememory", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
context = Context()
module.register(context)
p = context.provider
print(json.dumps({"name": p.name, "class": type(p).__name__, "available": [p.is_available() for _ in range(3)],
    "reason": p.unavailable_reason(), "tools": p.get_tool_schemas(), "started": p.initialize("s", platform="cli")}))
"""


def load(home: Path, *options: str, **environment: str) -> tuple[dict[str, Any], str]:
    """Return what the installed plugin registers in a fresh interpreter, and its standard error."""
    hermes_shim.install(home)
    script = str(home / "plugins" / "runtimememory" / "__init__.py")
    done = subprocess.run(
        [sys.executable, *options, "-c", LOAD, script],
        capture_output=True,
        text=True,
        check=True,
        cwd=home,
        env={**os.environ, **environment},
    )
    return json.loads(done.stdout), done.stderr


def test_where_our_package_is_gone_the_plugin_says_so_once_with_interpreter_and_command(home: Path) -> None:
    found, said = load(home, "-I", "-S")
    assert (found["name"], found["available"], found["tools"]) == ("runtimememory", [False] * 3, [])
    assert sys.executable in found["reason"]
    assert re.search(r"(-m pip|uv pip) install .*runtime-memory", found["reason"])
    assert said.strip() == found["reason"]


@pytest.mark.parametrize(
    "broken",
    ["raise ImportError('half an upgrade')", "raise RuntimeError('boom')", "x = 1", "def register(ctx): 1 / 0"],
)
def test_a_provider_that_cannot_be_loaded_is_replaced_by_a_stand_in(home: Path, tmp_path: Path, broken: str) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "provider.py").write_text(broken)
    found, said = load(home, PYTHONPATH=str(tmp_path / "modules"))
    assert found["class"] == "Unavailable"
    assert said.count("Runtime Memory is off") == 1


def test_a_missing_dependency_is_named(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'tantivy' else find(name, *rest)\n"
    )
    found, _ = load(home, PYTHONPATH=str(tmp_path))
    assert "tantivy cannot be imported" in found["reason"]


def test_with_everything_in_place_the_plugin_hands_over_the_real_provider(home: Path) -> None:
    hermes_shim.install(home)
    code = LOAD[: LOAD.index("print(")] + "print(p.name, type(p).__module__.split('.')[0])"
    script = str(home / "plugins" / "runtimememory" / "__init__.py")
    done = subprocess.run([sys.executable, "-c", code, script], capture_output=True, text=True, check=True, cwd=home)
    assert done.stdout.split() == ["runtimememory", "provider"]


def test_what_the_plugin_asks_for_is_what_the_package_depends_on() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    names = {re.split(r"[<>=;\[ ]", each)[0].replace("-", "_") for each in project["dependencies"]}
    of_the_command_line = {"typer", "rich"}
    modules = {"pyyaml": "yaml", "markdown_it_py": "markdown_it"}
    needed = {modules.get(name, name) for name in names - of_the_command_line}
    assert set(hermes_plugin.NEEDED) == needed | {"runtime_memory", "provider"}
