"""A process that writes at random until it is killed, and notes each write before and after the call.

``python -m tests.reliability.writing FOLDER LOG LIFE SEED``. Its memories are its own: their keys begin with the name
of the log, which it reads first to go on from where it died. A line of the log is one of
``["begin", operation, key, value]``, ``["done", id]``, ``["wrong", what]`` and ``["ready"]``.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECTIONS = 3
"""Memories that one import brings, from one file."""


@dataclass
class Known:
    """What may be stored under a key: the values that no acknowledged write rules out, and the reports that it has."""

    values: set[int | None] = field(default_factory=lambda: {None})
    id: str | None = None
    least: int = 0
    most: int = 0
    imported: bool = False

    @property
    def settled(self) -> int | None:
        """The one value that it has; None when it is not there, or that is not known."""
        (value,) = self.values if len(self.values) == 1 else (None,)
        return value


def text(key: str, value: int) -> str:
    """Return the content of a memory: it tells its key and which value it was last given."""
    return f"{key} revision {value} of the note about harbours"


def key_and_value(content: str) -> tuple[str, int]:
    """Return what a content tells."""
    key, _, value, *_ = content.split()
    return key, int(value)


def read(log: Path) -> tuple[dict[str, Known], list[str], int]:
    """Return what a log says of each key, what went wrong, and how many writes were acknowledged."""
    known: dict[str, Known] = {}
    wrong: list[str] = []
    begun: list[Any] | None = None
    done = 0
    for line in _lines(log):
        match line:
            case ["begin", *rest]:
                begun = rest
                _begin(known, *rest)
            case ["done", id_] if begun:
                _end(known, begun, id_)
                begun, done = None, done + 1
            case ["wrong", what]:
                wrong.append(what)
            case ["ready"]:
                begun = None
    return known, wrong, done


def _lines(log: Path) -> Iterator[list[Any]]:
    if log.exists():
        for line in log.read_bytes().split(b"\n"):
            if line.endswith(b"]"):  # the last one may be cut off
                yield json.loads(line)


def _begin(known: dict[str, Known], operation: str, key: str, value: int) -> None:
    match operation:
        case "add" | "edit":
            known.setdefault(key, Known()).values.add(value)
        case "import":
            for number in range(SECTIONS):
                each = known.setdefault(f"{key}.{number}", Known(imported=True))
                each.values.add(value)
        case "forget":
            known[key].values.add(None)
        case "outcome":
            known[key].most += 1


def _end(known: dict[str, Known], begun: list[Any], id_: str | None) -> None:
    operation, key, value = begun
    match operation:
        case "add" | "edit":
            known[key].values, known[key].id = {value}, id_
        case "import":
            for number in range(SECTIONS):
                known[f"{key}.{number}"].values = {value}
        case "forget":
            known[key].values = {None}
        case "outcome":
            known[key].least += 1


class Life:
    """Write until killed."""

    def __init__(self, folder: str, log: Path, life: int, seed: int) -> None:
        from runtime_memory import MemoryStore
        from tests.tiny_embedder import TinyEmbedder

        self._store = MemoryStore.open(folder, embedder=TinyEmbedder())
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._known = read(log)[0]
        self._file, self._name = log.stem, f"{log.stem}-{life}"
        self._random = random.Random(seed)
        self._new = 0
        self.longest = 0.0
        self._note("\n", end="")  # a line that was cut off by the last death ends here
        self._note(["ready"])

    def go_on(self, writes: int | None = None) -> None:
        """Repeat what was not acknowledged, as a client would, then write at random."""
        for key, each in list(self._known.items()):
            if len(each.values) > 1:
                self._settle(key, each)
        count = 0
        while writes is None or count < writes:
            self._write()
            count += 1

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _write(self) -> None:
        mine = [key for key, each in self._known.items() if each.id and each.settled is not None]
        operations = ["add", "import"] + (
            ["add", "again", "edit", "edit", "outcome", "outcome", "forget"] if mine else []
        )
        operation = self._random.choice(operations)
        key = self._random.choice(mine) if mine else ""
        match operation:
            case "add":
                self._new += 1
                self._add(f"{self._name}-{self._new}", 0)
            case "again":
                again = self._store.add(text(key, self._known[key].settled or 0))
                self._expect(again.id == self._known[key].id, f"{key} was added twice: {again.id}")
            case "edit":
                self._edit(key, (self._known[key].settled or 0) + 1)
            case "outcome":
                self._call("outcome", key, 0, lambda: self._store.record_outcome([self._known[key].id or ""], "worked"))
            case "forget":
                self._call("forget", key, 0, lambda: self._store.forget(self._known[key].id or ""))
            case "import":
                self._import(f"{self._file}-file{self._random.randrange(4)}")

    def _settle(self, key: str, known: Known) -> None:
        """Bring a memory whose last write was cut short to a known state."""
        if known.imported:
            self._import(key.rpartition(".")[0])
        elif known.id is None:
            self._add(key, max(value for value in known.values if value is not None))
        elif None in known.values:
            gone = not any(self._store.memories(ids=[known.id]))
            self._call("forget", key, 0, lambda: None if gone else self._store.forget(known.id or ""))
        else:
            self._edit(key, max(value for value in known.values if value is not None))

    def _add(self, key: str, value: int) -> None:
        self._call("add", key, value, lambda: self._store.add(text(key, value)).id)

    def _edit(self, key: str, value: int) -> None:
        id_ = self._known[key].id or ""
        self._call("edit", key, value, lambda: self._store.edit(id_, content=text(key, value)).id)

    def _import(self, key: str) -> None:
        from runtime_memory import NewMemory
        from runtime_memory.importers import Item
        from runtime_memory.importers.intake import Intake

        value = 1 + max((v for v in self._values(f"{key}.0") if v is not None), default=-1)
        places = [(f"/notes/{key}.md#{number}-part", text(f"{key}.{number}", value)) for number in range(SECTIONS)]
        items = [
            Item(origin, NewMemory(content, origin=origin, origin_hash=content, source="imported"))
            for origin, content in places
        ]

        def take() -> None:
            intake = Intake(self._store)
            intake.take(items)
            intake.finish([])

        self._call("import", key, value, take)

    def _values(self, key: str) -> set[int | None]:
        return self._known[key].values if key in self._known else set()

    def _call(self, operation: str, key: str, value: int, call: Callable[[], Any]) -> None:
        self._note(["begin", operation, key, value])
        _begin(self._known, operation, key, value)
        started = time.monotonic()
        try:
            told = call()
        except Exception as error:  # noqa: BLE001 - a writer must not meet any
            self._note(["wrong", f"{operation} of {key}: {error!r} from {error.__cause__!r}"])
            return
        self.longest = max(self.longest, time.monotonic() - started)
        _end(self._known, [operation, key, value], told if isinstance(told, str) else None)
        self._note(["done", told if isinstance(told, str) else None])

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            self._note(["wrong", what])

    def _note(self, line: Any, end: str = "\n") -> None:
        os.write(self._log, ((line if isinstance(line, str) else json.dumps(line)) + end).encode())


if __name__ == "__main__":
    Life(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])).go_on()
