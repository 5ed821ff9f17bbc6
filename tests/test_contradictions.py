"""Of memories that contradict each other, the record of outcomes decides which comes first; else the newer does."""

from __future__ import annotations

import pytest

from runtime_memory import MemoryStore, Outcome
from runtime_memory.recall import contradict
from tests.conftest import Clock, contents

OLD = "the staging database of the shop listens on port 5433"
NEW = "the staging database of the shop listens on port 6432"
QUESTION = "on which port does the staging database listen"
NAMING = "does the staging database of the shop listen on port 6432"


@pytest.fixture
def pair(wide_store: MemoryStore, clock: Clock) -> tuple[str, str]:
    old = wide_store.add(OLD)
    clock.advance(days=1)
    return old.id, wide_store.add(NEW).id


def test_without_a_record_the_newer_comes_first(wide_store: MemoryStore, pair: tuple[str, str]) -> None:
    assert pair
    assert contents(wide_store.search(QUESTION)) == [NEW, OLD]


@pytest.mark.parametrize("question", [QUESTION, NAMING])
def test_one_failure_puts_the_newer_behind_even_where_it_matches_better(
    wide_store: MemoryStore, pair: tuple[str, str], question: str
) -> None:
    wide_store.record_outcome([pair[1]], Outcome.FAILED)
    assert contents(wide_store.search(question)) == [OLD, NEW]


def test_one_success_puts_the_older_first(wide_store: MemoryStore, pair: tuple[str, str]) -> None:
    wide_store.record_outcome([pair[0]], Outcome.WORKED)
    assert contents(wide_store.search(NAMING)) == [OLD, NEW]


def test_a_verdict_that_named_nothing_does_not_decide(wide_store: MemoryStore, pair: tuple[str, str]) -> None:
    wide_store.record_outcome([pair[0]], Outcome.WORKED, weight=1 / 16)
    assert contents(wide_store.search(QUESTION)) == [NEW, OLD]


def test_what_became_of_a_memory_decides_nothing_between_others(wide_store: MemoryStore, pair: tuple[str, str]) -> None:
    other = wide_store.add("the greenhouse pump has a port of its own for the hose")
    for _ in range(8):
        wide_store.record_outcome([other.id], Outcome.WORKED)
    assert contents(wide_store.search(QUESTION))[:2] == [NEW, OLD]
    assert pair


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [(OLD, NEW, True), (OLD, OLD, False), (OLD, "the staging database of the shop is small", False), ("", "", False)],
)
def test_texts_contradict_when_they_share_most_terms_and_not_all(one: str, other: str, expected: bool) -> None:
    assert contradict(one, other) is contradict(other, one) is expected
