"""Tell whether this processor has what LanceDB's code was compiled for: without, the process dies at its import."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

__all__ = ["missing_features", "probe"]

_NEEDED = ("avx2", "fma")
_ILLEGAL_INSTRUCTION = -4
_PROBE_SECONDS = 120


def missing_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """Return what is missing; nothing where it cannot be told (another architecture, or no such file)."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return ()
    try:
        text = cpuinfo.read_text("utf-8", "replace")
    except OSError:
        return ()
    lines = (line.partition(":")[2].split() for line in text.splitlines() if line.startswith("flags"))
    flags = next(lines, None)
    return () if flags is None else tuple(name for name in _NEEDED if name not in flags)


def probe(code: str = "import lancedb, tantivy") -> str | None:
    """Import the native libraries in a process of its own, and return what is wrong; None when all is well."""
    command = [sys.executable, "-c", code]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PROBE_SECONDS)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == _ILLEGAL_INSTRUCTION:
        return f"this processor lacks an instruction that LanceDB needs ({', '.join(_NEEDED)})"
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return lines[-1] if lines else f"the import ended with code {done.returncode}"
    return None
