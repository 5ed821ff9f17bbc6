"""Several machines write to one store on an object store; no lock holds between them."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from indexes.fusion import Fusion
from indexes.replica import Replica
from indexes.shared_text import SharedText
from runtime_memory import Memory, MemoryStore, NewMemory, Outcome, SearchResult
from runtime_memory.errors import MemoryNotFoundError, StoreUnavailableError
from tests.conftest import contents
from tests.grown_store import grow
from tests.object_store.conftest import Machine, Team
from tests.tiny_embedder import TinyEmbedder

WRITES = int(os.environ.get("WRITES_PER_MACHINE", "15"))
SPAWN = multiprocessing.get_context("spawn")
FACT = "the staging port is 5433"


def work(team: str, options: str, cache: str, number: int, count: int) -> tuple[list[str], int]:
    """Add memories one by one and judge each; return the ids and how often the store could not be reached."""
    os.environ |= {"RUNTIME_MEMORY_STORAGE_OPTIONS": options, "XDG_CACHE_HOME": cache}
    away, added = 0, []

    def insist(write: Callable[[], Any]) -> Any:
        nonlocal away
        while True:
            try:
                return write()
            except StoreUnavailableError:
                away += 1
                Path(cache, "away").touch()
                time.sleep(0.1)

    with MemoryStore.open(team, embedder=TinyEmbedder()) as store:
        for each in range(count):
            memory = insist(lambda each=each: store.add(f"fact {each} of machine {number}", tags=[f"n{each}"]))
            insist(lambda memory=memory: store.record_outcome([memory.id], Outcome.WORKED))
            added.append(memory.id)
    return added, away


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(3, mp_context=SPAWN) as executor:
        yield executor


def before_the_commit(monkeypatch: pytest.MonkeyPatch, store: MemoryStore, meanwhile: Callable[[], object]) -> None:
    """Let something happen once, between what a store reads for its next write and that write's commit."""
    index, write = store._opening._current().database.index, Replica.write

    def written(self: Replica, change: Any) -> bool:
        if self is index:
            monkeypatch.setattr(Replica, "write", write)
            meanwhile()
        return write(self, change)

    monkeypatch.setattr(Replica, "write", written)


def found(store: MemoryStore, queries: Sequence[str]) -> list[list[SearchResult]]:
    """Return all that each query finds: the memories in their order, with every score and rank."""
    store.search("the first search of a process asks the table for the vectors, the others have them in memory")
    return [store.search(query, limit=1000) for query in queries]


def assert_same(one: Sequence[Sequence[SearchResult]], other: Sequence[Sequence[SearchResult]]) -> None:
    """Compare what two replicas find, one of which may hold more that is deleted and not merged away.

    That is in Tantivy's average length, and so in the last few percent of a BM25 score.
    """
    for results, others in zip(one, other, strict=True):
        assert [_place(each) for each in results] == [_place(each) for each in others]
        for result, same in zip(results, others, strict=True):
            assert result.score == pytest.approx(same.score, abs=0.01)
            assert result.bm25 == pytest.approx(same.bm25, rel=0.15)


def _place(result: SearchResult) -> tuple[object, ...]:
    """Return a memory with what does not depend on the average length of a text."""
    return result.memory, result.text_rank, result.vector_rank, result.cosine, result.coverage, result.relevance


def test_three_machines_write_at_once_and_nothing_is_lost(
    pool: ProcessPoolExecutor, team: Team, machine: Machine, tmp_path: Path
) -> None:
    done = [pool.submit(work, team.uri, team.options, str(tmp_path / str(n)), n, WRITES) for n in range(3)]
    added = {id_ for each in done for id_ in each.result()[0]}
    assert len(added) == 3 * WRITES
    seen = []
    for number in range(3):
        store = machine(str(number))
        assert store.check() == []
        assert {memory.id: memory.uses for memory in store.list()} == dict.fromkeys(added, 1)
        seen.append(found(store, ["fact 7 of machine 2", "machine 1", "what is fact 3?", "nothing of the kind"]))
    assert [len(each) for each in seen[0][:2]] == [3 * WRITES] * 2
    assert_same(seen[0], seen[1])
    assert_same(seen[0], seen[2])


@contextmanager
def cut_off(team: Team) -> Iterator[None]:
    """Have every connection to the server broken, and new ones refused."""
    team.proxy.close()
    yield
    team.proxy.open()


@contextmanager
def stopped(team: Team) -> Iterator[None]:
    """Have the server's process end, and another one go on from what it held."""
    team.server.stop()
    yield
    team.server.start()


@pytest.mark.parametrize("away", [cut_off, stopped])
def test_a_server_that_goes_away_twice_while_three_machines_write_costs_nothing(
    pool: ProcessPoolExecutor,
    team: Team,
    machine: Machine,
    tmp_path: Path,
    away: Callable[[Team], AbstractContextManager[None]],
) -> None:
    machine("0").add("the store is there before the others come")
    done = [pool.submit(work, team.uri, team.options, str(tmp_path / str(n)), n, 12) for n in range(3)]
    for written in (8, 20):
        while len(machine("0").list()) < written:
            time.sleep(0.05)
        with away(team):
            while not (noticed := list(tmp_path.glob("*/away"))):
                time.sleep(0.05)
        for each in noticed:
            each.unlink()
    results = [each.result() for each in done]
    assert sum(refused for _, refused in results) >= 2
    for number in range(3):
        store = machine(str(number))
        assert store.check() == []
        uses = {memory.id: memory.uses for memory in store.list()}
        assert all(uses[id_] >= 1 for added, _ in results for id_ in added)
        assert len(uses) == 3 * 12 + 1


