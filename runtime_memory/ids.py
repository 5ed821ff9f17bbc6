"""Find the memory that an id, or its beginning, stands for."""

from __future__ import annotations

from indexes.filters import Filter, matches
from indexes.layout import Record
from runtime_memory import content
from runtime_memory.database import Database
from runtime_memory.errors import AmbiguousIdError, InvalidInputError, MemoryNotFoundError

__all__ = ["resolve"]

_SHORTEST_PREFIX = 4
_SHOWN = 3


def resolve(database: Database, memory_id: object, visible: Filter) -> Record:
    """Return the record of an id, or of a prefix that fits one visible memory only."""
    if not isinstance(memory_id, str) or not memory_id.strip():
        raise InvalidInputError(f"an id must be text, not {memory_id!r}")
    wanted = content.mend(memory_id).strip()
    database.index.refresh()
    found = database.index.get([wanted]).get(wanted)
    if found is not None and matches(visible, found):
        return found
    if len(wanted) >= _SHORTEST_PREFIX:
        close = database.index.read_text(lambda text: text.ids_with_prefix(wanted, visible, _SHOWN)) or []
        if len(close) == 1:
            return database.index.get(close)[close[0]]
        if close:
            raise AmbiguousIdError(f"{wanted!r} fits several memories ({', '.join(close)}, ...); give more of the id")
    raise MemoryNotFoundError(f"there is no memory {wanted!r}; look it up with a search or a list")
