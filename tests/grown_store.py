"""A store that has grown by single writes of every kind, as by one machine or by two."""

from __future__ import annotations

from runtime_memory import Memory, MemoryStore

__all__ = ["grow"]


def grow(one: MemoryStore, other: MemoryStore) -> list[Memory]:
    """Add twenty memories to one, edit six by the other, forget three by the first; return them as they were added."""
    for number in range(20):
        one.add(f"the port of service {number} is {5000 + number}", project="shop" if number % 3 else None)
    memories = one.list()
    for memory in memories[:6]:
        other.edit(memory.id, content=f"{memory.content}, as of March")
    for memory in memories[6:9]:
        one.forget(memory.id)
    return memories
