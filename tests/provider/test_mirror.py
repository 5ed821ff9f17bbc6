"""Built-in notes as memories: added, corrected and removed as the host does it to them."""

from __future__ import annotations

import threading

import pytest

from provider import RuntimeMemoryProvider
from runtime_memory import MemoryStore
from tests.conftest import contents
from tests.provider.conftest import Begin, Stored, call, remember

OLD, NEW = "The office door code is 1234", "The office door code is 9876"
QUESTION = "What is the office door code?"


@pytest.fixture
def one(begin: Begin) -> RuntimeMemoryProvider:
    return begin(agent_workspace="hermes")


def add(one: RuntimeMemoryProvider, content: str = OLD, target: str = "memory") -> None:
    one.on_memory_write("add", target, content, {"write_origin": "tool", "session_id": "s1"})


def replace(one: RuntimeMemoryProvider, old_text: str, content: str = NEW, target: str = "memory") -> None:
    one.on_memory_write("replace", target, content, {"old_text": old_text})


def remove(one: RuntimeMemoryProvider, old_text: str, target: str = "memory") -> None:
    one.on_memory_write("remove", target, "", {"old_text": old_text})


@pytest.mark.parametrize(("target", "category"), [("memory", "context"), ("user", "preference")])
def test_a_note_becomes_a_memory(one: RuntimeMemoryProvider, stored: Stored, target: str, category: str) -> None:
    add(one, target=target)
    (memory,) = stored()
    assert (memory.content, memory.category.value, memory.source.value) == (OLD, category, "imported")
    assert memory.tags == ("hermes", f"builtin-{target}")
    assert OLD in one.prefetch(QUESTION)


def test_a_note_holds_in_every_project(one: RuntimeMemoryProvider, begin: Begin) -> None:
    add(one)
    assert OLD in begin(agent_workspace="elsewhere").prefetch(QUESTION)


@pytest.mark.parametrize("old_text", ["1234", OLD, " 1234 ", "office"])
def test_a_replaced_note_is_recalled_in_its_new_form_only(
    one: RuntimeMemoryProvider, stored: Stored, old_text: str
) -> None:
    add(one)
    replace(one, old_text)
    (memory,) = stored()
    (old,) = (each for each in stored(include_archived=True) if each.archived)
    assert (memory.content, memory.supersedes, old.content) == (NEW, old.id, OLD)
    assert NEW in one.prefetch(QUESTION)
    assert OLD not in one.prefetch(QUESTION)
    assert contents_of(call(one, "recall", {"query": QUESTION})) == [NEW]


def test_a_removed_note_is_recalled_no_more(one: RuntimeMemoryProvider, stored: Stored) -> None:
    add(one)
    remove(one, "1234")
    assert one.prefetch(QUESTION) == ""
    assert stored() == []
    assert len(stored(include_archived=True)) == 1


def test_a_note_replaced_and_replaced_back(one: RuntimeMemoryProvider, stored: Stored) -> None:
    add(one)
    replace(one, "1234")
    replace(one, "9876", OLD)
    assert contents(stored()) == [OLD]


def test_a_note_removed_and_added_again(one: RuntimeMemoryProvider, stored: Stored) -> None:
    add(one)
    remove(one, "1234")
    add(one)
    assert contents(stored()) == [OLD]


def test_a_note_replaced_by_itself_stays(one: RuntimeMemoryProvider, stored: Stored) -> None:
    add(one)
    replace(one, "1234", OLD)
    assert contents(stored()) == [OLD]


def test_the_same_note_in_every_session_is_one_memory(begin: Begin, stored: Stored) -> None:
    for session in ("s1", "s2", "s2"):
        add(begin(session, agent_workspace=session))
    assert len(stored(include_archived=True)) == 1


def test_a_later_session_replaces_what_an_earlier_one_noted(begin: Begin, stored: Stored) -> None:
    add(begin("s1", agent_workspace="a"))
    replace(begin("s2", agent_workspace="b"), "1234")
    assert contents(stored()) == [NEW]


def test_a_batch_is_kept_in_its_order(one: RuntimeMemoryProvider, stored: Stored) -> None:
    add(one, "first note")
    replace(one, "first", "second note")
    add(one, "third note")
    remove(one, "second")
    add(one, "fourth note")
    assert contents(stored()) == ["fourth note", "third note"]


def test_a_note_of_the_other_kind_is_left_alone(one: RuntimeMemoryProvider, stored: Stored) -> None:
    add(one, OLD, "user")
    remove(one, "1234", "memory")
    replace(one, "1234", "unrelated", "memory")
    assert set(contents(stored())) == {OLD, "unrelated"}


def test_a_memory_that_is_no_note_is_left_alone(one: RuntimeMemoryProvider, stored: Stored) -> None:
    remember(one, "The back door code is 1234")
    add(one)
    remove(one, "1234")
    assert contents(stored()) == ["The back door code is 1234"]


def test_a_note_that_was_known_before_can_still_be_corrected(begin: Begin, stored: Stored) -> None:
    one = begin("")
    remember(one, OLD)
    add(one)
    assert stored()[0].tags == ("hermes", "builtin-memory")
    replace(one, "1234")
    assert contents(stored()) == [NEW]


def test_users_and_profiles_have_notes_of_their_own(begin: Begin, stored: Stored) -> None:
    others = [begin(user_id="anna"), begin(agent_identity="work"), begin()]
    for other in others:
        add(other)
    replace(begin(user_id="ben"), "1234", "ben's own")
    replace(others[1], "1234")
    assert contents(stored(user="anna")) == [OLD]
    assert contents(stored(profile="work")) == [NEW, OLD]
    assert contents(stored()) == [OLD]


def test_a_note_is_durable_when_the_call_returns(one: RuntimeMemoryProvider, stored: Stored) -> None:
    before = set(threading.enumerate())
    add(one)
    assert contents(stored()) == [OLD]
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("value", ["false", "0", "no", "False"])
def test_mirroring_can_be_turned_off(value: str, begin: Begin, stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_MIRROR_WRITES", value)
    add(begin())
    assert stored() == []


@pytest.mark.parametrize(
    ("action", "target", "content", "metadata"),
    [
        ("add", "memory", "", {}),
        ("add", "memory", "  \n", {}),
        ("add", "somewhere", "a note", {}),
        ("forget", "memory", "a note", {}),
        ("remove", "memory", "", {}),
        ("remove", "memory", "", {"old_text": ""}),
        ("remove", "memory", "", {"old_text": None}),
        ("remove", "memory", "", None),
    ],
)
def test_what_means_nothing_changes_nothing(
    one: RuntimeMemoryProvider, stored: Stored, action: str, target: str, content: str, metadata: dict[str, str] | None
) -> None:
    add(one)
    one.on_memory_write(action, target, content, metadata)
    assert contents(stored()) == [OLD]
    assert call(one, "stats")["failures"] == {}


def test_a_failure_costs_the_host_nothing_and_is_counted(
    one: RuntimeMemoryProvider, monkeypatch: pytest.MonkeyPatch
) -> None:  # O1
    monkeypatch.setattr(MemoryStore, "write", lambda *_: 1 / 0)
    add(one)
    assert call(one, "stats")["failures"] == {"on_memory_write": 1}


def contents_of(answer: dict[str, list[dict[str, str]]]) -> list[str]:
    return [memory["content"] for memory in answer["memories"]]
