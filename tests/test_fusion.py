"""Two rankings become one, and outcomes move it within a bound that is proven here."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from indexes.fusion import Fusion, Hit, apply_outcomes, convex, fuse, reciprocal_rank

IDS = [f"m{number:02}" for number in range(30)]
ROUNDING = 1e-9
MANY = settings(max_examples=500)


def hits(low: float, high: float) -> st.SearchStrategy[list[Hit]]:
    """Return an arm's list: distinct ids, best score first."""

    def ranked(ids: list[str]) -> st.SearchStrategy[list[Hit]]:
        scores = st.lists(st.floats(low, high), min_size=len(ids), max_size=len(ids))
        return scores.map(lambda values: list(zip(ids, sorted(values, reverse=True), strict=True)))

    return st.lists(st.sampled_from(IDS), unique=True, max_size=20).flatmap(ranked)


TEXT, VECTORS = hits(0, 60), hits(-1, 1)
FUSIONS = st.builds(
    Fusion,
    k=st.floats(0, 100),
    text_weight=st.floats(0.1, 5),
    vector_weight=st.floats(0.1, 5),
    alpha=st.floats(0, 1),
    rank_share=st.floats(0, 1),
    outcome_weight=st.floats(0, 1),
)
FUSED = st.dictionaries(st.sampled_from(IDS), st.floats(0, 1), max_size=25)
OUTCOMES = st.dictionaries(st.sampled_from(IDS), st.floats(-0.999, 0.999))
POOLS = st.integers(1, 30)


@MANY
@given(TEXT, VECTORS, FUSIONS)
def test_fused_scores_are_between_0_and_1(text: list[Hit], vectors: list[Hit], fusion: Fusion) -> None:
    scores = fuse(text, vectors, fusion)
    assert scores.keys() == {id_ for id_, _ in [*text, *vectors]}
    assert all(0 <= score <= 1 + ROUNDING for score in scores.values())


@MANY
@given(TEXT, VECTORS, FUSIONS)
def test_first_in_both_lists_is_first_of_all_with_score_1(text: list[Hit], vectors: list[Hit], fusion: Fusion) -> None:
    assume(text and vectors)
    text = [(vectors[0][0], text[0][1]), *(hit for hit in text[1:] if hit[0] != vectors[0][0])]
    scores = fuse(text, vectors, fusion)
    assert scores[text[0][0]] == pytest.approx(1) == max(scores.values())


@MANY
@given(TEXT, VECTORS, FUSIONS)
def test_better_in_both_lists_is_no_worse_fused(text: list[Hit], vectors: list[Hit], fusion: Fusion) -> None:
    by_text, by_vectors = [id_ for id_, _ in text], [id_ for id_, _ in vectors]
    scores = fuse(text, vectors, fusion)
    shared = [id_ for id_ in by_text if id_ in by_vectors]
    for better in shared:
        for worse in shared[shared.index(better) + 1 :]:
            if by_vectors.index(better) < by_vectors.index(worse):
                assert scores[better] >= scores[worse] - ROUNDING


@MANY
@given(TEXT, FUSIONS)
def test_an_arm_alone_keeps_its_order(text: list[Hit], fusion: Fusion) -> None:
    scores = fuse(text, [], fusion)
    ordered = [scores[id_] for id_, _ in text]
    assert all(better >= worse - ROUNDING for better, worse in pairwise(ordered))
    assert not text or ordered[0] == pytest.approx(1)


def test_nothing_found_gives_nothing() -> None:
    assert fuse([], [], Fusion()) == {} == reciprocal_rank([], [], Fusion()) == convex([], [], Fusion())
    assert apply_outcomes({}, {"m00": 0.5}, Fusion(), pool=10) == []


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_each_arm_changes_the_order(share: float) -> None:  # A17
    text, vectors = [("a", 9.0), ("b", 3.0)], [("b", 0.9), ("a", 0.1)]
    by_text = fuse(text, vectors, Fusion(text_weight=3, alpha=0.1, rank_share=share))
    by_vectors = fuse(text, vectors, Fusion(vector_weight=3, alpha=0.9, rank_share=share))
    assert by_text["a"] > by_text["b"]
    assert by_vectors["b"] > by_vectors["a"]


def test_reciprocal_rank_is_the_published_formula() -> None:
    scores = reciprocal_rank([("a", 5.0), ("b", 4.0)], [("b", 0.9)], Fusion(k=60))
    best = 2 / 61
    assert scores == pytest.approx({"a": 1 / 61 / best, "b": (1 / 62 + 1 / 61) / best})


