"""A trace is summed up: what was recalled, whether it helped, and what it cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from runtime_memory import MemoryStore
from runtime_memory.cli import app
from runtime_memory.trace import Trace, recall_fields
from runtime_memory.trace_report import summarize

TIME = "2026-03-01T12:00:00Z"


def record(event: str, **fields: Any) -> str:
    return json.dumps({"ts": TIME, "event": event, "turn_id": "t", "session_id": "s", **fields})


def recall(*memories: str, ms: float = 10.0, **fields: Any) -> str:
    """Return the record of a recall of memories, given as ``id:category``."""
    retrieved = [dict(zip(("memory_id", "category"), each.split(":"), strict=True)) for each in memories]
    return record("recall", latency_ms=ms, search_mode="hybrid", retrieved=retrieved, **fields)


def verdict(outcome: str, *ids: str, origin: str = "tool") -> str:
    return record("outcome", outcome=outcome, memory_ids=ids, weight=1.0, origin=origin)


def sums(*lines: str | bytes) -> dict[str, Any]:
    return summarize(lines).to_json()


def test_recalls_are_counted_and_those_that_found_something() -> None:
    found = sums(recall("a:gotcha", "b:command"), recall(), recall("a:gotcha"), recall())
    assert (found["recalls"], found["answered"], found["answered_share"]) == (4, 2, 0.5)
    assert found["memories_per_answered_recall"] == 1.5
    assert found["search_modes"] == {"hybrid": 4}


def test_what_helped_is_told_by_category() -> None:
    found = sums(
        recall("a:gotcha", "b:gotcha", "c:command"),
        recall("a:gotcha"),
        recall("d:context"),
        verdict("worked", "a"),
        verdict("worked", "a"),
        verdict("failed", "b"),
        verdict("partial", "b", "c", origin="auto"),
    )
    gotcha = found["categories"]["gotcha"]
    assert (gotcha["recalled"], gotcha["worked"], gotcha["failed"], gotcha["partial"]) == (3, 2, 1, 1)
    assert (gotcha["named"], gotcha["unattributed"], gotcha["hit_rate"]) == (3, 1, 0.625)
    assert found["categories"]["command"]["hit_rate"] == 0.5
    assert found["categories"]["context"]["hit_rate"] is None
    assert list(found["categories"]) == ["gotcha", "command", "context"]


def test_a_verdict_may_come_before_the_recall_that_tells_the_category() -> None:
    found = sums(verdict("worked", "a", "z"), recall("a:gotcha"))
    assert found["categories"]["gotcha"]["worked"] == 1
    assert found["categories"]["unknown"]["worked"] == 1


def test_the_most_used_memories_come_first_with_their_verdicts() -> None:
    lines = [recall(*(f"m{n:02}:gotcha" for n in range(upto))) for upto in range(1, 21)]
    found = sums(*lines, verdict("failed", "m01"), verdict("worked", "m01"), verdict("worked", "found by the tool"))
    assert [use["memory_id"] for use in found["most_used"]] == [f"m{n:02}" for n in range(10)]
    second = found["most_used"][1]
    assert (second["recalled"], second["worked"], second["failed"], second["partial"]) == (19, 1, 1, 0)


def test_latencies_are_ranks_of_what_was_measured() -> None:
    assert sums(*(recall(ms=ms) for ms in range(1, 101)))["latency_ms"] == {"p50": 50, "p95": 95}
    assert sums(recall(ms=7.5))["latency_ms"] == {"p50": 7.5, "p95": 7.5}
    assert sums()["latency_ms"] == {"p50": None, "p95": None}


def test_writes_and_errors_are_counted_by_kind() -> None:
    found = sums(
        record("write", kind="tool", memory_ids=["a"], count=1),
        record("write", kind="extraction", memory_ids=["b", "c"], count=2),
        record("error", kind="recall", message="broken"),
        record("error", kind="recall", message="broken"),
        record("error", kind="tool", message="broken"),
    )
    assert found["writes"] == {"tool": 1, "extraction": 2}
    assert found["errors"] == {"recall": 2, "tool": 1}


def test_injected_characters_are_summed_where_they_are_known() -> None:
    assert sums(recall())["injected_characters"] is None
    assert sums(recall(characters=100), recall(characters=50), recall())["injected_characters"] == 150


def test_the_period_and_the_sessions_are_told() -> None:
    late = json.loads(recall()) | {"ts": "2026-03-02T08:00:00+02:00", "session_id": "s2"}
    found = sums(json.dumps(late), recall(), recall())
    assert (found["first"], found["last"]) == ("2026-03-01T12:00:00+00:00", "2026-03-02T08:00:00+02:00")
    assert found["sessions"] == 2


@pytest.mark.parametrize(
    "line",
    [
        *("nonsense", "{", "[]", "null", "3", '"text"', "{}", b"\xff\xfe", "\x00", recall("a:gotcha")[:-20]),
        record("of a newer version"),
        record("outcome", outcome="great", memory_ids=["a"]),
        record("outcome", outcome="worked", memory_ids="a"),
        record("recall", latency_ms="soon", retrieved=[]),
        recall(ms=float("nan")),
        recall(ms=-1),
        record("recall", latency_ms=1, retrieved=[{"memory_id": 3}]),
        record("error"),
        recall().replace(TIME, "yesterday"),
        recall().replace("00Z", "00"),
    ],
)
def test_a_line_that_is_no_record_is_counted_and_left_out(line: str | bytes) -> None:
    good = recall("a:gotcha")
    found = sums(good, line, good)
    assert (found["unreadable_lines"], found["recalls"]) == (1, 2)


def test_blank_lines_are_no_fault() -> None:
    assert sums("", "\n", b" \r\n", recall() + "\n")["unreadable_lines"] == 0


@given(st.lists(st.text() | st.binary()))
def test_any_file_can_be_summed_up(lines: list[str | bytes]) -> None:
    json.dumps(sums(*lines))


def test_what_the_provider_writes_can_be_read(wide_store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(str(path))
    memory = wide_store.add("floats lost a cent", category="gotcha")
    explanation = wide_store.explain("which floats lost a cent?", outside=False)
    same = {"turn_id": "t", "session_id": "s"}
    trace.write("recall", **same, project=None, latency_ms=1.25, **recall_fields(explanation))
    trace.write("outcome", **same, outcome="worked", memory_ids=[memory.id], weight=1.0, origin="tool")
    trace.write("write", **same, kind="mirror", memory_ids=[memory.id], count=1)
    trace.write("error", **same, kind="recall", message="broken")
    found = summarize(path.read_bytes().splitlines()).to_json()
    assert found["unreadable_lines"] == 0
    assert found["categories"]["gotcha"]["hit_rate"] == 1.0
    assert (found["recalls"], found["writes"], found["errors"]) == (1, {"mirror": 1}, {"recall": 1})


# The command


def run(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["trace", "report", *args])
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    lines = [recall("m1:gotcha", ms=12), recall(ms=40), verdict("worked", "m1"), record("error", kind="recall"), "{"]
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_the_report_is_a_table(trace_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    result = run(str(trace_file))
    lines = [line.split() for line in result.stdout.splitlines()]
    assert "gotcha 1 1 0 0 1 0 100%".split() in lines
    assert "m1 gotcha 1 1 0 0".split() in lines
    assert "2, of which 1 answered (50%, 1.0 memories each)" in result.stdout
    assert "p50 12 ms, p95 40 ms" in result.stdout
    assert "left out: 1" in result.stderr


def test_the_report_is_json_on_request(trace_file: Path) -> None:
    found = json.loads(run(str(trace_file), "--json").stdout)
    assert (found["recalls"], found["unreadable_lines"], found["errors"]) == (2, 1, {"recall": 1})


def test_a_trace_without_a_record_is_said(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("nonsense\n")
    result = run(str(path))
    assert result.stdout == ""
    assert "holds no record" in result.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "missing.jsonl" in run(str(tmp_path / "missing.jsonl"), code=1).stderr


def test_the_text_of_a_trace_cannot_steer_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(recall("m\x1b[2J:[bold]x") + "\n" + record("error", kind="\x1b[2J"))
    result = run(str(path))
    assert "\x1b" not in result.stdout
    assert "[bold]x" in result.stdout
