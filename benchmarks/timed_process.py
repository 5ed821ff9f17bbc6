"""Time one process at a store, and print what was measured as JSON: ``python -m benchmarks.timed_process TASK ...``."""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from benchmarks.cold_process import resident
from benchmarks.scale import PROJECT, REAL, asked, notes

__all__ = ["PARTS", "main", "parts_of"]

PARTS = ("embed", "text", "vectors", "records", "rank", "render")
"""Of a prefetch: the embedding of the message, both searches, reading the memories, fusion with the gate, the block."""

_WARM_UP = 20
_PATIENCE_SECONDS = 120.0
_NEW_NOTES = 500_000_000
"""The numbers of notes that are added begin here: none of a store has them."""

Measured = dict[str, Any]


def main(arguments: list[str]) -> None:
    """Run a task: ``recall COUNT SIZE SEED`` or ``write COUNT SIZE``, on the store that the environment names."""
    task, *numbers = arguments
    print(json.dumps(_TASKS[task](*map(int, numbers))))


def recall(count: int, size: int, seed: int) -> Measured:
    """Return milliseconds of embeddings and of prefetches, taken in turns, with their parts, and the memory held."""
    provider, store, embedder = _ready(size)
    measured: dict[str, list[float]] = {"embedding alone": [], "prefetch": [], **{part: [] for part in PARTS}}
    shown = 0
    for question in asked(count, min(size, REAL), seed):
        measured["embedding alone"].append(_milliseconds(lambda: embedder.embed_query(question)))  # noqa: B023 - called here
        with parts_of(embedder) as spent:
            measured["prefetch"].append(_milliseconds(lambda: provider.prefetch(question)))  # noqa: B023
        for part in PARTS:
            measured[part].append(spent[part])
        shown += provider.recall_status() is not None
    held = resident()
    store.close()
    return {"milliseconds": measured, "resident": held, "answered": shown / count}


def write(count: int, size: int) -> Measured:
    """Return milliseconds of single adds and outcomes, and of a prefetch right after each."""
    provider, store, embedder = _ready(size)
    names = ("embedding alone", "add", "prefetch after an add", "outcome", "prefetch after an outcome")
    measured: dict[str, list[float]] = {name: [] for name in names}
    texts = notes(count, start=_NEW_NOTES + time.time_ns() % _NEW_NOTES)
    for question, text in zip(asked(count, min(size, REAL), seed=17), texts, strict=True):
        added: list[str] = []
        for name, call in (
            ("embedding alone", lambda: embedder.embed_query(question)),  # noqa: B023 - called here
            ("add", lambda: added.append(store.add(text, project=PROJECT).id)),  # noqa: B023
            ("prefetch after an add", lambda: provider.prefetch(question)),  # noqa: B023
            ("outcome", lambda: store.record_outcome(added, "worked")),  # noqa: B023
            ("prefetch after an outcome", lambda: provider.prefetch(question)),  # noqa: B023
        ):
            measured[name].append(_milliseconds(call))
    store.close()
    return {"milliseconds": measured}


@contextmanager
def parts_of(embedder: object) -> Iterator[dict[str, float]]:
    """Count milliseconds by the part of a recall that they are spent in, for as long as this is open."""
    import indexes.consistency
    import provider.conversation
    import runtime_memory.recall
    import runtime_memory.searching

    spent: dict[str, float] = defaultdict(float)
    places: tuple[tuple[object, str, str], ...] = (
        (type(embedder), "embed_query", "embed"),
        (runtime_memory.searching, "_by_text", "text"),
        (indexes.consistency.HybridIndex, "search_vectors", "vectors"),
        (indexes.consistency.HybridIndex, "get", "records"),
        (runtime_memory.recall, "rank", "rank"),
        (runtime_memory.recall, "results", "rank"),
        (runtime_memory.recall, "newer_first", "rank"),
        (runtime_memory.recall, "admit", "rank"),
        (provider.conversation, "render_block", "render"),
    )
    patches = [patch.object(owner, name, _timed(getattr(owner, name), part, spent)) for owner, name, part in places]
    for each in patches:
        each.start()
    try:
        yield spent
    finally:
        for each in patches:
            each.stop()


def _timed(call: Callable[..., Any], part: str, spent: dict[str, float]) -> Callable[..., Any]:
    @functools.wraps(call)
    def timed(*args: Any, **options: Any) -> Any:
        started = time.perf_counter()
        try:
            return call(*args, **options)
        finally:
            spent[part] += 1000 * (time.perf_counter() - started)

    return timed


def _ready(size: int) -> tuple[Any, Any, Any]:
    """Return a provider with its model loaded and everything read once, its store and that model."""
    from provider import RuntimeMemoryProvider

    provider = RuntimeMemoryProvider()
    provider.initialize("benchmark", agent_workspace=PROJECT)
    store = _shared_store()
    questions = asked(_WARM_UP, min(size, REAL), seed=3)
    _until(lambda: _is_hybrid(store, questions[0]))
    for question in questions:
        store.explain(question, outside=False, project=PROJECT)
    with store._open() as parts:  # noqa: SLF001 - that what it holds in memory is there is what warm means at such a size
        _until(lambda: not parts.database.index.is_warming)
    return provider, store, store._model.get()  # noqa: SLF001


def _shared_store() -> Any:
    from provider.config import load_settings
    from provider.shared import shared_store

    return shared_store(load_settings())


def _is_hybrid(store: Any, question: str) -> bool:
    return bool(store.explain(question, outside=False, project=PROJECT).mode == "hybrid")


def _until(done: Callable[[], bool]) -> None:
    given_up = time.monotonic() + _PATIENCE_SECONDS
    while not done():
        if time.monotonic() > given_up:
            sys.exit(f"process {os.getpid()} got no answer within {_PATIENCE_SECONDS:g} s; see the log above")
        time.sleep(0.01)


def _milliseconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - started)


_TASKS: dict[str, Callable[..., Measured]] = {"recall": recall, "write": write}

if __name__ == "__main__":
    main(sys.argv[1:])