def test_what_one_machine_writes_the_other_finds_next(machine: Machine) -> None:
    one, other = machine("one"), machine("other")
    memory = one.add(FACT)
    assert contents(other.search("staging port")) == [FACT]
    other.edit(memory.id, content="the staging port is 6000")
    other.record_outcome([memory.id], Outcome.WORKED)
    (hit,) = one.search("staging port")
    assert (hit.memory.content, hit.memory.uses) == ("the staging port is 6000", 1)
    one.forget(memory.id)
    assert other.list() == other.search("staging port") == []
    assert one.check() == other.check() == []


def test_a_replica_that_was_deleted_is_made_again_and_finds_the_same(machine: Machine, tmp_path: Path) -> None:
    one, other = machine("one"), machine("other")
    memories = grow(one, other)
    other.archive(memories[9].id)
    one.record_outcome([memories[10].id, memories[0].id], Outcome.WORKED)
    queries = ["port of service 7", "service", "what is 5003?", "as of March", "the port"]
    before = found(one, queries)
    assert all(before)
    assert_same(found(other, queries), before)
    one.close()
    shutil.rmtree(tmp_path / "one")
    again = machine("one")
    rebuilt = found(again, queries)
    assert_same(rebuilt, before)
    assert again.check() == []
    other.reindex()
    assert found(other, queries) == rebuilt


def test_machines_that_make_the_store_at_once_make_one(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    other, create = machine("other"), SharedText.create

    def second(*args: Any) -> SharedText | None:
        monkeypatch.setattr(SharedText, "create", create)
        other.add("from the machine that came first")
        return create(*args)

    monkeypatch.setattr(SharedText, "create", second)
    one = machine("one")
    one.add("from the machine that came second")
    assert len(one.list()) == len(other.list()) == 2
    assert one.check() == other.check() == []


def test_machines_that_change_different_things_of_a_memory_at_once_change_both(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = machine("one"), machine("other")
    memory = one.add(FACT)
    before_the_commit(monkeypatch, one, lambda: other.edit(memory.id, content="the staging port is 6000"))
    one.edit(memory.id, tags=["port"], category="environment")
    for store in (one, other):
        now = store.get(memory.id)
        assert (now.content, now.tags, now.category) == ("the staging port is 6000", ("port",), "environment")
        (hit,) = store.search("staging port 6000")
        assert (hit.text_rank, hit.vector_rank) == (1, 1)
        assert store.check() == []


def test_a_text_that_is_changed_while_another_machine_tags_it_keeps_its_own_vectors(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = machine("one"), machine("other")
    memory = one.add(" ".join(f"word{number}" for number in range(120)))
    before_the_commit(monkeypatch, one, lambda: other.edit(memory.id, tags=["long"]))
    one.edit(memory.id, content="short")
    for store in (one, other):
        (hit,) = store.search("short")
        assert (hit.memory.content, hit.memory.tags) == ("short", ("long",))
        assert hit.cosine == pytest.approx(1, abs=1e-5)
        assert store.check() == []


@pytest.mark.parametrize("forgets", ["one", "other"])
def test_a_memory_that_is_forgotten_while_another_machine_edits_it_stays_forgotten(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, forgets: str
) -> None:
    stores = {"one": machine("one"), "other": machine("other")}
    memory = stores["one"].add(FACT)
    edits = stores["other" if forgets == "one" else "one"]
    changes: dict[str, Callable[[], object]] = {
        "forget": lambda: stores[forgets].forget(memory.id),
        "edit": lambda: edits.edit(memory.id, content=" ".join(f"word{number}" for number in range(120))),
    }
    first, second = ("edit", "forget") if forgets == "one" else ("forget", "edit")
    before_the_commit(monkeypatch, stores["one"], changes[first])
    changes[second]()
    for store in stores.values():
        assert store.list(include_archived=True) == store.search("word7 staging port") == []
        with pytest.raises(MemoryNotFoundError):
            store.get(memory.id)
        assert store.check() == []


def test_the_same_text_added_on_two_machines_at_once_is_one_memory(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = machine("one"), machine("other")
    one.add("something else")
    there: list[Memory] = []
    before_the_commit(monkeypatch, one, lambda: there.append(other.add(FACT)))
    here = one.add(FACT)
    kept = one.list()[0]
    assert kept.id == min(here.id, there[0].id) == here.id
    assert [memory.id for memory in other.list()] == [memory.id for memory in one.list()]
    assert one.check() == other.check() == []


def test_the_same_import_on_two_machines_at_once_stores_each_memory_once(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = machine("one"), machine("other")
    one.add("something else")
    batch = [NewMemory(f"fact {number}", id=f"kept-{number}") for number in range(5)]
    before_the_commit(monkeypatch, one, lambda: other.add_many(batch))
    one.add_many(batch)
    assert sorted(memory.id for memory in one.list())[-5:] == [f"kept-{number}" for number in range(5)]
    assert len(one.list()) == len(other.list()) == 6
    assert len(list(one.memories())) == 6


def test_a_machine_with_another_model_finds_by_words_and_says_why(machine: Machine) -> None:
    machine("one").add(FACT)
    other = machine("other", embedder=TinyEmbedder("another@1"))
    assert contents(other.search("staging port")) == [FACT]
    assert "another@1" in (other.stats().message or "")


def test_weights_that_one_machine_sets_another_uses(machine: Machine) -> None:
    one, other = machine("one"), machine("other")
    one.add(FACT)
    other.search("staging port")
    one.tune_to(Fusion(k=33))
    while other._opening._current().searching.fusion.k != 33:
        time.sleep(0.1)
