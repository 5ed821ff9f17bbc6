"""Adding, changing, finding and forgetting memories; whatever wrote them, both indexes find them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import lancedb
import pytest

from runtime_memory import Memory, MemoryCategory, MemoryScope, MemorySource, MemoryStore, NewMemory, Outcome
from runtime_memory.errors import (
    AmbiguousIdError,
    InvalidInputError,
    MemoryNotFoundError,
    StoreClosedError,
)
from tests.conftest import Clock, FragileEmbedder, OpenStore, contents, ranking
from tests.tiny_embedder import TinyEmbedder

FACT = "decimal.Decimal for money, floats lost a cent"


def rows(folder: Path, memory_id: str) -> list[dict[str, Any]]:
    """Return a memory's rows as another program reads them from the table."""
    table = lancedb.connect(str(folder / "lance")).open_table("memories")
    found = [row for row in table.to_arrow().to_pylist() if row["id"] == memory_id]
    return sorted(found, key=lambda row: int(row["part"]))


def assert_found_by_both(store: MemoryStore, memory: Memory) -> None:
    """Assert that either index, asked for the memory's own text, has it first."""
    hit = next(hit for hit in store.search(memory.content) if hit.memory.id == memory.id)
    assert (hit.text_rank, hit.vector_rank) == (1, 1)
    assert hit.cosine == pytest.approx(1, abs=1e-5)
    assert hit.memory == memory
    assert store.check() == []


# Adding


def test_an_added_memory_is_returned_as_it_is_stored(store: MemoryStore, clock: Clock) -> None:
    memory = store.add(
        FACT,
        category="gotcha",
        project="shop",
        user="u1",
        profile="work",
        session="s1",
        source="imported",
        tags=["money", "python"],
        metadata={"line": 3, "nested": {"ok": [True, None, "é"]}},
        created_at=datetime(2024, 5, 1, tzinfo=UTC),
        origin="notes.md#money",
    )
    assert memory == store.get(memory.id, user="u1", profile="work")
    assert memory == Memory(
        id=memory.id,
        content=FACT,
        category=MemoryCategory.GOTCHA,
        scope=MemoryScope.PROJECT,
        project="shop",
        user="u1",
        profile="work",
        session="s1",
        source=MemorySource.IMPORTED,
        tags=("money", "python"),
        metadata={"line": 3, "nested": {"ok": [True, None, "é"]}},
        created_at=datetime(2024, 5, 1, tzinfo=UTC),
        updated_at=clock.now,
        archived=False,
        supersedes=None,
        origin="notes.md#money",
    )


def test_what_is_not_given_has_a_default(store: MemoryStore, clock: Clock) -> None:
    memory = store.add(FACT)
    assert (memory.category, memory.scope, memory.source) == ("general", "global", "explicit")
    assert (memory.project, memory.user, memory.profile, memory.session, memory.origin) == (None,) * 5
    assert (memory.tags, memory.metadata, memory.created_at) == ((), {}, clock.now)


def test_a_memory_outlives_the_store_that_wrote_it(store: MemoryStore, open_store: OpenStore) -> None:
    memory = store.add(FACT, tags=["money"])
    store.close()
    assert open_store().get(memory.id) == memory


def test_a_time_zone_is_kept_as_the_same_moment_and_a_naive_time_is_utc(store: MemoryStore) -> None:
    moment = datetime(2024, 5, 1, 8, 30, tzinfo=timezone(timedelta(hours=-7)))
    assert store.add("with a zone", created_at=moment).created_at == moment
    naive = moment.replace(tzinfo=None)
    assert store.add("without", created_at=naive).created_at == naive.replace(tzinfo=UTC)


