"""Let a language model read session logs, and propose what is worth remembering of each."""

from __future__ import annotations

from collections.abc import Sequence

from runtime_memory import extraction
from runtime_memory.importers.hermes_sessions import Extract, Message
from runtime_memory.llm import Llm
from runtime_memory.models import NewMemory
from runtime_memory.spoken import spoken, strip_blocks

__all__ = ["extractor"]


def extractor(llm: Llm) -> Extract:
    """Return what asks a model for the memories of one session; it is shown what was said, and no tool's output."""

    def extract(messages: Sequence[Message]) -> list[NewMemory]:
        said = [f"{message.role.capitalize()}: {text}" for message in messages if (text := _said(message))]
        if not said:
            return []
        reply = llm(extraction.SYSTEM_PROMPT, extraction.question(extraction.fitting(said), []))
        return [NewMemory(each.content, category=each.category, tags=each.tags) for each in extraction.parse(reply, ())]

    return extract


def _said(message: Message) -> str:
    if message.role == "user":
        return spoken(message.text)
    return strip_blocks(message.text).strip() if message.role == "assistant" else ""
