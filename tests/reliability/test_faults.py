"""A write that fails, or dies, at any of its steps leaves a store that is whole, and that can be written at once."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, NoReturn, cast

import pytest

from indexes.filters import All
from runtime_memory import MemoryStore
from runtime_memory.manifest import Manifest
from tests.conftest import OpenStore
from tests.reliability.faults import (
    OPERATIONS,
    REPORT_STEPS,
    STEPS,
    STORED,
    TOKEN,
    WRITES,
    States,
    Step,
    at,
    backup_of,
    fill,
    ids,
    states,
    take,
)
from tests.reliability.kills import ROOT
from tests.test_purge import files_with
from tests.tiny_embedder import TinyEmbedder

_TOGETHER = 3


def refuse() -> NoReturn:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def interrupt() -> NoReturn:
    raise KeyboardInterrupt


def assert_whole(store: MemoryStore) -> None:
    """Both indexes hold the same of every memory, and each has its vectors."""
    assert store.check() == []
    with store._open() as parts:
        index = parts.database.index
        copies = {record["id"]: record for record in index.read_text(lambda text: text.find(All())) or []}
        rows = {record["id"]: record for record in index.table.scan(All())}
        assert copies == rows
        assert set(index.table.vectors(list(rows))) == set(rows)


# Errors in the middle of a write


def refused_at(step: str) -> list[str]:
    """Return every other kind of write, the others at the next step."""
    return list(WRITES)[list(STEPS).index(step) % 2 :: 2]


def assert_heals(store: MemoryStore, other: MemoryStore, operation: str, step: Step, fail: Callable[[], None]) -> None:
    """Let one step of a write fail, and see both stores at one, at what was before or at what comes after."""
    before = states(store)
    after = OPERATIONS[operation].effect(before)
    acknowledged, known = False, ids(store)
    with at(step, fail) as failed:
        try:
            OPERATIONS[operation].call(store, known)
            acknowledged = True
        except (Exception, KeyboardInterrupt):  # noqa: BLE001 - whatever it is, it is to heal
            pass
    assert failed, f"{operation} never came to {step.name}"
    now = states(other)
    assert now == states(store)
    assert now in (before, after)
    assert now == after or not (acknowledged or step.committed)
    assert now == before or step.committed in (True, None)
    assert_whole(other)
    if now == before:
        take(store, operation)
    assert states(store) == after == states(other)


@pytest.mark.parametrize("fail", [refuse, interrupt])
@pytest.mark.parametrize("step", [step for step in STEPS if "released" not in step])
def test_a_write_that_fails_at_a_step_heals(open_store: OpenStore, step: str, fail: Callable[[], None]) -> None:
    store, other = open_store(), open_store()
    fill(store)
    for operation in refused_at(step) if fail is refuse else ["add", "forget"]:
        assert_heals(store, other, operation, STEPS[step], fail)
    store.add("written in the same store")
    assert_whole(store)
    assert states(open_store()) == states(store)


@pytest.mark.parametrize("fail", [refuse, interrupt])
@pytest.mark.parametrize("step", REPORT_STEPS)
def test_a_report_that_fails_at_a_step_is_there_or_not(
    open_store: OpenStore, step: str, fail: Callable[[], None]
) -> None:
    store, other = open_store(), open_store()
    fill(store)
    assert_heals(store, other, "report", REPORT_STEPS[step], fail)
    assert states(open_store()) == states(store)


# Death in the middle of a write, and of upkeep


class Death(NamedTuple):
    """A process that dies in the middle of an operation."""

    name: str
    operation: str
    step: Step


DEATHS = [
    Death(f"{operation} {name}", operation, STEPS[name])
    for operation, name in [
        ("add", "with the lock"),
        ("correct", "before the table's commit"),
        ("edit", "after the table's commit"),
        ("add", "before the manifest is synced"),
        ("forget", "before the text index follows"),
        ("import", "before the text index writes"),
        ("tag", "after the text index's commit"),
        ("archive", "before the lock is released"),
        ("add", "while the answer is made"),
    ]
]
DEATHS += [Death(f"report {name}", "report", step) for name, step in list(REPORT_STEPS.items())[1:3]]
DEATHS += [
    Death(f"{operation} {'before' if before else 'after'} {name} {time}", operation, Step(name, before, None, time))
    for operation, name, before, time in [
        ("create", "lancedb.db:LanceDBConnection.create_table", False, 1),
        ("create", "indexes.events:EventLog.create", True, 1),
        ("create", "runtime_memory.manifest:Manifest.write", True, 1),
        ("create", "pathlib:Path.replace", True, 1),
        ("create", "runtime_memory.manifest:Manifest.write", False, 1),
        ("optimize", "indexes.vectors:VectorTable.optimize", False, 1),
        ("optimize", "indexes.vectors:clean", False, 1),
        ("purge", "indexes.vectors:VectorTable.load", True, 1),
        ("purge", "runtime_memory.manifest:Manifest.write", True, 1),
        ("purge", "runtime_memory.manifest:Manifest.write", False, 1),
        ("purge", "runtime_memory.purge:remove", False, 1),
        ("reindex", "indexes.text:make_private", True, 1),
        ("reindex", "pathlib:Path.rename", False, 1),
        ("embeddings", "lancedb.db:LanceDBConnection.create_table", True, 1),
        ("embeddings", "indexes.vectors:VectorTable.write", False, 1),
        ("embeddings", "runtime_memory.manifest:Manifest.write", True, 1),
        ("embeddings", "runtime_memory.manifest:Manifest.write", False, 1),
        ("backup", "runtime_memory.backup:copy_tables", False, 1),
        ("backup", "runtime_memory.backup:read_backup", True, 1),
        ("restore", "runtime_memory.restore:read_backup", False, 1),
        ("restore", "pathlib:Path.rename", False, 1),
        ("restore", "runtime_memory.manifest:Manifest.write", False, 1),
        ("restore", "pathlib:Path.rename", False, 3),
    ]
]


def die_in(folder: Path, death: Death) -> int:
    """Let a process take an operation and die; return its exit code."""
    _, operation, step = death
    arguments = [str(folder), operation, step.name, str(int(step.before)), str(step.time)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.reliability.faults", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=200,
        check=False,
    )
    return done.returncode


class Deaths:
    """Let processes die, some at a time, each in a store of its own."""

    def __init__(self, place: Path, pool: ThreadPoolExecutor) -> None:
        self._place, self._pool = place, pool
        self._ends: dict[str, Future[int]] = {}

    def start(self, death: Death) -> None:
        folder = self.folder(death)
        if death.operation != "create":
            shutil.copytree(self._place / "filled", folder)
        shutil.copy(backup_of(self._place / "filled"), backup_of(folder))
        self._ends[death.name] = self._pool.submit(die_in, folder, death)

    def folder(self, death: Death) -> Path:
        return self._place / death.name.replace(" ", "-")

    def code(self, death: Death) -> int:
        return self._ends[death.name].result()


@pytest.fixture(scope="module")
def deaths(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deaths]:
    """Start the processes that this run asks for, some at a time: most of their time goes into importing."""
    place = tmp_path_factory.mktemp("deaths")
    with MemoryStore.open(place / "filled", embedder=TinyEmbedder()) as store:
        fill(store)
        store.backup(backup_of(place / "filled"))
    with ThreadPoolExecutor(_TOGETHER) as pool:
        died = Deaths(place, pool)
        for item in request.session.items:
            if isinstance(item, pytest.Function) and "deaths" in item.fixturenames:
                died.start(cast("Death", item.callspec.params["death"]))
        yield died


@pytest.mark.parametrize("death", DEATHS, ids=[death.name for death in DEATHS])
def test_a_process_that_dies_in_the_middle_leaves_a_whole_store(
    deaths: Deaths, death: Death, open_store: OpenStore
) -> None:
    _, operation, step = death
    folder = deaths.folder(death)
    assert deaths.code(death) == -signal.SIGKILL
    if operation == "create":
        assert_written_at_once(open_store(folder), {})
        return
    store = open_store(folder)
    assert store.check() == []
    after = OPERATIONS[operation].effect(STORED)
    found = states(store)
    assert found in ([STORED, after] if step.committed is None else [after if step.committed else STORED])
    assert_whole(store)
    if found != after or after == STORED:
        take(store, operation)
    assert_written_at_once(store, after)
    if operation == "purge":
        assert files_with(folder, TOKEN) == []


@pytest.mark.parametrize("part", ["", "_versions", "_transactions", "data"])
@pytest.mark.parametrize("table", ["memories", "outcomes"])
def test_a_store_whose_making_was_cut_short_is_made(open_store: OpenStore, folder: Path, table: str, part: str) -> None:
    (folder / "lance" / f"{table}.lance" / part).mkdir(parents=True)
    assert_written_at_once(open_store(), {})


def test_a_reindexing_that_died_making_its_table_is_gone_on_with(open_store: OpenStore, folder: Path) -> None:
    store = open_store()
    fill(store)
    manifest = Manifest.read(folder)
    assert manifest is not None
    job = {"table": "memories-2", "epoch": manifest.epoch, "embedding": "tiny@1", "dimension": 16}
    (folder / "reindex.json").write_text(json.dumps({**job, "model": None}))
    (folder / "lance" / "memories-2.lance" / "_transactions").mkdir(parents=True)
    assert store.reindex(embeddings=True).embedded == len(STORED)
    assert_written_at_once(store, STORED)


def assert_written_at_once(store: MemoryStore, expected: States) -> None:
    store.add("written after the death")
    assert {
        content: state for content, state in states(store).items() if content != "written after the death"
    } == expected
    assert store.search("written after death")[0].text_rank == 1
    assert_whole(store)
