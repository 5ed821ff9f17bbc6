"""Rank what the two arms found, and decide what automatic recall leaves out. Pure: the store does the searching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from indexes.analysis import analyze
from indexes.fusion import Fusion, Hit, apply_outcomes, fuse
from runtime_memory.models import Memory, SearchMode, SearchResult
from runtime_memory.outcomes import FAILING_SCORE
from runtime_memory.relevance import Gate, coverage, latin_share
from runtime_memory.suspicion import suspicion

__all__ = [
    "RECORD_MARGIN",
    "SUSPECT_PENALTY",
    "Found",
    "admit",
    "contradict",
    "near_duplicates",
    "newer_first",
    "rank",
    "results",
]

SUSPECT_PENALTY = 0.4
"""What a memory that reads like an instruction loses of its score: it falls behind every other one that is found with a
score less than this below its own, and behind no other."""

_DUPLICATE_OVERLAP = 0.8
_REPLACED = 2
_SAME_SUBJECT = 0.7
RECORD_MARGIN = 0.1
"""How much better an outcome score must be to decide between memories that contradict each other: less than a full
report makes, more than a few that named no memory."""
_SAME_BM25 = 0.01
_SAME_COSINE = 0.2
_NEGATIONS = frozenset(
    """
    no not never none nor neither without cannot arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt mustnt
    shouldnt wasnt werent wont wouldnt kein keine keinen nicht nie ohne ne pas jamais sans non mai senza nao nem sem
    nunca sin ni niet geen zonder bez не нет ни без никогда нельзя नहीं मत لا ليس لم لن בלי לא değil yok
    """.split()
)
_NEGATING = frozenset("不没沒無无未非别別勿안못않없ไม่ぬず")


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
    """Return ranked ids as results with their reasons, best first; ids without a memory are left out.

    A memory that reads like an instruction, or whose found passage does, loses ``SUSPECT_PENALTY``; the others keep
    their order.
    """
    text = {id_: (place, score) for place, (id_, score) in enumerate(found.text, start=1)}
    vectors = {id_: (place, cosine) for place, (id_, cosine) in enumerate(found.vectors, start=1)}
    latin = latin_share(found.query)
    listed = []
    for id_, score in ranked:
        if id_ not in memories:
            continue
        text_rank, bm25 = text.get(id_, (None, None))
        vector_rank, cosine = vectors.get(id_, (None, None))
        covered = coverage(found.weights, _terms(memories[id_].content))
        suspect = suspicion(memories[id_].content) or suspicion(passages.get(id_, ""))
        penalty = -SUSPECT_PENALTY if suspect else 0.0
        listed.append(
            SearchResult(
                memory=memories[id_],
                score=score + penalty,
                fused=fused[id_],
                outcome_term=score - fused[id_],
                vector_rank=vector_rank,
                text_rank=text_rank,
                cosine=cosine,
                bm25=bm25,
                coverage=covered,
                relevance=gate.relevance(cosine, covered, latin),
                passage=passages.get(id_),
                suspect=suspect,
                suspect_term=penalty,
            )
        )
    if any(result.suspect for result in listed):
        listed.sort(key=lambda result: result.score, reverse=True)
    return listed


def admit(
    listed: Sequence[SearchResult], threshold: float, gate: Gate, limit: int, min_score: float = 0.0
) -> list[SearchResult]:
    """Return the results with the reason why automatic recall drops them, where it does."""
    best = max((result.relevance for result in listed), default=0.0)
    judged: list[SearchResult] = []
    kept: list[SearchResult] = []
    for result in listed:
        reason = _reason(result, best, threshold, gate, kept)
        if result.fused < min_score:
            reason = f"fused score {result.fused:.2f} is below the floor of {min_score:.2f}"
        if reason is None and len(kept) >= limit:
            reason = f"beyond the limit of {limit}"
        if reason is None:
            kept.append(result)
        judged.append(result if reason is None else replace(result, dropped=reason))
    return judged


def near_duplicates(one: str, other: str) -> bool:
    """Tell whether two texts say the same: one has all the terms of the other, in their order, and few more.

    A term in the place of another, a number or a negation makes it another fact, however much the rest agrees.
    """
    short, long = sorted((_sequence(one), _sequence(other)), key=len)
    if len(short) < _DUPLICATE_OVERLAP * len(long):
        return False
    rest = iter(long)
    extra: list[str] = []
    for term in short:
        for passed in rest:
            if passed == term:
                break
            extra.append(passed)
        else:
            return False
    return not any(_changes_meaning(term) for term in (*extra, *rest))


def newer_first(listed: Sequence[SearchResult]) -> list[SearchResult]:
    """Return results with the better of two contradicting memories before the other: by record, else the newer.

    Memories that say nearly the same contradict each other: which colour, which port, whose name. What became of them
    tells which is right, and says nothing about other memories: so the record that is better by ``RECORD_MARGIN`` goes
    first, however far the scores are apart. Of records that are alike, the newer goes first where the two differ in a
    word or two and match the query equally. One that reads like an instruction passes no other.
    """
    ordered = list(listed)
    for place, result in enumerate(ordered):
        for later in range(place + 1, len(ordered)):
            if _goes_before(ordered[later], result):
                ordered.insert(place, ordered.pop(later))
                result = ordered[place]  # noqa: PLW2901 - the place has a new tenant
    return ordered


def contradict(one: str, other: str) -> bool:
    """Tell whether two texts are near enough in their terms that at most one of them is to be believed."""
    terms, others = _terms(one), _terms(other)
    return terms != others and len(terms & others) >= _SAME_SUBJECT * max(len(terms), len(others))


def _goes_before(later: SearchResult, earlier: SearchResult) -> bool:
    better = later.memory.outcome_score - earlier.memory.outcome_score
    if better < -RECORD_MARGIN or later.suspect_term < earlier.suspect_term:
        return False
    if better >= RECORD_MARGIN and contradict(later.memory.content, earlier.memory.content):
        return True
    return _corrects(later, earlier)


def _corrects(newer: SearchResult, older: SearchResult) -> bool:
    if newer.memory.created_at <= older.memory.created_at:
        return False
    if abs((newer.bm25 or 0.0) - (older.bm25 or 0.0)) > _SAME_BM25 * (older.bm25 or 1.0):
        return False
    if abs((newer.cosine or 0.0) - (older.cosine or 0.0)) > _SAME_COSINE:
        return False
    terms, others = _terms(newer.memory.content), _terms(older.memory.content)
    replaced, replacing = len(others - terms), len(terms - others)
    return max(replaced, replacing) <= _REPLACED and len(terms & others) > max(replaced, replacing)


def _changes_meaning(term: str) -> bool:
    return term in _NEGATIONS or any(character.isdigit() or character in _NEGATING for character in term)


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
def _sequence(content: str) -> tuple[str, ...]:
    return tuple(analyze(content))


@lru_cache(maxsize=4096)
def _terms(content: str) -> frozenset[str]:
    return frozenset(_sequence(content))
