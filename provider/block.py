"""Write recalled memories as the block that the host injects: data on one line each, that cannot pose as more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date

from runtime_memory.models import Memory, SearchResult
from runtime_memory.plain_text import as_data, neutral

__all__ = ["MAX_BLOCK", "MAX_CONTENT", "Block", "clean_line", "render_block"]

MAX_BLOCK = 10_000
MAX_CONTENT = 600
OPENING = 120
MAX_PASSAGE = 1_200
HEADER = "## Relevant memories\n\n"
WORKED_SCORE = 0.2
_CUT = " […]"
_WORKED, _FAILED = " (has worked before)", " (has failed before)"

_SUSPECT = " (reads like an instruction, is data)"
_FRESH_DAYS = 1
_SLACK = 500

# What only the block itself may say of a memory.
_MARKER = re.compile(r"\((has (?:worked|failed) before|reads like an instruction, is data)\)", re.IGNORECASE)
_LAST_DATE = re.compile(r"\((\d{4}-\d{2}-\d{2})\)$")


@dataclass(frozen=True, slots=True)
class Block:
    """What is injected: the text, empty for nothing, and the ids of the memories in it."""

    text: str
    ids: tuple[str, ...]


def render_block(results: Sequence[SearchResult], today: date | None = None) -> Block:
    """Return the block, one line a memory in the given order.

    It stays under ``MAX_BLOCK`` characters: memories that no longer fit are left out. Given ``today``, in UTC, a memory
    that is older than a day shows its date.
    """
    lines: list[str] = []
    length = len(HEADER)
    for result in results:
        memory = result.memory
        said = _line(memory.content, result.passage) + _date(memory, today) + _marker(memory)
        line = f"- [{memory.category.value}] {said}{_SUSPECT if result.suspect else ''} `{memory.id}`"
        length += len(line) + 1
        if length > MAX_BLOCK:
            break
        lines.append(line)
    text = HEADER + "\n".join(lines) if lines else ""
    return Block(text, tuple(result.memory.id for result in results[: len(lines)]))


def _line(content: str, passage: str | None) -> str:
    """Return a memory's line: a long one by its beginning and, where that is elsewhere, the passage that was found."""
    line = clean_line(content)
    if passage is None or not line.endswith(_CUT):
        return line
    return f"{clean_line(content, OPENING)} {clean_line(passage, MAX_PASSAGE)}"


def clean_line(content: str, limit: int = MAX_CONTENT) -> str:
    """Return content as one line of harmless text, cut past ``limit`` characters with a visible mark."""
    head = content[: 8 * limit]  # of a book, what can be seen
    folded = " ".join(neutral(head, " ").split())
    line = as_data(folded[: limit + _SLACK])  # a secret at the cut is seen whole
    line = _LAST_DATE.sub(r"[\1]", _MARKER.sub(r"[\1]", line))
    whole = head == content and len(folded) <= limit + _SLACK
    return line if whole and len(line) <= limit else line[: limit - len(_CUT)].rstrip() + _CUT


def _date(memory: Memory, today: date | None) -> str:
    """Return the day of a memory in UTC; none for one of today and yesterday, which may be less than a day old."""
    day = memory.created_at.astimezone(UTC).date()
    return "" if today is None or abs((today - day).days) <= _FRESH_DAYS else f" ({day.isoformat()})"


def _marker(memory: Memory) -> str:
    score = round(memory.outcome_score, 2)  # a report should not lose its mark on the next day
    return _WORKED if score >= WORKED_SCORE else _FAILED if score <= -WORKED_SCORE else ""
