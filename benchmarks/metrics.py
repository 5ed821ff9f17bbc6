"""The measures of a ranking by NumPy, for sweeps of thousands of settings; equal to those of ir-measures.

LongMemEval's own: its recall_all and ndcg_any (see its ``src/retrieval/eval_utils.py``), whose discount leaves the
second rank at full worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["CUTOFF", "MEASURES", "measures", "official"]

Floats = NDArray[np.float64]

CUTOFF = 10
MEASURES = ("any@5", "any@10", "nDCG@5", "nDCG@10", "R@5", "R@10")


def measures(gains: Floats, ideal: Floats) -> dict[str, Floats]:
    """Return each measure of every query.

    Args:
        gains: the grades of what stands at ranks 1 to CUTOFF, shape (queries, CUTOFF).
        ideal: the grades of all that is relevant, greatest first and 0 beyond, shape (queries, at least CUTOFF).
    """
    discount = 1 / np.log2(np.arange(2, CUTOFF + 2))
    relevant = np.maximum((ideal > 0).sum(1), 1)
    values: dict[str, Floats] = {}
    for cut in (5, 10):
        hits = gains[:, :cut] > 0
        best = ideal[:, :cut] @ discount[:cut]
        values[f"any@{cut}"] = hits.any(1).astype(float)
        values[f"nDCG@{cut}"] = gains[:, :cut] @ discount[:cut] / np.where(best > 0, best, 1)
        values[f"R@{cut}"] = hits.sum(1) / relevant
    return {name: values[name] for name in MEASURES}


def official(ranking: Sequence[str], relevant: Mapping[str, int] | set[str]) -> dict[str, float]:
    """Return LongMemEval's recall_all and ndcg_any at 5 and 10 of one ranking, whose items are distinct."""
    values: dict[str, float] = {}
    for cut in (5, 10):
        top = ranking[:cut]
        gains = np.array([item in relevant for item in top], float)
        values[f"recall_all@{cut}"] = float(set(relevant) <= set(top))
        values[f"ndcg_any@{cut}"] = _worth(gains) / _worth(np.ones(min(cut, len(relevant))))
    return values


def _worth(gains: Floats) -> float:
    """Return the discounted gain as LongMemEval has it: ranks 1 and 2 in full, then 1 / log2(rank)."""
    ranks = np.arange(1, len(gains) + 1)
    return float(gains @ (1 / np.log2(np.maximum(ranks, 2))))
