"""Long-term memory for AI agents that learns from what worked."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from runtime_memory.models import (
    Explanation,
    Memory,
    MemoryCategory,
    MemoryScope,
    MemorySource,
    NewMemory,
    Outcome,
    SearchMode,
    SearchResult,
    StoreStats,
    Written,
)

if TYPE_CHECKING:
    from runtime_memory.settings import Settings
    from runtime_memory.store import MemoryStore

__all__ = [
    "Explanation",
    "Memory",
    "MemoryCategory",
    "MemoryScope",
    "MemorySource",
    "MemoryStore",
    "NewMemory",
    "Outcome",
    "SearchMode",
    "SearchResult",
    "Settings",
    "StoreStats",
    "Written",
]

_LAZY = {"MemoryStore": "runtime_memory.store", "Settings": "runtime_memory.settings"}


def __getattr__(name: str) -> Any:
    """Import the store and the settings on first use: they bring LanceDB and pydantic with them."""
    if name not in _LAZY:
        raise AttributeError(f"module 'runtime_memory' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)
