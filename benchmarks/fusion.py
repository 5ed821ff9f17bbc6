"""Compare fusions: every setting on every data set, what is noise, and how a choice does on data it has not seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import track

from benchmarks import options, plots
from benchmarks.candidates import collect
from benchmarks.console import progress
from benchmarks.datasets import Dataset
from benchmarks.no_harm import no_harm
from benchmarks.published import FUSIONS
from benchmarks.results import IMAGES, Report
from benchmarks.significance import Compared, compare, interval
from benchmarks.sweep import ALPHAS, DEPTHS, KS, SHARES, WEIGHTS, Pool, pool, scores, sweep, text_weighed
from indexes.fusion import Fusion

__all__ = ["OBJECTIVE", "SHIPPED", "Swept", "best", "combined", "heats", "held_out", "run", "swept"]

Floats = NDArray[np.float64]

OBJECTIVE = ("any@10", "nDCG@10")
"""What a setting is chosen by: the mean of the two."""
_OUTCOMES = "outcome_weight"
SHIPPED = Fusion()


@dataclass(frozen=True)
class Swept:
    """A data set's objective for every setting and query, shape (settings, queries), and the default's, (queries,)."""

    name: str
    family: str
    settings: tuple[Fusion, ...]
    values: Floats
    default: Floats

    @property
    def means(self) -> Floats:
        """Return the objective of each setting."""
        means: Floats = self.values.mean(1)
        return means

    def row(self, fusion: Fusion) -> int | None:
        """Return where a setting stands; None where the grid has not got it."""
        fusion = _normal(fusion)
        return self.settings.index(fusion) if fusion in self.settings else None


def run(
    data: options.Data = None,
    dataset: options.Names = None,
    model: options.Model = None,
    limit: options.Limit = None,
    seed: options.Seed = 7,
    *,
    images: Annotated[Path, typer.Option(help="Where the plots go.")] = IMAGES,
) -> None:
    """Sweep RRF's k, arm weights, depth, alpha and their blend; plots, intervals, tests, and held-out data sets."""
    embedder, chosen = options.embedder(model), options.datasets(data, dataset, limit, seed)
    settings = {"model": embedder.identity, "limit": limit, "seed": seed, "default": asdict(SHIPPED)}
    report = Report("fusion", settings, chosen)
    measured: list[Swept] = []
    published: list[Swept] = []
    for each in chosen:
        candidates = collect(each, embedder, options.CANDIDATES)
        laid_out = pool(candidates)
        report.table(f"{each.name}: fusions against the default", _published(laid_out, seed))
        published.append(_published_swept(each, laid_out))
        grid = swept(each.name, each.family, laid_out)
        measured.append(grid)
        compared = compare(grid.values, grid.default, seed=seed)
        title = f"{each.name}: mean of any@10 and nDCG@10 (red: the default; •: differs from it by more than noise)"
        plots.heat_maps(title, heats(grid, compared), images / f"fusion-{each.name}.png")
        report.table(f"{each.name}: best of the grid", _best_rows(grid, compared))
        report.table(f"{each.name}: outcomes on other topics, by outcome weight", no_harm(laid_out, candidates, seed))
        report.details[f"grid of {each.name}"] = _listed(grid, compared)
    if len({each.family for each in measured}) > 1:
        report.table("chosen on the other data sets, measured on the one held out", held_out(measured, seed))
        report.table("best over all data sets", _overall(measured, seed))
        report.table("fusions over all data sets, each family counted once", _together(published, seed))
    report.save()


def swept(name: str, family: str, data: Pool) -> Swept:
    """Evaluate the grid on a data set."""
    total = len(DEPTHS) * (len(ALPHAS) + len(KS) * len(WEIGHTS) * (1 + len(ALPHAS) * (len(SHARES) - 2)))
    rows = [
        (_normal(fusion), _objective(values))
        for fusion, values in track(sweep(data), description=f"sweep {name}", total=total, console=progress)
    ]
    settings, values = zip(*rows, strict=True)
    return Swept(name, family, settings, np.stack(values), _objective(data.evaluate(scores(data, SHIPPED))))


