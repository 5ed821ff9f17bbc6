"""Time a recall on a store whose tables are on an S3 server of this machine; vectors and texts are made up."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.console import progress
from benchmarks.results import Report
from benchmarks.scale import PROJECT, REAL, asked, notes, write_notes
from indexes.consistency import HybridIndex
from runtime_memory import MemoryStore, Settings

__all__ = ["SyntheticEmbedder", "run", "s3_server"]

_SERVER = Path(__file__).parent.parent / "tests" / "object_store" / "s3_server.py"
_BATCH = 50_000
_WARMING, _LOOK_SECONDS = 3, 0.05
_ADDED, _NEW_NOTES = 20, 500_000_000


class SyntheticEmbedder:
    """Give every text a random unit vector of its own: as long as those of a real model, and free to make."""

    dimension = 384
    identity = "synthetic@384"

    def passages(self, text: str) -> list[str]:
        """Return the text as its one passage."""
        return [text]

    def embed_passages(self, passages: Sequence[str]) -> NDArray[np.float32]:
        """Return a row a passage."""
        rng = np.random.default_rng(zlib.crc32(passages[0].encode()))
        rows = rng.standard_normal((len(passages), self.dimension), dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_query(self, query: str) -> NDArray[np.float32]:
        """Return a vector of shape (dimension,)."""
        return self.embed_passages([query])[0]


def run(
    size: Annotated[int, typer.Option(min=1, help="Memories in the store.")] = 100_000,
    repeats: Annotated[int, typer.Option(min=1, help="Recalls to time.")] = 100,
    *,
    new_machine: Annotated[bool, typer.Option(help="Also time the first recall where there is no replica.")] = True,
) -> None:
    """Fill a store on a local S3 server with made memories, and time recall, adding and a new machine's replica.

    The server holds all of it in memory: some gigabytes for 1,000,000, which take six to fifteen minutes to make.
    """
    report = Report("object-store", {"memories": size, "vectors": "synthetic", "server": "moto, on this machine"})
    with s3_server() as options, tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = f"{cache}/one"
        settings = Settings.load(db="s3://team/memories", storage_options=options)
        store = MemoryStore(settings, embedder=SyntheticEmbedder())
        seconds = _made(store, size)
        questions = asked(repeats, min(size, REAL))
        report.table("in ms", _times(store, questions))
        store.close()
        if new_machine:
            os.environ["XDG_CACHE_HOME"] = f"{cache}/two"
            with MemoryStore(settings, embedder=SyntheticEmbedder()) as other:
                first = _seconds("a new machine's first recall", lambda: other.recall(questions[0], project=PROJECT))
            seconds["a new machine's first recall"] = first
    report.table("in seconds", {name: {"s": value} for name, value in seconds.items()})
    report.save()


def _made(store: MemoryStore, size: int) -> dict[str, float]:
    """Fill a store, and return how many seconds each step took: the table, this machine's replica, and compaction."""
    embedder = SyntheticEmbedder()
    clusters = embedder.embed_passages([f"cluster {number}" for number in range(min(size, REAL))])
    with store._open() as parts:  # noqa: SLF001 - by the façade they would be looked up one by one first
        database = parts.database
        steps: dict[str, Callable[[], object]] = {
            "fill": lambda: write_notes(database, size, embedder, clusters, batch=_BATCH),
            "replica": database.index.refresh,
            "compact": store.optimize,
            "first recall of a process": lambda: store.recall("the first of a process", project=PROJECT),
            "into memory": lambda: _warm(store, database.index),
        }
        return {name: _seconds(name, step) for name, step in steps.items()}


def _warm(store: MemoryStore, index: HybridIndex) -> None:
    """Recall until nothing is being read into memory any more that makes recalls faster."""
    for number in range(_WARMING):
        store.recall(f"recall {number} of a process", project=PROJECT)
    while index.is_warming:
        time.sleep(_LOOK_SECONDS)


def _times(store: MemoryStore, questions: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return percentiles in milliseconds of single calls."""
    calls: dict[str, tuple[Callable[[str], object], Iterable[str]]] = {
        "recall": (lambda text: store.recall(text, project=PROJECT), questions),
        "search": (lambda text: store.search(text, project=PROJECT), questions),
        "add": (lambda text: store.add(text, project=PROJECT), notes(_ADDED, start=_NEW_NOTES)),
    }
    times = {}
    for name, (call, texts) in calls.items():
        seconds = [_timed(partial(call, text)) for text in texts]
        times[name] = {f"p{at}": float(np.percentile(seconds, at)) * 1000 for at in (50, 95)}
        progress.print(f"{name}: {times[name]['p50']:.0f} / {times[name]['p95']:.0f} ms")
    return times


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Run an S3 server with a bucket ``team``, and yield the storage options for it."""
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, str(_SERVER), "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            endpoint = f"http://127.0.0.1:{int(process.stdout.readline() if process.stdout else 0)}"
            request = urllib.request.Request(f"{endpoint}/team", method="PUT")  # noqa: S310 - this machine's server
            urllib.request.urlopen(request).close()  # noqa: S310
            credentials = {"access_key_id": "team", "secret_access_key": "secret"}
            yield {"endpoint": endpoint, "region": "us-east-1", "allow_http": "true", "timeout": "300s", **credentials}
        finally:
            process.terminate()


def _seconds(name: str, call: Callable[[], object]) -> float:
    """Return how long a step took, and tell of it: a large store takes many minutes."""
    progress.print(f"{name} ...")
    seconds = _timed(call)
    progress.print(f"{name}: {seconds:.1f} s")
    return seconds


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
