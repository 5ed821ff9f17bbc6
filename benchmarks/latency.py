"""Time recall and writes at growing sizes, beside the embedding of the question in the same run; memory and disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import track

from benchmarks import options, plots
from benchmarks.console import progress
from benchmarks.importing import make_vault
from benchmarks.results import IMAGES, Report, Rows
from benchmarks.scale import PROJECT, REAL, embedded, fill, notes
from benchmarks.timed_process import PARTS

__all__ = ["TARGETS", "Measurement", "run", "tables"]

TARGETS = {10_000: 2.0, 100_000: 3.0, 1_000_000: 6.0}
"""How many times the embedding of its question a prefetch may take at a size."""

_TIMED = "benchmarks.timed_process"
_PROCESSES = 4
_IMPORTED = 5_000
Milliseconds = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Measurement:
    """What was measured at one size: lists of milliseconds by what took them, seconds and MB of a start, disk in MB."""

    size: int
    alone: Milliseconds
    together: Milliseconds
    writing: Milliseconds
    importing: Milliseconds
    cold: Mapping[str, float]
    held: float
    answered: float
    disk: float


def run(
    sizes: Annotated[list[int] | None, typer.Option("--size", help="Memories in the store; repeat for more.")] = None,
    repeats: Annotated[int, typer.Option(min=10, help="Questions asked in each situation.")] = 200,
    folder: Annotated[
        Path | None, typer.Option(help="Where the stores are made; a temporary folder without it.")
    ] = None,
) -> None:
    """Time prefetch and its parts, adds and outcomes; a cold start; resident memory and disk.

    From 10,000 memories on vectors are those of the first 10,000, with noise. A store of 1,000,000 takes 5 GB of disk
    and some minutes to make.
    """
    wanted = sorted(sizes or [1_000, 10_000])
    embedder = options.embedder(None)
    real = embedded(embedder, min(REAL, wanted[-1]))
    report = Report("latency", {"model": embedder.identity, "repeats": repeats, "real vectors": len(real)})
    measured = []
    with tempfile.TemporaryDirectory(dir=folder) as made:
        for size in track(wanted, description="sizes", console=progress):
            place = Path(made, str(size))
            fill(place, size, embedder, real[:size])
            measured.append(measure(place, size, repeats))
    for title, rows in tables(measured).items():
        report.table(title, rows)
    report.details["milliseconds"] = {each.size: dict(each.alone) for each in measured}
    report.save()
    if len(measured) > 1:
        _draw(measured)


def measure(folder: Path, size: int, repeats: int) -> Measurement:
    """Measure a store in processes of their own; it holds some more memories afterwards."""
    disk = _megabytes(folder)
    cold = _cold(folder)
    (alone,) = _processes(folder, [(_TIMED, "recall", repeats, size, 11)])
    together = _processes(folder, [(_TIMED, "recall", repeats // 2, size, 21 + number) for number in range(_PROCESSES)])
    (writing,) = _processes(folder, [(_TIMED, "write", max(10, repeats // 4), size)])
    importing = _during_an_import(folder, repeats, size)
    return Measurement(
        size,
        alone["milliseconds"],
        _joined(each["milliseconds"] for each in together),
        writing["milliseconds"],
        importing["milliseconds"],
        cold,
        alone["resident"],
        alone["answered"],
        disk,
    )


def tables(measured: Sequence[Measurement]) -> dict[str, Rows]:
    """Return the tables of a report by their titles."""
    return {
        "prefetch over the embedding of its question, medians": {
            _name(each): {
                "alone": _ratio(each.alone, "prefetch"),
                "target": TARGETS.get(each.size, ""),
                f"{_PROCESSES} processes": _ratio(each.together, "prefetch"),
                "after an add": _ratio(each.writing, "prefetch after an add"),
                "after an outcome": _ratio(each.writing, "prefetch after an outcome"),
                "during an import": _ratio(each.importing, "prefetch"),
                "answered": each.answered,
            }
            for each in measured
        },
        "milliseconds, p50 / p95 / p99": {
            _name(each): {
                **{name: _percentiles(each.alone[name]) for name in ("embedding alone", "prefetch")},
                **{name: _percentiles(each.writing[name]) for name in ("add", "outcome")},
                f"prefetch of {_PROCESSES} processes": _percentiles(each.together["prefetch"]),
                "prefetch during an import": _percentiles(each.importing["prefetch"]),
            }
            for each in measured
        },
        "parts of a prefetch in milliseconds, medians": {
            _name(each): {part: float(np.median(each.alone[part])) for part in PARTS} | {"the rest": _rest(each.alone)}
            for each in measured
        },
        "start, memory and disk": {
            _name(each): {**each.cold, "warm, MB": each.held, "disk, MB": each.disk} for each in measured
        },
    }


def _draw(measured: Sequence[Measurement]) -> None:
    situations = {
        "one process": lambda each: _ratio(each.alone, "prefetch"),
        f"{_PROCESSES} processes": lambda each: _ratio(each.together, "prefetch"),
        "after an add": lambda each: _ratio(each.writing, "prefetch after an add"),
        "during an import": lambda each: _ratio(each.importing, "prefetch"),
    }
    ratios = {name: [(_scale(each.size), of(each)) for each in measured] for name, of in situations.items()}
    if targets := [(_scale(each.size), TARGETS[each.size]) for each in measured if each.size in TARGETS]:
        ratios["target"] = targets
    parts = {part: [(_scale(each.size), float(np.median(each.alone[part]))) for each in measured] for part in PARTS}
    plots.curves(
        "the whole prefetch of a turn",
        [
            plots.Lines("over the embedding alone", "memories, power of ten", "ratio of medians", ratios, {}),
            plots.Lines("its parts", "memories, power of ten", "milliseconds, median", parts, {}),
        ],
        IMAGES / "latency.png",
    )


def _processes(folder: Path, tasks: Sequence[tuple[object, ...]]) -> list[dict[str, Any]]:
    """Run tasks at once, each in a process of its own, and return what they measured."""
    running = [_started(folder, task) for task in tasks]
    return [_answer(process) for process in running]


def _started(folder: Path, task: Iterable[object], **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", *map(str, task)]
    env = {**os.environ, "RUNTIME_MEMORY_DB": str(folder), **environment}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own program


def _answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    told, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"a timed process ended with {process.returncode}")
    answer: dict[str, Any] = json.loads(told)
    return answer


def _during_an_import(folder: Path, repeats: int, size: int) -> dict[str, Any]:
    """Return what a recalling process measures while another imports notes, again and again until that is done."""
    with tempfile.TemporaryDirectory() as made:
        make_vault(Path(made), _IMPORTED)
        process = _started(folder, (_TIMED, "recall", repeats, size, 31))
        command = [sys.executable, "-m", "runtime_memory", "import", made, "--db", str(folder), "--defer-embedding"]
        number = 0
        while process.poll() is None:
            with subprocess.Popen([*command, "--project", f"import{number}"], stdout=subprocess.DEVNULL) as importing:  # noqa: S603 - our own command line
                while importing.poll() is None and process.poll() is None:
                    time.sleep(0.05)
                importing.terminate()
            number += 1
        return _answer(process)


def _cold(folder: Path) -> dict[str, float]:
    """Return seconds from the start of a process to its first blocks, and what it holds at each step in MB."""
    started = time.time()
    task = ("benchmarks.cold_process", PROJECT, next(notes(1)))
    both = _answer(_started(folder, task))
    words = _answer(_started(folder, (*task, "words"), RUNTIME_MEMORY_EMBEDDING="null"))
    return {
        "first block by words, s": both["text"] - started,
        "by vectors, s": both["vectors"] - started,
        "import adds, MB": both["imported"] - both["before"],
        "words alone, MB": words["text_memory"],
        "with the model, MB": both["memory"],
    }


def _joined(measured: Iterable[Milliseconds]) -> Milliseconds:
    together: dict[str, list[float]] = {}
    for each in measured:
        for name, values in each.items():
            together.setdefault(name, []).extend(values)
    return together


def _ratio(times: Milliseconds, name: str) -> float:
    return float(np.median(times[name]) / np.median(times["embedding alone"]))


def _rest(times: Milliseconds) -> float:
    known = np.sum([times[part] for part in PARTS], axis=0)
    return float(np.median(np.asarray(times["prefetch"]) - known))


def _percentiles(times: Sequence[float]) -> str:
    return " / ".join(f"{np.percentile(times, percent):.1f}" for percent in (50, 95, 99))


def _name(measured: Measurement) -> str:
    return f"{measured.size:,} memories"


def _scale(size: int) -> float:
    return float(np.log10(size))


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
