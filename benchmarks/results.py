"""Keep what was measured, with everything needed to measure it again: JSON, and the same tables as Markdown."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.table import Table

from benchmarks.console import output
from benchmarks.datasets import Dataset

__all__ = ["FOLDER", "IMAGES", "Report", "Rows", "cell", "machine", "versions"]

FOLDER = Path(__file__).parent / "results"
IMAGES = FOLDER / "plots"
Rows = Mapping[str, Mapping[str, object]]
"""The cells of a table, by row and by column."""

_PACKAGES = ("runtime-memory", "lancedb", "tantivy", "numpy", "ir-measures", "matplotlib")


@dataclass
class Report:
    """One run of a benchmark: what went in, and tables as they come out; ``save`` writes both files."""

    name: str
    settings: Mapping[str, object] = field(default_factory=dict)
    datasets: Sequence[Dataset] = ()
    details: dict[str, object] = field(default_factory=dict)
    _tables: dict[str, Rows] = field(default_factory=dict)

    def table(self, title: str, rows: Rows) -> None:
        """Print a table and keep it."""
        self._tables[title] = rows
        shown = Table(title=title, title_justify="left")
        shown.add_column("", overflow="fold")
        for column in _columns(rows):
            shown.add_column(column, justify="right")
        for label, cells in rows.items():
            shown.add_row(label, *(cell(cells.get(column, "")) for column in _columns(rows)))
        output.print(shown)

    def save(self, folder: Path = FOLDER) -> Path:
        """Write ``<name>.json`` and ``<name>.md``, and return the first's path."""
        folder.mkdir(parents=True, exist_ok=True)
        content = {
            "benchmark": self.name,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": " ".join(["python -m benchmarks", *sys.argv[1:]]),
            "machine": machine(),
            "versions": versions(),
            "commit": _commit(),
            "settings": self.settings,
            "datasets": {
                each.name: {
                    "sha256": each.fingerprint,
                    "documents": len(each.documents),
                    "judged queries": len(each.qrels),
                }
                for each in self.datasets
            },
            "tables": self._tables,
            **self.details,
        }
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False, default=str), "utf-8")
        tables = [f"## {title}\n\n{markdown(rows)}" for title, rows in self._tables.items()]
        path.with_suffix(".md").write_text("\n".join([f"# {self.name}\n", *tables]), "utf-8")
        output.print(f"kept in {path}", style="dim")
        return path


def markdown(rows: Rows) -> str:
    """Return a table in Markdown."""
    columns = _columns(rows)
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [
        f"| {label} | " + " | ".join(cell(cells.get(c, "")) for c in columns) + " |" for label, cells in rows.items()
    ]
    return "\n".join(lines) + "\n"


def cell(value: object) -> str:
    """Return a value as a table shows it: a share to four digits, without its leading zero."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.4f}"


def machine() -> dict[str, object]:
    """Return what the figures were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory in GB": round(memory / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that matter."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def _columns(rows: Rows) -> list[str]:
    names: Iterable[str] = (column for cells in rows.values() for column in cells)
    return list(dict.fromkeys(names))


def _cpu() -> str:
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text("utf-8").splitlines() if listed.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _commit() -> str | None:
    """Return the commit of the source, marked where files differ from it; None outside of a repository."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],  # noqa: S607 - whichever git the user has
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or None
