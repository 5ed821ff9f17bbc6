"""Write a store's memories out: JSON Lines that lose nothing, or Markdown to read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import yaml

from runtime_memory.models import Memory
from runtime_memory.outcomes import OutcomeEvent
from runtime_memory.serialize import export_json, timestamp

if TYPE_CHECKING:
    from runtime_memory.store import MemoryStore

__all__ = ["jsonl_lines", "markdown_note", "markdown_notes"]

_BATCH = 512


def jsonl_lines(
    store: MemoryStore,
    *,
    project: str | None = None,
    include_archived: bool = False,
    user: str | None = None,
    profile: str | None = None,
) -> Iterator[str]:
    """Yield one line of JSON a memory, with its outcomes, in no order and without holding the store in memory.

    Importing the lines into an empty store gives memories that are equal in every field.
    """
    memories = store.memories(project=project, include_archived=include_archived, user=user, profile=profile)
    while batch := list(islice(memories, _BATCH)):
        reports: dict[str, list[OutcomeEvent]] = {memory.id: [] for memory in batch}
        for event in store.outcomes(list(reports), user=user, profile=profile):
            reports[event.memory_id].append(event)
        for memory in batch:
            yield json.dumps(export_json(memory, reports[memory.id]), ensure_ascii=False) + "\n"


def markdown_notes(
    store: MemoryStore,
    *,
    project: str | None = None,
    include_archived: bool = False,
    user: str | None = None,
    profile: str | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield a file name and a note for each memory, in no order."""
    memories = store.memories(project=project, include_archived=include_archived, user=user, profile=profile)
    for memory in memories:
        yield f"{memory.created_at:%Y-%m-%d}-{memory.id}.md", markdown_note(memory)


def markdown_note(memory: Memory) -> str:
    """Return a memory as a Markdown note, with what else is known of it as YAML frontmatter."""
    known = {
        "id": memory.id,
        "date": timestamp(memory.created_at),
        "category": memory.category.value,
        "project": memory.project,
        "tags": list(memory.tags),
        "outcome_score": round(memory.outcome_score, 2) or None,
        "archived": memory.archived or None,
        "supersedes": memory.supersedes,
        "origin": memory.origin,
    }
    given = {name: value for name, value in known.items() if value not in (None, [])}
    return f"---\n{yaml.safe_dump(given, allow_unicode=True, sort_keys=False)}---\n{memory.content.rstrip()}\n"
