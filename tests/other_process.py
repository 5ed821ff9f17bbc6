"""Another process that goes on writing while a test is at work."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runtime_memory import MemoryStore, Outcome
from tests.tiny_embedder import TinyEmbedder

__all__ = ["Writes", "another_writer"]

_SPAWN = multiprocessing.get_context("spawn")


class Writes(list[str]):
    """The ids of the memories that the other process stored, as they are acknowledged; all of them at its end."""

    def __init__(self, acknowledged: Any) -> None:
        super().__init__()
        self._acknowledged = acknowledged

    def next(self) -> None:
        """Wait for one more."""
        self.append(self._acknowledged.get(timeout=60))

    def drain(self) -> None:
        """Take what is there."""
        while not self._acknowledged.empty():
            self.append(self._acknowledged.get())


@contextmanager
def another_writer(folder: Path, *, judging: bool = True) -> Iterator[Writes]:
    """Let a process add memories, and judge each, until the block ends; it must end well."""
    end, acknowledged = _SPAWN.Event(), _SPAWN.Queue()
    writer = _SPAWN.Process(target=_write_until_told, args=(str(folder), end, acknowledged, judging))
    writer.start()
    writes = Writes(acknowledged)
    try:
        yield writes
    finally:
        end.set()
        while writer.is_alive() or not acknowledged.empty():
            writes.drain()
            writer.join(0.05)
    assert writer.exitcode == 0


def _write_until_told(folder: str, end: Any, acknowledged: Any, judging: bool) -> None:
    with MemoryStore.open(folder, embedder=TinyEmbedder()) as store:
        number = 0
        while not end.is_set():
            memory = store.add(f"from elsewhere {number}")
            if judging:
                store.record_outcome([memory.id], Outcome.WORKED)
            acknowledged.put(memory.id)
            number += 1
