"""What the commands share: their options, and the data and the model that those name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.datasets import Dataset, folder_datasets, sample_datasets, sampled
from benchmarks.embedding_cache import CachedEmbedder
from benchmarks.results import FOLDER
from runtime_memory.embedding import load_embedder

__all__ = ["CANDIDATES", "Data", "Limit", "Model", "Names", "Seed", "datasets", "embedder"]

CANDIDATES = FOLDER / "candidates"

Data = Annotated[
    Path | None, typer.Option(help="A file or folder with test sets that are known; the shipped sample without it.")
]
Names = Annotated[list[str] | None, typer.Option("--dataset", help="A data set of that path; repeat for more.")]
Model = Annotated[str | None, typer.Option(help="A model's name or path; the default model without it.")]
Limit = Annotated[
    list[str] | None,
    typer.Option(help="So many queries of each data set, drawn at random; FAMILY=N for those of one family; repeat."),
]
Seed = Annotated[int, typer.Option(help="Of everything that is drawn at random.")]


def datasets(
    data: Path | None, names: Sequence[str] | None, limit: Sequence[str] | None = None, seed: int = 7
) -> list[Dataset]:
    """Return the data sets at a path, or those that ship with the project; these by name beside a path too."""
    limits = dict(_limit(each) for each in limit or ())
    shipped = [name for name in names or () if name.startswith("sample-")] if data else names
    chosen = _shipped(shipped) if shipped or not data else []
    others = [name for name in names or () if name not in (shipped or ())]
    if data and (others or not chosen):
        chosen += folder_datasets(data, others)
    return [sampled(each, limits.get(each.family, limits.get("")), seed) for each in chosen]


def embedder(model: str | None) -> CachedEmbedder:
    """Return a model's embedder that keeps what it embeds."""
    return CachedEmbedder(load_embedder(model), FOLDER / "embeddings")


def _limit(value: str) -> tuple[str, int]:
    """Return the family that a limit is for, "" for all, and the limit."""
    family, _, number = value.rpartition("=")
    if not number.isdecimal() or int(number) < 1:
        raise typer.BadParameter(f"--limit is a number from 1 on, or FAMILY=N, not {value!r}")
    return family, int(number)


def _shipped(names: Sequence[str] | None) -> list[Dataset]:
    shipped = {each.name: each for each in sample_datasets()}
    if unknown := set(names or ()) - shipped.keys():
        raise typer.BadParameter(
            f"{sorted(unknown)} do not ship with the project; it has {sorted(shipped)}. Add --data."
        )
    return [shipped[name] for name in names or shipped]
