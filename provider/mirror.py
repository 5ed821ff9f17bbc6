"""Do to the memories what the host did to its built-in notes, so that a corrected note is not recalled as it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runtime_memory.models import Memory, MemoryCategory, MemoryScope, MemorySource, NewMemory
from runtime_memory.secrets import mask
from runtime_memory.spoken import without_envelopes

if TYPE_CHECKING:
    from runtime_memory.store import MemoryStore

__all__ = ["mirror"]

_CATEGORIES = {"memory": MemoryCategory.CONTEXT, "user": MemoryCategory.PREFERENCE}


def mirror(
    store: MemoryStore, owner: Mapping[str, Any], *, action: str, target: str, content: str, old_text: str
) -> list[str]:
    """Mirror an ``add``, ``replace`` or ``remove`` of one note; return the ids of the memories that it left or retired.

    ``old_text`` is the part of a note by which the host found it.
    """
    if action not in ("add", "replace", "remove") or target not in _CATEGORIES:
        return []
    retired = _holding(store, owner, target, mask(old_text.strip()).text) if action != "add" else []
    kept = None
    if action != "remove" and (text := without_envelopes(content)):
        kept = _keep(store, owner, target, text, supersedes=retired[0].id if retired else None)
    retired = [memory for memory in retired if kept is None or memory.id != kept.id]
    for memory in retired:
        if not store.get(memory.id, **owner).archived:
            store.archive(memory.id, **owner)
    return [memory.id for memory in ([kept] if kept else []) + retired]


def _keep(store: MemoryStore, owner: Mapping[str, Any], target: str, text: str, *, supersedes: str | None) -> Memory:
    """Store a note; the host keeps its notes for every project and session, so it is a memory of none."""
    new = NewMemory(
        text,
        category=_CATEGORIES[target],
        scope=MemoryScope.GLOBAL,
        source=MemorySource.IMPORTED,
        tags=("hermes", _tag(target)),
        supersedes=supersedes,
        **owner,
    )
    memory = store.write([new])[0].memory
    if _tag(target) in memory.tags:
        return memory
    # The fact was there before as somebody else's; without the tag a later replace would not find it.
    return store.edit(memory.id, tags=[*memory.tags, *new.tags], **owner)


def _holding(store: MemoryStore, owner: Mapping[str, Any], target: str, old_text: str) -> list[Memory]:
    """Return the memories mirrored from a profile's notes that hold a text, newest first."""
    if not old_text:
        return []
    noted = store.list(tags=[_tag(target)], **owner)
    return [memory for memory in noted if old_text in memory.content and memory.profile == owner["profile"]]


def _tag(target: str) -> str:
    return f"builtin-{target}"
