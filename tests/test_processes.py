"""Several processes share one folder, die in the middle of things, and find it whole."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tantivy

import indexes.text
from indexes.filters import All
from indexes.text import TextIndex
from runtime_memory import Memory, MemoryStore, Outcome
from runtime_memory.errors import StoreBusyError
from tests.conftest import OpenStore, contents
from tests.tiny_embedder import TinyEmbedder

SPAWN = multiprocessing.get_context("spawn")
FACT = "the staging port is 5433"
QUESTION = "which staging port"


# What the other process does


_stores: dict[str, MemoryStore] = {}


def there(folder: str, operation: str, *args: Any, **options: Any) -> Any:
    """Use a store that stays open in this process from call to call."""
    if folder not in _stores:
        _stores[folder] = MemoryStore.open(folder, embedder=TinyEmbedder())
    return getattr(_stores[folder], operation)(*args, **options)


def write_many(folder: str, process: int, count: int, mixed: bool) -> list[str]:
    """Add memories one by one, each acknowledged; when ``mixed``, also forget, judge and compact."""
    kept = []
    with MemoryStore.open(folder, embedder=TinyEmbedder()) as store:
        for number in range(count):
            memory = store.add(f"fact {number} of process {process}")
            if mixed and number % 3 == 0:
                store.forget(memory.id)
                continue
            kept.append(memory.content)
            if mixed:
                store.record_outcome([memory.id], Outcome.WORKED)
                if number % 4 == 0:
                    store.optimize()
    return kept


def die_between_the_commits(folder: str, operation: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Kill this process when the table is committed and the text index is about to follow."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    store = MemoryStore.open(folder, embedder=TinyEmbedder())
    store.list()
    TextIndex.apply = die  # type: ignore[method-assign, assignment]
    getattr(store, operation)(*arguments, **options)


def hold_the_lock(folder: str, held: Any) -> None:
    store = MemoryStore.open(folder, embedder=TinyEmbedder())
    with store._opening._current().database.index.writing():
        held.set()
        time.sleep(60)


class Other:
    """Call a store in another process, and wait for the answer."""

    def __init__(self, pool: ProcessPoolExecutor, folder: Path) -> None:
        self._pool, self._folder = pool, str(folder)

    def __call__(self, operation: str, *args: Any, **options: Any) -> Any:
        return self._pool.submit(there, self._folder, operation, *args, **options).result(timeout=60)


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=SPAWN) as executor:
        yield executor


@pytest.fixture
def other(pool: ProcessPoolExecutor, folder: Path) -> Other:
    return Other(pool, folder)


def ids_by_text(store: MemoryStore, query: str) -> list[str]:
    return [hit.memory.id for hit in store.search(query) if hit.text_rank]


# What one does the other sees


def test_what_one_process_adds_the_other_recalls_next(store: MemoryStore, other: Other) -> None:  # H9
    assert store.recall(QUESTION) == other("recall", QUESTION) == []
    here = store.add(FACT)
    assert contents(other("recall", QUESTION)) == [FACT]
    there_ = other("add", "the staging port of the shop is 6000")
    assert {hit.memory.id for hit in store.search(QUESTION) if hit.text_rank and hit.vector_rank} == {
        here.id,
        there_.id,
    }


def test_what_one_process_edits_the_other_recalls_in_its_new_form(store: MemoryStore, other: Other) -> None:
    memory = other("add", FACT)
    assert contents(store.recall(QUESTION)) == [FACT]
    other("edit", memory.id, content="the staging port is 6000", tags=["new"])
    (hit,) = store.recall(QUESTION)
    assert (hit.memory.content, hit.memory.tags) == ("the staging port is 6000", ("new",))
    assert store.get(memory.id) == hit.memory


def test_what_one_process_judges_the_other_scores(store: MemoryStore, other: Other) -> None:
    memory = store.add(FACT)
    for _ in range(3):
        other("record_outcome", [memory.id], "failed")
    assert store.get(memory.id).uses == 3
    assert store.recall(QUESTION) == []
    store.record_outcome([memory.id], Outcome.WORKED)
    assert other("get", memory.id).uses == 4


@pytest.mark.parametrize("operation", ["forget", "archive"])
def test_what_one_process_takes_away_the_other_no_longer_recalls(
    store: MemoryStore, other: Other, operation: str
) -> None:  # F2
    memory = store.add(FACT)
    assert contents(other("recall", QUESTION)) == [FACT]
    getattr(store, operation)(memory.id)
    assert other("recall", QUESTION) == [] == other("search", QUESTION)
    assert other("list") == []


def test_the_same_text_added_by_two_processes_is_one_memory(store: MemoryStore, other: Other) -> None:
    assert store.add(FACT).id == other("add", FACT).id == store.add(FACT).id
    assert len(store.list()) == 1


def test_upkeep_of_one_process_disturbs_no_reader_of_another(store: MemoryStore, other: Other) -> None:
    memories = [store.add(f"fact number {number}") for number in range(10)]
    assert len(other("search", "fact number")) == 10
    store.forget(memories[0].id)
    store.optimize()
    assert len(other("search", "fact number")) == 9
    other("optimize")
    assert len(store.search("fact number")) == 9
    assert store.check() == [] == other("check")


# Many writers at once


@pytest.mark.parametrize("mixed", [False, True], ids=["adds", "adds, outcomes, forgetting and upkeep"])
def test_four_processes_that_write_at_once_lose_nothing(
    open_store: OpenStore, folder: Path, mixed: bool
) -> None:  # H1, H2, H11
    count = 9 if mixed else 25
    with ProcessPoolExecutor(4, mp_context=SPAWN) as executor:
        writers = [executor.submit(write_many, str(folder), process, count, mixed) for process in range(4)]
        kept = [content for writer in writers for content in writer.result(timeout=120)]
    store = open_store()
    assert sorted(contents(store.list())) == sorted(kept)
    assert store.check() == []
    assert len(ids_by_text(store, "fact 1 of process 2")) == 10
    assert store.stats().total_uses == (len(kept) if mixed else 0)


def test_a_process_that_holds_the_lock_keeps_writers_waiting_but_no_reader(
    store: MemoryStore, open_store: OpenStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(FACT)
    held = SPAWN.Event()
    holder = SPAWN.Process(target=hold_the_lock, args=(str(folder), held))
    holder.start()
    try:
        assert held.wait(60)
        monkeypatch.setenv("RUNTIME_MEMORY_LOCK_TIMEOUT", "0.2")
        waiting = open_store()
        with pytest.raises(StoreBusyError, match=rf"process {holder.pid} \(.+\), since \d\d:\d\d"):
            waiting.add("another fact")
        assert contents(waiting.recall(QUESTION)) == [FACT]
    finally:
        holder.kill()
        holder.join()
    assert (folder / "lock.holder").exists()
    assert waiting._opening._current().database.index.lock.holder() is None  # of the dead, no name
    assert waiting.add("another fact").content == "another fact"  # the kernel freed its lock


# Death in the middle


def kill_between_the_commits(folder: Path, operation: str, *arguments: Any, **options: Any) -> None:
    process = SPAWN.Process(target=die_between_the_commits, args=(str(folder), operation, arguments, options))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("next_use", ["search", "add", "check"])
def test_an_add_that_died_between_the_commits_is_there_at_the_next_use(
    store: MemoryStore, folder: Path, next_use: str
) -> None:  # F8
    store.add("the violin needs strings")
    kill_between_the_commits(folder, "add", FACT)
    first_uses = {"search": lambda: store.search(QUESTION), "add": lambda: store.add("more"), "check": store.check}
    first_uses[next_use]()
    hit = next(hit for hit in store.search(FACT) if hit.memory.content == FACT)
    assert (hit.text_rank, hit.vector_rank) == (1, 1)
    assert store.add(FACT).id == hit.memory.id
    assert store.check() == []


def test_an_edit_that_died_between_the_commits_is_found_in_its_new_form_only(store: MemoryStore, folder: Path) -> None:
    memory = store.add(FACT)
    kill_between_the_commits(folder, "edit", memory.id, content="heliotrope opens the vault")
    assert ids_by_text(store, "heliotrope") == [memory.id]
    assert ids_by_text(store, "staging") == []
    assert store.check() == []


def test_a_forgetting_that_died_between_the_commits_forgot(store: MemoryStore, folder: Path) -> None:
    memory = store.add(FACT)
    kill_between_the_commits(folder, "forget", memory.id)
    assert store.search(QUESTION, include_archived=True) == [] == store.list(include_archived=True)
    assert ids_by_text(store, FACT) == []
    assert store.check() == []


def test_a_correction_that_died_between_the_commits_is_whole(store: MemoryStore, folder: Path) -> None:
    old = store.add("the staging port is 22")
    kill_between_the_commits(folder, "add", FACT, supersedes=old.id)
    assert contents(store.search(QUESTION)) == [FACT]
    assert store.get(old.id).archived
    assert store.check() == []


# The text index is lost or damaged


def filled(store: MemoryStore) -> list[Memory]:
    memories = [
        store.add(f"fact number {number} about the {word}") for number, word in enumerate(("port", "vault", "sea"))
    ]
    store.archive(memories[2].id)
    return memories


def found(store: MemoryStore) -> list[tuple[Memory, int | None, int | None]]:
    # Two of the words are in one memory, one in another, none in the third: no ties, whose order may change.
    hits = store.search("fact number 0 port vault", include_archived=True)
    return [(hit.memory, hit.text_rank, hit.vector_rank) for hit in hits]


def test_a_text_index_deleted_while_closed_is_rebuilt_with_the_same_results(
    store: MemoryStore, open_store: OpenStore, folder: Path
) -> None:  # I9, F10
    filled(store)
    before = found(store)
    store.close()
    shutil.rmtree(folder / "text")
    reopened = open_store()
    assert found(reopened) == before
    assert reopened.check() == []


def test_a_text_index_deleted_under_an_open_store_costs_no_write(store: MemoryStore, folder: Path) -> None:
    filled(store)
    shutil.rmtree(folder / "text")
    memory = store.add(FACT)
    assert ids_by_text(store, FACT)[0] == memory.id
    assert store.check() == []


def test_a_text_index_deleted_by_another_process_is_rebuilt_for_both(
    store: MemoryStore, other: Other, folder: Path
) -> None:
    filled(store)
    assert len(other("search", "fact")) == 2
    store.close()
    shutil.rmtree(folder / "text")
    with MemoryStore.open(folder, embedder=TinyEmbedder()) as here:
        here.add(FACT)
        assert contents(other("recall", QUESTION))[0] == FACT
        assert other("check") == []


def damage(path: Path, how: str) -> None:
    if how == "deleted":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "truncated":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        # The footer stays whole, so that the damage shows only when the body is read.
        body = path.read_bytes()
        cut = max(1, len(body) - 120)
        path.write_bytes(bytes(byte ^ 0x55 for byte in body[:cut]) + body[cut:])


@pytest.mark.parametrize("how", ["deleted", "empty", "truncated", "overwritten"])
@pytest.mark.parametrize("kind", ["meta.json", ".managed.json", ".term", ".store", ".fast"])
def test_a_damaged_text_index_heals(
    store: MemoryStore, open_store: OpenStore, folder: Path, kind: str, how: str
) -> None:
    memories = filled(store)
    store.close()
    for path in sorted((folder / "text").iterdir()):
        if path.name.endswith(kind):
            damage(path, how)
    reopened = open_store()
    assert set(ids_by_text(reopened, "fact number")) == {memory.id for memory in memories[:2]}
    added = reopened.add(FACT)
    assert ids_by_text(reopened, FACT)[0] == added.id
    assert reopened.check() == []


def test_a_file_in_place_of_the_text_index_is_replaced(store: MemoryStore, open_store: OpenStore, folder: Path) -> None:
    filled(store)
    store.close()
    shutil.rmtree(folder / "text")
    (folder / "text").write_text("in the way")
    reopened = open_store()
    assert len(ids_by_text(reopened, "fact number")) == 2
    assert reopened.check() == []


def test_a_reader_gets_its_answer_while_the_text_index_is_rebuilt(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store)
    index = store._opening._current().database.index
    answers: list[list[str]] = []
    open_index = indexes.text._open

    def read_then_open(folder: Path, schema: tantivy.Schema) -> tantivy.Index | None:
        with ThreadPoolExecutor(1) as reader:
            answers.append(reader.submit(lambda: contents(store.search("fact number"))).result(timeout=30))
        return open_index(folder, schema)

    with monkeypatch.context() as patch, index.writing():
        patch.setattr(indexes.text, "_open", read_then_open)
        index.text.rebuild(index.table.scan(All()), index.mark())
    assert len(answers[0]) == 2


def test_a_rebuild_that_died_halfway_is_done_again(store: MemoryStore, open_store: OpenStore, folder: Path) -> None:
    filled(store)
    store.close()
    (folder / "text").rename(folder / "text.new")
    (folder / "text.new" / "meta.json").write_text("{")
    reopened = open_store()
    assert len(ids_by_text(reopened, "fact number")) == 2
    assert reopened.check() == []


def test_a_text_index_of_another_store_is_not_taken_for_ones_own(
    store: MemoryStore, open_store: OpenStore, folder: Path, tmp_path: Path
) -> None:
    filled(store)
    foreign = open_store(tmp_path / "foreign")
    foreign.add("the secret of the other store")
    store.close()
    foreign.close()
    shutil.rmtree(folder / "text")
    shutil.copytree(tmp_path / "foreign" / "text", folder / "text")
    reopened = open_store()
    assert reopened.search("secret", include_archived=True)[0].memory.content.startswith("fact")
    assert len(ids_by_text(reopened, "fact number")) == 2
    assert reopened.check() == []


# Forks and exits


FORK = """
import json, os, signal, sys
sys.path[:0] = {path!r}
from runtime_memory import MemoryStore
from runtime_memory.errors import StoreClosedError
from tests.tiny_embedder import TinyEmbedder
store = MemoryStore.open({folder!r}, embedder=TinyEmbedder())
memory = store.add("a fact")
store.search("fact")
uses = dict(
    add=lambda: store.add("from the child"),
    search=lambda: store.search("fact"),
    get=lambda: store.get(memory.id),
)
for name, use in uses.items():
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            use()
        except StoreClosedError as error:
            os._exit(42 if "fork" in str(error) else 43)
        except BaseException as error:
            print(name, repr(error)[:200], flush=True)
            os._exit(44)
        os._exit(0)
    print(json.dumps([name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]), flush=True)
store.close()
"""


def test_a_forked_child_is_told_to_open_its_own_store(folder: Path) -> None:  # H5
    code = FORK.format(path=sys.path, folder=str(folder))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert told == [["add", 42], ["search", 42], ["get", 42]], done.stdout


EXIT = """
import sys
sys.path[:0] = {path!r}
from runtime_memory import MemoryStore
from tests.tiny_embedder import TinyEmbedder
store = MemoryStore.open({folder!r}, embedder=TinyEmbedder())
for number in range(3):
    store.add(f"fact number {{number}}")
print(len(store.search("fact")))
"""


def test_a_process_that_exits_without_closing_exits_cleanly_and_loses_nothing(
    folder: Path, open_store: OpenStore
) -> None:  # L5
    code = EXIT.format(path=sys.path, folder=str(folder))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "3"), done.stderr
    assert len(open_store().list()) == 3
