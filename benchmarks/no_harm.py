"""Measure what the outcomes of other topics' memories cost a question, by the weight that outcomes have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.candidates import Candidates
from benchmarks.significance import compare
from benchmarks.sweep import Pool, scores
from indexes.fusion import Fusion

__all__ = ["OUTCOME_WEIGHTS", "moved", "no_harm"]

Floats = NDArray[np.float64]

OUTCOME_WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7)
_SCORE = 3 / 7
"""The outcome score of three full verdicts of one kind."""
_LIMIT = 10


def no_harm(data: Pool, candidates: Candidates, seed: int) -> dict[str, dict[str, object]]:
    """Return what half of the questions lose when the memories that answer the other half have a good record.

    Those memories got three ``worked`` each, unless they answer a question of the first half too: nothing is known
    about the memories that are wanted, so that every change is for the worse or by chance.
    """
    random = np.random.default_rng(seed)
    untouched = random.random(len(candidates.queries)) < 0.5
    own = {memory for row in np.flatnonzero(untouched) for memory in candidates.qrels[row]}
    praised = {memory for row in np.flatnonzero(~untouched) for memory in candidates.qrels[row]} - own
    base = scores(data, Fusion())
    outcomes = np.where(np.isin(data.memory, list(praised)), _SCORE, 0.0)
    before = data.evaluate(base)["nDCG@10"][untouched]
    after = [data.evaluate(moved(base, outcomes, weight))["nDCG@10"][untouched] for weight in OUTCOME_WEIGHTS]
    compared = compare(np.stack(after), before, seed=seed)
    rows: dict[str, dict[str, object]] = {"no outcomes": {"nDCG@10": float(before.mean())}}
    for weight, values, each in zip(OUTCOME_WEIGHTS, after, compared, strict=True):
        rows[f"outcome weight {weight}"] = {
            "nDCG@10": float(values.mean()),
            "difference": f"{each.difference:+.4f} ({each.low:+.4f} to {each.high:+.4f})",
            "p": each.p,
        }
    return rows


def moved(base: Floats, outcomes: Floats, weight: float, limit: int = _LIMIT) -> Floats:
    """Return scores that order as ``apply_outcomes`` does: outcomes move the 2 * limit best, and nothing else."""
    if base.shape[1] <= 2 * limit:
        return base * (1 + weight * outcomes)
    order = np.argsort(-base, axis=1, kind="stable")
    head = np.zeros(base.shape, bool)
    np.put_along_axis(head, order[:, : 2 * limit], values=True, axis=1)
    # The pool stays above the rest, however far outcomes sink it.
    return np.where(head, base * (1 + weight * outcomes) + 10, base)
