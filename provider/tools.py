"""The tools that the model calls: their schemas, and their arguments made sense of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runtime_memory.errors import InvalidInputError
from runtime_memory.models import MemoryCategory, Outcome

__all__ = [
    "OUTCOME",
    "RECALL",
    "REMEMBER",
    "STATS",
    "id_list",
    "limit",
    "optional_text",
    "required_text",
    "schemas",
    "tags",
]

REMEMBER = "runtimememory_remember"
RECALL = "runtimememory_recall"
OUTCOME = "runtimememory_outcome"
STATS = "runtimememory_stats"

_MAX_LIMIT = 50
_MAX_CONTENT = 100_000
_CATEGORIES = [category.value for category in MemoryCategory]


def schemas() -> list[dict[str, Any]]:
    """Return fresh copies of the tool schemas, in OpenAI's function form."""
    return [
        _schema(
            REMEMBER,
            "Save one durable fact for future sessions: a decision, gotcha, preference, command. A sentence that "
            "stands alone. If it corrects a recalled memory, pass that memory's id as supersedes.",
            {
                "content": {"type": "string"},
                "category": {"type": "string", "enum": _CATEGORIES},
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
                "limit": {"type": "integer", "minimum": 1, "maximum": _MAX_LIMIT, "default": 10},
                "category": {"type": "string", "enum": _CATEGORIES},
            },
            ["query"],
        ),
        _schema(
            OUTCOME,
            "Report whether recalled memories helped once you know; it decides what surfaces next time. Name the ids "
            "that mattered.",
            {
                "outcome": {"type": "string", "enum": [outcome.value for outcome in Outcome]},
                "memory_ids": {"type": "array", "items": {"type": "string"}},
            },
            ["outcome"],
        ),
        _schema(STATS, "Show counts and health of long-term memory.", {}, []),
    ]


def required_text(args: Mapping[str, Any], name: str) -> str:
    """Return an argument that must be a text with something in it."""
    value = args.get(name)
    if not isinstance(value, str) or not value.strip():
        given = "missing" if value is None else f"not {value!r}" if not isinstance(value, str) else "empty"
        raise InvalidInputError(f"{name} is required and must be a text; it is {given}"[:300])
    if len(value) > _MAX_CONTENT:
        raise InvalidInputError(f"{name} has {len(value):,} characters; at most {_MAX_CONTENT:,} are accepted")
    return value


def optional_text(args: Mapping[str, Any], name: str) -> str | None:
    """Return an argument that may be left out, null or empty."""
    value = args.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} must be a text, not {value!r}"[:300])
    return value.strip() or None


def limit(args: Mapping[str, Any], default: int = 10) -> int:
    """Return a limit from 1 to 50; ``"5"`` and ``5.0`` are 5."""
    value = args.get("limit")
    if value is None or value == "":
        return default
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not number.is_integer() or not 1 <= number <= _MAX_LIMIT:
        raise InvalidInputError(f"limit must be a whole number from 1 to {_MAX_LIMIT}, not {value!r}"[:300])
    return int(number)


def tags(args: Mapping[str, Any]) -> list[str]:
    """Return tags; a text is split at commas."""
    return _texts(args, "tags", re.compile(r"\s*,\s*"))


def id_list(args: Mapping[str, Any]) -> list[str]:
    """Return ids, distinct and in order; a text is split at commas and spaces, and quotes around an id are dropped."""
    split = re.compile(r"[\s,]+")
    ids = (part.strip("`'\"<>[]()") for item in _texts(args, "memory_ids", split) for part in split.split(item))
    return list(dict.fromkeys(filter(None, ids)))


def _texts(args: Mapping[str, Any], name: str, separator: re.Pattern[str]) -> list[str]:
    value = args.get(name)
    if value is None:
        return []
    if isinstance(value, str):
        return [part for part in separator.split(value.strip()) if part]
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise InvalidInputError(f"{name} must be a list of texts, not {value!r}"[:300])
    return [item for item in value if item.strip()]


def _schema(name: str, description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "parameters": parameters}
