"""Search a large table on an object store as of a version that is known already, so that no request asks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from indexes.lance import is_cleaned
from indexes.rows import RowMap
from indexes.vectors import VectorHit, VectorTable

__all__ = ["PinnedRows"]


class PinnedRows(RowMap):
    """Search like a row map, through a table of its own that stays at the version of the last search.

    A table that follows the newest version asks for it five times a search, one request after the other.
    ``open_at`` opens the table as of a version.
    """

    def __init__(self, table: VectorTable, open_at: Callable[[int], VectorTable]) -> None:
        super().__init__(table)
        self._newest = table
        self._open_at = open_at
        self._pinning = threading.Lock()
        self._pinned: int | None = None

    def search(self, *asked: Any, version: int, **options: Any) -> list[VectorHit]:
        """Return what a row map does; as of the newest version when the given one was cleaned meanwhile."""
        try:
            self._pin(version)
            return super().search(*asked, version=version, **options)
        except (RuntimeError, ValueError) as error:
            if not is_cleaned(error):
                raise
        version = self._newest.version
        self._pin(version)
        return super().search(*asked, version=version, **options)

    def _pin(self, version: int) -> None:
        with self._pinning:
            if self._pinned is None:
                self._table = self._open_at(version)
            elif self._pinned != version:
                self._table.go_to(version)
            self._pinned = version
