"""Where the benchmarks write: tables to the output, progress to the error stream."""

from __future__ import annotations

from rich.console import Console

__all__ = ["output", "progress"]

output = Console()
progress = Console(stderr=True)
