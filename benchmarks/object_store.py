"""Time a recall on a store whose tables are on an S3 server of this machine; vectors and texts are made up."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.results import Report
from benchmarks.speed import questions, sentences
from runtime_memory import MemoryStore, NewMemory, Settings

__all__ = ["SyntheticEmbedder", "run", "s3_server"]

_SERVER = Path(__file__).parent.parent / "tests" / "object_store" / "s3_server.py"
_BATCH = 20_000


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
    """Fill a store on a local S3 server with made memories, and time recall, adding and a new machine's replica."""
    report = Report("object-store", {"memories": size, "vectors": "synthetic", "server": "moto, on this machine"})
    with s3_server() as options, tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = f"{cache}/one"
        settings = Settings.load(db="s3://team/memories", storage_options=options)
        store = MemoryStore(settings, embedder=SyntheticEmbedder())
        seconds: dict[str, float] = {"fill": _seconds(lambda: _fill(store, size)), "compact": _seconds(store.optimize)}
        times: dict[str, dict[str, float]] = {}
        asked = questions(repeats)
        store.recall("the first of a process", limit=8)
        times["recall"] = _percentiles([_seconds(lambda q=q: store.recall(q, project="p")) for q in asked])
        times["search"] = _percentiles([_seconds(lambda q=q: store.search(q, project="p")) for q in asked])
        added = [f"added later: {text}" for text in sentences(20, seed=3)]
        times["add"] = _percentiles([_seconds(lambda text=text: store.add(text, project="p")) for text in added])
        store.close()
        report.table("in ms", times)
        if new_machine:
            os.environ["XDG_CACHE_HOME"] = f"{cache}/two"
            with MemoryStore(settings, embedder=SyntheticEmbedder()) as other:
                seconds["a new machine's first recall"] = _seconds(lambda: other.recall(asked[0], project="p"))
    report.table("in seconds", {name: {"s": value} for name, value in seconds.items()})
    report.save()


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


def _fill(store: MemoryStore, size: int) -> None:
    """Store made memories in few commits: by the façade they would be looked up one by one first."""
    from indexes.layout import Change, Entry
    from runtime_memory.records import new_record

    embedder, texts = SyntheticEmbedder(), sentences(size)
    store.stats()
    with store._open() as parts:  # noqa: SLF001 - see above
        for start in range(0, size, _BATCH):
            batch = [NewMemory(next(texts), project="p") for _ in range(min(_BATCH, size - start))]
            records = [new_record(memory, store.now()) for memory in batch]
            vectors = embedder.embed_passages([memory.content for memory in batch])
            entries = [Entry(record, vectors[[row]]) for row, record in enumerate(records)]
            with parts.database.index.writing() as writer:
                writer.write(Change(new=entries))


def _seconds(call: Any) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    return {name: float(np.percentile(seconds, at)) * 1000 for name, at in (("p50", 50), ("p95", 95))}