def test_the_convex_combination_sees_how_far_apart_scores_are() -> None:
    close = convex([("a", 10.0), ("b", 9.9)], [], Fusion())
    apart = convex([("a", 10.0), ("b", 1.0)], [], Fusion())
    assert close == pytest.approx({"a": 1, "b": 0.99})
    assert apart == pytest.approx({"a": 1, "b": 0.1})


@MANY
@given(FUSED, OUTCOMES, FUSIONS, POOLS)
def test_an_outcome_moves_a_score_by_less_than_its_weight_of_it(
    fused: dict[str, float], outcomes: dict[str, float], fusion: Fusion, pool: int
) -> None:
    for id_, score in apply_outcomes(fused, outcomes, fusion, pool=pool):
        assert abs(score - fused[id_]) <= fusion.outcome_weight * fused[id_] + ROUNDING


@MANY
@given(FUSED, OUTCOMES, FUSIONS, POOLS)
def test_a_result_far_less_relevant_never_passes_another(
    fused: dict[str, float], outcomes: dict[str, float], fusion: Fusion, pool: int
) -> None:
    place = {id_: at for at, (id_, _) in enumerate(apply_outcomes(fused, outcomes, fusion, pool=pool))}
    for one, other in ((a, b) for a in fused for b in fused):
        bound = (1 - fusion.outcome_weight) / (1 + fusion.outcome_weight) * fused[one]
        if fused[other] < bound - ROUNDING:
            assert place[one] < place[other]


@MANY
@given(FUSED, OUTCOMES, FUSIONS, POOLS)
def test_nothing_enters_or_leaves_the_pool(
    fused: dict[str, float], outcomes: dict[str, float], fusion: Fusion, pool: int
) -> None:
    before = [id_ for id_, _ in apply_outcomes(fused, {}, fusion, pool=pool)]
    after = apply_outcomes(fused, outcomes, fusion, pool=pool)
    assert {id_ for id_, _ in after[:pool]} == set(before[:pool])
    assert after[pool:] == [(id_, fused[id_]) for id_ in before[pool:]]


@MANY
@given(TEXT, VECTORS, OUTCOMES, FUSIONS, POOLS)
def test_first_in_both_lists_never_falls_below_the_pool(
    text: list[Hit], vectors: list[Hit], outcomes: dict[str, float], fusion: Fusion, pool: int
) -> None:  # A13
    first = "first"
    fused = fuse([(first, 60.0), *text], [(first, 1.0), *vectors], fusion)
    places = [id_ for id_, _ in apply_outcomes(fused, outcomes | {first: -0.999}, fusion, pool=pool)]
    # One with the same fused score to the last bit may stand before it.
    ties = sum(score >= fused[first] - ROUNDING for score in fused.values()) - 1
    assert places.index(first) < pool + ties


@MANY
@given(FUSED, OUTCOMES, FUSIONS, POOLS, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(
    fused: dict[str, float], outcomes: dict[str, float], fusion: Fusion, pool: int, shuffling: random.Random
) -> None:
    shuffled = list(fused.items())
    shuffling.shuffle(shuffled)
    expected = apply_outcomes(fused, outcomes, fusion, pool=pool)
    assert apply_outcomes(dict(shuffled), outcomes, fusion, pool=pool) == expected


def test_ties_go_to_the_more_relevant_then_to_the_newer_id() -> None:
    fusion = Fusion(outcome_weight=0.5)
    ranked = apply_outcomes({"c": 0.5, "b": 0.5, "a": 0.4}, {"a": 0.5}, fusion, pool=3)
    assert [id_ for id_, _ in ranked] == ["c", "b", "a"]
    assert len({score for _, score in ranked}) == 1


def test_success_lifts_and_failure_sinks() -> None:  # A17
    fused = {"a": 0.7, "b": 0.6, "c": 0.5}
    lifted = apply_outcomes(fused, {"c": 0.6}, Fusion(outcome_weight=0.4), pool=3)
    sunk = apply_outcomes(fused, {"a": -0.6}, Fusion(outcome_weight=0.4), pool=3)
    assert [id_ for id_, _ in lifted] == ["a", "c", "b"]
    assert [id_ for id_, _ in sunk] == ["b", "a", "c"]
