"""Every error that Runtime Memory raises.

RuntimeMemoryError
├── InvalidInputError          the caller's value is wrong; nothing was stored (also a ValueError)
│   └── AmbiguousIdError       an id prefix fits more than one memory
├── MemoryNotFoundError        no such memory, or not visible to the caller (also a LookupError)
├── SettingsError              a RUNTIME_MEMORY_ variable has a value that is not valid
├── StoreError                 the store's folder or one of its indexes cannot be used
│   ├── StoreUnavailableError  no folder, no permission, a file in its place, a full disk
│   ├── StoreBusyError         another process held the writers' lock for too long
│   ├── StoreDamagedError      what is on disk cannot be read as a store
│   ├── StoreFormatError       written by a newer version of Runtime Memory
│   └── StoreClosedError       used after close(), or in a forked child
├── EmbeddingError             the embedding model cannot be found, loaded or run
├── DependencyError            a package that only this part needs is not installed
├── ServerError                the MCP server cannot start: its address, or its token
└── ClientConfigError          an MCP client's configuration cannot be read or changed safely

A message says what happened and what to do next.
"""

from __future__ import annotations

__all__ = [
    "AmbiguousIdError",
    "ClientConfigError",
    "DependencyError",
    "EmbeddingError",
    "InvalidInputError",
    "MemoryNotFoundError",
    "RuntimeMemoryError",
    "ServerError",
    "SettingsError",
    "StoreBusyError",
    "StoreClosedError",
    "StoreDamagedError",
    "StoreError",
    "StoreFormatError",
    "StoreUnavailableError",
]


class RuntimeMemoryError(Exception):
    """Base of every error that Runtime Memory raises."""


class InvalidInputError(RuntimeMemoryError, ValueError):
    """A value from the caller is not valid; nothing was stored."""


class AmbiguousIdError(InvalidInputError):
    """An id prefix fits more than one memory."""


class MemoryNotFoundError(RuntimeMemoryError, LookupError):
    """No memory with this id is visible to the caller."""


class SettingsError(RuntimeMemoryError):
    """A setting has a value that is not valid."""


class StoreError(RuntimeMemoryError):
    """The store's folder or one of its indexes cannot be used."""


class StoreUnavailableError(StoreError):
    """The store's folder cannot be created, read or written."""


class StoreBusyError(StoreError):
    """Another process held the writers' lock for too long."""


class StoreDamagedError(StoreError):
    """What is on disk cannot be read as a store."""


class StoreFormatError(StoreError):
    """The store was written by a newer version of Runtime Memory."""


class StoreClosedError(StoreError):
    """The store was used after close(), or in a forked child."""


class EmbeddingError(RuntimeMemoryError):
    """The embedding model cannot be found, loaded or run."""


class DependencyError(RuntimeMemoryError):
    """A package that only this part needs is not installed."""


class ServerError(RuntimeMemoryError):
    """The MCP server cannot start with this address or this token."""


class ClientConfigError(RuntimeMemoryError):
    """An MCP client's configuration cannot be read, or not changed without losing something."""
