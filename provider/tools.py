"""The tools that the model calls: their names and schemas."""

from __future__ import annotations

from typing import Any

from runtime_memory.arguments import CATEGORIES, MAX_LIMIT, OUTCOMES

__all__ = ["OUTCOME", "RECALL", "REMEMBER", "STATS", "schemas"]

REMEMBER = "runtimememory_remember"
RECALL = "runtimememory_recall"
OUTCOME = "runtimememory_outcome"
STATS = "runtimememory_stats"


def schemas() -> list[dict[str, Any]]:
    """Return fresh copies of the tool schemas, in OpenAI's function form."""
    return [
        _schema(
            REMEMBER,
            "Save one durable fact for future sessions: a decision, gotcha, preference, command. A sentence that "
            "stands alone. If it corrects a recalled memory, pass that memory's id as supersedes.",
            {
                "content": {"type": "string"},
                "category": {"type": "string", "enum": CATEGORIES},
                "tags": {"type": "array", "items": {"type": "string"}},
                "supersedes": {"type": "string"},
            },
            ["content", "category"],
        ),
        _schema(
            RECALL,
            "Search long-term memory beyond what was recalled automatically.",
            {
                "query": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": 10},
                "category": {"type": "string", "enum": CATEGORIES},
            },
            ["query"],
        ),
        _schema(
            OUTCOME,
            "Report whether recalled memories helped once you know; it decides what surfaces next time. Name the ids "
            "that mattered.",
            {
                "outcome": {"type": "string", "enum": OUTCOMES},
                "memory_ids": {"type": "array", "items": {"type": "string"}},
            },
            ["outcome"],
        ),
        _schema(STATS, "Show counts and health of long-term memory.", {}, []),
    ]


def _schema(name: str, description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "parameters": parameters}
