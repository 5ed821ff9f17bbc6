"""Check what callers hand over before anything is stored: a clear error, or a value that both indexes can hold."""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from runtime_memory.errors import InvalidInputError
from runtime_memory.secrets import mask, mask_nested

__all__ = [
    "MAX_CHARACTERS",
    "choice",
    "content_hash",
    "json_object",
    "label",
    "limit",
    "mend",
    "moment",
    "number",
    "origin",
    "tag_list",
    "text",
]

MAX_CHARACTERS = 4_000_000
"""Longest content of one memory; longer texts are for the importer, which cuts them into sections."""

MAX_LABEL = 500
MAX_LIMIT = 100_000
MAX_ORIGIN = 8_000
_MASKED_LABELS = frozenset({"a tag", "session", "turn"})  # the others say who sees what: masked, two could become one
_NOT_IN_LABELS = frozenset({"Cc", "Cs", "Zl", "Zp"})  # joiners and spaces of other scripts are part of names
_Choice = TypeVar("_Choice", bound=StrEnum)


def text(value: object, *, allow_secrets: bool = False) -> str:
    """Return content that can be stored: as given, but with invalid Unicode mended and secrets masked.

    Raises InvalidInputError for what is no text, is empty, or is too long.
    """
    if not isinstance(value, str):
        raise InvalidInputError(f"content must be text, not {type(value).__name__}")
    if all(unicodedata.category(character)[0] in "CZ" for character in value):  # controls and spaces of all kinds
        raise InvalidInputError("content is empty; give the fact to remember, in a sentence that stands alone")
    if len(value) > MAX_CHARACTERS:
        raise InvalidInputError(
            f"content has {len(value):,} characters, more than the {MAX_CHARACTERS:,} of one memory; "
            "import it as a file (mem import), which cuts it into sections"
        )
    mended = mend(value)
    return mended if allow_secrets else mask(mended).text


def mend(value: str) -> str:
    """Return the text as valid Unicode: split surrogate pairs joined, lone ones replaced by U+FFFD."""
    if value.isascii():
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def content_hash(content: str) -> str:
    """Return what two memories of the same text share; white space at the ends does not count."""
    return hashlib.sha256(content.strip().encode()).hexdigest()


def choice(kind: type[_Choice], value: Any, name: str) -> _Choice:
    """Return the member of an enumeration; raises InvalidInputError that lists the valid ones."""
    try:
        return kind(value)
    except ValueError:
        valid = ", ".join(member.value for member in kind)
        raise InvalidInputError(f"unknown {name} {value!r}; valid are: {valid}") from None


def origin(value: object) -> str:
    """Return where an imported memory came from, secrets masked; a path may hold any character."""
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_ORIGIN:
        raise InvalidInputError(f"an origin must be a text of at most {MAX_ORIGIN} characters")
    return mask(mend(value)).text


def label(value: object, name: str) -> str:
    """Return a project, user, profile, session or tag; None and empty give an empty string.

    Secrets are masked in what is a mere note: a tag, a session, a turn.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} must be text, not {type(value).__name__}")
    folded = mend(value).strip()
    if name in _MASKED_LABELS:
        folded = mask(folded).text
    if value and not folded:
        raise InvalidInputError(f"{name} is nothing but white space; leave it out, or name one")
    plain = folded.isascii() and folded.isprintable()  # of most labels this tells as much, and at once
    if len(folded) > MAX_LABEL or not (plain or all(unicodedata.category(c) not in _NOT_IN_LABELS for c in folded)):
        raise InvalidInputError(f"{name} must be at most {MAX_LABEL} printable characters: {folded[:60]!r}")
    return folded


def tag_list(values: object) -> list[str]:
    """Return distinct tags in order, without empty ones."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInputError(f"tags must be a list of texts, not {type(values).__name__}")
    return list(
        dict.fromkeys(label(value, "a tag") for value in values if not (isinstance(value, str) and not value.strip()))
    )


def json_object(value: object, *, allow_secrets: bool = False) -> str:
    """Return metadata as JSON text, with secrets masked at any depth."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"metadata must be an object, not {type(value).__name__}")
    if not value:
        return "{}"
    try:
        given = dict(value) if allow_secrets else mask_nested(dict(value))
        return mend(json.dumps(given, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"metadata cannot be written as JSON: {error}") from error


def moment(value: object, name: str) -> datetime:
    """Return a time in UTC with microseconds; a naive one is taken as UTC."""
    if not isinstance(value, datetime):
        raise InvalidInputError(f"{name} must be a datetime, not {type(value).__name__}")
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise InvalidInputError(f"{name} is out of range in UTC: {value.isoformat()}") from None


def number(value: object, name: str) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInputError(f"{name} must be a number, not {value!r}")
    return float(value)


def limit(value: object) -> int:
    """Return how many results are wanted at most: 1 to ``MAX_LIMIT``."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_LIMIT:
        raise InvalidInputError(f"limit must be a whole number from 1 to {MAX_LIMIT}, not {value!r}")
    return value
