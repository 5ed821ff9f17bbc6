"""Who is credited with an outcome: the memories that are named, or those of this turn, once and for less."""

from __future__ import annotations

import pytest

from provider import RuntimeMemoryProvider
from provider.conversation import UNATTRIBUTED_WEIGHT
from tests.provider.conftest import PORT, PORT_QUESTION, Begin, Stored, call, remember

USER = "The staging database user is called heron"
TURN = f"{PORT_QUESTION} And what is the staging database user called?"


@pytest.fixture
def one(begin: Begin) -> RuntimeMemoryProvider:
    return begin()


def scores(stored: Stored) -> dict[str, float]:
    return {memory.id: round(memory.outcome_score, 3) for memory in stored()}


def worked(one: RuntimeMemoryProvider, *ids: str) -> list[str]:
    """Report success, and return the ids that were credited."""
    answer = call(one, "outcome", {"outcome": "worked", "memory_ids": list(ids)})
    return [updated["id"] for updated in answer.get("updated", [])]


def share(count: int) -> float:
    """Return the score of a fresh memory that was one of so many in a turn that worked."""
    weight = UNATTRIBUTED_WEIGHT / count
    return round(weight / (weight + 4), 3)


def test_named_memories_are_credited_in_full(one: RuntimeMemoryProvider, stored: Stored) -> None:
    a, b, c = remember(one), remember(one, USER), remember(one, "lunch is at noon")
    assert worked(one, a, b) == [a, b]
    assert scores(stored) == {a: 0.2, b: 0.2, c: 0.0}


def test_a_verdict_that_names_none_is_shared_among_the_turn(one: RuntimeMemoryProvider, stored: Stored) -> None:
    a, b, c = remember(one), remember(one, USER), remember(one, "lunch is at noon")
    block = one.prefetch(TURN)
    assert (a in block, b in block, c in block) == (True, True, False)
    assert set(worked(one)) == {a, b}
    assert scores(stored) == {a: share(2), b: share(2), c: 0.0}


def test_the_turn_is_credited_once(one: RuntimeMemoryProvider, stored: Stored) -> None:  # A16
    a = remember(one)
    one.prefetch(PORT_QUESTION)
    assert worked(one) == [a]
    answer = call(one, "outcome", {"outcome": "worked"})
    assert (answer["recorded"], "name the memory_ids" in answer["reason"]) == (False, True)
    assert scores(stored) == {a: share(1)}


def test_a_second_verdict_credits_what_was_shown_since(one: RuntimeMemoryProvider) -> None:  # A16
    a = remember(one)
    one.prefetch(PORT_QUESTION)
    assert worked(one) == [a]
    b = remember(one, USER)
    call(one, "recall", {"query": TURN})
    assert worked(one) == [b]


def test_a_named_memory_takes_no_share_of_a_later_verdict(one: RuntimeMemoryProvider, stored: Stored) -> None:
    a, b = remember(one), remember(one, USER)
    one.prefetch(TURN)
    worked(one, a)
    assert worked(one) == [b]
    assert scores(stored) == {a: 0.2, b: share(1)}


def test_what_the_recall_tool_found_counts_as_recalled(one: RuntimeMemoryProvider, stored: Stored) -> None:
    a = remember(one)
    one.prefetch("thanks!")
    call(one, "recall", {"query": "staging port"})
    assert worked(one) == [a]
    assert scores(stored) == {a: share(1)}


def test_a_new_turn_forgets_what_the_last_one_recalled(one: RuntimeMemoryProvider) -> None:
    remember(one)
    one.prefetch(PORT_QUESTION)
    one.on_turn_start(2, "thanks!")
    assert worked(one) == []
    one.prefetch(PORT_QUESTION)
    one.prefetch("thanks!")
    assert worked(one) == []


def test_a_new_session_forgets_what_the_last_one_recalled(one: RuntimeMemoryProvider) -> None:
    remember(one)
    one.prefetch(PORT_QUESTION)
    one.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
    assert one.recall_status() is None
    assert worked(one) == []


def test_a_compression_in_the_middle_of_a_turn_keeps_its_recall(one: RuntimeMemoryProvider) -> None:
    a = remember(one)
    one.prefetch(PORT_QUESTION)
    one.on_session_switch("s2", parent_session_id="s1", reason="compression")
    assert worked(one) == [a]


def test_being_retrieved_is_no_evidence(one: RuntimeMemoryProvider, stored: Stored) -> None:  # A14
    a = remember(one)
    call(one, "outcome", {"outcome": "failed", "memory_ids": a})
    before = stored()
    for _ in range(50):
        assert PORT in one.prefetch(PORT_QUESTION)
        call(one, "recall", {"query": "staging port"})
        call(one, "stats")
    assert stored() == before
    assert before[0].outcome_score == pytest.approx(-0.3)


def test_an_outcome_reaches_the_next_block(one: RuntimeMemoryProvider, begin: Begin) -> None:
    a = remember(one)
    worked(one, a)
    assert f"{PORT} (has worked before) `{a}`" in begin("s2").prefetch(PORT_QUESTION)


def test_a_late_recall_is_not_taken_for_shown(one: RuntimeMemoryProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(one)
    one._deadline._seconds = 0.0
    assert one.prefetch(PORT_QUESTION) == ""
    stuck = one._deadline._stuck
    assert stuck is not None
    stuck.join(10)
    assert not stuck.is_alive()
    assert one.recall_status() is None
    assert worked(one) == []
