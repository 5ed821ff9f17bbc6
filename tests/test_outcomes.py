"""Reports of what worked become a score that saturates, fades, and counts nothing but reports."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_memory import MemoryStore, Outcome
from runtime_memory.errors import InvalidInputError, MemoryNotFoundError
from runtime_memory.outcomes import (
    FAILING_SCORE,
    HALF_LIFE_DAYS,
    NO_EVIDENCE,
    Evidence,
    OutcomeEvent,
    fold,
    outcome_score,
)
from tests.conftest import Clock, OpenStore, ranking

START = datetime(2026, 1, 1, tzinfo=UTC)


def moments(first_year: int, last_year: int) -> st.SearchStrategy[datetime]:
    first, last = (datetime(year, 1, 1, tzinfo=UTC).replace(tzinfo=None) for year in (first_year, last_year))
    return st.datetimes(first, last, timezones=st.just(UTC))


EVENTS = st.lists(
    st.builds(
        OutcomeEvent,
        memory_id=st.sampled_from(["a", "b"]),
        outcome=st.sampled_from(Outcome),
        weight=st.floats(0.01, 1),
        at=moments(2024, 2027),
    ),
    max_size=30,
)


def score_of(*outcomes: Outcome, weight: float = 1.0, days_later: int = 0) -> float:
    events = [OutcomeEvent("m", outcome, weight, START) for outcome in outcomes]
    return outcome_score(fold(events, {}).get("m", NO_EVIDENCE), START + timedelta(days=days_later))


@pytest.mark.parametrize(
    ("outcome", "change"), [(Outcome.WORKED, 0.2), (Outcome.PARTIAL, 0.05), (Outcome.FAILED, -0.3)]
)
def test_the_first_report_moves_a_fresh_memory_by(outcome: Outcome, change: float) -> None:
    assert score_of(outcome) == pytest.approx(change)


def test_no_report_is_no_score() -> None:
    assert score_of() == 0 == outcome_score(NO_EVIDENCE, START)


def test_three_failures_keep_a_memory_out_of_recall_and_two_do_not() -> None:
    assert score_of(*[Outcome.FAILED] * 3) <= FAILING_SCORE < score_of(*[Outcome.FAILED] * 2)


@pytest.mark.parametrize("outcome", Outcome)
def test_each_further_report_moves_the_score_less_and_none_is_lost(outcome: Outcome) -> None:
    scores = [score_of(*[outcome] * count) for count in range(40)]
    steps = [abs(after - before) for before, after in pairwise(scores)]
    assert all(later < earlier for earlier, later in pairwise(steps))
    assert min(steps) > 0


def test_success_and_failure_of_the_same_strength_do_not_cancel_to_trust() -> None:
    assert score_of(Outcome.WORKED, Outcome.FAILED) < 0


def test_weaker_evidence_moves_the_score_less() -> None:
    assert 0 < score_of(Outcome.WORKED, weight=1 / 16) < score_of(Outcome.WORKED)
    assert 0 > score_of(Outcome.FAILED, weight=1 / 16) > score_of(Outcome.FAILED)


@pytest.mark.parametrize("halvings", [1, 2, 5])
def test_evidence_halves_every_90_days(halvings: int) -> None:
    worked = 8 / 2**halvings
    assert HALF_LIFE_DAYS == 90
    assert score_of(*[Outcome.WORKED] * 8, days_later=90 * halvings) == pytest.approx(worked / (worked + 4))


def test_a_failing_memory_comes_back_when_its_failures_have_faded() -> None:
    assert score_of(*[Outcome.FAILED] * 3, days_later=60) > FAILING_SCORE


def test_a_score_stays_the_same_over_a_day() -> None:
    evidence = fold([OutcomeEvent("m", Outcome.WORKED, 1.0, START)], {})["m"]
    morning = START + timedelta(days=10)
    assert outcome_score(evidence, morning) == outcome_score(evidence, morning + timedelta(hours=23, minutes=59))


def test_a_clock_that_runs_behind_the_reports_does_not_inflate_them() -> None:
    assert score_of(Outcome.WORKED, days_later=-400) == pytest.approx(0.2)


@given(EVENTS, moments(2024, 2029))
def test_scores_stay_between_minus_1_and_1(events: list[OutcomeEvent], now: datetime) -> None:
    assert all(-1 < outcome_score(evidence, now) < 1 for evidence in fold(events, {}).values())


@given(EVENTS, st.randoms(use_true_random=False))
def test_the_order_of_reports_does_not_matter(events: list[OutcomeEvent], shuffling: random.Random) -> None:
    shuffled = list(events)
    shuffling.shuffle(shuffled)
    ordered, other = fold(events, {}), fold(shuffled, {})
    assert ordered.keys() == other.keys()
    for id_, evidence in ordered.items():
        assert_same(evidence, other[id_])


@given(EVENTS, st.integers(0, 30))
def test_reports_may_be_folded_in_portions(events: list[OutcomeEvent], cut: int) -> None:
    whole, portions = fold(events, {}), fold(events[cut:], fold(events[:cut], {}))
    for id_, evidence in whole.items():
        assert_same(evidence, portions[id_])


def assert_same(one: Evidence, other: Evidence) -> None:
    assert (one.uses, one.day) == (other.uses, other.day)
    assert one.worked == pytest.approx(other.worked)
    assert one.failed == pytest.approx(other.failed)


def test_folding_leaves_the_evidence_it_was_given_alone() -> None:
    before = fold([OutcomeEvent("m", Outcome.WORKED, 1.0, START)], {})
    kept = dict(before)
    fold([OutcomeEvent("m", Outcome.FAILED, 1.0, START)], before)
    assert before == kept


def test_a_report_returns_the_memory_with_its_new_score(store: MemoryStore) -> None:
    memory = store.add("run the migrations before the seeds")
    (worked,) = store.record_outcome([memory.id], Outcome.WORKED)
    assert worked.outcome_score == pytest.approx(0.2)
    assert worked.uses == 1
    (failed,) = store.record_outcome([memory.id], "failed")
    assert failed == store.get(memory.id)
    assert failed.outcome_score == pytest.approx((1 - 12 / 7) / (1 + 12 / 7 + 4))


def test_reports_outlive_the_store_that_took_them_and_its_compaction(store: MemoryStore, open_store: OpenStore) -> None:
    memory = store.add("the build needs node 20")
    for _ in range(3):
        store.record_outcome([memory.id], Outcome.WORKED)
    store.optimize()
    store.record_outcome([memory.id], Outcome.WORKED)
    assert store.get(memory.id).uses == open_store().get(memory.id).uses == 4
    assert open_store().get(memory.id).outcome_score == pytest.approx(0.5)


def test_an_id_named_twice_in_one_report_is_credited_once(store: MemoryStore) -> None:
    memory = store.add("the build needs node 20")
    store.record_outcome([memory.id, memory.id], Outcome.WORKED)
    assert store.get(memory.id).uses == 1


def test_a_report_with_an_unknown_id_records_nothing(store: MemoryStore) -> None:
    memory = store.add("the build needs node 20")
    with pytest.raises(MemoryNotFoundError, match="no-such-memory"):
        store.record_outcome([memory.id, "no-such-memory"], Outcome.WORKED)
    assert store.get(memory.id).uses == 0


def test_a_report_about_nothing_records_nothing(store: MemoryStore) -> None:
    assert store.record_outcome([], Outcome.WORKED) == []


@pytest.mark.parametrize("weight", [0, -0.1, 1.01, float("nan"), float("inf")])
def test_a_weight_outside_its_range_is_refused(store: MemoryStore, weight: float) -> None:
    memory = store.add("the build needs node 20")
    with pytest.raises(InvalidInputError, match="weight"):
        store.record_outcome([memory.id], Outcome.WORKED, weight=weight)
    assert store.get(memory.id).uses == 0


def test_stored_reports_fade_with_the_clock(store: MemoryStore, clock: Clock) -> None:
    memory = store.add("the build needs node 20")
    store.record_outcome([memory.id], Outcome.WORKED)
    clock.advance(days=90)
    assert store.get(memory.id).outcome_score == pytest.approx(0.5 / 4.5)


def test_being_recalled_a_thousand_times_changes_neither_score_nor_rank(wide_store: MemoryStore) -> None:  # A14
    kept, failed = wide_store.add("the staging port is 5433"), wide_store.add("the staging port is 6000 now")
    wide_store.record_outcome([failed.id], Outcome.FAILED)
    question = "which port has staging"
    before = ranking(wide_store.recall(question))
    for _ in range(1000):
        wide_store.recall(question)
    assert ranking(wide_store.recall(question)) == before
    assert [id_ for id_, _, _ in before] == [kept.id, failed.id]
    assert wide_store.get(failed.id).outcome_score == pytest.approx(-0.3)
    assert wide_store.stats().total_uses == 1


def test_an_edit_keeps_what_a_memory_has_proven(store: MemoryStore) -> None:
    memory = store.add("the build needs node 18")
    store.record_outcome([memory.id], Outcome.WORKED)
    edited = store.edit(memory.id, content="the build needs node 20")
    assert (edited.id, edited.uses) == (memory.id, 1)
    assert edited.outcome_score == pytest.approx(0.2)