@pytest.mark.parametrize("year", [1, 1969, 9999])
def test_times_far_away_are_kept(store: MemoryStore, year: int) -> None:
    moment = datetime(year, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    memory = store.add(FACT, created_at=moment)
    assert store.get(memory.id).created_at == store.list()[0].created_at == moment


def test_many_memories_are_returned_in_their_order(store: MemoryStore) -> None:
    texts = [f"fact number {number}" for number in range(1200)]
    added = store.add_many([NewMemory(text) for text in texts])
    assert contents(added) == texts
    assert len({memory.id for memory in added}) == 1200
    assert store.stats().total_memories == 1200


def test_adding_nothing_stores_nothing(store: MemoryStore) -> None:
    assert store.add_many([]) == []
    assert store.list() == []


def test_ids_sort_by_the_time_of_adding(store: MemoryStore, clock: Clock) -> None:
    ids = []
    for number in range(5):
        ids.append(store.add(f"fact number {number}").id)
        clock.advance(seconds=1)
    assert ids == sorted(ids)


def test_one_bad_memory_of_many_keeps_all_of_them_out(store: MemoryStore) -> None:
    with pytest.raises(InvalidInputError):
        store.add_many([NewMemory("good"), NewMemory("bad", category="nonsense")])
    assert store.list() == []


@pytest.mark.parametrize("count", [2, 600])
def test_an_unknown_superseded_id_of_one_keeps_all_of_them_out(store: MemoryStore, count: int) -> None:
    texts = [NewMemory(f"fact number {number}") for number in range(count - 1)]
    with pytest.raises(MemoryNotFoundError):
        store.add_many([*texts, NewMemory("the last", supersedes="no-such-memory")])
    assert store.list() == []


# Duplicates


@pytest.mark.parametrize("again", [FACT, f"  {FACT}\n"])
def test_the_same_text_again_is_the_same_memory(store: MemoryStore, clock: Clock, again: str) -> None:  # E1
    memory = store.add(FACT, tags=["money"])
    clock.advance(days=1)
    for _ in range(2):
        assert store.add(again) == memory
    assert store.list() == [memory]
    assert_found_by_both(store, memory)


def test_a_write_tells_which_memories_had_been_there(store: MemoryStore) -> None:
    memory = store.add(FACT)
    written = store.write([NewMemory("new"), NewMemory(FACT), NewMemory("new")])
    assert [item.duplicate for item in written] == [False, True, True]
    assert written[1].memory == memory
    assert written[0].memory.id == written[2].memory.id
    assert len(store.list()) == 2


@pytest.mark.parametrize("other", [{"project": "shop"}, {"user": "u1"}, {"profile": "work"}])
def test_the_same_text_for_other_readers_is_another_memory(store: MemoryStore, other: dict[str, str]) -> None:
    assert store.add(FACT).id != store.add(FACT, **other).id


def test_saying_an_archived_memory_again_makes_it_current(store: MemoryStore) -> None:
    memory = store.add(FACT)
    store.archive(memory.id)
    revived = store.add(FACT)
    assert (revived.id, revived.archived) == (memory.id, False)
    assert_found_by_both(store, revived)


def test_a_forgotten_memory_said_again_is_a_new_one(store: MemoryStore) -> None:
    memory = store.add(FACT)
    store.record_outcome([memory.id], Outcome.FAILED)
    store.forget(memory.id)
    again = store.add(FACT)
    assert again.id != memory.id
    assert (again.outcome_score, again.uses) == (0, 0)
    assert_found_by_both(store, again)


# Superseding


def test_a_correction_archives_what_it_corrects_and_remembers_it(store: MemoryStore) -> None:  # A20
    old = store.add("the port is 22")
    new = store.add("the port is 49222", supersedes=old.id)
    assert new.supersedes == old.id
    assert store.get(old.id).archived
    assert store.list() == [new]
    assert store.check() == []


def test_a_correction_of_the_same_text_changes_nothing(store: MemoryStore) -> None:
    memory = store.add(FACT)
    assert store.add(FACT, supersedes=memory.id) == memory
    assert store.list() == [memory]


def test_a_correction_by_what_is_already_known_still_archives_the_old(store: MemoryStore) -> None:
    old, new = store.add("the port is 22"), store.add("the port is 49222")
    assert store.add("the port is 49222", supersedes=old.id).id == new.id
    assert contents(store.list()) == ["the port is 49222"]


def test_what_a_batch_archives_and_says_again_is_told_as_it_is_stored(store: MemoryStore) -> None:
    old = store.add("the port is 22")
    _, again = store.add_many([NewMemory("the port is 49222", supersedes=old.id), NewMemory("the port is 22")])
    assert again == store.get(old.id)


def test_what_is_superseded_may_be_named_by_the_beginning_of_its_id(store: MemoryStore) -> None:
    old = store.add("the port is 22")
    store.add("the port is 49222", supersedes=old.id[:20])
    assert store.get(old.id).archived


# Editing


def test_an_edit_of_the_text_keeps_the_id_and_is_found_by_both_indexes(store: MemoryStore, clock: Clock) -> None:
    memory = store.add(FACT, category="gotcha", tags=["money"])  # F6
    clock.advance(hours=1)
    edited = store.edit(memory.id, content="always round half even in the ledger")
    assert edited == store.get(memory.id)
    assert (edited.id, edited.created_at, edited.updated_at) == (memory.id, memory.created_at, clock.now)
    assert (edited.category, edited.tags) == (memory.category, memory.tags)
    assert_found_by_both(store, edited)
    assert FACT not in contents(store.search(FACT))


def test_an_edit_of_tags_category_and_metadata_leaves_the_vector_alone(
    open_store: OpenStore, folder: Path
) -> None:  # F7
    embedder = TinyEmbedder()
    store = open_store(embedder=embedder)
    memory = store.add(" ".join(f"word{number}" for number in range(120)))
    before, calls = rows(folder, memory.id), len(embedder.embedded)
    edited = store.edit(memory.id, tags=["new"], category="todo", metadata={"k": 1})
    after = rows(folder, memory.id)
    assert len(before) == 3
    assert [row["vector"] for row in before] == [row["vector"] for row in after]
    assert len(embedder.embedded) == calls
    assert (edited.tags, edited.category, edited.metadata) == (("new",), "todo", {"k": 1})
    assert store.search("word1", tags=["new"], category="todo")[0].vector_rank == 1
    assert store.check() == []


def test_a_shorter_text_leaves_none_of_the_longer_one_behind(store: MemoryStore, folder: Path) -> None:
    memory = store.add(" ".join(f"word{number}" for number in range(400)))
    edited = store.edit(memory.id, content="short now")
    assert_found_by_both(store, edited)
    live = [row for row in rows(folder, memory.id) if not row["deleted"]]
    assert [row["part"] for row in live] == [0]
    store.edit(memory.id, content=" ".join(f"other{number}" for number in range(400)))
    assert [row["part"] for row in rows(folder, memory.id) if not row["deleted"]] == list(range(8))
    assert store.search("other399")[0].text_rank == 1
    assert store.check() == []


def test_an_edit_to_the_text_of_another_memory_is_refused(store: MemoryStore) -> None:
    memory, other = store.add("one"), store.add("other")
    with pytest.raises(InvalidInputError, match=other.id):
        store.edit(memory.id, content="other")
    assert store.get(memory.id) == memory


def test_an_edited_text_frees_the_old_one(store: MemoryStore) -> None:
    memory = store.add("one")
    store.edit(memory.id, content="other")
    assert store.add("one").id != memory.id
    assert store.add("other").id == memory.id


# Archiving and forgetting


def test_archiving_can_be_undone(store: MemoryStore) -> None:
    memory = store.add(FACT)
    assert store.archive(memory.id).archived
    assert store.list() == []
    assert contents(store.list(include_archived=True)) == [FACT]
    restored = store.archive(memory.id, archived=False)
    assert not restored.archived
    assert_found_by_both(store, restored)


def test_forgetting_leaves_nothing_to_find_and_the_others_in_place(store: MemoryStore, folder: Path) -> None:
    kept = store.add_many([NewMemory(f"a cent was lost by number {number}") for number in range(5)])  # F1
    memory = store.add(f"{FACT} {' '.join(f'word{number}' for number in range(120))}")
    assert store.forget(memory.id) == memory
    with pytest.raises(MemoryNotFoundError):
        store.get(memory.id)
    found = store.search(FACT, limit=5, include_archived=True)
    assert {hit.memory.id for hit in found} == {each.id for each in kept}
    assert {hit.memory.id for hit in store.search("word7", include_archived=True)} <= {each.id for each in kept}
    assert len(store.list(include_archived=True)) == 5
    wiped = rows(folder, memory.id)
    assert [(row["content"], row["tags"], row["vector"]) for row in wiped] == [(None, None, None)] * len(wiped)
    assert store.check() == []


def test_forgetting_twice_says_that_it_is_gone(store: MemoryStore) -> None:
    memory = store.add(FACT)
    store.forget(memory.id)
    with pytest.raises(MemoryNotFoundError, match=memory.id):
        store.forget(memory.id)


@pytest.mark.parametrize("change", ["edit", "archive", "outcome", "supersede"])
def test_a_forgotten_memory_cannot_be_changed(store: MemoryStore, change: str) -> None:
    memory = store.add(FACT)
    store.forget(memory.id)
    changes: dict[str, Callable[[], object]] = {
        "edit": lambda: store.edit(memory.id, content="back"),
        "archive": lambda: store.archive(memory.id, archived=False),
        "outcome": lambda: store.record_outcome([memory.id], Outcome.WORKED),
        "supersede": lambda: store.add("back", supersedes=memory.id),
    }
    with pytest.raises(MemoryNotFoundError):
        changes[change]()
    assert store.list(include_archived=True) == []


# Every way to write is found by both indexes


WRITES: dict[str, Callable[[MemoryStore], Memory]] = {
    "add": lambda store: store.add(FACT),
    "add_many": lambda store: store.add_many([NewMemory("first"), NewMemory(FACT)])[1],
    "edit of the text": lambda store: store.edit(store.add("something else").id, content=FACT),
    "edit of the tags": lambda store: store.edit(store.add(FACT).id, tags=["new"]),
    "bringing back": lambda store: store.archive(store.archive(store.add(FACT).id).id, archived=False),
    "superseding": lambda store: store.add(FACT, supersedes=store.add("floats for money").id),
    "an outcome": lambda store: store.record_outcome([store.add(FACT).id], Outcome.WORKED)[0],
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_is_written_is_found_by_vectors_and_by_text(
    store: MemoryStore, open_store: OpenStore, write: Callable[[MemoryStore], Memory]
) -> None:  # A6
    store.add_many([NewMemory("the violin needs strings"), NewMemory("the harbour is frozen")])
    memory = write(store)
    assert_found_by_both(store, memory)
    assert_found_by_both(open_store(), memory)
    store.optimize()
    assert_found_by_both(store, memory)


def test_what_was_written_while_the_model_failed_gets_its_vector_later(open_store: OpenStore) -> None:  # A6
    embedder = FragileEmbedder()
    store = open_store(embedder=embedder)
    store.add("the violin needs strings")
    embedder.broken = True
    memory = store.add(FACT)
    edited = store.edit(store.add("something else").id, content="the harbour is frozen")
    assert store.search(FACT)[0].memory == memory
    assert store.stats().pending_embeddings == 2
    embedder.broken = False
    store.optimize()
    assert store.stats().pending_embeddings == 0
    assert_found_by_both(store, memory)
    assert_found_by_both(store, edited)


# Ids


def test_a_memory_is_found_by_the_beginning_of_its_id(store: MemoryStore) -> None:
    memory = store.add(FACT)
    assert store.get(memory.id[:8]) == store.get(f" {memory.id} ") == memory
    assert store.archive(memory.id[:4]).archived
    assert store.forget(memory.id[:8]).id == memory.id


def test_a_beginning_that_fits_two_memories_is_refused_and_names_them(store: MemoryStore) -> None:
    one, other = store.add("one"), store.add("other")
    with pytest.raises(AmbiguousIdError, match="give more of the id") as caught:
        store.forget(one.id[:8])
    assert one.id in str(caught.value)
    assert other.id in str(caught.value)
    assert len(store.list()) == 2


def test_a_beginning_fits_only_what_the_caller_sees(store: MemoryStore) -> None:
    mine = store.add("mine")
    store.add("another's", user="u2")
    assert store.get(mine.id[:8]) == mine


def test_a_beginning_that_fits_two_memories_is_refused_among_any_number_of_others(store: MemoryStore) -> None:
    store.add("my first")
    store.add_many([NewMemory(f"another's {number}", user="u2") for number in range(300)])
    mine = [store.add("my last"), *store.list()]
    with pytest.raises(AmbiguousIdError):
        store.get(mine[0].id[:8])


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_very_short_beginning_is_no_id(store: MemoryStore, length: int) -> None:
    with pytest.raises(MemoryNotFoundError):
        store.get(store.add(FACT).id[:length])


# Lists and counts


def test_a_list_is_newest_first_by_when_things_were_learnt(store: MemoryStore) -> None:
    for day in (3, 1, 5, 2, 4):
        store.add(f"of day {day}", created_at=datetime(2026, 1, day, tzinfo=UTC))
    assert contents(store.list()) == [f"of day {day}" for day in (5, 4, 3, 2, 1)]
    assert contents(store.list(limit=2)) == ["of day 5", "of day 4"]
    assert len(store.list(limit=100)) == 5


def test_a_list_narrows_by_category_project_and_tag(store: MemoryStore) -> None:
    store.add("a", category="gotcha", project="shop", tags=["x", "y"])
    store.add("b", category="todo", project="shop", tags=["x"])
    store.add("c", category="todo", project="blog")
    assert contents(store.list(category="gotcha")) == ["a"]
    assert set(contents(store.list(project="shop"))) == {"a", "b"}
    assert contents(store.list(tags=["x", "y"])) == ["a"]
    assert contents(store.list(category="todo", project="blog")) == ["c"]


def test_stats_count_what_is_there(store: MemoryStore) -> None:
    a = store.add("a", category="gotcha", project="shop")
    b = store.add("b", category="gotcha")
    store.archive(store.add("c", category="todo", project="shop").id)
    store.record_outcome([a.id], Outcome.WORKED)
    store.record_outcome([a.id, b.id], Outcome.FAILED)
    stats = store.stats()
    assert (stats.total_memories, stats.active_memories, stats.total_uses) == (3, 2, 3)
    assert stats.by_category == {"gotcha": 2, "todo": 1}
    assert stats.by_project == {"shop": 2}
    scores = [store.get(memory.id).outcome_score for memory in (a, b)]
    assert stats.avg_outcome_score == pytest.approx(sum(scores) / 2)
    assert (stats.search_mode, stats.embedding_model, stats.pending_embeddings) == ("hybrid", "tiny@1", 0)
    assert stats.message is None


def test_stats_of_an_empty_store(store: MemoryStore) -> None:
    stats = store.stats()
    assert (stats.total_memories, stats.active_memories, stats.total_uses, stats.avg_outcome_score) == (0, 0, 0, 0)
    assert (stats.by_category, stats.by_project) == ({}, {})


# Threads, upkeep and closing


def test_threads_write_and_read_the_same_store(store: MemoryStore) -> None:
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(5):
                store.add(f"own fact {thread} {number}")
                store.add(f"shared fact {number}")
                store.recall(f"own fact {thread}")
        except BaseException as error:  # noqa: BLE001 - told to the test below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(store.list()) == 6 * 5 + 5
    assert store.check() == []


def test_upkeep_changes_nothing_that_is_found(store: MemoryStore) -> None:  # I3
    memories = store.add_many([NewMemory(f"fact number {number}") for number in range(20)])
    store.forget(memories[0].id)
    store.archive(memories[1].id)
    store.optimize()
    found, listed = store.search("fact number 7"), store.list(include_archived=True)
    assert (found[0].memory, len(found)) == (memories[7], 10)
    for _ in range(3):
        store.optimize()
    assert ranking(store.search("fact number 7")) == ranking(found)
    assert store.list(include_archived=True) == listed
    assert store.check() == []


def test_many_single_writes_are_compacted_by_themselves(store: MemoryStore, folder: Path) -> None:  # H4, I2
    for number in range(70):
        store.add(f"fact number {number}")
    store.close(timeout=30)
    table = lancedb.connect(str(folder / "lance")).open_table("memories")
    stats: Any = table.stats()
    assert stats["fragment_stats"]["num_fragments"] < 60
    assert table.count_rows() == 70


def test_a_closed_store_says_so_and_may_be_closed_again(store: MemoryStore) -> None:
    memory = store.add(FACT)
    store.close()
    store.close()
    uses: list[Callable[[], object]] = [
        lambda: store.add("more"),
        lambda: store.get(memory.id),
        store.list,
        lambda: store.recall("money"),
        lambda: store.search("money"),
        lambda: store.forget(memory.id),
        lambda: store.record_outcome([memory.id], Outcome.WORKED),
        store.stats,
        store.check,
        store.optimize,
    ]
    for use in uses:
        with pytest.raises(StoreClosedError, match=r"MemoryStore\.open"):
            use()


def test_a_store_is_a_context_that_closes_itself(folder: Path) -> None:
    with MemoryStore.open(folder, embedder=TinyEmbedder()) as store:
        store.add(FACT)
    with pytest.raises(StoreClosedError):
        store.list()


def test_a_store_that_was_never_used_makes_no_folder(open_store: OpenStore, folder: Path) -> None:
    open_store().close()
    assert not folder.exists()


def test_the_folder_is_for_its_owner_alone(store: MemoryStore, folder: Path) -> None:
    store.add(FACT)
    assert folder.stat().st_mode & 0o077 == 0


def test_a_write_does_not_wait_long_for_a_model_that_loads_in_the_background(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived = threading.Event()

    def load(_: str | None) -> TinyEmbedder:
        arrived.wait(60)
        return TinyEmbedder()

    monkeypatch.setattr("runtime_memory.opening._PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr("runtime_memory.upkeep.load_embedder", load)
    monkeypatch.setattr(TinyEmbedder, "dimension", 384)
    with MemoryStore.open(folder, background_model=True) as store:
        store.warm()
        memory = store.add("the port is 5433")
        assert contents(store.search("port")) == ["the port is 5433"]
        assert store.stats().pending_embeddings == 1
        arrived.set()
        wait_until(lambda: store.stats().pending_embeddings == 0)
        assert store.search("port")[0].vector_rank == 1
        assert store.get(memory.id).content == "the port is 5433"


def wait_until(happened: Callable[[], bool]) -> None:
    for _ in range(600):
        if happened():
            return
        time.sleep(0.05)
    pytest.fail("it did not happen within 30 s")


def test_memories_that_were_changed_often_are_all_found(store: MemoryStore) -> None:
    memories = store.add_many([NewMemory(f"fact {number} of the shop") for number in range(20)])
    for tag in ("first", "second"):
        for memory in memories[:8]:
            store.edit(memory.id, tags=[tag])
        assert len(store.search("fact 7 of the shop", limit=50)) == 20
        assert min(score for _, score in store.candidates("fact 7 of the shop", limit=50).text) > 0
