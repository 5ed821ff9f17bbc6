"""The tools: what has one clear meaning is accepted, the rest is refused with what is valid; nothing raises."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from provider import RuntimeMemoryProvider, tools
from provider.block import Block
from runtime_memory.embedding import load_embedder
from runtime_memory.errors import EmbeddingError
from tests.provider.conftest import PORT, Begin, Stored, call, remember

WRONG: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2.5,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "   ",
    "\x00",
    "\ud800",
    "x" * 200_000,
    [],
    {},
    [None],
    [[]],
    ["\ud800"],
    {"a": 1},
    object(),
    b"bytes",
]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "remember": {"content": "a fact", "category": "general", "tags": ["a"], "supersedes": None},
    "recall": {"query": "a fact", "limit": 3, "category": "general"},
    "outcome": {"outcome": "worked", "memory_ids": ["x"]},
    "stats": {},
}
CASES = [
    *((tool, {**given, name: value}) for tool, given in ARGUMENTS.items() for name in given for value in WRONG),
    *((tool, {n: v for n, v in given.items() if n != name}) for tool, given in ARGUMENTS.items() for name in given),
    *itertools.product(ARGUMENTS, [None, {}, [], [1, 2], "text", 5, True, {"unknown": 1}]),
]


@pytest.fixture(autouse=True)
def by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_EMBEDDING", "null")


@pytest.fixture
def one(begin: Begin) -> RuntimeMemoryProvider:
    return begin()


def test_every_wrong_argument_gives_an_answer(one: RuntimeMemoryProvider) -> None:  # O13
    for tool, args in CASES:
        text = one.handle_tool_call(f"runtimememory_{tool}", args)
        text.encode()
        answer = json.loads(text)
        assert isinstance(answer, dict), (tool, args)
        assert "the memory failed" not in str(answer.get("error")), (tool, str(args)[:80], answer)
        if "error" in answer:
            assert 10 < len(answer["error"]) < 600, (tool, str(args)[:80])
    assert call(one, "stats")["failures"] == {}


@pytest.mark.parametrize(
    ("tool", "args", "told"),
    [
        ("remember", {}, "content is required"),
        ("remember", {"content": "a fact"}, "category is required"),
        ("remember", {"content": "a fact", "category": "nonsense"}, "gotcha"),
        ("remember", {"content": "a fact", "category": "gotcha", "tags": 5}, "tags must be a list"),
        ("remember", {"content": "a fact", "category": "gotcha", "supersedes": "unknown-id"}, "unknown-id"),
        ("remember", {"content": "x" * 100_001, "category": "gotcha"}, "100,000"),
        ("recall", {"query": None}, "query is required"),
        ("recall", {"query": "x", "limit": -1}, "from 1 to 50"),
        ("recall", {"query": "x", "limit": 51}, "from 1 to 50"),
        ("recall", {"query": "x", "limit": True}, "from 1 to 50"),
        ("recall", {"query": "x", "category": "nonsense"}, "gotcha"),
        ("outcome", {}, "outcome is required"),
        ("outcome", {"outcome": "great"}, "worked, failed, partial"),
        ("outcome", {"outcome": "worked", "memory_ids": {"a": 1}}, "memory_ids must be a list"),
    ],
)
def test_a_refusal_says_what_is_valid(one: RuntimeMemoryProvider, tool: str, args: Any, told: str) -> None:
    assert told in call(one, tool, args)["error"]


def test_an_unknown_tool_is_answered_with_the_known_ones(one: RuntimeMemoryProvider) -> None:
    answer = json.loads(one.handle_tool_call("runtimememory_nonsense", {}))
    assert tools.REMEMBER in answer["error"]


def test_unknown_ids_are_named_and_nothing_is_recorded_for_them(one: RuntimeMemoryProvider) -> None:
    id_ = remember(one)
    assert call(one, "outcome", {"outcome": "worked", "memory_ids": ["nope", id_]}) == {
        "recorded": True,
        "outcome": "worked",
        "updated": [{"id": id_, "outcome_score": 0.2}],
        "unknown": ["nope"],
    }
    answer = call(one, "outcome", {"outcome": "worked", "memory_ids": "nope"})
    assert answer["recorded"] is False
    assert "nope" in answer["reason"]


def test_remembering_tells_what_was_stored(one: RuntimeMemoryProvider, stored: Stored) -> None:
    first = call(one, "remember", {"content": PORT, "category": " Environment ", "tags": "db, staging"})
    (memory,) = stored()
    assert first == {"stored": True, "memory_id": memory.id, "category": "environment", "project": None}
    assert (memory.content, memory.tags, memory.source.value) == (PORT, ("db", "staging"), "explicit")
    again = call(one, "remember", {"content": PORT, "category": "environment"})
    assert again == first | {"duplicate": True}


def test_a_fact_saved_again_in_a_later_session_is_one_memory(begin: Begin) -> None:  # E1
    assert remember(begin("s1")) == remember(begin("s2"))


def test_a_correction_retires_what_it_supersedes(one: RuntimeMemoryProvider, stored: Stored) -> None:  # A20
    old = remember(one, "ssh listens on port 22")
    new = remember(one, "ssh listens on port 49222", supersedes=old)
    assert [memory.id for memory in stored()] == [new]
    assert {memory.id for memory in stored(include_archived=True)} == {old, new}


@pytest.mark.parametrize(("limit", "count"), [("5", 5), (5.0, 5), (" 3 ", 3), (None, 10), ("", 10), (1, 1)])
def test_a_limit_in_any_clear_form(one: RuntimeMemoryProvider, limit: Any, count: int) -> None:
    for number in range(12):
        remember(one, f"port number {number}")
    answer = call(one, "recall", {"query": "port number", "limit": limit})
    assert answer["count"] == len(answer["memories"]) == count


def test_a_recalled_memory_has_the_fields_of_the_contract(one: RuntimeMemoryProvider) -> None:
    id_ = remember(one)
    (found,) = call(one, "recall", {"query": "staging port"})["memories"]
    assert set(found) == {"id", "content", "category", "score", "outcome_score"}
    assert (found["id"], found["content"], found["category"]) == (id_, PORT, "environment")


@pytest.mark.parametrize("form", ["{a},{b}", "`{a}` {b}", '["{a}", "{b}"]', "{a}\n{b}"])
def test_ids_in_any_clear_form(one: RuntimeMemoryProvider, form: str) -> None:
    a, b = remember(one, "first fact"), remember(one, "second fact")
    answer = call(one, "outcome", {"outcome": "worked", "memory_ids": form.format(a=a, b=b)})
    assert [updated["id"] for updated in answer["updated"]] == [a, b]


def test_stats_show_counts_and_health(one: RuntimeMemoryProvider) -> None:
    remember(one)
    stats = call(one, "stats")
    assert stats["total_memories"] == stats["active_memories"] == 1
    assert (stats["by_category"], stats["total_uses"], stats["avg_outcome_score"]) == ({"environment": 1}, 0, 0.0)
    assert (stats["search_mode"], stats["pending_embeddings"], stats["failures"]) == ("text", 1, {})


def test_schemas_are_fresh_copies_in_the_form_of_openai() -> None:
    one = RuntimeMemoryProvider()
    first = one.get_tool_schemas()
    first[0]["parameters"]["properties"].clear()
    names = [schema["name"] for schema in one.get_tool_schemas()]
    assert names == [f"runtimememory_{tool}" for tool in ("remember", "recall", "outcome", "stats")]
    assert one.get_tool_schemas()[0]["parameters"]["properties"]
    for schema in one.get_tool_schemas():
        assert set(schema) == {"name", "description", "parameters"}
        assert set(schema["parameters"]["required"]) <= set(schema["parameters"]["properties"])


def test_the_provider_costs_few_tokens() -> None:  # O14
    one = RuntimeMemoryProvider()
    text = one.system_prompt_block() + json.dumps(one.get_tool_schemas())
    assert _tokens(text) < 900


def test_the_block_of_nothing_is_empty(one: RuntimeMemoryProvider) -> None:
    assert one.prefetch("which port?") == Block("", ()).text


def _tokens(text: str) -> int:
    """Count with the model's own tokenizer where it is here, which cuts finer than those of large models."""
    try:
        embedder: Any = load_embedder()
    except EmbeddingError:
        return round(len(text) / 3.5)
    return len(embedder._tokenizer.encode(text, add_special_tokens=False).ids)
