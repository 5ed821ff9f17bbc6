"""Measure whether outcome feedback helps: our scoring against no feedback and other scorings, on held-out questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import track

from benchmarks import options, plots
from benchmarks.console import progress
from benchmarks.learning.arms import ARMS, NONE, OURS, Arm
from benchmarks.learning.scenario import Scenario, build, world
from benchmarks.learning.simulate import Plan, draw, oracle
from benchmarks.learning.simulate import run as simulate
from benchmarks.results import IMAGES, Report
from benchmarks.significance import compare, interval
from indexes.fusion import Fusion

__all__ = ["WEIGHTS", "Measured", "measured", "run"]

WEIGHTS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0)
"""The outcome weights that every arm may choose from."""
_RESAMPLES = 2_000
_SHOWN = (NONE, OURS, "additive, in full", "additive, shared", "counts 4.x", "frequency")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """One arm at one outcome weight: figures a question (means over seeds), before the first session and after each."""

    arm: str
    weight: float
    held_out: Floats
    first: Floats
    ahead: Floats
    untouched: Floats


def run(  # noqa: PLR0917 - a command line
    data: options.Data = None,
    dataset: options.Names = None,
    model: options.Model = None,
    limit: Annotated[int | None, typer.Option(min=10, help="So many topics of each data set, drawn at random.")] = None,
    seed: options.Seed = 7,
    seeds: Annotated[int, typer.Option(min=1, help="Simulations of each setting, whose figures are averaged.")] = 10,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions; each asks one question about every topic.")] = 12,
    noise: Annotated[list[float] | None, typer.Option(help="Share of wrong verdicts; repeat for more.")] = None,
) -> None:
    """Let sessions with noisy verdicts pass over true and wrong memories, and ask held-out questions."""
    levels = noise or [0.1, 0.2, 0.3]
    main = levels[len(levels) // 2]
    embedder, chosen = options.embedder(model), options.datasets(data, dataset)
    fusion = Fusion()
    settings = {"model": embedder.identity, "seed": seed, "seeds": seeds, "sessions": sessions, "noise": levels}
    name = "-".join(["learning", *(each.name for each in chosen)])
    report = Report(name, settings | {"outcome weight": fusion.outcome_weight}, chosen)
    kept: list[tuple[dict[str, Measured], Floats]] = []
    for each in chosen:
        scenario = build(world(each, seed, limit), embedder, fusion)
        plan = draw(scenario, seeds, sessions, noise=main)
        trained = float((plan.asked[:, 0] >= 0).sum(1).mean())
        of = f"{each.name}, {trained:.0f} topics, {plan.held_out.sum(1).mean():.0f} held-out questions a seed"
        swept = _sweep(scenario, plan, each.name, fusion.outcome_weight)
        ours, base = swept[OURS, fusion.outcome_weight], swept[NONE, 0.0]
        best = oracle(scenario)[plan.held_out.any(0)]
        same = {name: swept[name, fusion.outcome_weight if name != NONE else 0.0] for name in ARMS}
        free = {name: _chosen(swept, name, base, seed, harmless=True) for name in ARMS} | {OURS: ours, NONE: base}
        greedy = {name: _chosen(swept, name, base, seed, harmless=False) for name in ARMS} | {OURS: ours, NONE: base}
        share = f"{main:.0%} wrong verdicts"
        report.table(f"{of}, {share}, the same weight", _rows(same, ours, base, best, seed))
        report.table(f"{each.name}, {share}, the best weight without harm", _rows(free, ours, base, best, seed))
        report.table(f"{each.name}, {share}, the best weight whatever the harm", _rows(greedy, ours, base, best, seed))
        report.table(f"{each.name}, by the share of wrong verdicts", _by_noise(scenario, levels, plan, fusion, seed))
        report.table(f"{each.name}, after unjust blame", _recovery(scenario, plan, fusion.outcome_weight))
        _draw(each.name, same, main)
        kept.append((same, best))
    if len(kept) > 1:
        pooled = {name: _together([same[name] for same, _ in kept]) for name in ARMS}
        everything = np.concatenate([best for _, best in kept])
        report.table("all together, the same weight", _rows(pooled, pooled[OURS], pooled[NONE], everything, seed))
    report.save()


def measured(scenario: Scenario, arm: Arm, weight: float, plan: Plan) -> Measured:
    """Run an arm, and return its figures by question."""
    course = simulate(scenario, arm, weight, plan)
    held, untouched = plan.held_out.any(0), scenario.untouched
    return Measured(
        arm.name,
        weight,
        _means(course.reciprocal, held),
        _means(course.first, held),
        _means(course.ahead, held),
        _means(course.reciprocal, untouched),
    )


def _sweep(scenario: Scenario, plan: Plan, name: str, default: float) -> dict[tuple[str, float], Measured]:
    weights = sorted({*WEIGHTS, default})
    asked = [(arm, weight) for arm in ARMS.values() for weight in ([0.0] if arm.name == NONE else weights)]
    return {
        (arm.name, weight): measured(scenario, arm, weight, plan)
        for arm, weight in track(asked, description=f"{name}: arms and weights", console=progress)
    }


def _chosen(
    swept: Mapping[tuple[str, float], Measured], name: str, base: Measured, seed: int, *, harmless: bool
) -> Measured:
    """Return an arm at the weight that serves it best on the very questions that it is then judged by.

    With ``harmless``, among the weights at which untouched topics lose nothing beyond noise; the least weight where
    there is none.
    """
    mine = [each for (arm, _), each in sorted(swept.items()) if arm == name]
    if harmless:
        lost = compare(_last(mine, "untouched"), base.untouched[-1], seed=seed, resamples=_RESAMPLES)
        mine = [each for each, change in zip(mine, lost, strict=True) if change.high >= 0] or mine[:1]
    return max(mine, key=lambda each: float(each.held_out[-1].mean()))


def _rows(
    arms: Mapping[str, Measured], ours: Measured, base: Measured, best: Floats, seed: int
) -> dict[str, dict[str, object]]:
    others = list(arms.values())
    lead = compare(-_last(others, "held_out"), -ours.held_out[-1], seed=seed, resamples=_RESAMPLES)
    harm = compare(_last(others, "untouched"), base.untouched[-1], seed=seed, resamples=_RESAMPLES)
    rows: dict[str, dict[str, object]] = {}
    for each, ahead, lost in zip(others, lead, harm, strict=True):
        low, high = interval(each.held_out[-1], seed=seed, resamples=_RESAMPLES)
        rows[each.arm] = {
            "weight": f"{each.weight:g}",
            "held-out MRR": f"{each.held_out[-1].mean():.3f} ({low:.3f} to {high:.3f})",
            "ours minus this": "" if each is ours else _interval(ahead.difference, ahead.low, ahead.high),
            "wrong first": f"{each.first[-1].mean():.1%}",
            "wrong ahead": f"{each.ahead[-1].mean():.1%}",
            "regret": f"{(best - each.held_out.mean(0)).mean():.3f}",
            "untouched minus no feedback": "" if each is base else _interval(lost.difference, lost.low, lost.high),
        }
    return rows | {"oracle": {"held-out MRR": f"{best.mean():.3f}"}}


def _together(parts: Sequence[Measured]) -> Measured:
    """Return one arm's figures over the questions of several data sets."""
    joined = {
        what: np.concatenate([getattr(part, what) for part in parts], axis=1)
        for what in ("held_out", "first", "ahead", "untouched")
    }
    return Measured(parts[0].arm, parts[0].weight, **joined)


