"""What many single writes leave behind: disk against a freshly imported store, and recall's pace at the end."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.speed import questions, sentences
from runtime_memory import MemoryStore, NewMemory, Settings

__all__ = ["measure", "run"]

_WINDOW = 100


class HashedEmbedder:
    """Give each text a random unit vector of its own: what is timed here is the store."""

    identity = "hashed@1"
    dimension = 384

    def passages(self, text: str) -> list[str]:
        """Return the text as one passage."""
        return [text]

    def embed_passages(self, passages: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a passage."""
        return np.stack([self.embed_query(passage) for passage in passages])

    def embed_query(self, query: str) -> NDArray[np.float32]:
        """Return a vector of shape (dimension,)."""
        drawn = np.random.default_rng(abs(hash(query))).standard_normal(self.dimension).astype(np.float32)
        return np.asarray(drawn / np.linalg.norm(drawn), np.float32)


def measure(folder: Path, writes: int, *, seed: int = 5) -> dict[str, float]:
    """Return sizes in MB and times in ms of a store that got its memories one by one, each followed by a recall.

    Times of a recall are those of the first and the last 100; a wait is an add's time. ``fresh_mb`` is the size of a
    store that got the same memories at once.
    """
    memories = [NewMemory(text, project="p") for text in sentences(writes)]
    asked = random.Random(seed).sample(questions(2 * writes), writes)
    adds, recalls = [], []
    with MemoryStore(Settings(db=str(folder / "churned")), embedder=HashedEmbedder()) as store:
        for memory, question in zip(memories, asked, strict=True):
            adds.append(_timed(lambda memory=memory: store.add_many([memory])))
            recalls.append(_timed(lambda question=question: store.recall(question, project="p")))
    with MemoryStore(Settings(db=str(folder / "fresh")), embedder=HashedEmbedder()) as fresh:
        fresh.add_many(memories)
    churned, imported = _megabytes(folder / "churned"), _megabytes(folder / "fresh")
    first, last = _p95(recalls[:_WINDOW]), _p95(recalls[-_WINDOW:])
    return {
        "churned_mb": churned,
        "fresh_mb": imported,
        "disk_ratio": churned / imported,
        "recall_p95_first_ms": first,
        "recall_p95_last_ms": last,
        "recall_ratio": last / first,
        "recall_p50_last_ms": float(np.median(recalls[-_WINDOW:])),
        "add_p50_ms": float(np.median(adds)),
        "add_p95_ms": _p95(adds),
        "add_worst_ms": max(adds),
    }


def run(
    writes: int = typer.Option(10_000, help="How many memories to add one by one."),
    folder: Path | None = typer.Option(None, help="Where the stores are made; a temporary folder without it."),  # noqa: B008 - typer reads it
) -> None:
    """Add memories one by one, with a recall after each, and print what that does to the disk and to recall."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        figures = measure(Path(made), writes)
    table = Table("figure", "value", title=f"{writes} single adds, a recall after each")
    for name, value in figures.items():
        table.add_row(name, f"{value:.2f}")
    Console().print(table)


def _timed(call: object) -> float:
    started = time.perf_counter()
    call()  # type: ignore[operator]
    return 1e3 * (time.perf_counter() - started)


def _p95(times: Sequence[float]) -> float:
    return float(np.percentile(times, 95))


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    typer.run(run)
