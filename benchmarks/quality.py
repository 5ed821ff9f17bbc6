"""Compare what each arm finds alone with what their fusion finds, by the store's own search."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import ir_measures
from ir_measures import R, Success, nDCG
from rich.progress import track

from benchmarks.datasets import Dataset
from indexes.fusion import Fusion, fuse
from runtime_memory import MemoryStore, NewMemory, Settings
from runtime_memory.embedding import Embedder
from runtime_memory.recall import Found

__all__ = ["ARMS", "filled_store", "measure", "searches"]

MEASURES = (Success @ 10, nDCG @ 10, R @ 5, R @ 10)
ARMS: Mapping[str, Callable[[Found], Mapping[str, float]]] = {
    "text alone (BM25)": lambda found: dict(found.text),
    "vectors alone": lambda found: dict(found.vectors),
    "RRF k=60": lambda found: fuse(found.text, found.vectors, Fusion(k=60, rank_share=1)),
    "RRF k=10": lambda found: fuse(found.text, found.vectors, Fusion(k=10, rank_share=1)),
    "convex 0.4": lambda found: fuse(found.text, found.vectors, Fusion(rank_share=0)),
    "default": lambda found: fuse(found.text, found.vectors, Fusion()),
}


def filled_store(dataset: Dataset, embedder: Embedder, folder: Path) -> tuple[MemoryStore, dict[str, list[str]]]:
    """Return a store that holds a dataset's documents, and of each memory's id the documents that it stands for."""
    store = MemoryStore(Settings(db=str(folder)), embedder=embedder)
    memories = [NewMemory(text, project=dataset.scopes.get(id_)) for id_, text in dataset.documents.items()]
    documents: dict[str, list[str]] = {}
    for id_, memory in zip(dataset.documents, store.add_many(memories), strict=True):
        documents.setdefault(memory.id, []).append(id_)
    store.optimize()
    return store, documents


def searches(
    dataset: Dataset, embedder: Embedder
) -> tuple[dict[str, Found], dict[str, dict[str, float]], dict[str, list[str]]]:
    """Return what the arms find for every judged query within its project, and what the store's search answers."""
    with tempfile.TemporaryDirectory() as folder:
        store, documents = filled_store(dataset, embedder, Path(folder))
        found, answers = {}, {}
        with store:
            for query in track(dataset.qrels, description=dataset.name):
                question, project = dataset.queries[query], dataset.scopes.get(query)
                found[query] = store.candidates(question, project=project)
                hits = store.search(question, project=project, limit=10)
                # The order is the answer: two results may have changed places after they were scored.
                answers[query] = {hit.memory.id: 1.0 / rank for rank, hit in enumerate(hits, start=1)}
    return found, answers, documents


def measure(
    dataset: Dataset, scores: Iterable[tuple[str, Mapping[str, float]]], documents: Mapping[str, list[str]]
) -> dict[str, float]:
    """Return the measures of a ranking: scores of memories by query."""
    qrels = [ir_measures.Qrel(q, d, grade) for q, grades in dataset.qrels.items() for d, grade in grades.items()]
    run = [
        ir_measures.ScoredDoc(query, document, score)
        for query, scored in scores
        for memory, score in scored.items()
        for document in documents[memory]
    ]
    return {str(name): value for name, value in ir_measures.calc_aggregate(MEASURES, qrels, run).items()}
