"""Evaluate a run of any system against judgements, both in TREC's form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import ir_measures
import typer

from benchmarks.results import Report

__all__ = ["evaluate", "run"]

_MEASURES = ["Success@5", "Success@10", "nDCG@5", "nDCG@10", "R@5", "R@10"]


def run(
    run: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="Lines of: query Q0 document rank score tag.")],
    qrels: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="Lines of: query 0 document grade.")],
    measure: Annotated[list[str] | None, typer.Option(help="As ir-measures names it; repeat for more.")] = None,
) -> None:
    """Evaluate a TREC run against TREC judgements; the standard measures unless others are named."""
    report = Report("evaluate", {"run": run.name, "qrels": qrels.name})
    report.table(run.name, {run.stem: evaluate(run, qrels, measure or _MEASURES)})
    report.save()


def evaluate(run: Path, qrels: Path, measures: list[str]) -> dict[str, float]:
    """Return the mean measures of a run; a judged query without results counts as 0."""
    parsed = [ir_measures.parse_measure(name) for name in measures]
    values = ir_measures.calc_aggregate(
        parsed, ir_measures.read_trec_qrels(str(qrels)), ir_measures.read_trec_run(str(run))
    )
    return {str(measure): float(values[measure]) for measure in parsed}
