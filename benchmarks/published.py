"""Other fusions from the literature, to compare with: functions of a pool and a depth, -inf for what was not found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.sweep import Pool, scores
from indexes.fusion import Fusion

__all__ = ["FUSIONS"]

Floats = NDArray[np.float64]
Score = Callable[[Pool, int], Floats]


def text_alone(data: Pool, depth: int) -> Floats:
    """Return BM25."""
    return np.where(data.text_rank <= depth, data.text_score, -np.inf)


def vectors_alone(data: Pool, depth: int) -> Floats:
    """Return the cosine."""
    return np.where(data.vector_rank <= depth, data.vector_score, -np.inf)


def inverse_square_rank(data: Pool, depth: int) -> Floats:
    """ISR (Mourao, Martins and Magalhaes, 2015): the sum of 1 / rank squared, times the arms that found it."""
    text, vectors = data.found(depth)
    total = np.where(text, 1.0 / data.text_rank**2, 0) + np.where(vectors, 1.0 / data.vector_rank**2, 0)
    return _found(data, depth, total * (text * 1 + vectors * 1))


def comb(data: Pool, depth: int, *, mnz: bool) -> Floats:
    """CombSUM and CombMNZ (Fox and Shaw, 1994) of scores scaled to [0, 1] over each list."""
    text, vectors = data.found(depth)
    total = _min_max(data.text_score, text) + _min_max(data.vector_score, vectors)
    return _found(data, depth, total * (text * 1 + vectors * 1) if mnz else total)


def rank_biased_centroid(data: Pool, depth: int, *, persistence: float) -> Floats:
    """RBC (Bailey, Moffat, Scholer and Thomas, SIGIR 2017): the sum of persistence to the power of rank - 1."""
    text, vectors = data.found(depth)
    powers = [np.where(at, persistence ** (np.minimum(ranks, depth) - 1.0), 0) for at, ranks in _ranks(data, depth)]
    return np.where(text | vectors, sum(powers), -np.inf)


def borda(data: Pool, depth: int) -> Floats:
    """Borda count (Aslam and Montague, SIGIR 2001): points by place; what an arm lacks shares the points left."""
    text, vectors = data.found(depth)
    size = (text | vectors).sum(1, keepdims=True)
    total = np.zeros(text.shape)
    for at, ranks in _ranks(data, depth):
        listed = at.sum(1, keepdims=True)
        # The places after the list have 1 to size - listed points: their mean.
        total += np.where(at, size - ranks + 1.0, (size - listed + 1) / 2)
    return _found(data, depth, total)


def standardised(data: Pool, depth: int) -> Floats:
    """Return the sum of z-scores over each list, the least of a list where an arm lacks a memory (Renda, 2003)."""
    total = np.zeros(data.text_rank.shape)
    for values, at in zip((data.text_score, data.vector_score), data.found(depth), strict=True):
        count = np.maximum(at.sum(1, keepdims=True), 1)
        mean = np.where(at, values, 0).sum(1, keepdims=True) / count
        spread = np.sqrt((np.where(at, values - mean, 0) ** 2).sum(1, keepdims=True) / count)
        z = np.where(at, values - mean, 0) / np.where(spread > 0, spread, 1)
        total += np.where(at, z, np.where(at, z, 0).min(1, keepdims=True))
    return _found(data, depth, total)


def theoretical(data: Pool, depth: int, *, alpha: float) -> Floats:
    """TM2C2 (Bruch, Gai and Ingber, 2023): a convex combination scaled from the least possible score."""
    total = np.zeros(data.text_rank.shape)
    parts = ((data.text_score, 0.0, 1 - alpha), (data.vector_score, -1.0, alpha))
    for (values, low, share), at in zip(parts, data.found(depth), strict=True):
        best = np.where(at, values, -np.inf).max(1, keepdims=True)
        span = np.where(np.isfinite(best) & (best > low), best - low, 1)
        total += share * np.where(at, (values - low) / span, 0)
    return _found(data, depth, total)


def ours(data: Pool, depth: int, **settings: float) -> Floats:
    """Return the project's own fusion with some settings changed."""
    return scores(data, Fusion(depth=depth, **settings))  # type: ignore[arg-type]


FUSIONS: Mapping[str, Score] = {
    "text alone (BM25)": text_alone,
    "vectors alone": vectors_alone,
    "RRF, k = 60": partial(ours, k=60.0, rank_share=1.0, text_weight=1.0, vector_weight=1.0),
    "RRF, k = 10": partial(ours, k=10.0, rank_share=1.0, text_weight=1.0, vector_weight=1.0),
    "convex, 0.4 cosine": partial(ours, alpha=0.4, rank_share=0.0),
    "mean of these two": partial(ours, k=10.0, alpha=0.4, rank_share=0.5, text_weight=1.0, vector_weight=1.0),
    "convex from theoretical minima, 0.8 cosine": partial(theoretical, alpha=0.8),
    "CombSUM": partial(comb, mnz=False),
    "CombMNZ": partial(comb, mnz=True),
    "sum of z-scores": standardised,
    "ISR": inverse_square_rank,
    "RBC, 0.9": partial(rank_biased_centroid, persistence=0.9),
    "Borda": borda,
}


def _ranks(data: Pool, depth: int) -> list[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    return [(ranks <= depth, ranks) for ranks in (data.text_rank, data.vector_rank)]


def _min_max(values: Floats, found: NDArray[np.bool_]) -> Floats:
    best = np.where(found, values, -np.inf).max(1, keepdims=True)
    least = np.where(found, values, np.inf).min(1, keepdims=True)
    span = np.where(np.isfinite(best), best - least, 0)
    return np.where(found, np.where(span > 0, (values - least) / np.where(span > 0, span, 1), 1), 0)


def _found(data: Pool, depth: int, total: Floats) -> Floats:
    text, vectors = data.found(depth)
    return np.where(text | vectors, total, -np.inf)
