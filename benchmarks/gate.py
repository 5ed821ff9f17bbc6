"""Measure the relevance gate: how many questions of a project are answered, and how many that are none of its own."""

from __future__ import annotations

import json
import math
import random
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import track

from benchmarks import options, plots
from benchmarks.candidates import filled_store
from benchmarks.console import output, progress
from benchmarks.datasets import Dataset, sample_datasets
from benchmarks.results import IMAGES, Report
from runtime_memory import MemoryStore, relevance
from runtime_memory.embedding import Embedder
from runtime_memory.relevance import Gate
from runtime_memory.small_talk import is_small_talk

__all__ = ["Asked", "Point", "area", "ask", "calibrate", "calibration", "curve", "run", "summary"]

FOREIGN_SHARE = 0.04
GROWTH = 0.149
"""How much of the base each e-fold of memories adds; the same slope held on three sets cut to 30 to 700 memories."""
OTHERS = 8
_SHIFTS = np.linspace(-0.35, 0.45, 161)


@dataclass(frozen=True)
class Asked:
    """One question put to one project: of its own, or foreign to it.

    ``relevance`` is the best memory's, ``gold_relevance`` the best right one's among the results, 0 where none is.
    """

    own: bool
    answered: bool
    injected: int
    gold_found: bool
    gold_injected: bool
    relevance: float
    gold_relevance: float
    threshold: float
    memories: int
    small_talk: bool


@dataclass(frozen=True)
class Point:
    """What a threshold raised by ``shift`` would do.

    Shares of foreign and of own questions answered, and of right memories found that are still recalled.
    """

    shift: float
    foreign: float
    own: float
    kept: float


def run(
    data: options.Data = None,
    dataset: options.Names = None,
    model: options.Model = None,
    limit: options.Limit = None,
    seed: options.Seed = 7,
    *,
    images: Annotated[Path, typer.Option(help="Where the plot goes.")] = IMAGES,
    words: Annotated[bool, typer.Option(help="Measure recall by words alone, without a model.")] = False,
) -> None:
    """Put questions to their own project and to others: what is answered, and what recall costs in right answers."""
    embedder = None if words else options.embedder(model)
    chosen = options.datasets(data, dataset, limit, seed)
    identity = embedder.identity if embedder else None
    settings = {"model": identity, "gate": asdict(relevance.gate_for(identity)), "limit": limit, "seed": seed}
    report = Report("gate-words" if words else "gate", settings, chosen)
    rows: dict[str, dict[str, float]] = {}
    points: dict[str, list[Point]] = {}
    for each in chosen:
        if not each.scopes:
            output.print(f"{each.name} has one project: there is none to which its questions are foreign, left out")
            continue
        asked = ask(each, embedder, seed=seed)
        rows[each.name], points[each.name] = summary(asked), curve(asked)
    report.table(f"gate of {identity or 'words alone'}", rows)
    report.details["curves"] = {name: [asdict(point) for point in listed] for name, listed in points.items()}
    if points:
        _plot(f"relevance gate of {identity or 'words alone'}", points, rows, images / f"{report.name}.png")
    report.save()


def calibration(model: options.Model = None) -> None:
    """Fit a model's gate to the shipped data, write it where the store reads it, and measure with it."""
    embedder = options.embedder(model)
    asked = [each for dataset in sample_datasets() for each in ask(dataset, embedder)]
    fitted = calibrate(asked, relevance.gate_for(embedder.identity))
    path = Path(relevance.__file__).with_name("calibration.json")
    gates = json.loads(path.read_text("utf-8"))
    gates[embedder.identity] = asdict(fitted)
    path.write_text(json.dumps(gates, indent=2) + "\n", "utf-8")
    relevance._calibrated.cache_clear()  # noqa: SLF001 - what follows is measured with what was just written
    output.print(f"{embedder.identity}: base {fitted.base}, growth {fitted.growth}; written to {path}")
    run(model=model)


