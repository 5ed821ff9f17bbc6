"""Memories, results and diagnoses as plain JSON values: the one form of the tools, the CLI and the MCP server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from runtime_memory.models import Explanation, Memory, SearchResult, StoreStats, Written
from runtime_memory.outcomes import OutcomeEvent
from runtime_memory.plain_text import as_data
from runtime_memory.suspicion import suspicion

__all__ = [
    "explanation_json",
    "export_json",
    "memories_json",
    "memory_json",
    "outcomes_json",
    "result_json",
    "results_json",
    "stats_json",
    "timestamp",
    "written_json",
]

_DIGITS = 4


def memory_json(memory: Memory, *, score: float | None = None, full: bool = True) -> dict[str, Any]:
    """Return a memory: id, content, category, score and outcome_score, and with ``full`` everything else.

    ``suspect`` is there for a memory that reads like an instruction, and says why. Without ``full`` it is for a model,
    or a trace: the content is without secrets and hidden characters.
    """
    brief = {
        "id": memory.id,
        "content": memory.content if full else as_data(memory.content),
        "category": memory.category.value,
        "score": None if score is None else round(score, _DIGITS),
        "outcome_score": round(memory.outcome_score, _DIGITS),
    }
    if suspect := suspicion(memory.content):
        brief["suspect"] = suspect
    if not full:
        return brief
    return brief | {f.name: _plain(getattr(memory, f.name)) for f in fields(memory) if f.name not in brief}


def memories_json(memories: Iterable[Memory]) -> dict[str, Any]:
    """Return a list of memories as ``{"count", "memories"}``."""
    listed = [memory_json(memory) for memory in memories]
    return {"count": len(listed), "memories": listed}


def results_json(results: Iterable[SearchResult], *, full: bool = True) -> dict[str, Any]:
    """Return search results as ``{"count", "memories"}``, best first."""
    listed = [memory_json(result.memory, score=result.score, full=full) for result in results]
    return {"count": len(listed), "memories": listed}


def result_json(result: SearchResult) -> dict[str, Any]:
    """Return a result with the reasons for its place, as the trace and ``mem why`` show it."""
    reasons = {f.name: _plain(getattr(result, f.name)) for f in fields(result) if f.name not in {"memory", "score"}}
    return memory_json(result.memory, score=result.score, full=False) | reasons


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return what a recall found and what it left out, with the reasons."""
    return {
        "query": explanation.query,
        "terms": list(explanation.terms),
        "search_mode": explanation.mode.value,
        "threshold": round(explanation.threshold, _DIGITS),
        "recalled": [result_json(result) for result in explanation.recalled],
        "dropped": [result_json(result) for result in explanation.dropped],
    }


def export_json(memory: Memory, outcomes: Iterable[OutcomeEvent]) -> dict[str, Any]:
    """Return a memory with every report about it, so that nothing is lost on the way to another store."""
    exported = memory_json(memory) | {"outcomes": [_event_json(event) for event in outcomes]}
    return {name: value for name, value in exported.items() if name not in {"score", "suspect"}}


def _event_json(event: OutcomeEvent) -> dict[str, Any]:
    told = {f.name: getattr(event, f.name) for f in fields(event) if f.name != "memory_id"}
    return told | {"outcome": event.outcome.value, "at": timestamp(event.at)}


def written_json(written: Written) -> dict[str, Any]:
    """Return what became of a memory to store; ``duplicate`` and ``masked`` where there is something to tell."""
    memory = written.memory
    stored = {"stored": True, "memory_id": memory.id, "category": memory.category.value, "project": memory.project}
    masked = {"masked": list(written.masked)} if written.masked else {}
    return stored | ({"duplicate": True} if written.duplicate else {}) | masked


def outcomes_json(memories: Iterable[Memory]) -> list[dict[str, Any]]:
    """Return the new scores of memories that were judged."""
    return [{"id": memory.id, "outcome_score": round(memory.outcome_score, _DIGITS)} for memory in memories]


def stats_json(stats: StoreStats) -> dict[str, Any]:
    """Return the counts and the health of a store."""
    return {f.name: _plain(getattr(stats, f.name)) for f in fields(stats)}


def timestamp(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC, with a Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case datetime():
            return timestamp(value)
        case float():
            return round(value, _DIGITS)
        case tuple():
            return [_plain(item) for item in value]
        case _:
            return value
