"""Compare this source with its earlier releases and with plain hybrid searches: quality, latency, memory, disk."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import ir_measures
import numpy as np
import typer
from ir_measures import Success, nDCG
from rich.progress import track

from benchmarks import options
from benchmarks.console import progress
from benchmarks.datasets import Dataset
from benchmarks.embedding_cache import CachedEmbedder
from benchmarks.peers.process import Document, Found, System, TooSlowError
from benchmarks.peers.venvs import python_of
from benchmarks.results import FOLDER, Report
from benchmarks.speed import questions, sentences
from runtime_memory.embedding import load_embedder

__all__ = ["SYSTEMS", "Peer", "run"]

OWN = "Runtime Memory"
_MEASURES = {"any@10": Success @ 10, "nDCG@10": nDCG @ 10}
_WARM = 3
_PATIENT = 4
"""A whole data set may take so many times as long as one request may."""


@dataclass(frozen=True)
class Peer:
    """A system: the module that serves it, and the release whose environment it runs in (None: this one).

    ``words`` and ``vectors`` tell whether it is asked without vectors, and with them.
    """

    module: str
    release: str | None = None
    words: bool = True
    vectors: bool = True


@dataclass(frozen=True)
class Places:
    """Where the environments of earlier releases are, and how many seconds a request may take."""

    venvs: Path
    patience: float


SYSTEMS: Mapping[str, Peer] = {
    OWN: Peer("own"),
    "its text arm alone (BM25)": Peer("text_alone", words=False),
    "its vector arm alone": Peer("vectors_alone", words=False),
    "runtime-memory 4.0.1": Peer("earlier", "4.0.1"),
    "runtime-memory 3.0.0": Peer("earlier", "3.0.0"),
    "LanceDB hybrid, RRF": Peer("lance_hybrid"),
    "SQLite FTS5 + all vectors, RRF": Peer("sqlite_brute"),
}


def run(  # noqa: PLR0917 - a command line
    data: options.Data = None,
    dataset: options.Names = None,
    model: options.Model = None,
    limit: options.Limit = None,
    seed: options.Seed = 7,
    sizes: Annotated[
        list[int] | None, typer.Option("--size", help="Memories to time a search at; 1,000 and 10,000 without it.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=5, help="Searches timed at each size.")] = 100,
    venvs: Annotated[Path, typer.Option(help="Where the environments of earlier releases are, or are made.")] = (
        FOLDER / "venvs"
    ),
    patience: Annotated[float, typer.Option(help="Seconds after which a system is given up.")] = 300,
    *,
    quality: Annotated[bool, typer.Option(help="Compare what is found.")] = True,
    latency: Annotated[bool, typer.Option(help="Compare how fast, and how large.")] = True,
) -> None:
    """Compare with runtime-memory 3.0.0 and 4.0.1, LanceDB's hybrid query and SQLite: quality, latency, memory."""
    chosen = options.datasets(data, dataset, limit, seed) if quality else []
    embedder = options.embedder(model)
    places = Places(venvs.absolute(), patience)
    settings = {"model": embedder.identity, "limit": limit, "seed": seed, "repeats": repeats}
    report = Report("peers", settings, chosen)
    for each in chosen:
        for title, with_vectors in ((f"{each.name}, by words", False), (f"{each.name}, by words and vectors", True)):
            report.table(title, _quality(each, embedder if with_vectors else None, places))
    if latency:
        embedding = _embedding(model, repeats)
        report.table("embedding a question, ms", {"default encoder": embedding})
        for size in sizes or [1_000, 10_000]:
            for words, with_vectors in (("by words", False), ("by words and synthetic vectors", True)):
                rows = _latency(size, repeats, places, seed, embedding["p50"], with_vectors=with_vectors)
                report.table(f"{size:,} memories, {words}", rows)
    report.save()


def _quality(dataset: Dataset, embedder: CachedEmbedder | None, places: Places) -> dict[str, dict[str, object]]:
    documents = _documents(dataset, embedder)
    rows: dict[str, dict[str, object]] = {}
    for name, system in _systems(places, with_vectors=embedder is not None):
        started = time.monotonic()
        answers: dict[str, Found] = {}
        with system:
            try:
                system.add(documents)
                for query in track(dataset.qrels, description=f"{dataset.name}: {name}", console=progress):
                    vector = embedder.embed_query(dataset.queries[query]) if embedder else None
                    answers[query] = system.search(dataset.queries[query], vector, dataset.scopes.get(query))
                    _expect(started, system)
            except TooSlowError as error:
                rows[name] = {"given up": f"{error}; {len(answers)} of {len(dataset.qrels)} queries answered"}
                continue
        rows[name] = _measured(dataset, answers)
    return rows


def _expect(started: float, system: System) -> None:
    if time.monotonic() - started > _PATIENT * system.patience:
        raise TooSlowError(f"{system.name} took longer than {_PATIENT * system.patience:.0f} s in all")