def best(measured: Sequence[Swept], without: str | None = None) -> int:
    """Return the setting with the best mean objective over families, one of them left out."""
    families: dict[str, list[Floats]] = {}
    for each in measured:
        if each.family != without:
            families.setdefault(each.family, []).append(each.means)
    return int(np.argmax(np.mean([np.mean(means, axis=0) for means in families.values()], axis=0)))


def held_out(measured: Sequence[Swept], seed: int) -> dict[str, dict[str, object]]:
    """Return, for each data set, how the setting chosen without its family does on it, and how the default does."""
    rows: dict[str, dict[str, object]] = {}
    for each in measured:
        chosen = best(measured, without=each.family)
        compared = compare(each.values[[chosen]], each.default, seed=seed)[0]
        rows[each.name] = {
            "chosen": _named(each.settings[chosen]),
            "of the chosen": float(each.means[chosen]),
            "of the default": float(each.default.mean()),
            "best possible": float(each.means.max()),
            "chosen - default": _difference(compared),
            "p": compared.p,
        }
    return rows


def _published(data: Pool, seed: int) -> dict[str, dict[str, object]]:
    """Return every fusion's measures, with the interval of its objective and its difference from the default."""
    default = data.evaluate(scores(data, SHIPPED))
    measured = {name: data.evaluate(score(data, SHIPPED.depth)) for name, score in FUSIONS.items()}
    differences = compare(np.stack([_objective(each) for each in measured.values()]), _objective(default), seed=seed)
    rows: dict[str, dict[str, object]] = {}
    for (name, values), compared in zip(measured.items(), differences, strict=True):
        rows[name] = _row(values, seed) | {"- default": _difference(compared), "p": compared.p, "real": _real(compared)}
    return rows | {"default": _row(default, seed)}


def _published_swept(dataset: Dataset, data: Pool) -> Swept:
    """Return the published fusions as settings of a sweep."""
    values = np.stack([_objective(data.evaluate(score(data, SHIPPED.depth))) for score in FUSIONS.values()])
    default = _objective(data.evaluate(scores(data, SHIPPED)))
    return Swept(dataset.name, dataset.family, (SHIPPED,) * len(FUSIONS), values, default)


def combined(measured: Sequence[Swept]) -> tuple[Floats, Floats]:
    """Return the values of all data sets side by side, so weighted that their mean is that over families."""
    sets = Counter(each.family for each in measured)
    total = sum(len(each.default) for each in measured)
    weights = [total / (len(sets) * sets[each.family] * len(each.default)) for each in measured]
    values = [each.values * weight for each, weight in zip(measured, weights, strict=True)]
    default = [each.default * weight for each, weight in zip(measured, weights, strict=True)]
    return np.concatenate(values, axis=1), np.concatenate(default)


def _together(measured: Sequence[Swept], seed: int) -> dict[str, dict[str, object]]:
    values, default = combined(measured)
    rows: dict[str, dict[str, object]] = {}
    for name, mean, each in zip(FUSIONS, values.mean(1), compare(values, default, seed=seed), strict=True):
        row = {"mean": float(mean), "- default": _difference(each), "p": each.p, "real": _real(each)}
        rows[name] = row
    return rows | {"default": {"mean": float(default.mean())}}


def _row(values: Mapping[str, Floats], seed: int) -> dict[str, object]:
    low, high = interval(_objective(values), seed=seed)
    means = {name: float(each.mean()) for name, each in values.items() if not name.startswith("R@5")}
    return {**means, "mean of any@10, nDCG@10": f"{low:.3f} to {high:.3f}"}


def _best_rows(grid: Swept, compared: Sequence[Compared]) -> dict[str, dict[str, object]]:
    rows: dict[str, dict[str, object]] = {}
    for place in np.argsort(-grid.means, kind="stable")[:5]:
        rows[_named(grid.settings[place])] = {
            "mean": float(grid.means[place]),
            "- default": _difference(compared[place]),
            "p": compared[place].p,
            "p over the grid": compared[place].adjusted,
        }
    return rows | {"default": {"mean": float(grid.default.mean())}}


