"""Merge the ranking by text and the ranking by vectors into one, and let outcomes move it within a bound.

Both fusions are pure functions with scores in [0, 1]: reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR
2009), which trusts ranks alone, and the convex combination of scaled scores (Bruch, Gai and Ingber, ACM TOIS 2023),
which also sees how far apart they are. The default is a quarter of the first and three quarters of the second: of the
settings measured it is the one that is best on average and worse on no set of data by more than noise (see
docs/benchmarks.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Fusion", "Hit", "apply_outcomes", "convex", "fuse", "reciprocal_rank"]

Hit = tuple[str, float]
"""An id with its arm's own score, in an arm's list best first: BM25, or a cosine."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """How two rankings become one.

    ``rank_share`` blends the fusions: 1 is reciprocal rank alone, 0 the convex combination alone. ``k`` damps the
    lead of first ranks. ``text_weight`` and ``vector_weight`` weigh the arms by rank; ``alpha`` is the share of the
    cosine in the convex combination. ``outcome_weight`` is the share of its score by which an outcome score of 1 moves
    a result.
    """

    k: float = 2.0
    text_weight: float = 1.0
    vector_weight: float = 1.0
    alpha: float = 0.4
    rank_share: float = 0.25
    outcome_weight: float = 0.3
    depth: int = 100


def fuse(text: Sequence[Hit], vectors: Sequence[Hit], fusion: Fusion) -> dict[str, float]:
    """Return a score in [0, 1] for every id of either list; 1 is the best of both."""
    by_rank = reciprocal_rank(text, vectors, fusion)
    by_score = convex(text, vectors, fusion)
    share = fusion.rank_share
    return {id_: share * by_rank[id_] + (1 - share) * by_score[id_] for id_ in by_rank}


def reciprocal_rank(text: Sequence[Hit], vectors: Sequence[Hit], fusion: Fusion) -> dict[str, float]:
    """Return the weighted sum of 1 / (k + rank), scaled so that first in every arm that answered is 1."""
    arms = [(hits, weight) for hits, weight in ((text, fusion.text_weight), (vectors, fusion.vector_weight)) if hits]
    best = sum(weight for _, weight in arms) / (fusion.k + 1)
    scores: dict[str, float] = {}
    for hits, weight in arms:
        for rank, (id_, _) in enumerate(hits, start=1):
            scores[id_] = scores.get(id_, 0.0) + weight / (fusion.k + rank) / (best or 1.0)
    return scores


def convex(text: Sequence[Hit], vectors: Sequence[Hit], fusion: Fusion) -> dict[str, float]:
    """Return alpha times the cosine plus 1 - alpha times BM25, each scaled to [0, 1] over its list.

    BM25 is scaled by its best score, as its least is 0; the cosine between the least and the greatest in the list.
    An arm that found nothing leaves its share to the other.
    """
    alpha = fusion.alpha if text and vectors else float(bool(vectors))
    scores: dict[str, float] = {}
    for hits, share, low in ((text, 1 - alpha, 0.0), (vectors, alpha, _least(vectors))):
        span = hits[0][1] - low if hits else 0.0
        for id_, score in hits:
            scores[id_] = scores.get(id_, 0.0) + share * ((score - low) / span if span > 0 else 1.0)
    return scores


def apply_outcomes(
    fused: Mapping[str, float], outcomes: Mapping[str, float], fusion: Fusion, *, pool: int
) -> list[Hit]:
    """Return the ids with their final scores, best first; outcomes reorder the ``pool`` most relevant ones only.

    An outcome moves a result by a share of its relevance: what is hardly relevant is not lifted past what is, however
    well it did elsewhere. Bound: an outcome score in (-1, 1) moves a result by less than ``outcome_weight`` (w) times
    its fused score. Of two results, one whose fused score is below (1 - w) / (1 + w) of the other's never passes it;
    nothing from outside the pool enters it, so that the most relevant result never falls below rank ``pool``. Ties go
    to the more relevant, then to the greater id: ids that sort by time put the newer first.
    """
    ranked = sorted(fused.items(), key=lambda hit: (hit[1], hit[0]), reverse=True)
    head = [(id_, score * (1 + fusion.outcome_weight * outcomes.get(id_, 0.0))) for id_, score in ranked[:pool]]
    head.sort(key=lambda hit: (hit[1], fused[hit[0]], hit[0]), reverse=True)
    return head + ranked[pool:]


def _least(hits: Sequence[Hit]) -> float:
    return min((score for _, score in hits), default=math.inf)
