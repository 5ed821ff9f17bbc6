"""Tuning: weights are proposed only where one's own questions support them beyond noise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from indexes.fusion import Fusion
from runtime_memory import MemoryStore, NewMemory
from runtime_memory.cli import app
from runtime_memory.errors import InvalidInputError
from runtime_memory.judgements import Judged, from_questions, from_trace, gather
from runtime_memory.models import SearchMode
from runtime_memory.recall import Found
from runtime_memory.tuning import LEAST_QUESTIONS, Case, grid, ndcg, propose
from tests.conftest import Clock, OpenStore

START = datetime(2026, 3, 1, tzinfo=UTC)


def case(text: Sequence[str], vectors: Sequence[str], *relevant: str) -> Case:
    """Return a question whose arms rank these ids."""
    lists = [[(id_, 1.0 - 0.45 * place) for place, id_ in enumerate(ids)] for ids in (text, vectors)]
    found = Found("q", SearchMode.HYBRID, lists[0], lists[1], {}, {}, 9)
    return Case(found, {}, dict.fromkeys(relevant, 1.0))


def test_few_questions_are_not_enough_evidence() -> None:
    proposal = propose([case("ab", "ba", "a")] * (LEAST_QUESTIONS - 1), Fusion())
    assert proposal.fusion is None
    assert "not enough evidence" in proposal.reason


def test_weights_that_the_questions_support_are_proposed_with_their_interval() -> None:
    # The right one is first by vectors and third by words: more than a fifth for the cosine finds it.
    cases = [case("xya", "a", "a")] * 60
    proposal = propose(cases, replace(Fusion(), alpha=0.2, rank_share=0.0))
    assert proposal.fusion is not None
    assert (proposal.fusion.alpha, proposal.fusion.rank_share) > (0.2, 0.0)
    assert proposal.low is not None
    assert proposal.low > 0
    assert proposal.tuned == pytest.approx(1.0)


def test_noise_is_not_taken_for_evidence() -> None:
    cases = [case("ab", "ba", "a"), case("ab", "ba", "b")] * 30
    proposal = propose(cases, Fusion())
    assert proposal.fusion is None
    assert "beyond noise" in proposal.reason


def test_the_weights_in_use_are_among_those_tried() -> None:
    odd = replace(Fusion(), k=7.0)
    assert grid(odd)[0] == odd
    assert len(set(grid(odd))) == len(grid(odd))


def test_ndcg_is_that_of_the_textbook() -> None:
    assert ndcg(case("ab", "ab", "a"), Fusion()) == pytest.approx(1.0)
    assert ndcg(case("ab", "ab", "b"), Fusion()) == pytest.approx(0.6309, abs=1e-4)


def line(event: str, turn: str, **fields: object) -> str:
    return json.dumps({"ts": "2026-03-01T12:00:00Z", "event": event, "turn_id": turn, **fields})


def test_a_trace_tells_which_memories_answered() -> None:
    lines = [
        line("recall", "1", query="which port?", project="shop", retrieved=[]),
        line("outcome", "1", outcome="worked", memory_ids=["a"], origin="tool"),
        line("outcome", "1", outcome="failed", memory_ids=["b"], origin="tool"),
        line("recall", "2", query="which colour?", project=None, retrieved=[]),
        line("outcome", "2", outcome="worked", memory_ids=["c"], origin="auto"),
        line("recall", "3", query="which day?", project=None, retrieved=[]),
        line("outcome", "3", outcome="failed", memory_ids=["d"], origin="tool"),
        "no json",
        "[]",
    ]
    assert from_trace(lines) == [
        Judged("which port?", {"a": 1.0, "b": 0.0}, "shop", datetime(2026, 3, 1, 12, tzinfo=UTC))
    ]


def test_a_bad_line_of_a_questions_file_is_named() -> None:
    assert from_questions(['{"query": "q", "ids": ["a"]}', ""]) == [Judged("q", {"a": 1.0})]
    for bad in ("{", '{"query": "q"}', '{"query": "q", "ids": []}', '{"query": 1, "ids": ["a"]}'):
        with pytest.raises(InvalidInputError, match="line 2"):
            from_questions(['{"query": "q", "ids": ["a"]}', bad])


def test_a_verdict_does_not_foretell_itself(store: MemoryStore, clock: Clock) -> None:
    memory = store.add("the port is 5433")
    asked = clock()
    clock.advance(hours=1)
    store.record_outcome([memory.id], "worked")
    before, after = gather(
        store,
        [Judged("port", {memory.id: 1.0}, at=asked), Judged("port", {memory.id: 1.0})],
        clock.now.replace(year=2027),
    )
    assert before.outcomes == {}
    assert after.outcomes[memory.id] > 0


def test_questions_whose_memories_are_gone_are_left_out(store: MemoryStore, clock: Clock) -> None:
    memory = store.add("the port is 5433")
    store.forget(memory.id)
    assert gather(store, [Judged("port", {memory.id: 1.0})], clock()) == []


def test_a_store_goes_by_the_weights_that_it_was_tuned_to(open_store: OpenStore) -> None:
    one, other = open_store(), open_store()
    one.add_many([NewMemory("the port is 5433"), NewMemory("the harbour has one port")])
    before = [hit.score for hit in other.search("port harbour")]
    one.tune_to(Fusion(k=60.0, rank_share=1.0))
    assert [hit.score for hit in other.search("port harbour")] != before
    one.tune_to(None)
    assert [hit.score for hit in other.search("port harbour")] == before


def test_the_command_says_so_when_there_is_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_EMBEDDING", "null")
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"query": "which port?", "ids": ["none"]}\n')
    run = CliRunner().invoke(app, ["tune", "--questions", str(questions), "--db", str(tmp_path / "db"), "--apply"])
    assert run.exit_code == 0
    assert "Not enough evidence" in run.stderr