def _overall(measured: Sequence[Swept], seed: int) -> dict[str, dict[str, object]]:
    """Return the best settings over all families beside the default, data set by data set."""
    families: dict[str, list[Floats]] = {}
    for each in measured:
        families.setdefault(each.family, []).append(each.means)
    overall = np.mean([np.mean(means, axis=0) for means in families.values()], axis=0)
    rows: dict[str, dict[str, object]] = {}
    for place in np.argsort(-overall, kind="stable")[:5]:
        row: dict[str, object] = {"mean": float(overall[place])}
        for each in measured:
            compared = compare(each.values[[place]], each.default, seed=seed)[0]
            row[each.name] = f"{_difference(compared)}, p {compared.p:.3f}"
        rows[_named(measured[0].settings[place])] = row
    defaults: dict[str, list[float]] = {}
    for each in measured:
        defaults.setdefault(each.family, []).append(float(each.default.mean()))
    return rows | {"default": {"mean": float(np.mean([np.mean(means) for means in defaults.values()]))}}


def heats(grid: Swept, compared: Sequence[Compared]) -> list[plots.Heat]:
    """Return heat maps around the default: two settings vary in each, and the others stay at the default."""

    def heat(title: str, rows: tuple[str, Sequence[float]], columns: tuple[str, Sequence[float]]) -> plots.Heat:
        settings = [[_changed(SHIPPED, {rows[0]: row, columns[0]: column}) for column in columns[1]] for row in rows[1]]
        places = np.array([[grid.row(each) for each in line] for line in settings])
        marked = [
            (row, column) for row, line in enumerate(settings) for column, each in enumerate(line) if each == SHIPPED
        ]
        return plots.Heat(
            title,
            rows[1],
            columns[1],
            _LABELS[rows[0]],
            _LABELS[columns[0]],
            grid.means[places],
            marked[0] if marked else None,
            np.vectorize(lambda place: compared[place].real)(places),
        )

    return [
        heat("reciprocal rank", ("k", KS), ("text_weight", WEIGHTS)),
        heat("blend", ("rank_share", SHARES), ("alpha", ALPHAS)),
        heat("depth", ("depth", DEPTHS), ("rank_share", SHARES)),
    ]


_LABELS = {
    "k": "k",
    "text_weight": "weight of the text's ranks (of 2)",
    "alpha": "alpha: share of the cosine",
    "rank_share": "share of reciprocal rank",
    "depth": "candidates of each arm",
}


def _changed(fusion: Fusion, values: Mapping[str, float]) -> Fusion:
    others = {name: value for name, value in values.items() if name != "text_weight"}
    fusion = replace(fusion, **others)  # type: ignore[arg-type]
    return text_weighed(fusion, values["text_weight"]) if "text_weight" in values else fusion


def _normal(fusion: Fusion) -> Fusion:
    """Return a setting with those values at their defaults that cannot tell: without ranks, or without scores."""
    fusion = replace(fusion, outcome_weight=SHIPPED.outcome_weight)
    if fusion.rank_share == 0:
        fusion = replace(fusion, k=SHIPPED.k, text_weight=1.0, vector_weight=1.0)
    return replace(fusion, alpha=SHIPPED.alpha) if fusion.rank_share == 1 else fusion


def _objective(values: Mapping[str, Floats]) -> Floats:
    objective: Floats = np.mean([values[name] for name in OBJECTIVE], axis=0)
    return objective


def _listed(grid: Swept, compared: Sequence[Compared]) -> list[dict[str, object]]:
    kept = []
    for fusion, mean, each in zip(grid.settings, grid.means, compared, strict=True):
        values = {name: value for name, value in asdict(fusion).items() if name != _OUTCOMES}
        kept.append(values | {"mean": round(float(mean), 5)} | {k: round(v, 5) for k, v in asdict(each).items()})
    return kept


def _named(fusion: Fusion) -> str:
    ranks = f"k {fusion.k:g}, text {fusion.text_weight:g} : {fusion.vector_weight:g}"
    share = f"{fusion.rank_share:g} of ranks"
    parts = {0.0: [f"alpha {fusion.alpha:g}"], 1.0: [ranks]}.get(fusion.rank_share, [ranks, f"alpha {fusion.alpha:g}"])
    return ", ".join([*parts, share, f"depth {fusion.depth}"])


def _difference(compared: Compared) -> str:
    return f"{compared.difference:+.4f} ({compared.low:+.4f} to {compared.high:+.4f})"


def _real(compared: Compared) -> str:
    return "noise" if not compared.real else "better" if compared.difference > 0 else "worse"
