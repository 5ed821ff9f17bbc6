"""Time the import of a vault of notes, with and without embedding, its start apart, and its peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.results import Report
from benchmarks.speed import sentences

__all__ = ["make_vault", "run", "timed_import", "with_own_work"]


def run(
    notes: Annotated[int, typer.Option(min=1, help="Notes in the vault.")] = 10_000,
    *,
    embed: Annotated[bool, typer.Option("--embed/--no-embed", help="Also time it with the model.")] = True,
) -> None:
    """Import a made vault of Markdown notes by the command line, twice each: the second run finds nothing new."""
    report = Report("import", {"notes": notes})
    with tempfile.TemporaryDirectory() as folder:
        vault, one = Path(folder, "vault"), Path(folder, "one")
        make_vault(vault, notes)
        make_vault(one, 1)
        ways = {"words alone": ["--defer-embedding"]} | ({"with vectors": list[str]()} if embed else {})
        rows = {}
        for way, options in ways.items():
            start = timed_import(one, Path(folder, way + ", one"), options)["seconds"]
            for again in ("", ", again"):
                rows[way + again] = with_own_work(timed_import(vault, Path(folder, way), options), start)
        report.table(f"import of {notes:,} notes", rows)
    report.save()


def make_vault(folder: Path, notes: int) -> None:
    """Write notes of some 50 to 150 words with frontmatter and a heading, a hundred a folder."""
    texts = sentences(notes * 4)
    for number in range(notes):
        path = folder / f"area-{number // 100}" / f"note-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        body = "\n\n".join(next(texts) for _ in range(1 + number % 4))
        path.write_text(
            f"---\ntags: [made, t{number % 9}]\ndate: 2024-05-01\n---\n# Note {number}\n\n{body}\n", "utf-8"
        )


def with_own_work(timed: dict[str, float], start: float) -> dict[str, float]:
    """Return what was timed with the rate of what is left without the seconds of a start, an import of one note."""
    left = timed["seconds"] - start
    return timed | {"start": start, "own work notes/s": timed["notes/s"] * timed["seconds"] / left if left > 0 else 0.0}


def timed_import(vault: Path, db: Path, options: list[str]) -> dict[str, float]:
    """Return the seconds, the rate and the most resident memory (MB) of one ``mem import``, its start included."""
    command = [sys.executable, "-m", "runtime_memory", "import", str(vault), "--db", str(db), "--json", *options]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - our own command line
        told = json.loads(process.stdout.read() if process.stdout else b"{}")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    found = told["added"] + told["unchanged"]
    peak = usage.ru_maxrss / (1_000_000 if sys.platform == "darwin" else 1_000)
    return {"added": told["added"], "seconds": seconds, "notes/s": found / seconds, "peak MB": peak}
