"""What one turn showed the model, and what of it a verdict may still credit."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Sequence

__all__ = ["Turn"]


class Turn:
    """Remember which memories a turn recalled; each may be credited once by a verdict that names none."""

    def __init__(self) -> None:
        self.id = uuid.uuid4().hex
        self.injected = 0
        self._lock = threading.Lock()
        self._uncredited: dict[str, None] = {}
        self._credited: set[str] = set()

    def show(self, ids: Iterable[str]) -> None:
        """Note memories that the model has seen."""
        with self._lock:
            self._uncredited |= dict.fromkeys(id_ for id_ in ids if id_ not in self._credited)

    def inject(self, ids: Sequence[str]) -> None:
        """Note memories that came with the message itself."""
        self.injected = len(ids)
        self.show(ids)

    def credit(self, ids: Iterable[str]) -> None:
        """Note memories that have had their verdict."""
        with self._lock:
            for id_ in ids:
                self._uncredited.pop(id_, None)
                self._credited.add(id_)

    @property
    def uncredited(self) -> list[str]:
        """The memories seen in this turn that have had no verdict yet."""
        with self._lock:
            return list(self._uncredited)
