"""Rank what the two arms found, and decide what automatic recall leaves out. Pure: the store does the searching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from indexes.analysis import analyze
from indexes.fusion import Fusion, Hit, apply_outcomes, fuse
from runtime_memory.models import Memory, SearchMode, SearchResult
from runtime_memory.outcomes import FAILING_SCORE
from runtime_memory.relevance import Gate, coverage

__all__ = ["Found", "admit", "near_duplicates", "rank", "results"]

_DUPLICATE_OVERLAP = 0.8
_NEGATIONS = frozenset({"no", "not", "never", "none", "dont", "nor", "without", "cannot", "kein", "nicht", "ne", "pas"})


@dataclass(frozen=True, slots=True)
class Found:
    """What the arms found for a query, before any fusion.

    ``parts`` says which passage of a memory the vectors found. ``weights`` are the query's content terms with their
    rarity among the memories seen, of which there are ``memories``.
    """

    query: str
    mode: SearchMode
    text: Sequence[Hit]
    vectors: Sequence[Hit]
    parts: Mapping[str, int]
    weights: Mapping[str, float]
    memories: int


def rank(found: Found, outcomes: Mapping[str, float], fusion: Fusion, limit: int) -> tuple[dict[str, float], list[Hit]]:
    """Return the fused score of every id found, and the ids with their final scores, best first."""
    fused = fuse(found.text, found.vectors, fusion)
    return fused, apply_outcomes(fused, outcomes, fusion, pool=2 * limit)


def results(
    found: Found,
    ranked: Sequence[Hit],
    fused: Mapping[str, float],
    memories: Mapping[str, Memory],
    *,
    passages: Mapping[str, str],
    gate: Gate,
) -> list[SearchResult]:
    """Return ranked ids as results with their reasons; ids without a memory are left out."""
    text = {id_: (place, score) for place, (id_, score) in enumerate(found.text, start=1)}
    vectors = {id_: (place, cosine) for place, (id_, cosine) in enumerate(found.vectors, start=1)}
    listed = []
    for id_, score in ranked:
        if id_ not in memories:
            continue
        text_rank, bm25 = text.get(id_, (None, None))
        vector_rank, cosine = vectors.get(id_, (None, None))
        covered = coverage(found.weights, _terms(memories[id_].content))
        listed.append(
            SearchResult(
                memory=memories[id_],
                score=score,
                fused=fused[id_],
                outcome_term=score - fused[id_],
                vector_rank=vector_rank,
                text_rank=text_rank,
                cosine=cosine,
                bm25=bm25,
                coverage=covered,
                relevance=gate.relevance(cosine, covered),
                passage=passages.get(id_),
            )
        )
    return listed


def admit(listed: Sequence[SearchResult], threshold: float, gate: Gate, limit: int) -> list[SearchResult]:
    """Return the results with the reason why automatic recall drops them, where it does."""
    best = max((result.relevance for result in listed), default=0.0)
    judged: list[SearchResult] = []
    kept: list[SearchResult] = []
    for result in listed:
        reason = _reason(result, best, threshold, gate, kept)
        if reason is None and len(kept) >= limit:
            reason = f"beyond the limit of {limit}"
        if reason is None:
            kept.append(result)
        judged.append(result if reason is None else replace(result, dropped=reason))
    return judged


def near_duplicates(one: str, other: str) -> bool:
    """Tell whether two texts say the same: nearly the same terms, and no number or negation that differs."""
    terms, others = _terms(one), _terms(other)
    shared, differing = len(terms & others), terms ^ others
    if shared < _DUPLICATE_OVERLAP * (shared + len(differing)):
        return False
    return not any(term in _NEGATIONS or any(map(str.isdigit, term)) for term in differing)


def _reason(
    result: SearchResult, best: float, threshold: float, gate: Gate, kept: Sequence[SearchResult]
) -> str | None:
    if best < threshold:
        return f"nothing here answers the question: relevance {best:.2f} of at least {threshold:.2f}"
    if result.relevance < gate.follow * threshold:
        return f"relevance {result.relevance:.2f} is below {gate.follow * threshold:.2f}"
    if result.memory.outcome_score <= FAILING_SCORE:
        return f"it kept failing: outcome score {result.memory.outcome_score:.2f}"
    for other in kept:
        if near_duplicates(result.memory.content, other.memory.content):
            return f"says the same as {other.memory.id}"
    return None


@lru_cache(maxsize=4096)
def _terms(content: str) -> frozenset[str]:
    return frozenset(analyze(content))
