"""The benchmarks' one entry: ``python -m benchmarks``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.datasets import Dataset, folder_datasets, sample_datasets
from benchmarks.embedding_cache import CachedEmbedder
from runtime_memory.embedding import load_embedder

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False, help=__doc__)


@app.callback()
def _main() -> None:
    """Measure quality, the relevance gate, and speed."""


console = Console()

RESULTS = Path(__file__).parent / "results"
Data = Annotated[
    Path | None, typer.Option(help="Folder with a loaders.py and its data; the shipped sample without it.")
]
Names = Annotated[list[str] | None, typer.Option("--dataset", help="A data set of that folder; repeat for more.")]
Model = Annotated[str | None, typer.Option(help="A model's name or path; the default model without it.")]


def _datasets(data: Path | None, names: list[str] | None) -> list[Dataset]:
    return list(folder_datasets(data, names or []) if data else sample_datasets())


def _embedder(model: str | None) -> CachedEmbedder:
    return CachedEmbedder(load_embedder(model), RESULTS / "embeddings")


@app.command()
def quality(data: Data = None, dataset: Names = None, model: Model = None) -> None:
    """Compare each arm alone with their fusion: any@10, nDCG@10 and recall."""
    from benchmarks.quality import ARMS, measure, searches

    embedder = _embedder(model)
    for each in _datasets(data, dataset):
        found, answers, documents = searches(each, embedder)
        embedder.save()
        rows = {arm: measure(each, ((q, score(f)) for q, f in found.items()), documents) for arm, score in ARMS.items()}
        rows["store.search"] = measure(each, answers.items(), documents)
        _print(f"{each.name}: {len(each.documents)} documents, {len(found)} judged queries", rows)
        _keep(f"quality-{each.name}", rows)


@app.command()
def gate(data: Data = None, dataset: Names = None, model: Model = None) -> None:
    """Measure how many questions recall answers, of a project's own and of others'."""
    from benchmarks.gate import ask, summary

    embedder = _embedder(model)
    for each in _datasets(data, dataset):
        asked = ask(each, embedder)
        embedder.save()
        rows = {"gate": summary(asked)}
        _print(f"{each.name}: {len(asked)} questions put", rows)
        _keep(f"gate-{each.name}", rows)


@app.command()
def calibrate(model: Model = None) -> None:
    """Measure a model's relevance gate on the shipped data, and write it to the package's calibration.json."""
    from dataclasses import asdict

    from benchmarks.gate import ask
    from benchmarks.gate import calibrate as fit
    from runtime_memory import relevance

    embedder = _embedder(model)
    asked = [each for dataset in sample_datasets() for each in ask(dataset, embedder)]
    embedder.save()
    fitted = fit(asked, relevance.gate_for(embedder.identity))
    path = Path(relevance.__file__).with_name("calibration.json")
    gates = json.loads(path.read_text("utf-8"))
    gates[embedder.identity] = asdict(fitted)
    path.write_text(json.dumps(gates, indent=2) + "\n", "utf-8")
    console.print(f"{embedder.identity}: base {fitted.base}, growth {fitted.growth}; written to {path}")


@app.command()
def speed(sizes: Annotated[list[int] | None, typer.Option("--size", help="Memories in the store.")] = None) -> None:
    """Time a whole prefetch against the embedding of its question alone, and a cold start."""
    from benchmarks.speed import cold_start, fill, warm_ratios

    embedder = _embedder(None)
    warm, cold = {}, {}
    for size in sizes or [1_000, 10_000]:
        with tempfile.TemporaryDirectory() as folder:
            fill(Path(folder), size, embedder).close()
            embedder.save()
            cold[f"{size:,} memories"] = cold_start(Path(folder))
            warm[f"{size:,} memories"] = warm_ratios(Path(folder), load_embedder(None))
    _print("warm, in ms", warm)
    _print("cold start", cold)
    _keep("speed", {"warm": warm, "cold": cold})


def _print(title: str, rows: dict[str, dict[str, float]]) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in next(iter(rows.values())):
        table.add_column(name, justify="right")
    for label, values in rows.items():
        table.add_row(label, *(f"{value:.4f}" for value in values.values()))
    console.print(table)


def _keep(name: str, rows: object) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(rows, indent=2), "utf-8")


if __name__ == "__main__":
    app()
