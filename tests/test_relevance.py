"""The gate of automatic recall: evidence, not rank, decides whether a question deserves any memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_memory.relevance import TEXT_GATE, Gate, coverage, gate_for, rarity

GATE = Gate(cosine_share=0.7, base=0.3, growth=0.05)
WEIGHTS = st.dictionaries(st.text(min_size=1, max_size=4), st.floats(0.01, 10), max_size=8)


@given(st.floats(-1, 1), st.floats(0, 1))
def test_relevance_is_between_0_and_1_and_grows_with_both_kinds_of_evidence(cosine: float, covered: float) -> None:
    relevance = GATE.relevance(cosine, covered)
    assert 0 <= relevance <= 1
    assert GATE.relevance(min(cosine + 0.1, 1), covered) >= relevance
    assert GATE.relevance(cosine, min(covered + 0.1, 1)) >= relevance


def test_an_unknown_or_opposite_cosine_is_no_evidence() -> None:
    assert GATE.relevance(None, 0.5) == GATE.relevance(-0.9, 0.5) == GATE.relevance(0.0, 0.5)


def test_relevance_weighs_cosine_and_coverage_as_told() -> None:
    assert GATE.relevance(1.0, 0.0) == pytest.approx(0.7)
    assert GATE.relevance(0.0, 1.0) == pytest.approx(0.3)


def test_more_memories_ask_for_more_evidence_within_bounds() -> None:
    assert GATE.threshold(60) == pytest.approx(0.3)
    assert GATE.threshold(0) == GATE.threshold(5) < GATE.threshold(10) < GATE.threshold(100) < GATE.threshold(1000)
    assert GATE.threshold(1000) == GATE.threshold(1_000_000)


def test_a_model_without_numbers_of_its_own_gets_the_default_gate() -> None:
    gate = gate_for("some-model@1")
    assert gate == gate_for("another-model@2") != TEXT_GATE
    assert 0 < gate.threshold(10) < gate.threshold(1000) < 1


def test_without_vectors_the_words_alone_decide() -> None:
    gate = gate_for(None)
    assert gate.relevance(0.99, 0.5) == pytest.approx(0.5)
    assert 0.3 < gate.threshold(10) == gate.threshold(100_000) < 0.5


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_a_rarer_term_tells_more(one: int, other: int) -> None:
    assert rarity(one, 1000) > 0
    assert (rarity(one, 1000) > rarity(other, 1000)) == (one < other)


@given(WEIGHTS, st.sets(st.text(min_size=1, max_size=4)))
def test_coverage_is_the_share_of_the_weight_that_is_held(weights: dict[str, float], terms: set[str]) -> None:
    covered = coverage(weights, terms)
    assert 0 <= covered <= 1 + 1e-9
    assert coverage(weights, terms | weights.keys()) == pytest.approx(1.0 if weights else 0.0)
    assert coverage(weights, terms - weights.keys()) == 0


def test_a_telling_term_covers_more_of_a_question_than_a_common_one() -> None:
    weights = {"rare": rarity(1, 100), "common": rarity(90, 100)}
    assert coverage(weights, {"rare"}) > 0.9 > coverage(weights, {"common"})
