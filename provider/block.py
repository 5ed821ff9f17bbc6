"""Write recalled memories as the block that the host injects: data on one line each, that cannot pose as more."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from runtime_memory.models import Memory, SearchResult

__all__ = ["MAX_BLOCK", "MAX_CONTENT", "Block", "clean_line", "render_block", "strip_blocks"]

MAX_BLOCK = 10_000
MAX_CONTENT = 600
OPENING = 120
MAX_PASSAGE = 1_200
HEADER = "## Relevant memories\n\n"
WORKED_SCORE = 0.2
_CUT = " […]"
_WORKED, _FAILED = " (has worked before)", " (has failed before)"

# The host's fence and system note; what is left of a tag inside a tag must not become one when a host strips the inner.
_TAG = re.compile(r"<(?=[\s/]*memory)", re.IGNORECASE)
_NOTE = re.compile(r"\[(?=\s*system\s+note)", re.IGNORECASE)
_MARKER = re.compile(r"\((has (?:worked|failed) before)\)", re.IGNORECASE)
_BLOCK = re.compile(
    r"<\s*memory-context\s*>(?:(?:(?!<\s*memory-context).)*?</\s*memory-context\s*>|\s*\[System note:.*)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """What is injected: the text, empty for nothing, and the ids of the memories in it."""

    text: str
    ids: tuple[str, ...]


def render_block(results: Sequence[SearchResult]) -> Block:
    """Return the block, one line a memory in the given order.

    It stays under ``MAX_BLOCK`` characters: memories that no longer fit are left out.
    """
    lines: list[str] = []
    length = len(HEADER)
    for result in results:
        memory = result.memory
        line = f"- [{memory.category.value}] {_line(memory.content, result.passage)}{_marker(memory)} `{memory.id}`"
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
    visible = "".join(" " if unicodedata.category(c)[0] in "CZ" and c not in _JOINERS else c for c in head)
    line = " ".join(visible.split())
    line = _MARKER.sub(r"[\1]", _NOTE.sub("(", _TAG.sub("\u2039", line)))
    return line if len(line) <= limit and head == content else line[: limit - len(_CUT)].rstrip() + _CUT


def strip_blocks(text: str) -> str:
    """Return a text without the blocks that a host injected into it."""
    return _BLOCK.sub("", text)


_JOINERS = frozenset("\u200c\u200d")  # they are part of Persian and Indic words, and of emoji


def _marker(memory: Memory) -> str:
    score = round(memory.outcome_score, 2)  # a report should not lose its mark on the next day
    return _WORKED if score >= WORKED_SCORE else _FAILED if score <= -WORKED_SCORE else ""