def ask(dataset: Dataset, embedder: Embedder | None, *, seed: int = 7, others: int = OTHERS) -> list[Asked]:
    """Put every judged question to its own project and to others, and the foreign prompts to projects.

    At most ``others`` projects are drawn for each question that is foreign to them.
    """
    projects = sorted({dataset.scopes[document] for document in dataset.documents})
    drawing = random.Random(seed)
    asked = []
    with tempfile.TemporaryDirectory() as folder:
        store, documents = filled_store(dataset, embedder, Path(folder))
        gold = {document: memory for memory, found in documents.items() for document in found}
        sizes = {project: sum(dataset.scopes[d] == project for d in dataset.documents) for project in projects}
        with store:
            for query in track(dataset.qrels, description=f"ask {dataset.name}", console=progress):
                home, question = dataset.scopes[query], dataset.queries[query]
                relevant = {gold[document] for document in dataset.qrels[query]}
                asked.append(_one(store, question, home, sizes[home], relevant))
                elsewhere = [project for project in projects if project != home]
                for project in drawing.sample(elsewhere, min(others, len(elsewhere))):
                    asked.append(_one(store, question, project, sizes[project], set()))  # noqa: PERF401 - reads as the line above
            for prompt in dataset.foreign:
                for project in drawing.sample(projects, min(others, len(projects))):
                    asked.append(_one(store, prompt, project, sizes[project], set()))  # noqa: PERF401
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
        "AUC": area([a.relevance - a.threshold for a in own], [a.relevance - a.threshold for a in foreign]),
    }


def curve(asked: Sequence[Asked], follow: float = 0.75) -> list[Point]:
    """Return what other thresholds would do to the same questions, the lowest threshold first.

    ``kept`` counts right memories that ``search`` found: those still recalled once the question is answered and their
    own evidence reaches ``follow`` times the threshold.
    """
    own = np.array([(a.relevance, a.threshold, a.gold_relevance, a.gold_found) for a in asked if a.own], float)
    foreign = np.array([a.relevance - a.threshold for a in asked if not a.own and not a.small_talk])
    points = []
    for shift in _SHIFTS:
        raised = own[:, 1] + shift
        admitted = own[:, 0] >= raised
        kept = admitted & (own[:, 2] >= follow * raised) & (own[:, 3] > 0)
        points.append(
            Point(
                round(float(shift), 4),
                float((foreign >= shift).mean()),
                float(admitted.mean()),
                float(kept.sum() / max(1.0, own[:, 3].sum())),
            )
        )
    return points


def area(own: Sequence[float], foreign: Sequence[float]) -> float:
    """Return the probability that an own question shows more evidence than a foreign one; a tie counts half."""
    ordered = np.sort(foreign)
    below, upto = np.searchsorted(ordered, own, "left"), np.searchsorted(ordered, own, "right")
    return float((below + upto).sum() / 2 / max(1, len(own) * len(foreign)))


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
    gold = [result.relevance for result in explained.results if result.memory.id in wanted & found]
    return Asked(
        own=bool(wanted),
        answered=bool(recalled),
        injected=len(recalled),
        gold_found=bool(wanted & found),
        gold_injected=bool(wanted & recalled),
        relevance=max((result.relevance for result in explained.results), default=0.0),
        gold_relevance=max(gold, default=0.0),
        threshold=explained.threshold,
        memories=size,
        small_talk=is_small_talk(question),
    )


def _plot(title: str, points: dict[str, list[Point]], rows: dict[str, dict[str, float]], path: Path) -> None:
    def panel(name: str, field: str, y_name: str) -> plots.Lines:
        at = {each: next(p for p in listed if p.shift == 0) for each, listed in points.items()}
        return plots.Lines(
            name,
            "share of foreign questions answered",
            y_name,
            {
                f"{each} (AUC {rows[each]['AUC']:.3f})": [(p.foreign, getattr(p, field)) for p in listed]
                for each, listed in points.items()
            },
            {f"{each} (AUC {rows[each]['AUC']:.3f})": (p.foreign, getattr(p, field)) for each, p in at.items()},
            (0, 0.3),
            (0.5, 1.01),
        )

    plots.curves(
        f"{title} (dot: the store's threshold)",
        [
            panel("questions", "own", "share of own questions answered"),
            panel("right memories", "kept", "share of found memories that are recalled"),
        ],
        path,
    )


def _share(values: Iterable[bool]) -> float:
    listed = list(values)
    return sum(listed) / max(1, len(listed))
