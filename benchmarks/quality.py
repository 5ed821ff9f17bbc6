"""Compare what each arm finds alone with what fusions of both find, and with the store's own search."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import ir_measures
import numpy as np
import typer
from ir_measures import R, Success, nDCG
from rich.progress import track

from benchmarks import options
from benchmarks.candidates import Candidates, collect, filled_store
from benchmarks.console import progress
from benchmarks.datasets import Dataset
from benchmarks.metrics import official
from benchmarks.published import FUSIONS
from benchmarks.results import FOLDER, Report
from benchmarks.sweep import Pool, pool, scores
from indexes.fusion import Fusion
from runtime_memory.embedding import Embedder

__all__ = ["ARMS", "measure", "rankings", "run"]

MEASURES = {"any@5": Success @ 5, "any@10": Success @ 10, "nDCG@5": nDCG @ 5, "nDCG@10": nDCG @ 10, "R@10": R @ 10}
ARMS = ("text alone (BM25)", "vectors alone", "RRF, k = 60", "RRF, k = 10", "convex, 0.4 cosine")
DEFAULT = "default"
SHIPPED = Fusion()
_SHOWN = 50

Ranking = Mapping[str, list[str]]
"""Documents best first, by query."""


def run(
    data: options.Data = None,
    dataset: options.Names = None,
    model: options.Model = None,
    limit: options.Limit = None,
    seed: options.Seed = 7,
    *,
    search: Annotated[bool, typer.Option(help="Also ask the store's own search, in a store filled anew.")] = False,
    runs: Annotated[bool, typer.Option(help="Also keep every ranking as a TREC run, and the judgements.")] = False,
) -> None:
    """Compare each arm alone, their fusions and the default: any@k, nDCG@k and recall, in one table."""
    embedder, chosen = options.embedder(model), options.datasets(data, dataset, limit, seed)
    report = Report("quality", {"model": embedder.identity, "limit": limit, "seed": seed}, chosen)
    together: dict[str, dict[str, object]] = {}
    for each in chosen:
        candidates = collect(each, embedder, options.CANDIDATES)
        ranked = rankings(candidates)
        if search:
            ranked["store.search"] = searched(each, embedder)
        measured = {arm: measure(each, ranking, candidates.memories) for arm, ranking in ranked.items()}
        for arm, values in measured.items():
            figures = f"{values['any@10']:.3f} / {values['nDCG@10']:.3f}".replace("0.", ".")
            together.setdefault(arm, {})[each.name] = figures
        report.table(f"{each.name}: {len(each.documents)} documents, {len(each.qrels)} judged queries", measured)
        if each.family == "longmemeval":
            for title, rows in longmemeval(candidates, ranked).items():
                report.table(title, rows)
        if runs:
            keep_runs(each, ranked, FOLDER / "runs")
    report.table("any@10 / nDCG@10", together)
    report.save()


def rankings(candidates: Candidates) -> dict[str, Ranking]:
    """Return what each arm and each fusion puts first, by name."""
    data = pool(candidates)
    ranked = {arm: _ranking(candidates, data, FUSIONS[arm](data, SHIPPED.depth)) for arm in ARMS}
    return ranked | {DEFAULT: _ranking(candidates, data, scores(data, SHIPPED))}


def measure(dataset: Dataset, ranking: Ranking, memories: Mapping[str, int]) -> dict[str, float]:
    """Return the mean measures of a ranking; documents with one text are one, and judged as one."""
    first = {memory: document for document, memory in reversed(list(memories.items()))}
    qrels = {
        (query, first[memories[document]]): grade
        for query, grades in dataset.qrels.items()
        for document, grade in sorted(grades.items(), key=lambda judged: judged[1])
    }
    judged = [ir_measures.Qrel(query, document, grade) for (query, document), grade in qrels.items()]
    values = ir_measures.calc_aggregate(MEASURES.values(), judged, _scored(ranking))
    return {name: float(values[measure]) for name, measure in MEASURES.items()}


def searched(dataset: Dataset, embedder: Embedder) -> Ranking:
    """Return what the store's own search answers."""
    with tempfile.TemporaryDirectory() as folder:
        store, documents = filled_store(dataset, embedder, Path(folder))
        with store:
            return {
                query: [
                    documents[hit.memory.id][0]
                    for hit in store.search(dataset.queries[query], project=dataset.scopes.get(query), limit=10)
                ]
                for query in track(dataset.qrels, description=f"ask {dataset.name}", console=progress)
            }


def longmemeval(candidates: Candidates, ranked: Mapping[str, Ranking]) -> dict[str, dict[str, dict[str, float]]]:
    """Return LongMemEval's own scores, by turn and by session.

    A session stands where its best turn does; the relevant ones are those with a turn that has the answer.
    """
    dataset, first = candidates.dataset, candidates.documents
    tables: dict[str, dict[str, dict[str, float]]] = {"turn": {}, "session": {}}
    for arm, ranking in ranked.items():
        rows: dict[str, list[dict[str, float]]] = {"turn": [], "session": []}
        for query, documents in ranking.items():
            turns = {first[candidates.memories[document]] for document in dataset.qrels[query]}
            sessions = {dataset.sessions[document] for document in dataset.qrels[query]}
            rows["turn"].append(official(documents, turns))
            rows["session"].append(
                official(list(dict.fromkeys(map(dataset.sessions.__getitem__, documents))), sessions)
            )
        for kind, listed in rows.items():
            tables[kind][arm] = {name: float(np.mean([row[name] for row in listed])) for name in listed[0]}
    return {f"{dataset.name}, LongMemEval's own scores by {kind}": rows for kind, rows in tables.items()}


def keep_runs(dataset: Dataset, ranked: Mapping[str, Ranking], folder: Path) -> None:
    """Write rankings as TREC runs, and the judgements beside them; blanks in ids are quoted as in an address."""
    folder.mkdir(parents=True, exist_ok=True)
    for arm, ranking in ranked.items():
        with (folder / f"{dataset.name}.{_file_name(arm)}.run").open("w", encoding="utf-8") as file:
            for query, documents in ranking.items():
                for rank, document in enumerate(documents, start=1):
                    tag = _file_name(arm)
                    file.write(f"{quote(query)} Q0 {quote(document)} {rank} {len(documents) - rank + 1} {tag}\n")
    with (folder / f"{dataset.name}.qrels").open("w", encoding="utf-8") as file:
        for query, grades in dataset.qrels.items():
            file.writelines(f"{quote(query)} 0 {quote(document)} {grade}\n" for document, grade in grades.items())


def _ranking(candidates: Candidates, data: Pool, scored: np.ndarray) -> Ranking:
    order = np.argsort(-scored, axis=1, kind="stable")[:, :_SHOWN]
    best, memory = np.take_along_axis(scored, order, 1), np.take_along_axis(data.memory, order, 1)
    first = candidates.documents
    return {
        query: [first[int(number)] for number, score in zip(memory[row], best[row], strict=True) if score > -np.inf]
        for row, query in enumerate(candidates.queries)
    }


def _scored(ranking: Ranking) -> Iterable[ir_measures.ScoredDoc]:
    # The order is the answer, and ir-measures orders ties by its own rule.
    for query, documents in ranking.items():
        for rank, document in enumerate(documents, start=1):
            yield ir_measures.ScoredDoc(query, document, 1.0 / rank)


def _file_name(arm: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in arm).split()).lower()
