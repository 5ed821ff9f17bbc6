"""Make sense of the arguments of a tool call: models send wrong types, and what has one clear meaning is accepted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runtime_memory.errors import InvalidInputError, MemoryNotFoundError
from runtime_memory.models import Memory, MemoryCategory, Outcome

__all__ = [
    "CATEGORIES",
    "MAX_LIMIT",
    "OUTCOMES",
    "id_list",
    "known",
    "limit",
    "optional_text",
    "outcome",
    "required_text",
    "tags",
]

CATEGORIES = [category.value for category in MemoryCategory]
OUTCOMES = [each.value for each in Outcome]
MAX_LIMIT = 50
_MAX_CONTENT = 100_000
_MAX_QUOTED = 300


def required_text(args: Mapping[str, Any], name: str) -> str:
    """Return an argument that must be a text with something in it."""
    value = args.get(name)
    if not isinstance(value, str) or not value.strip():
        given = "missing" if value is None else f"not {value!r}" if not isinstance(value, str) else "empty"
        raise InvalidInputError(f"{name} is required and must be a text; it is {given}"[:_MAX_QUOTED])
    if len(value) > _MAX_CONTENT:
        raise InvalidInputError(f"{name} has {len(value):,} characters; at most {_MAX_CONTENT:,} are accepted")
    return value


def optional_text(args: Mapping[str, Any], name: str) -> str | None:
    """Return an argument that may be left out, null or empty."""
    value = args.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} must be a text, not {value!r}"[:_MAX_QUOTED])
    return value.strip() or None


def outcome(args: Mapping[str, Any]) -> str:
    """Return the outcome; case and white space around it do not count."""
    value = required_text(args, "outcome").strip().lower()
    if value not in OUTCOMES:
        raise InvalidInputError(f"unknown outcome {value!r}; valid are: {', '.join(OUTCOMES)}"[:_MAX_QUOTED])
    return value


def limit(args: Mapping[str, Any], default: int = 10) -> int:
    """Return a limit from 1 to 50; ``"5"`` and ``5.0`` are 5."""
    value = args.get("limit")
    if value is None or value == "":
        return default
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not number.is_integer() or not 1 <= number <= MAX_LIMIT:
        raise InvalidInputError(f"limit must be a whole number from 1 to {MAX_LIMIT}, not {value!r}"[:_MAX_QUOTED])
    return int(number)


def tags(args: Mapping[str, Any]) -> list[str]:
    """Return tags; a text is split at commas."""
    return _texts(args, "tags", re.compile(r"\s*,\s*"))


def id_list(args: Mapping[str, Any], name: str = "memory_ids") -> list[str]:
    """Return ids, distinct and in order; a text is split at commas and spaces, and quotes around an id are dropped."""
    split = re.compile(r"[\s,]+")
    ids = (part.strip("`'\"<>[]()") for item in _texts(args, name, split) for part in split.split(item))
    return list(dict.fromkeys(filter(None, ids)))


def known(ids: Iterable[str], get: Callable[[str], Memory]) -> tuple[list[str], list[str]]:
    """Return the full ids of the memories that ``get`` knows, each once, and the given ids that it does not."""
    found, unknown = [], []
    for each in ids:
        try:
            found.append(get(each).id)
        except (MemoryNotFoundError, InvalidInputError):
            unknown.append(each)
    return list(dict.fromkeys(found)), unknown


def _texts(args: Mapping[str, Any], name: str, separator: re.Pattern[str]) -> list[str]:
    value = args.get(name)
    if value is None:
        return []
    if isinstance(value, str):
        return [part for part in separator.split(value.strip()) if part]
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise InvalidInputError(f"{name} must be a list of texts, not {value!r}"[:_MAX_QUOTED])
    return [item for item in value if item.strip()]