def _by_noise(
    scenario: Scenario, levels: Sequence[float], main: Plan, fusion: Fusion, seed: int
) -> dict[str, dict[str, object]]:
    """Return what scorings gain over no feedback, and what untouched topics lose, by the share of wrong verdicts."""
    seeds, sessions, _ = main.asked.shape
    rows: dict[str, dict[str, object]] = {}
    for level in levels:
        plan = draw(scenario, seeds, sessions, noise=level)
        base = measured(scenario, ARMS[NONE], 0.0, plan)
        row: dict[str, object] = {}
        for name in (OURS, "additive, in full", "counts 4.x"):
            each = measured(scenario, ARMS[name], fusion.outcome_weight, plan)
            for what in ("held_out", "untouched"):
                changed = compare(_last([each], what), getattr(base, what)[-1], seed=seed, resamples=_RESAMPLES)[0]
                kind = "gain" if what == "held_out" else "untouched"
                row[f"{name}: {kind}"] = _interval(changed.difference, changed.low, changed.high)
        rows[f"{level:.0%} wrong"] = row
    return rows


def _recovery(scenario: Scenario, plan: Plan, weight: float) -> dict[str, dict[str, object]]:
    """Return how a true memory that was failed unjustly comes back: sessions until it ranks as before, on average.

    A question whose right memory is not back after the last session counts with one session more.
    """
    sessions = plan.asked.shape[1]
    before = simulate(scenario, ARMS[NONE], 0.0, plan).reciprocal[0]
    rows: dict[str, dict[str, object]] = {}
    for name, arm in ARMS.items():
        if name in (NONE, "frequency"):
            continue
        row: dict[str, object] = {}
        for blame in (1, 3):
            after = simulate(scenario, arm, weight, plan, blame=blame).reciprocal
            asked = plan.held_out
            back = (after >= before)[:, asked]
            first = np.where(back.any(0), back.argmax(0), sessions + 1)
            lost = float((before - after[0])[asked].mean())
            row |= {
                f"{blame}: MRR lost": f"{lost:.3f}",
                f"{blame}: sessions": f"{first.mean():.1f}",
                f"{blame}: back after all": f"{back[-1].mean():.0%}",
            }
        rows[name] = row
    return rows


def _draw(name: str, arms: Mapping[str, Measured], noise: float) -> None:
    shown = {arm: each for arm, each in arms.items() if arm in _SHOWN}
    panels = [
        plots.Lines(title, "sessions", y, {arm: list(enumerate(map(float, values(m)))) for arm, m in shown.items()}, {})
        for title, y, values in (
            ("held-out questions", "MRR", lambda m: m.held_out.mean(1)),
            ("held-out: a wrong one first", "share", lambda m: m.first.mean(1)),
            ("untouched topics", "MRR", lambda m: m.untouched.mean(1)),
        )
    ]
    plots.curves(
        f"{name}, {noise:.0%} wrong verdicts, half of them without a name", panels, IMAGES / f"learning-{name}.png"
    )


def _means(values: Floats, chosen: NDArray[np.bool_]) -> Floats:
    """Return means over the seeds in which a question was measured: shape (sessions + 1, questions)."""
    picked = values[:, :, chosen]
    there = ~np.isnan(picked)
    return np.where(there, picked, 0.0).sum(1) / there.sum(1)


def _last(arms: Sequence[Measured], what: str) -> Floats:
    return np.stack([getattr(each, what)[-1] for each in arms])


def _interval(value: float, low: float, high: float) -> str:
    return f"{value:+.4f} ({low:+.4f} to {high:+.4f})"
