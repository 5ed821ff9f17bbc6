"""Install the plugin folder by which Hermes Agent finds the memory provider, and tell whether all is in place."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from runtime_memory import hermes_plugin
from runtime_memory.errors import RuntimeMemoryError

__all__ = ["NEXT_COMMAND", "PluginError", "Status", "default_home", "install", "install_command", "status", "uninstall"]

NAME = "runtimememory"
NEXT_COMMAND = f"hermes config set memory.provider {NAME}"

_MARKER = "# Written by `mem hermes install` of runtime-memory"
_FILES = ("__init__.py", "plugin.yaml")
_SCRIPT_BYTES = 4096
_PROBE = (
    "import importlib.util, json, sys; "
    "print(json.dumps([n for n in sys.argv[1:] if importlib.util.find_spec(n) is None]))"
)


class PluginError(RuntimeMemoryError):
    """The plugin folder cannot be written or removed."""


@dataclass(frozen=True)
class Status:
    """Whether Hermes will use the provider, step by step.

    ``interpreter`` is the one that the ``hermes`` command runs, None when it was not found; ``missing`` the modules
    that it cannot import, None when it could not be asked.
    """

    home: Path
    installed: bool
    current: bool
    configured: str | None
    interpreter: Path | None
    missing: tuple[str, ...] | None

    @property
    def ok(self) -> bool:
        """Tell whether everything is in place."""
        return self.installed and self.current and self.configured == NAME and self.missing == ()

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {
            "ok": self.ok,
            "home": str(self.home),
            "plugin": str(plugin_folder(self.home)),
            "installed": self.installed,
            "current": self.current,
            "configured_provider": self.configured,
            "interpreter": str(self.interpreter) if self.interpreter else None,
            "missing_modules": list(self.missing) if self.missing is not None else None,
        }


def default_home() -> Path:
    """Return the home of Hermes: HERMES_HOME, else ~/.hermes."""
    return Path(os.environ.get("HERMES_HOME") or "~/.hermes").expanduser()


def plugin_folder(home: Path) -> Path:
    """Return the folder of the plugin; Hermes takes its name for the provider's."""
    return home / "plugins" / NAME


def install(home: Path) -> bool:
    """Write the plugin folder, and return whether that changed anything; raises PluginError for a foreign folder."""
    folder = plugin_folder(home)
    if not _is_ours(folder):
        raise PluginError(f"{folder} holds something else; move it away, and run this again")
    if _is_current(folder):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _contents().items():
        _replace(folder / name, text)
    return True


def uninstall(home: Path) -> bool:
    """Remove what ``install`` wrote, and return whether there was anything; raises PluginError for a foreign folder."""
    folder = plugin_folder(home)
    if not _is_ours(folder):
        raise PluginError(f"{folder} was not written by mem hermes install; it stays as it is")
    if not _is_installed(folder):
        return False
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    if not any(folder.iterdir()):
        folder.rmdir()
    return True


def status(home: Path) -> Status:
    """Return what is in place for a home of Hermes."""
    folder, python = plugin_folder(home), hermes_interpreter()
    return Status(
        home=home,
        installed=_is_installed(folder),
        current=_is_current(folder),
        configured=_configured_provider(home),
        interpreter=python,
        missing=missing_modules(python) if python else None,
    )


def hermes_interpreter() -> Path | None:
    """Return the Python that the ``hermes`` command runs; None when there is no such command, or it hides it."""
    beside = Path(sys.executable).with_name("hermes")
    command = shutil.which("hermes") or (str(beside) if beside.exists() else None)
    return _interpreter(Path(command)) if command else None


def missing_modules(python: Path) -> tuple[str, ...] | None:
    """Return what the provider needs and this Python cannot import; None when it does not answer."""
    if _same_environment(python):
        import importlib.util

        return tuple(name for name in hermes_plugin.NEEDED if importlib.util.find_spec(name) is None)
    asked = [str(python), "-P", "-c", _PROBE, *hermes_plugin.NEEDED]  # -P: this folder is not where Hermes runs
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)  # noqa: S603 - no shell
        return tuple(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def install_command(python: Path) -> str:
    """Return the command that installs runtime-memory for an interpreter."""
    quoted = shlex.quote(str(python))
    if python.with_name("pip").exists():
        return f"{quoted} -m pip install runtime-memory"
    return f"uv pip install --python {quoted} runtime-memory"


def _contents() -> dict[str, str]:
    manifest = (
        f"name: {NAME}\nversion: {metadata.version('runtime-memory')}\nkind: exclusive\n"
        "description: Long-term memory that learns from what worked\n"
        "author: Runtime Memory\npip_dependencies:\n  - runtime-memory\n"
    )
    return {"__init__.py": Path(hermes_plugin.__file__).read_text("utf-8"), "plugin.yaml": manifest}


def _is_installed(folder: Path) -> bool:
    try:
        return (folder / "__init__.py").read_text("utf-8").startswith(_MARKER)
    except (OSError, UnicodeDecodeError):
        return False


def _is_ours(folder: Path) -> bool:
    """Tell whether the folder may be written: it is missing, empty, or of an earlier install."""
    if not os.path.lexists(folder) or _is_installed(folder):
        return True
    return folder.is_dir() and not any(folder.iterdir())


def _is_current(folder: Path) -> bool:
    try:
        return all((folder / name).read_text("utf-8") == text for name, text in _contents().items())
    except (OSError, UnicodeDecodeError):
        return False


def _replace(path: Path, text: str) -> None:
    """Write a file whole: Hermes may read it at any moment."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)


def _configured_provider(home: Path) -> str | None:
    import yaml

    try:
        config = yaml.safe_load((home / "config.yaml").read_text("utf-8"))
        return str(config["memory"]["provider"]).strip() or None
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):
        return None


def _interpreter(script: Path, *, follow: bool = True) -> Path | None:
    """Return the Python in the first lines of a script; a shell script may also start another ``hermes``."""
    try:
        head = script.read_bytes()[:_SCRIPT_BYTES].decode("utf-8", "replace")
    except OSError:
        return None
    if found := re.search(r"""(?<=["'\s!])(/[^"'\n]*?/python[\d.]*)(?=["'\s])""", head):
        return Path(found[1])
    if named := re.match(r"#!\S*env (python[\d.]*)", head):
        return Path(shutil.which(named[1]) or sys.executable)
    if follow and (other := re.search(r"""(?<=["'\s])(/[^"'\n]*?/hermes)(?=["'\s])""", head)):
        return _interpreter(Path(other[1]), follow=False)
    return None


def _same_environment(python: Path) -> bool:
    # Not the file itself: the interpreters of all environments are links to one.
    return python.parent.resolve() == Path(sys.executable).parent.resolve()
