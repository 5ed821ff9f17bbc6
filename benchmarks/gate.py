"""Measure the relevance gate: how many questions of a project are answered, and how many that are none of its own."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.progress import track

from benchmarks.datasets import Dataset
from benchmarks.quality import filled_store
from runtime_memory import MemoryStore
from runtime_memory.embedding import Embedder
from runtime_memory.relevance import Gate
from runtime_memory.small_talk import is_small_talk

__all__ = ["Asked", "ask", "calibrate", "summary"]

FOREIGN_SHARE = 0.04
GROWTH = 0.149
"""How much of the base each e-fold of memories adds; the same slope held on three sets cut to 30 to 700 memories."""


@dataclass(frozen=True)
class Asked:
    """One question put to one project: of its own, or foreign to it."""

    own: bool
    answered: bool
    injected: int
    gold_found: bool
    gold_injected: bool
    relevance: float
    threshold: float
    memories: int
    small_talk: bool


def ask(dataset: Dataset, embedder: Embedder) -> list[Asked]:
    """Put every judged question to its own project and to every other, and the foreign prompts to all of them."""
    projects = sorted(set(dataset.scopes.values()))
    with tempfile.TemporaryDirectory() as folder:
        store, documents = filled_store(dataset, embedder, Path(folder))
        gold = {document: memory for memory, found in documents.items() for document in found}
        sizes = {project: sum(s == project for d, s in dataset.scopes.items() if d in gold) for project in projects}
        asked = []
        with store:
            for query in track(dataset.qrels, description=dataset.name):
                relevant = {gold[document] for document in dataset.qrels[query]}
                for project in projects:
                    wanted = relevant if project == dataset.scopes[query] else set()
                    asked.append(_one(store, dataset.queries[query], project, sizes[project], wanted))
            for prompt in dataset.foreign:
                asked += [_one(store, prompt, project, sizes[project], set()) for project in projects]
    return asked


def summary(asked: Sequence[Asked]) -> dict[str, float]:
    """Return the shares that are answered, and what the gate costs in right answers."""
    own, foreign = [a for a in asked if a.own], [a for a in asked if not a.own]
    answered = [a for a in own if a.answered]
    return {
        "own answered": _share(a.answered for a in own),
        "foreign answered": _share(a.answered for a in foreign),
        "gold found @8": _share(a.gold_found for a in own),
        "gold injected": _share(a.gold_injected for a in own),
        "injected a turn": sum(a.injected for a in answered) / max(1, len(answered)),
        "AUC": _auc([a.relevance - a.threshold for a in own], [a.relevance - a.threshold for a in foreign]),
    }


def calibrate(asked: Sequence[Asked], model: Gate) -> Gate:
    """Return a gate that lets in ``FOREIGN_SHARE`` of the foreign questions, whatever the number of memories.

    ``asked`` comes from the data that ships with the project; the shares of ``model`` are kept.
    """
    foreign = sorted(
        each.relevance / (1 + GROWTH * math.log(min(max(each.memories, model.least), model.most) / 60))
        for each in asked
        if not each.own and not each.small_talk
    )
    base = foreign[round((1 - FOREIGN_SHARE) * (len(foreign) - 1))]
    return replace(model, base=round(base, 3), growth=round(GROWTH * base, 4))


def _one(store: MemoryStore, question: str, project: str, size: int, wanted: set[str]) -> Asked:
    explained = store.explain(question, project=project, outside=False)
    recalled = {result.memory.id for result in explained.recalled}
    found = {result.memory.id for result in store.search(question, project=project, limit=8)} if wanted else set()
    return Asked(
        own=bool(wanted),
        answered=bool(recalled),
        injected=len(recalled),
        gold_found=bool(wanted & found),
        gold_injected=bool(wanted & recalled),
        relevance=max((result.relevance for result in explained.results), default=0.0),
        threshold=explained.threshold,
        memories=size,
        small_talk=is_small_talk(question),
    )


def _share(values: Iterable[bool]) -> float:
    listed = list(values)
    return sum(listed) / max(1, len(listed))


def _auc(own: Sequence[float], foreign: Sequence[float]) -> float:
    """Return the probability that a question of the project's own shows more evidence than a foreign one."""
    order = sorted([(value, 1) for value in own] + [(value, 0) for value in foreign])
    ranks = sum(rank for rank, (_, mine) in enumerate(order, start=1) if mine)
    return (ranks - len(own) * (len(own) + 1) / 2) / max(1, len(own) * len(foreign))
