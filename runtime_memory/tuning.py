"""Look for fusion weights that suit one's own questions better, and say honestly how sure that is. Pure.

Every setting is judged on questions that it was not chosen on (five-fold cross-validation), against the weights in
use, question by question, with a bootstrap interval. What is proposed beats them beyond that interval. The questions
of a trace come from what the weights in use had recalled, which favours these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from indexes.fusion import Fusion, apply_outcomes, fuse
from runtime_memory.recall import Found

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LEAST_QUESTIONS", "Case", "Proposal", "grid", "ndcg", "propose"]

LEAST_QUESTIONS = 30
"""With fewer questions nothing is proposed: five folds of six tell nothing apart."""

_CUTOFF = 10
_FOLDS = 5
_RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Case:
    """A question: what the arms found for it, the outcome scores of that time, and what answers it (id to gain)."""

    found: Found
    outcomes: Mapping[str, float]
    gains: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What tuning came to.

    ``fusion`` is None where nothing is proposed, and ``reason`` says why. ``current`` and ``tuned`` are mean nDCG@10,
    ``tuned`` on questions that the weights were not chosen on; ``low`` and ``high`` bound their difference (95 %).
    """

    questions: int
    reason: str
    fusion: Fusion | None = None
    current: float | None = None
    tuned: float | None = None
    low: float | None = None
    high: float | None = None


def grid(current: Fusion) -> list[Fusion]:
    """Return the settings to try, those in use first."""
    tried = product((2.0, 10.0, 60.0), (0.2, 0.4, 0.6), (0.0, 0.5, 1.0), (0.2, 0.4, 0.6))
    settings = [
        replace(current, k=k, alpha=alpha, rank_share=share, outcome_weight=weight) for k, alpha, share, weight in tried
    ]
    return list(dict.fromkeys([current, *settings]))


def propose(cases: Sequence[Case], current: Fusion, *, seed: int = 0) -> Proposal:
    """Return the weights that the questions support, or why they support none."""
    import numpy as np

    if len(cases) < LEAST_QUESTIONS:
        reason = f"not enough evidence: {len(cases)} questions with an answer, at least {LEAST_QUESTIONS} are needed"
        return Proposal(questions=len(cases), reason=reason)
    settings = grid(current)
    values = np.array([[ndcg(case, setting) for case in cases] for setting in settings])
    random = np.random.default_rng(seed)
    held_out = _held_out(values, random.permutation(len(cases)) % _FOLDS)
    differences = held_out - values[0]
    draws = random.integers(0, len(cases), (_RESAMPLES, len(cases)))
    low, high = np.percentile(differences[draws].mean(axis=1), [2.5, 97.5])
    best = settings[int(values.mean(axis=1).argmax())]
    convincing = low > 0 and best != current
    return Proposal(
        questions=len(cases),
        reason="better on questions that it was not chosen on"
        if convincing
        else "not enough evidence: no weights are better than those in use beyond noise",
        fusion=best if convincing else None,
        current=float(values[0].mean()),
        tuned=float(held_out.mean()),
        low=float(low),
        high=float(high),
    )


def ndcg(case: Case, setting: Fusion) -> float:
    """Return the nDCG@10 of one question under a setting."""
    fused = fuse(case.found.text, case.found.vectors, setting)
    ranked = apply_outcomes(fused, case.outcomes, setting, pool=2 * _CUTOFF)[:_CUTOFF]
    gained = _discounted([case.gains.get(id_, 0.0) for id_, _ in ranked])
    return gained / _discounted(sorted(case.gains.values(), reverse=True)[:_CUTOFF])


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _held_out(values: NDArray[np.float64], fold: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return each question's value under the setting that is best on the questions of the other folds."""
    import numpy as np

    held_out = np.empty(values.shape[1])
    for number in range(_FOLDS):
        own = fold == number
        held_out[own] = values[int(values[:, ~own].mean(axis=1).argmax()), own]
    return held_out
