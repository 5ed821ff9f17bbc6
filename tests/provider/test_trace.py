"""The trace: what was recalled and whether it helped, joined by the turn."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runtime_memory import MemoryStore
from tests.provider.conftest import PORT, PORT_QUESTION, Begin, call, remember

JOINED = {"ts", "event", "turn_id", "session_id"}
FIELDS = {
    "recall": JOINED | {"query", "project", "latency_ms", "search_mode", "retrieved"},
    "write": JOINED | {"kind", "memory_ids", "count"},
    "outcome": JOINED | {"outcome", "memory_ids", "weight", "origin"},
    "error": JOINED | {"kind", "message"},
}
RETRIEVED = {"memory_id", "category", "score", "vector_rank", "text_rank", "outcome_score"}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "traces" / "trace.jsonl"
    monkeypatch.setenv("RUNTIME_MEMORY_HERMES_TRACE", str(path))
    return path


def records(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text("utf-8").strip().split("\n")]
    for line in lines:
        assert set(line) == FIELDS[line["event"]]
        assert datetime.fromisoformat(line["ts"]).utcoffset() == timedelta(0)
    return lines


def test_a_turn_is_joined_from_recall_to_outcome(begin: Begin, path: Path) -> None:
    one = begin("s1", agent_workspace="shop")
    id_ = remember(one)
    one.prefetch(PORT_QUESTION)
    call(one, "outcome", {"outcome": "worked"})
    call(one, "outcome", {"outcome": "failed", "memory_ids": id_})
    write, recall, auto, named = records(path)
    assert (write["kind"], write["memory_ids"], write["count"], write["session_id"]) == ("tool", [id_], 1, "s1")
    assert recall["turn_id"] == auto["turn_id"] == named["turn_id"] != write["turn_id"]
    assert (recall["query"], recall["project"], recall["search_mode"]) == (PORT_QUESTION, "shop", "hybrid")
    (found,) = recall["retrieved"]
    assert set(found) == RETRIEVED
    assert (found["memory_id"], found["category"], found["outcome_score"]) == (id_, "environment", 0.0)
    assert 0 < recall["latency_ms"] < 2000
    assert (auto["outcome"], auto["memory_ids"], auto["weight"], auto["origin"]) == ("worked", [id_], 0.25, "auto")
    assert (named["outcome"], named["weight"], named["origin"]) == ("failed", 1.0, "tool")


def test_a_turn_that_recalled_nothing_is_traced_too(begin: Begin, path: Path) -> None:
    one = begin()
    one.prefetch("thanks!")
    one.prefetch(PORT_QUESTION)
    assert [(each["event"], each["retrieved"]) for each in records(path)] == [("recall", [])] * 2


def test_notes_are_traced(begin: Begin, path: Path) -> None:
    one = begin()
    one.on_memory_write("add", "memory", PORT, {})
    one.on_memory_write("remove", "memory", "", {"old_text": "5433"})
    added, removed = records(path)
    assert added["kind"] == removed["kind"] == "mirror"
    assert added["memory_ids"] == removed["memory_ids"]
    assert added["count"] == removed["count"] == 1


def test_a_failure_is_traced_as_one(begin: Begin, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = begin()
    monkeypatch.setattr(MemoryStore, "explain", lambda *_, **__: 1 / 0)
    one.prefetch(PORT_QUESTION)
    (error,) = records(path)
    assert (error["event"], error["kind"], error["message"]) == ("error", "prefetch", "division by zero")


def test_text_of_any_kind_is_one_line(begin: Begin, path: Path) -> None:
    one = begin()
    one.prefetch("line\nbreak \u2028 \ud800 微信")
    (recall,) = records(path)
    assert "微信" in recall["query"]


def test_there_is_no_trace_without_a_path(begin: Begin, tmp_path: Path) -> None:
    one = begin()
    remember(one)
    one.prefetch(PORT_QUESTION)
    assert {each.name for each in tmp_path.iterdir()} == {"hermes", "store"}


def test_a_trace_that_fails_is_told_once_and_breaks_nothing(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RUNTIME_MEMORY_HERMES_TRACE", str(tmp_path / "file" / "trace.jsonl"))
    remember(begin())
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            one = begin()
            assert PORT in one.prefetch(PORT_QUESTION)
    assert caplog.text.count("cannot be written") == 1
