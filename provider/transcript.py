"""Read the messages of a session as turns: what the user and the assistant said, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runtime_memory.spoken import spoken, strip_blocks

__all__ = ["read_turns"]

MAX_USER, MAX_ASSISTANT = 6_000, 3_000
_CUT = " […] "

# What Hermes writes in the user's name, or into the user's messages.
_SCAFFOLD = re.compile(r"\s*\[(?:System: |IMPORTANT: |Your active task list was preserved|Orphan recovery: )")
_NOTE = re.compile(r"\[(?:System note: |Note: model was just switched )[^\]]*\]")
_SUMMARY = re.compile(r"\s*\[CONTEXT (?:COMPACTION|SUMMARY)")
_MERGED = re.compile(
    r"\s*\[PRIOR CONTEXT[^\]]*\]\n?(.*?)\s*\[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW\]", re.DOTALL
)
_STOPPED = {
    "tool": re.compile(r'\[command interrupted\]|"exit_code": *(?:130|-1)\b.{0,2000}interrupt', re.DOTALL),
    "assistant": re.compile(r"\A\s*Operation interrupted"),
}


def read_turns(messages: object) -> list[tuple[str, str]]:
    """Return for each whole turn the user's words and the turn as text.

    Left out are tool calls and results, system messages, injected memories, summaries of earlier turns, and turns that
    were interrupted or have no answer.
    """
    turns = []
    for turn in _split(messages if isinstance(messages, list | tuple) else ()):
        asked, answered, broken = [], [], False
        for message in turn:
            text, role = _text(message), str(message.get("role"))
            broken = broken or (role in _STOPPED and _STOPPED[role].search(text) is not None)
            if role == "user" and (said := spoken(text)):
                asked.append(_shorten(said, MAX_USER))
            elif role == "assistant" and (said := strip_blocks(text).strip()):
                answered.append(_shorten(said, MAX_ASSISTANT))
        if asked and answered and not broken:
            words = "\n".join(asked)
            turns.append((words, f"User: {words}\n\nAssistant: " + "\n".join(answered)))
    return turns


def _split(messages: Iterable[Any]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the messages turn by turn, without those that the host made up; a turn begins with the user."""
    turn: list[Mapping[str, Any]] = []
    for message in messages:
        if not isinstance(message, Mapping) or _is_scaffold(message):
            continue
        if message.get("role") == "user" and any(held.get("role") in _STOPPED for held in turn):
            yield turn
            turn = []
        turn.append(message)
    yield turn


def _is_scaffold(message: Mapping[str, Any]) -> bool:
    text = _text(message)
    return _SUMMARY.match(text) is not None or (message.get("role") == "user" and _SCAFFOLD.match(text) is not None)


def _text(message: Mapping[str, Any]) -> str:
    """Return the text of a message, which is a string or a list of parts, without the host's notes."""
    content = message.get("content")
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        content = "\n".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str):
        return ""
    merged = _MERGED.match(content)
    return _NOTE.sub("", merged[1] if merged else content)


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length * 2 // 3] + _CUT + text[-length // 3 :]
