"""What belongs to another user, profile or project does not exist for the caller, whatever the operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runtime_memory import Memory, MemoryStore, NewMemory, Outcome
from runtime_memory.errors import InvalidInputError, MemoryNotFoundError
from tests.conftest import OpenStore, contents

FACT = "the vault code is heliotrope"

By = dict[str, Any]
OWNER: By = {}
CALLERS: dict[str, tuple[By, By]] = {  # who wrote it, and who must not see it
    "a user's, by another user": ({"user": "a"}, {"user": "b"}),
    "a user's, by the owner": ({"user": "a"}, OWNER),
    "the owner's, by a user": (OWNER, {"user": "a"}),
    "a profile's, by the default profile": ({"profile": "work"}, OWNER),
    "a profile's, by another profile": ({"profile": "work"}, {"profile": "home"}),
    "a user's, by the same user in another profile": (
        {"user": "a", "profile": "work"},
        {"user": "a", "profile": "home"},
    ),
    "a user's, by another user in the same profile": (
        {"user": "a", "profile": "work"},
        {"user": "b", "profile": "work"},
    ),
    "a user's, by one whose name begins alike": ({"user": "ab"}, {"user": "a"}),
    "a user's, by one whose name differs in case": ({"user": "A"}, {"user": "a"}),
}
IDS = list(CALLERS)
Reading = Callable[[MemoryStore, Memory, By], list[str]]
READINGS: dict[str, Reading] = {
    "recall": lambda store, memory, by: contents(store.recall(FACT, **by)),
    "search": lambda store, memory, by: contents(store.search(FACT, include_archived=True, **by)),
    "explain": lambda store, memory, by: contents(store.explain(FACT, **by).results),
    "list": lambda store, memory, by: contents(store.list(include_archived=True, **by)),
    "stats": lambda store, memory, by: [FACT] * store.stats(**by).total_memories,
    "categories": lambda store, memory, by: list(store.stats(**by).by_category),
    "projects": lambda store, memory, by: list(store.stats(**by).by_project),
}
Change = Callable[[MemoryStore, str, By], object]
CHANGES: dict[str, Change] = {
    "get": lambda store, id_, by: store.get(id_, **by),
    "edit": lambda store, id_, by: store.edit(id_, content="changed", **by),
    "edit of tags": lambda store, id_, by: store.edit(id_, tags=["changed"], **by),
    "archive": lambda store, id_, by: store.archive(id_, **by),
    "forget": lambda store, id_, by: store.forget(id_, **by),
    "outcome": lambda store, id_, by: store.record_outcome([id_], Outcome.FAILED, **by),
    "supersede": lambda store, id_, by: store.add("changed", supersedes=id_, **by),
}


@pytest.mark.parametrize(("writer", "caller"), CALLERS.values(), ids=IDS)
def test_no_reading_shows_it(store: MemoryStore, writer: By, caller: By) -> None:  # G1, G2
    memory = store.add(FACT, category="gotcha", project="shop", **writer)
    seen = {name: read(store, memory, caller) for name, read in READINGS.items()}
    assert {name: found for name, found in seen.items() if found} == {}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_no_operation_by_id_reaches_it(store: MemoryStore, change: Change) -> None:
    for writer, caller in CALLERS.values():
        memory = store.add(FACT, **writer)
        for id_ in (memory.id, memory.id[:35]):
            with pytest.raises(MemoryNotFoundError) as caught:
                change(store, id_, caller)
            assert FACT not in str(caught.value)
        assert store.get(memory.id, **writer) == memory
        assert "changed" not in contents(store.list(include_archived=True, **caller))


@pytest.mark.parametrize(
    "writer", [OWNER, {"user": "a"}, {"profile": "work"}, {"user": "a", "profile": "work"}], ids=str
)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_writer_reaches_all_of_it(store: MemoryStore, writer: By, change: Change) -> None:
    memory = store.add(FACT, project="shop", **writer)
    assert [name for name, read in READINGS.items() if not read(store, memory, writer)] == []
    change(store, memory.id, writer)


def test_a_duplicate_of_another_users_memory_is_a_memory_of_its_own(store: MemoryStore) -> None:
    of_a, of_b = store.write([NewMemory(FACT, user="a"), NewMemory(FACT, user="b")])
    assert (of_a.duplicate, of_b.duplicate) == (False, False)
    assert of_a.memory.id != of_b.memory.id
    store.forget(of_a.memory.id, user="a")
    assert store.get(of_b.memory.id, user="b").content == FACT


def test_near_duplicates_of_another_user_do_not_hide_ones_own(wide_store: MemoryStore) -> None:
    wide_store.add(f"{FACT}!", user="a")
    mine = wide_store.add(FACT, user="b")
    assert [hit.memory.id for hit in wide_store.recall("what is the vault code", user="b")] == [mine.id]


def test_many_memories_of_others_do_not_crowd_out_ones_own(store: MemoryStore) -> None:
    store.add_many([NewMemory(f"{FACT} {number}", user="a") for number in range(300)])
    mine = store.add(f"{FACT} of mine", user="b")
    (hit,) = store.search(FACT, user="b")
    assert (hit.memory, hit.vector_rank, hit.text_rank) == (mine, 1, 1)


def test_how_rare_a_word_is_among_others_memories_does_not_change_ones_own_recall(wide_store: MemoryStore) -> None:
    wide_store.add(FACT, user="b")
    before = wide_store.explain("what is the vault code", user="b")
    wide_store.add_many([NewMemory(f"vault code {number}", user="a") for number in range(50)])
    after = wide_store.explain("what is the vault code", user="b")
    assert after.threshold == before.threshold
    assert after.results[0].relevance == pytest.approx(before.results[0].relevance)


@pytest.mark.parametrize("unset", ["", None])
def test_an_empty_user_or_profile_is_none(store: MemoryStore, unset: str | None) -> None:  # G2
    memory = store.add(FACT, user=unset, profile=unset)
    assert (memory.user, memory.profile) == (None, None)
    assert store.get(memory.id) == store.get(memory.id, user=unset, profile=unset) == memory


def test_a_user_of_white_space_is_not_taken_for_the_owner(store: MemoryStore) -> None:
    store.add(FACT)
    for user in (" ", "\t", "\u00a0"):
        try:
            assert store.search(FACT, user=user) == []
        except InvalidInputError:
            continue


# Profiles


def test_a_named_profile_sees_what_was_written_without_one(store: MemoryStore) -> None:
    memory = store.add(FACT)
    assert store.get(memory.id, profile="work") == memory
    assert contents(store.recall(FACT, profile="work")) == [FACT]


def test_a_profile_of_the_settings_is_the_one_that_asks(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store().add(FACT, profile="work")
    monkeypatch.setenv("RUNTIME_MEMORY_PROFILE", "work")
    assert contents(open_store().list()) == [FACT]
    assert open_store().list(profile="home") == []


def test_shared_profiles_see_each_other_but_users_stay_apart(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_PROFILES", "shared")
    store = open_store()
    store.add(FACT, profile="work")
    store.add("of a user", user="a", profile="work")
    callers: list[By] = [{}, {"profile": "home"}, {"profile": "work"}]
    for caller in callers:
        assert contents(store.list(**caller)) == [FACT]
    assert contents(store.list(user="a", profile="home")) == ["of a user"]


# Projects and sessions


def test_a_project_sees_its_own_and_the_global_memories(store: MemoryStore) -> None:  # A11
    store.add("global fact")
    store.add("fact of the shop", project="shop")
    store.add("fact of the blog", project="blog")
    store.add("global fact learnt in the blog", project="blog", scope="global")
    expected = {"global fact", "fact of the shop", "global fact learnt in the blog"}
    assert set(contents(store.list(project="shop"))) == expected
    assert set(contents(store.search("fact", project="shop"))) == expected
    assert set(contents(store.recall("fact", project="shop"))) == expected
    assert len(store.list()) == len(store.search("fact")) == 4


def test_the_memories_of_one_project_do_not_surface_in_another(wide_store: MemoryStore) -> None:  # A11
    wide_store.add_many([NewMemory(f"测试模型访问 {number}", project="A") for number in range(9)])
    assert wide_store.recall("测试模型访问", project="B") == []
    assert len(wide_store.recall("测试模型访问", project="A")) > 0


def test_the_memories_of_a_session_are_seen_in_it_and_where_no_project_narrows(store: MemoryStore) -> None:
    store.add("fact of the session", session="s1", scope="session", project="shop")
    assert contents(store.search("fact", project="shop", session="s1")) == ["fact of the session"]
    assert store.search("fact", project="shop", session="s2") == [] == store.search("fact", project="shop")
    assert contents(store.search("fact")) == ["fact of the session"]


def test_a_session_noted_on_a_global_memory_hides_it_from_nobody(store: MemoryStore) -> None:
    store.add("fact", session="s1")
    assert contents(store.search("fact", project="shop", session="s2")) == ["fact"]
