"""Evaluate many fusions on the same candidates: pure NumPy, and the same scores as ``indexes.fusion`` gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.candidates import DEEPEST, Candidates
from benchmarks.metrics import CUTOFF, measures
from indexes.fusion import Fusion

__all__ = ["ALPHAS", "DEPTHS", "KS", "SHARES", "WEIGHTS", "Pool", "pool", "scores", "sweep", "text_weighed"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

KS = (2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0)
WEIGHTS = (0.6, 0.8, 1.0, 1.2, 1.4)
"""The text's weight by rank; the vectors have the rest of 2."""
ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
DEPTHS = (50, 100, 200)
_ABSENT = 10**6


@dataclass(frozen=True)
class Pool:
    """The union of both arms' lists, one row a query; of equal scores the column to the left stands first.

    Ranks count from 1 and are ``_ABSENT`` where an arm did not find a memory. The pairs are the relevant memories that
    were found: query (row), column and grade.
    """

    text_rank: Ints
    text_score: Floats
    vector_rank: Ints
    vector_score: Floats
    vector_lists: Floats
    memory: Ints
    pairs: Ints
    ideal: Floats

    @cached_property
    def vector_counts(self) -> Ints:
        """Return how many memories the vectors found for each query."""
        found: Ints = (self.vector_rank < _ABSENT).sum(1)
        return found

    def found(self, depth: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tell which cells each arm found, within a depth."""
        return self.text_rank <= depth, self.vector_rank <= depth

    def ranks(self, scored: Floats) -> Ints:
        """Return the rank that scores give to the memory of each pair, counted from 1."""
        rows, columns = self.pairs[:, 0], self.pairs[:, 1]
        others, own = scored[rows], scored[rows, columns][:, None]
        before = np.arange(scored.shape[1]) < columns[:, None]
        ranks: Ints = 1 + (others > own).sum(1) + ((others == own) & before).sum(1)
        return np.where(own[:, 0] == -np.inf, _ABSENT, ranks)

    def evaluate(self, scored: Floats) -> dict[str, Floats]:
        """Return every measure of every query, of scores that are -inf where nothing was found."""
        ranks = self.ranks(scored)
        shown = ranks <= CUTOFF
        gains = np.zeros((len(scored), CUTOFF))
        gains[self.pairs[shown, 0], ranks[shown] - 1] = self.pairs[shown, 2]
        return measures(gains, self.ideal)


def pool(candidates: Candidates) -> Pool:
    """Lay candidates out; a later memory stands to the left, as it wins a tie."""
    members = [
        np.unique(np.concatenate([text[text >= 0], vectors[vectors >= 0]]))[::-1]
        for text, vectors in zip(candidates.text, candidates.vectors, strict=True)
    ]
    shape = len(members), max((len(each) for each in members), default=1) or 1
    memory = np.full(shape, -1)
    ranks = [np.full(shape, _ABSENT) for _ in range(2)]
    scored = [np.zeros(shape) for _ in range(2)]
    lists = ((candidates.text, candidates.text_scores), (candidates.vectors, candidates.vector_scores))
    pairs: list[tuple[int, int, int]] = []
    ideal = np.zeros((shape[0], max(CUTOFF, *(len(grades) for grades in candidates.qrels))))
    for row, each in enumerate(members):
        memory[row, : len(each)] = each
        column = {int(number): place for place, number in enumerate(each)}
        for arm, (ids, values) in enumerate(lists):
            count = int((ids[row] >= 0).sum())
            places = [column[int(number)] for number in ids[row, :count]]
            ranks[arm][row, places] = np.arange(1, count + 1)
            scored[arm][row, places] = values[row, :count]
        grades = candidates.qrels[row]
        pairs += [(row, column[number], grade) for number, grade in grades.items() if number in column]
        ideal[row, : len(grades)] = sorted(grades.values(), reverse=True)
    return Pool(
        ranks[0],
        scored[0],
        ranks[1],
        scored[1],
        candidates.vector_scores,
        memory,
        np.array(pairs, np.int64).reshape(-1, 3),
        ideal,
    )


def scores(data: Pool, fusion: Fusion) -> Floats:
    """Return what ``indexes.fusion.fuse`` gives, for every query at once; -inf for what was not found."""
    share, text, vectors = fusion.rank_share, *data.found(fusion.depth)
    total = np.zeros(text.shape)
    if share > 0:
        total += share * by_rank(data, fusion.k, fusion.text_weight, fusion.vector_weight, fusion.depth)
    if share < 1:
        total += (1 - share) * by_score(data, fusion.alpha, fusion.depth)
    return np.where(text | vectors, total, -np.inf)


def by_rank(data: Pool, k: float, text_weight: float, vector_weight: float, depth: int) -> Floats:
    """Return reciprocal rank fusion."""
    total, best = np.zeros(data.text_rank.shape), np.zeros((len(data.text_rank), 1))
    for ranks, weight in ((data.text_rank, text_weight), (data.vector_rank, vector_weight)):
        found = ranks <= depth
        total += np.where(found, weight / (k + ranks), 0.0)
        best += found.any(1, keepdims=True) * weight / (k + 1)
    return total / np.where(best > 0, best, 1)


def by_score(data: Pool, alpha: float, depth: int) -> Floats:
    """Return the convex combination."""
    text, vectors = data.found(depth)
    some_text, some_vectors = text.any(1, keepdims=True), vectors.any(1, keepdims=True)
    share = np.where(some_text & some_vectors, alpha, some_vectors.astype(float))
    low = np.where(some_vectors, data.vector_lists[np.arange(len(text)), _last(data, depth)][:, None], 0.0)
    by_text = _scaled(data.text_score, text, 0.0)
    by_vectors = _scaled(data.vector_score, vectors, low)
    return (1 - share) * by_text + share * by_vectors


def _last(data: Pool, depth: int) -> Ints:
    """Return where the vectors' list of each query ends, within a depth."""
    return np.maximum(np.minimum(data.vector_counts, min(depth, DEEPEST)) - 1, 0)


def _scaled(values: Floats, found: NDArray[np.bool_], low: Floats | float) -> Floats:
    best = np.where(found, values, -np.inf).max(1, keepdims=True)
    span = np.where(np.isfinite(best), best - low, 0.0)
    scaled = np.where(span > 0, (values - low) / np.where(span > 0, span, 1), 1.0)
    return np.where(found, scaled, 0.0)


def text_weighed(fusion: Fusion, weight: float) -> Fusion:
    """Return a fusion with this weight on the text's ranks and the rest of 2 on the vectors'."""
    return replace(fusion, text_weight=weight, vector_weight=round(2 - weight, 3))


def sweep(data: Pool, depths: Sequence[int] = DEPTHS) -> Iterator[tuple[Fusion, dict[str, Floats]]]:
    """Evaluate every distinct setting; each part of a score is worked out once.

    k and arm weights say nothing where ranks have no share, and alpha nothing where scores have none.
    """
    for depth in depths:
        text, vectors = data.found(depth)
        nothing = np.where(text | vectors, 0.0, -np.inf)
        convex = {alpha: by_score(data, alpha, depth) for alpha in ALPHAS}
        for alpha in ALPHAS:
            yield Fusion(alpha=alpha, rank_share=0.0, depth=depth), data.evaluate(nothing + convex[alpha])
        for k, weight in product(KS, WEIGHTS):
            fusion = text_weighed(Fusion(k=k, depth=depth), weight)
            ranked = by_rank(data, k, fusion.text_weight, fusion.vector_weight, depth)
            yield replace(fusion, rank_share=1.0), data.evaluate(nothing + ranked)
            for alpha, share in product(ALPHAS, SHARES[1:-1]):
                blend = nothing + share * ranked + (1 - share) * convex[alpha]
                yield replace(fusion, alpha=alpha, rank_share=share), data.evaluate(blend)
