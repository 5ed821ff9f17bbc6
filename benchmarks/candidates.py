"""What the store's two arms find for every judged query: found once, kept on disk, and laid out for NumPy."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.console import progress
from benchmarks.datasets import Dataset
from indexes import analysis, bm25, codes, resident, text, text_counts, vectors
from indexes.fusion import Hit
from runtime_memory import MemoryStore, NewMemory, Settings, passages, searching
from runtime_memory.embedding import Embedder

__all__ = ["DEEPEST", "Candidates", "collect", "filled_store"]

DEEPEST = 200
"""How far down each arm's list is kept."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Candidates:
    """The lists of both arms, and what is relevant.

    A memory is a number: the later it was added the greater. ``text`` and ``vectors`` hold memories best first, shape
    (queries, DEEPEST), -1 beyond the end; ``text_scores`` and ``vector_scores`` their BM25 and cosines. Documents with
    the same text are one memory: ``memories`` gives each document's.
    """

    dataset: Dataset
    queries: tuple[str, ...]
    memories: Mapping[str, int]
    text: Ints
    text_scores: Floats
    vectors: Ints
    vector_scores: Floats

    @cached_property
    def qrels(self) -> list[dict[int, int]]:
        """Return the grades of relevant memories, query by query."""
        judged: list[dict[int, int]] = []
        for query in self.queries:
            grades: dict[int, int] = {}
            for document, grade in self.dataset.qrels[query].items():
                memory = self.memories[document]
                grades[memory] = max(grade, grades.get(memory, 0))
            judged.append(grades)
        return judged

    @cached_property
    def documents(self) -> dict[int, str]:
        """Return one document of every memory, the first that had its text."""
        return {memory: document for document, memory in reversed(list(self.memories.items()))}

    def arms(self, query: int) -> tuple[list[Hit], list[Hit]]:
        """Return a query's two lists as the store's fusion takes them; ids sort as the numbers do."""
        return (
            [(f"{memory:09}", score) for memory, score in _listed(self.text[query], self.text_scores[query])],
            [(f"{memory:09}", score) for memory, score in _listed(self.vectors[query], self.vector_scores[query])],
        )


def filled_store(dataset: Dataset, embedder: Embedder | None, folder: Path) -> tuple[MemoryStore, dict[str, list[str]]]:
    """Return a store that holds a dataset's documents, and of each memory's id the documents that it stands for.

    Without an embedder it searches by words.
    """
    settings = Settings(db=str(folder), embedding="local" if embedder else "null")
    store = MemoryStore(settings, embedder=embedder)
    memories = [NewMemory(text, project=dataset.scopes.get(id_)) for id_, text in dataset.documents.items()]
    documents: dict[str, list[str]] = {}
    for id_, memory in zip(dataset.documents, store.add_many(memories), strict=True):
        documents.setdefault(memory.id, []).append(id_)
    store.optimize()
    return store, documents


def collect(dataset: Dataset, embedder: Embedder, folder: Path) -> Candidates:
    """Return the candidates of every judged query within its project, from the folder where they are already there.

    They are found anew when the data, the model, or the code that finds them has changed.
    """
    path = folder / f"{dataset.name}-{_key(dataset, embedder)}.npz"
    queries = tuple(dataset.qrels)
    if path.exists():
        with np.load(path) as stored:
            memories = dict(zip(dataset.documents, stored["memories"].tolist(), strict=True))
            arrays = [stored[name] for name in ("text", "text_scores", "vectors", "vector_scores")]
        return Candidates(dataset, queries, memories, *arrays)
    candidates = _found(dataset, embedder, queries)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path,
        memories=np.array(list(candidates.memories.values())),
        text=candidates.text,
        text_scores=candidates.text_scores,
        vectors=candidates.vectors,
        vector_scores=candidates.vector_scores,
    )
    return candidates


def _found(dataset: Dataset, embedder: Embedder, queries: tuple[str, ...]) -> Candidates:
    by_text, by_vectors = _empty(len(queries)), _empty(len(queries))
    with tempfile.TemporaryDirectory() as place:
        store, documents = filled_store(dataset, embedder, Path(place))
        with store:
            numbers = {id_: number for number, id_ in enumerate(sorted(documents))}
            for row, query in enumerate(track(queries, description=f"search {dataset.name}", console=progress)):
                found = store.candidates(dataset.queries[query], limit=DEEPEST // 2, project=dataset.scopes.get(query))
                for (ids, scores), hits in ((by_text, found.text), (by_vectors, found.vectors)):
                    _fill(ids[row], scores[row], hits, numbers)
    of = {document: numbers[id_] for id_, listed in documents.items() for document in listed}
    memories = {document: of[document] for document in dataset.documents}
    return Candidates(dataset, queries, memories, *by_text, *by_vectors)


def _empty(queries: int) -> tuple[Ints, Floats]:
    return np.full((queries, DEEPEST), -1), np.zeros((queries, DEEPEST))


def _fill(row: Ints, scores: Floats, hits: Sequence[Hit], numbers: Mapping[str, int]) -> None:
    kept = hits[:DEEPEST]
    row[: len(kept)] = [numbers[id_] for id_, _ in kept]
    scores[: len(kept)] = [score for _, score in kept]


def _listed(row: Ints, scores: Floats) -> list[tuple[int, float]]:
    return [(int(memory), float(score)) for memory, score in zip(row, scores, strict=True) if memory >= 0]


def _key(dataset: Dataset, embedder: Embedder) -> str:
    finders = (analysis, bm25, codes, text, text_counts, vectors, resident, passages, searching)
    code = b"".join(Path(str(module.__file__)).read_bytes() for module in finders)
    digest = hashlib.sha256(f"{dataset.fingerprint} {embedder.identity} {DEEPEST} ".encode() + code)
    return digest.hexdigest()[:16]
