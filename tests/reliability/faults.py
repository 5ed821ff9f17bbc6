"""What a write consists of, step by step, and the same small store to take each of them in.

``python -m tests.reliability.faults FOLDER OPERATION STEP`` takes an operation and dies in the middle, at that step.
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from runtime_memory import Memory, MemoryStore, NewMemory
from runtime_memory.importers import Item
from runtime_memory.importers.intake import Intake
from tests.tiny_embedder import TinyEmbedder

TOKEN = "quicksilver"
"""A word of the one memory that was forgotten."""


@dataclass(frozen=True)
class State:
    """What a memory is, but for its id and its times."""

    archived: bool = False
    tags: tuple[str, ...] = ()
    corrects: str | None = None
    reports: int = 0


States = dict[str, State]
Call = Callable[[MemoryStore, dict[str, str]], Any]


@dataclass(frozen=True)
class Operation:
    """A write: how it is called, given the ids by content, and what it makes of the store."""

    call: Call
    effect: Callable[[States], States]


STORED: States = {
    "the anchor weighs two tons": State(tags=("heavy",)),
    "the buoy is green": State(),
    "the crane lifts forty tons": State(reports=1),
    "the dock closes at nine": State(),
    "the mast is of ash": State(),
    "the keel is of oak": State(),
}
_NOTES = "/notes/ship.md"


def fill(store: MemoryStore) -> None:
    """Store what every operation begins with, all of it in several commits."""
    for content, state in list(STORED.items())[:-2]:
        memory = store.add(content, tags=state.tags)
        for _ in range(state.reports):
            store.record_outcome([memory.id], "worked")
    store.forget(store.add(f"the {TOKEN} is in the cabin").id)
    _import(store, ("the mast is of ash", "the keel is of oak"))


def states(store: MemoryStore) -> States:
    """Return what a store holds; raises where two memories say the same."""
    memories = store.list(include_archived=True)
    contents = {memory.id: memory.content for memory in memories}
    if len(set(contents.values())) != len(memories):
        raise AssertionError(f"some are there twice: {sorted(contents.values())}")
    return {memory.content: _state(memory, contents) for memory in memories}


def _state(memory: Memory, contents: dict[str, str]) -> State:
    return State(memory.archived, memory.tags, contents.get(memory.supersedes or ""), memory.uses)


def ids(store: MemoryStore) -> dict[str, str]:
    """Return the ids by content."""
    return {memory.content: memory.id for memory in store.list(include_archived=True)}


def take(store: MemoryStore, operation: str) -> None:
    """Take an operation in a store."""
    OPERATIONS[operation].call(store, ids(store))


def _import(store: MemoryStore, contents: tuple[str, ...]) -> None:
    intake = Intake(store)
    intake.take(
        Item(origin, NewMemory(content, origin=origin, origin_hash=content, source="imported"))
        for origin, content in (
            (f"{_NOTES}#part-{letter}", content) for letter, content in zip("ab", contents, strict=True)
        )
    )
    intake.finish([])


def _without(stored: States, *contents: str) -> States:
    return {content: state for content, state in stored.items() if content not in contents}


def _changed(stored: States, content: str, **changes: Any) -> States:
    return {**stored, content: replace(stored[content], **changes)}


WRITES: dict[str, Operation] = {
    "add": Operation(
        lambda store, _: store.add("the engine needs oil"), lambda stored: {**stored, "the engine needs oil": State()}
    ),
    "edit": Operation(
        lambda store, known: store.edit(known["the buoy is green"], content="the buoy is red"),
        lambda stored: {**_without(stored, "the buoy is green"), "the buoy is red": State()},
    ),
    "tag": Operation(
        lambda store, known: store.edit(known["the crane lifts forty tons"], tags=["steel"]),
        lambda stored: _changed(stored, "the crane lifts forty tons", tags=("steel",)),
    ),
    "archive": Operation(
        lambda store, known: store.archive(known["the anchor weighs two tons"]),
        lambda stored: _changed(stored, "the anchor weighs two tons", archived=True),
    ),
    "correct": Operation(
        lambda store, known: store.add("the dock closes at ten", supersedes=known["the dock closes at nine"]),
        lambda stored: {
            **_changed(stored, "the dock closes at nine", archived=True),
            "the dock closes at ten": State(corrects="the dock closes at nine"),
        },
    ),
    "import": Operation(
        lambda store, _: _import(store, ("the mast is of pine", "the keel is of steel")),
        lambda stored: {
            **_without(stored, "the mast is of ash", "the keel is of oak"),
            "the mast is of pine": State(),
            "the keel is of steel": State(),
        },
    ),
    "forget": Operation(
        lambda store, known: store.forget(known["the crane lifts forty tons"]),
        lambda stored: _without(stored, "the crane lifts forty tons"),
    ),
}
REPORT = Operation(
    lambda store, known: store.record_outcome([known["the anchor weighs two tons"]], "worked"),
    lambda stored: _changed(stored, "the anchor weighs two tons", reports=1),
)


def _restore(store: MemoryStore, _: dict[str, str]) -> None:
    from runtime_memory.restore import restore

    restore(Path(store.settings.db), backup_of(Path(store.settings.db)), lock_timeout=30)


def backup_of(folder: Path) -> Path:
    """Return where the backup of a store is."""
    return folder.with_name(f"{folder.name}.tar.gz")


def _same(stored: States) -> States:
    return stored


UPKEEP: dict[str, Operation] = {
    "optimize": Operation(lambda store, _: store.optimize(), _same),
    "purge": Operation(lambda store, _: store.purge(wait=0), _same),
    "reindex": Operation(lambda store, _: store.reindex(), _same),
    "embeddings": Operation(lambda store, _: store.reindex(embeddings=True), _same),
    "backup": Operation(lambda store, _: store.backup(backup_of(Path(store.settings.db))), _same),
    "restore": Operation(_restore, _same),
}
OPERATIONS = {**WRITES, "report": REPORT, **UPKEEP}


@dataclass(frozen=True)
class Step:
    """A call in the middle of a write: before or after it, the first time or a later one.

    ``committed`` tells whether the write is to be found afterwards; None where that is so for some writes only.
    """

    name: str
    before: bool
    committed: bool | None
    time: int = 1


STEPS: dict[str, Step] = {
    "before the lock": Step("indexes.consistency:HybridIndex.writing", True, False),
    "with the lock": Step("indexes.consistency:HybridIndex._catch_up", False, False),
    "before the table's commit": Step("indexes.vectors:VectorTable._commit", True, False),
    "after the table's commit": Step("indexes.vectors:VectorTable._commit", False, True),
    "before the first file is synced": Step("indexes.durable:sync_new_file", True, True),
    "before the manifest is synced": Step("indexes.durable:TableSync._sync_all", True, True, 2),
    "after the syncing": Step("indexes.durable:TableSync.sync", False, True),
    "before the text index follows": Step("indexes.text:TextIndex.apply", True, True),
    "before the text index writes": Step("indexes.text:_write", True, True),
    "after the text index's commit": Step("indexes.text:_write", False, True),
    "before the text index is private": Step("indexes.text:make_private", True, True),
    "after the text index has followed": Step("indexes.text:TextIndex.apply", False, True),
    "before the lock is released": Step("indexes.lock:WriterLock._release", True, True),
    "before upkeep is considered": Step("runtime_memory.maintenance:Maintenance.after_writes", True, True),
    "while the answer is made": Step("runtime_memory.searching:Searching.memories", True, None),
}
REPORT_STEPS: dict[str, Step] = {
    "before the outcome's commit": Step("indexes.events:EventLog.append", True, False),
    "before the outcome's files are synced": Step("indexes.durable:TableSync.sync", True, True),
    "after the outcome's commit": Step("indexes.events:EventLog.append", False, True),
    "before the outcome's acknowledgement": Step("runtime_memory.ledger:OutcomeLedger.evidence", True, True),
}


@contextmanager
def at(step: Step, fail: Callable[[], Any]) -> Iterator[list[str]]:
    """Let a call fail, once; yields a list that tells whether that has come to pass."""
    module, _, path = step.name.partition(":")
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    original, calls, failed = getattr(owner, name), [0], []

    def failing(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        now = calls[0] == step.time
        if now and step.before:
            failed.append(step.name)
            fail()
        result = original(*args, **options)
        if now and not step.before:
            failed.append(step.name)
            fail()
        return result

    with patch.object(owner, name, functools.wraps(original)(failing)):
        yield failed


def die() -> None:
    """End this process as a power cut ends it."""
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, operation: str, name: str, before: str, time: str) -> None:
    """Take an operation and die at a step; return when it never comes to that."""
    step = Step(name, bool(int(before)), committed=False, time=int(time))
    with MemoryStore.open(folder, embedder=TinyEmbedder()) as store:
        if operation == "create":
            with at(step, die):
                store.add("the first of all")
        else:
            known = ids(store)
            with at(step, die):
                OPERATIONS[operation].call(store, known)


if __name__ == "__main__":
    main(*sys.argv[1:])
