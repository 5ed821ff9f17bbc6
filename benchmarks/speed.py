"""Time a recall against the embedding of its question alone, in one run; and a cold start."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks import options
from benchmarks.results import Report
from provider import RuntimeMemoryProvider
from runtime_memory import MemoryStore, NewMemory, Settings
from runtime_memory.embedding import Embedder, load_embedder

__all__ = ["cold_start", "fill", "questions", "run", "warm_ratios"]

_SUBJECTS = "login checkout search invoice sensor irrigation backup deploy cache webhook queue report".split()
_VERBS = "needs avoids logs retries caches rejects rotates exports imports throttles".split()
_OBJECTS = "tokens floats secrets batches images valves sessions cookies migrations timestamps backoff quotas".split()
_PLACES = "staging production Berlin the-greenhouse CI the-laptop room-12 node-7 the-archive eu-west".split()


def run(sizes: Annotated[list[int] | None, typer.Option("--size", help="Memories in the store.")] = None) -> None:
    """Time a whole prefetch against the embedding of its question alone, and a cold start."""
    embedder, warm, cold = options.embedder(None), {}, {}
    for size in sizes or [1_000, 10_000]:
        with tempfile.TemporaryDirectory() as folder:
            fill(Path(folder), size, embedder).close()
            cold[f"{size:,} memories"] = cold_start(Path(folder))
            warm[f"{size:,} memories"] = warm_ratios(Path(folder), load_embedder(None))
    report = Report("speed", {"model": embedder.identity})
    report.table("warm, in ms", warm)
    report.table("cold start", cold)
    report.save()


def sentences(count: int, seed: int = 7) -> Iterator[str]:
    """Yield distinct short notes of 15 to 40 words."""
    rng = random.Random(seed)
    for number in range(count):
        words = [rng.choice(pool) for _ in range(rng.randint(3, 8)) for pool in (_SUBJECTS, _VERBS, _OBJECTS, _PLACES)]
        yield f"Note {number}: the {' '.join(words)}."


def questions(count: int, seed: int = 11) -> list[str]:
    """Return questions of about ten words."""
    rng = random.Random(seed)
    pick = rng.choice
    return [
        f"why does the {pick(_SUBJECTS)} in {pick(_PLACES)} {pick(_VERBS)} {pick(_OBJECTS)} again, case {number}?"
        for number in range(count)
    ]


def fill(folder: Path, count: int, embedder: Embedder) -> MemoryStore:
    """Return a store with so many memories, compacted."""
    store = MemoryStore(Settings(db=str(folder)), embedder=embedder)
    store.add_many([NewMemory(text, project="p") for text in sentences(count)])
    store.optimize()
    return store


def warm_ratios(folder: Path, embedder: Embedder, repeats: int = 200) -> dict[str, float]:
    """Return p50 and p95 in ms of embedding a question and of the whole prefetch, taken in turns, and their ratio."""
    os.environ["RUNTIME_MEMORY_DB"] = str(folder)
    provider = RuntimeMemoryProvider()
    provider.initialize("benchmark", agent_workspace="p")
    while '"hybrid"' not in provider.handle_tool_call("runtimememory_stats", {}):
        time.sleep(0.05)  # until the model is there
    embedding, prefetch = [], []
    for question in questions(repeats):
        embedding.append(_milliseconds(embedder.embed_query, question))
        prefetch.append(_milliseconds(provider.prefetch, question))
    return {
        "embed p50": float(np.percentile(embedding, 50)),
        "embed p95": float(np.percentile(embedding, 95)),
        "prefetch p50": float(np.percentile(prefetch, 50)),
        "prefetch p95": float(np.percentile(prefetch, 95)),
        "ratio p50": float(np.percentile(prefetch, 50) / np.percentile(embedding, 50)),
    }


def cold_start(folder: Path) -> dict[str, float]:
    """Return seconds from the start of a process to its first block by text and by vectors, and its memory in MB."""
    environment = {**os.environ, "RUNTIME_MEMORY_DB": str(folder)}
    started = time.time()
    answer = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _CHILD], env=environment, check=True, capture_output=True, text=True
    ).stdout
    measured: dict[str, float] = json.loads(answer)
    return {
        "first block (text), s": measured["text"] - started,
        "first block (vectors), s": measured["vectors"] - started,
        "resident after import, MB": measured["imported"],
        "resident by text, MB": measured["text_memory"],
        "resident with the model, MB": measured["memory"],
    }


_CHILD = (
    """
import json, resource, time
from provider import RuntimeMemoryProvider
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1e6
seen = {"imported": resident()}
provider = RuntimeMemoryProvider()
provider.initialize("benchmark", agent_workspace="p")
question = """
    + repr(next(sentences(1)))
    + """
while not provider.prefetch(question):
    time.sleep(0.01)
seen |= {"text": time.time(), "text_memory": resident()}
while '"hybrid"' not in provider.handle_tool_call("runtimememory_stats", {}):
    time.sleep(0.01)
assert provider.prefetch(question)
print(json.dumps(seen | {"vectors": time.time(), "memory": resident()}))
"""
)


def _milliseconds(call: Callable[[str], object], argument: str) -> float:
    started = time.perf_counter()
    call(argument)
    return (time.perf_counter() - started) * 1000