def _measured(dataset: Dataset, answers: Mapping[str, Found]) -> dict[str, object]:
    """Return the mean measures; documents of one text are one, as most systems store it once."""
    first: dict[tuple[str, str | None], str] = {}
    same = {id_: first.setdefault((text, dataset.scopes.get(id_)), id_) for id_, text in dataset.documents.items()}
    qrels = {(query, same[id_]): grade for query, grades in dataset.qrels.items() for id_, grade in grades.items()}
    judged = [ir_measures.Qrel(query, id_, grade) for (query, id_), grade in qrels.items()]
    ranked = [
        ir_measures.ScoredDoc(query, id_, 1 / rank)
        for query, found in answers.items()
        for rank, id_ in enumerate(dict.fromkeys(same[id_] for id_ in found.ids), start=1)
    ]
    values = ir_measures.calc_aggregate(_MEASURES.values(), judged, ranked)
    return {name: float(values[measure]) for name, measure in _MEASURES.items()}


def _latency(
    size: int, repeats: int, places: Places, seed: int, embedding: float, *, with_vectors: bool
) -> dict[str, dict[str, object]]:
    random_ = np.random.default_rng(seed)
    documents = [_synthetic(number, text, random_, with_vectors) for number, text in enumerate(sentences(size))]
    asked = [(question, _unit(random_) if with_vectors else None) for question in questions(_WARM + repeats)]
    random.Random(seed).shuffle(asked)
    rows: dict[str, dict[str, object]] = {}
    own = 0.0
    for name, system in _systems(places, with_vectors=with_vectors):
        with system:
            try:
                seconds = system.add(documents)
                tracked = track(asked, description=f"{size:,}: {name}", console=progress)
                times = _times(system, tracked)
                state = system.state()
            except TooSlowError as error:
                rows[name] = {"p50, ms": str(error)}
                continue
        p50, p95 = (float(value) for value in np.percentile(times, [50, 95]))
        own = own or p50
        rows[name] = {"p50, ms": p50, "times ours": p50 / own, "p95, ms": p95, "of the embedding": p50 / embedding}
        rows[name] |= {"searches": len(times), "add, s": seconds} | state
    return rows


def _times(system: System, asked: Iterable[tuple[str, np.ndarray | None]]) -> list[float]:
    """Return the milliseconds of searches, the first ones left out; of fewer where the system needs too long."""
    started, times = time.monotonic(), []
    for question, vector in asked:
        times.append(system.search(question, vector, "p").milliseconds)
        if time.monotonic() - started > system.patience:
            break
    return times[_WARM:] or times


def _systems(places: Places, *, with_vectors: bool) -> Iterator[tuple[str, System]]:
    """Yield the systems that take part, each with an empty folder."""
    for name, peer in SYSTEMS.items():
        if not (peer.vectors if with_vectors else peer.words):
            continue
        python = python_of(peer.release, places.venvs) if peer.release else Path(sys.executable)
        with tempfile.TemporaryDirectory() as folder:
            yield name, System(name, peer.module, python, Path(folder) / "store", places.patience)


def _documents(dataset: Dataset, embedder: CachedEmbedder | None) -> list[Document]:
    items = list(dataset.documents.items())
    if embedder is None:
        return [Document(id_, text, dataset.scopes.get(id_)) for id_, text in items]
    cut = [embedder.passages(text) for _, text in items]
    embedder.embed_passages([passage for passages in cut for passage in passages])
    # Another system embeds a text as a whole, of which the model reads its first 256 tokens.
    whole = embedder.embed_passages([text for _, text in items])
    return [
        Document(id_, text, dataset.scopes.get(id_), vector, _with_vectors(passages, embedder))
        for (id_, text), vector, passages in zip(items, whole, cut, strict=True)
    ]


def _with_vectors(passages: Sequence[str], embedder: CachedEmbedder) -> list[tuple[str, np.ndarray]]:
    return list(zip(passages, embedder.embed_passages(passages), strict=True))


def _synthetic(number: int, text: str, random_: np.random.Generator, with_vectors: bool) -> Document:  # noqa: FBT001 - positional by its caller alone
    vector = _unit(random_) if with_vectors else None
    return Document(f"d{number}", text, "p", vector, [] if vector is None else [(text, vector)])


def _unit(random_: np.random.Generator) -> np.ndarray:
    vector = random_.standard_normal(384).astype(np.float32)
    return vector / np.linalg.norm(vector)


def _embedding(model: str | None, repeats: int) -> dict[str, float]:
    embedder = load_embedder(model)
    times = []
    for question in questions(_WARM + repeats):
        started = time.perf_counter()
        embedder.embed_query(question)
        times.append((time.perf_counter() - started) * 1000)
    p50, p95 = np.percentile(times[_WARM:], [50, 95])
    return {"p50": float(p50), "p95": float(p95)}
