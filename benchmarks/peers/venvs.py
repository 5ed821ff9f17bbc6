"""Environments for earlier releases: made once from the package index, each with one release and what it needs."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.console import progress
from runtime_memory.errors import RuntimeMemoryError

__all__ = ["python_of"]


def python_of(release: str, folder: Path) -> Path:
    """Return the interpreter of an environment ``rm-<release>`` in a folder; made where it is not there.

    Errors:
        RuntimeMemoryError: pip cannot install the release.
    """
    place = folder / f"rm-{release}"
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if _installed(python) == release:
        return python
    if place.exists():
        raise RuntimeMemoryError(
            f"{place} is there, but no environment with runtime-memory {release}. Move it away, or name another folder "
            "with --venvs."
        )
    progress.print(f"making {place} with runtime-memory {release}")
    venv.create(place, with_pip=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"runtime-memory=={release}"]
    try:
        subprocess.run(pip, check=True)  # noqa: S603 - pip of the environment just made
    except subprocess.CalledProcessError as error:
        raise RuntimeMemoryError(
            f"runtime-memory {release} could not be installed in {place}. Check the connection to the package index, "
            "or give a folder that has the environment with --venvs."
        ) from error
    return python


def _installed(python: Path) -> str | None:
    if not python.exists():
        return None
    asked = "from importlib.metadata import version; print(version('runtime-memory'))"
    found = subprocess.run([python, "-I", "-c", asked], capture_output=True, text=True, check=False)  # noqa: S603 - an interpreter
    return found.stdout.strip() or None
