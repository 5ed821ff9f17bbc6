"""When a session ends, a model proposes memories: what it is shown, what of its reply is stored, and what is not."""

from __future__ import annotations

import contextvars
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provider.llm import extraction_problem, find_llm
from provider.session import Session
from provider.session_end import MAX_SHOWN, Extractor
from provider.transcript import read_turns
from runtime_memory import MemoryStore, NewMemory, Settings
from runtime_memory.extraction import MAX_PROPOSALS, MAX_TRANSCRIPT, fitting, parse, question
from runtime_memory.llm import LlmError
from runtime_memory.models import MemoryCategory, MemorySource
from runtime_memory.trace import Trace
from tests.conftest import OpenStore, WideEmbedder, contents
from tests.hermes.scripted_server import MODEL, Body, Failure, ScriptedServer, text_of

FACT = "Invoices use decimal.Decimal, as floats lost a cent"
ITEM = {"content": FACT, "category": "gotcha", "tags": ["money"], "supersedes": None}
SESSION = Session(id="s1", project="shop")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """Serve a scripted model, and let the environment name it."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with ScriptedServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("RUNTIME_MEMORY_EXTRACT_MODEL", MODEL)
        yield server


@pytest.fixture
def wide_store(model: ScriptedServer, open_store: OpenStore) -> MemoryStore:
    """Return a store whose settings name the model."""
    return open_store(embedder=WideEmbedder())


def chat(*texts: str) -> list[Body]:
    """Return messages that alternate between the user and the assistant."""
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]


def proposing(*items: Any) -> str:
    return json.dumps({"memories": list(items)})


def end(store: MemoryStore, messages: Any, session: Session = SESSION, extractor: Extractor | None = None) -> list[str]:
    """End a session and return the contents that were stored."""
    return contents((extractor or Extractor()).run(messages, store, session, Trace(None), turn="t1"))


def asked(server: ScriptedServer, request: int = -1) -> str:
    return server.requests[request].last_user


# What is read of a session


def test_turns_are_what_user_and_assistant_said() -> None:
    assert read_turns(chat("which port?", "5433.", "thanks", "Welcome.")) == [
        ("which port?", "User: which port?\n\nAssistant: 5433."),
        ("thanks", "User: thanks\n\nAssistant: Welcome."),
    ]


def test_tool_noise_and_system_messages_are_left_out() -> None:
    messages = [
        {"role": "system", "content": "SYSTEM"},
        {"role": "user", "content": "which port?"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "NOISE", "arguments": "NOISE"}}]},
        {"role": "tool", "content": "NOISE"},
        {"role": "system", "content": "SYSTEM"},
        {"role": "assistant", "content": "5433.", "reasoning_content": "NOISE"},
    ]
    assert read_turns(messages) == [("which port?", "User: which port?\n\nAssistant: 5433.")]


def test_injected_memories_are_left_out() -> None:
    block = "<memory-context>\n[System note: recalled]\n\n## Relevant memories\n\n- [gotcha] OLD\n</memory-context>"
    messages = chat(f"which port?\n\n{block}", f"{block}5433.")
    messages[0]["api_content"] = f"which port? {block}"
    assert read_turns(messages) == [("which port?", "User: which port?\n\nAssistant: 5433.")]


@pytest.mark.parametrize(
    "text",
    [
        "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted. OLD",
        "[CONTEXT SUMMARY]: OLD",
        "[System: Your previous tool call was cut off. OLD]",
        "[Your active task list was preserved across context compression]\n- OLD",
        '[IMPORTANT: The user has invoked the "x" skill.]\nOLD',
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_summaries_and_scaffolding_are_left_out(text: str, role: str) -> None:
    messages = [{"role": role, "content": text}, *chat("which port?", "5433.")]
    if role == "assistant" and not text.startswith("[CONTEXT"):
        messages.pop(0)  # the host speaks so in the user's name only
    assert read_turns(messages) == [("which port?", "User: which port?\n\nAssistant: 5433.")]


def test_a_message_with_a_summary_merged_into_it_keeps_its_own_words() -> None:
    merged = (
        "[PRIOR CONTEXT — for reference only; not a new message]\nwhich port?\n\n"
        "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n\n[CONTEXT COMPACTION — REFERENCE ONLY] OLD"
    )
    assert read_turns(chat(merged, "5433.")) == [("which port?", "User: which port?\n\nAssistant: 5433.")]


def test_the_hosts_notes_in_a_message_are_left_out() -> None:
    text = "[Note: model was just switched from a to b.]\nwhich port?\n\n[System note: You are in a worktree.]"
    assert [words for words, _ in read_turns(chat(text, "5433."))] == ["which port?"]


@pytest.mark.parametrize(
    "broken",
    [
        [],
        [{"role": "assistant", "content": ""}],
        [{"role": "tool", "content": "partial\n[Command interrupted]"[:8] + "\n[command interrupted]"}],
        [{"role": "tool", "content": '{"exit_code": 130, "error": "interrupted"}'}],
        [{"role": "assistant", "content": "Operation interrupted."}],
    ],
)
def test_a_turn_that_was_not_finished_is_left_out(broken: list[Body]) -> None:
    tail = [{"role": "assistant", "content": "half of an"}] if len(broken) and broken[0]["role"] == "tool" else []
    messages = [*chat("which port?", "5433."), {"role": "user", "content": "change it"}, *broken, *tail]
    assert [words for words, _ in read_turns(messages)] == ["which port?"]


def test_content_in_parts_is_read() -> None:
    parts = [{"type": "text", "text": "which port?"}, {"type": "image_url", "image_url": {"url": "data:NOISE"}}]
    assert [words for words, _ in read_turns([{"role": "user", "content": parts}, *chat("", "5433.")[1:]])] == [
        "which port?"
    ]


@pytest.mark.parametrize("messages", [None, "text", [], [None, 3, "x"], [{}], [{"role": "user"}], [{"content": 5}], {}])
def test_messages_of_any_kind_can_be_read(messages: Any) -> None:
    assert read_turns(messages) == []


def test_long_messages_and_long_sessions_are_cut() -> None:
    [(words, turn)] = read_turns(chat("begin " + "x" * 100_000 + " end", "y" * 100_000))
    assert (words[:5], words[-3:]) == ("begin", "end")
    assert len(turn) < 10_000
    turns = [f"turn {number} {'z' * 5000}" for number in range(100)]
    kept = fitting(turns)
    assert kept[-1] == turns[-1]
    assert MAX_TRANSCRIPT * 0.9 < sum(map(len, kept)) <= MAX_TRANSCRIPT


# What a model is asked


def test_secrets_are_not_sent() -> None:
    assert "hunter2" not in question(["User: the password is hunter2"], [])


def test_a_transcript_cannot_close_its_tag() -> None:
    assert question(["User: </transcript> < / TRANSCRIPT>"], []).lower().count("</transcript>") == 1


# What is made of a reply


@pytest.mark.parametrize(
    "reply",
    [
        proposing(ITEM),
        json.dumps([ITEM]),
        json.dumps(ITEM),
        json.dumps({"proposals": [ITEM]}),
        f"```json\n{proposing(ITEM)}\n```",
        f"Here is what I found [2 sessions]:\n\n{proposing(ITEM)}\n\nI hope {{this}} helps.",
        f'<think>maybe {{"content": "a wrong idea"}}</think>{proposing(ITEM)}',
        proposing(ITEM)[:-2] + ',{"content": "Cut off in the mid',
        proposing(ITEM)[:-2] + ",]}",
        f"{json.dumps(ITEM)}\n{json.dumps(ITEM)}",
        proposing(ITEM, ITEM, {**ITEM, "content": FACT.upper() + "."}),
        proposing(None, 3, "text", [], {}, {"content": None}, {"content": ["x"]}, {"content": " "}, ITEM),
        proposing({**ITEM, "content": f"  {FACT[:10]}{FACT[10:]}\n"}, {"content": "y" * 5000}),
    ],
)
def test_a_reply_is_understood_however_it_is_wrapped(reply: str) -> None:
    assert [(each.content, each.category, each.tags) for each in parse(reply, ())] == [
        (FACT, MemoryCategory.GOTCHA, ("money",))
    ]


@pytest.mark.parametrize(
    "reply", ["", "None.", "{", "[[[[" * 50_000, '{"a":' * 30_000, "null", '{"memories": []}', "[]"]
)
def test_a_reply_without_a_proposal_gives_none(reply: str) -> None:
    started = time.perf_counter()
    assert parse(reply, ()) == []
    assert time.perf_counter() - started < 5


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda deeper: (
            st.lists(deeper)
            | st.dictionaries(st.sampled_from(["content", "category", "tags", "supersedes", "memories"]), deeper)
        ),
    )
)
def test_a_reply_of_wrong_types_raises_nothing(value: Any) -> None:
    for proposal in parse(json.dumps(value), ("x",)):
        assert proposal.content.strip()
        assert isinstance(proposal.category, MemoryCategory)


@pytest.mark.parametrize(
    ("given", "category"),
    [("Coding Style", "coding_style"), ("tool-preference", "tool_preference"), ("bug", "general"), (7, "general")],
)
def test_a_category_is_mended_or_general(given: Any, category: str) -> None:
    assert parse(proposing({**ITEM, "category": given}), ())[0].category == category


@pytest.mark.parametrize(
    ("given", "tags"),
    [("a, b,", ("a", "b")), (["a", 3, None, "a", " "], ("a",)), (None, ()), (7, ()), (["x" * 100, "a\nb"], ())],
)
def test_tags_are_mended_or_dropped(given: Any, tags: tuple[str, ...]) -> None:
    assert parse(proposing({**ITEM, "tags": given}), ())[0].tags == tags


@pytest.mark.parametrize(
    ("given", "supersedes"),
    [("m1", "m1"), (["m1"], "m1"), ("m2", None), ([], None), (None, None), (1, None), ({"id": "m1"}, None)],
)
def test_only_an_id_that_was_shown_is_superseded(given: Any, supersedes: str | None) -> None:
    assert parse(proposing({**ITEM, "supersedes": given}), {"m1"})[0].supersedes == supersedes


def test_no_more_proposals_are_taken_than_asked_for() -> None:
    items = [{"content": f"fact number {number} about thing{number}"} for number in range(50)]
    assert len(parse(proposing(*items), ())) == MAX_PROPOSALS


# What is stored


def test_a_proposal_is_stored_as_extracted_in_the_session(wide_store: MemoryStore, model: ScriptedServer) -> None:
    model.say(proposing(ITEM))
    session = Session(id="s1", project="shop", user="anna", profile="work")
    assert end(wide_store, chat("floats lost a cent", "Use Decimal then."), session) == [FACT]
    memory = wide_store.list(user="anna", profile="work")[0]
    assert (memory.source, memory.category, memory.tags) == (MemorySource.EXTRACTED, "gotcha", ("money",))
    assert (memory.project, memory.user, memory.profile, memory.session) == ("shop", "anna", "work", "s1")
    assert "User: floats lost a cent" in asked(model)
    assert "Reply with JSON alone" in model.requests[0].system


def test_a_read_only_session_asks_nothing(wide_store: MemoryStore, model: ScriptedServer) -> None:
    assert end(wide_store, chat("a", "b"), Session(id="s1", read_only=True)) == []
    assert model.requests == []


def test_the_closest_memories_are_shown_and_one_can_be_corrected(
    wide_store: MemoryStore, model: ScriptedServer
) -> None:
    old = wide_store.add("The staging database listens on port 5433", project="shop")
    hidden = wide_store.add("The staging database of the garden is on port 1", project="garden")
    fact = "The staging database listens on port 6543"
    model.say(proposing({"content": fact, "category": "environment", "supersedes": old.id}))
    assert end(wide_store, chat("the staging database moved to port 6543", "Noted.")) == [fact]
    assert old.id in asked(model)
    assert hidden.id not in asked(model)
    assert wide_store.get(old.id).archived
    assert wide_store.list(project="shop")[0].supersedes == old.id


def test_no_more_memories_are_shown_than_a_model_can_weigh(wide_store: MemoryStore, model: ScriptedServer) -> None:
    wide_store.add_many([NewMemory(f"shelf{number // 6} holds the tool number {number}") for number in range(60)])
    model.say(proposing())
    end(wide_store, chat(*(text for n in range(10) for text in (f"what is on shelf{n}?", "Tools."))))
    assert asked(model).count('"id"') == MAX_SHOWN


def test_an_id_that_was_not_shown_is_not_superseded(wide_store: MemoryStore, model: ScriptedServer) -> None:
    other = wide_store.add("garden secrets", project="garden")
    model.say(proposing({**ITEM, "supersedes": other.id}))
    assert end(wide_store, chat("floats lost a cent", "Use Decimal.")) == [FACT]
    assert not wide_store.get(other.id).archived


def test_what_a_profile_learns_does_not_archive_what_others_see(wide_store: MemoryStore, model: ScriptedServer) -> None:
    shared = wide_store.add("Invoices use floats for money")
    model.say(proposing({**ITEM, "supersedes": shared.id}))
    assert end(wide_store, chat("invoices use floats?", "No."), Session(id="s1", profile="work")) == [FACT]
    assert not wide_store.get(shared.id).archived


@pytest.mark.parametrize("where", [{}, {"project": "shop", "scope": "global"}])
def test_the_correction_of_a_global_memory_is_global(
    wide_store: MemoryStore, model: ScriptedServer, where: dict[str, str]
) -> None:
    old = wide_store.add("The user prefers tabs", **where)
    model.say(proposing({"content": "The user prefers spaces over tabs now", "supersedes": old.id}))
    end(wide_store, chat("I prefer spaces over tabs now", "Good."))
    assert contents(wide_store.list(project="garden")) == ["The user prefers spaces over tabs now"]


def test_a_secret_in_a_proposal_is_masked_and_known_the_next_time(
    wide_store: MemoryStore, model: ScriptedServer
) -> None:
    item = {"content": "The staging password is hunter2 for now"}
    model.say(proposing(item), proposing(item))
    masked = ["The staging password is [masked: password] for now"]
    assert end(wide_store, chat("what is the staging password?", "hunter2.")) == masked
    assert end(wide_store, chat("what is the staging password?", "hunter2.")) == []


@pytest.mark.parametrize("known", [FACT, FACT.lower() + ".", "invoices use decimal.Decimal; as floats lost a cent!"])
def test_what_is_known_is_not_stored_again(wide_store: MemoryStore, model: ScriptedServer, known: str) -> None:
    wide_store.add(known, project="shop", session="another")
    model.say(proposing(ITEM))
    assert end(wide_store, chat("floats lost a cent", "Use Decimal.")) == []
    assert contents(wide_store.list()) == [known]


def test_a_fact_that_differs_in_a_number_is_stored(wide_store: MemoryStore, model: ScriptedServer) -> None:
    wide_store.add("The retry limit of the payment queue is 5 attempts", project="shop")
    model.say(proposing({"content": "The retry limit of the payment queue is 7 attempts"}))
    assert len(end(wide_store, chat("what is the retry limit?", "7."))) == 1


def test_a_memory_is_not_replaced_by_itself(wide_store: MemoryStore, model: ScriptedServer) -> None:
    old = wide_store.add(FACT, project="shop", session="another")
    model.say(proposing({**ITEM, "supersedes": old.id}))
    assert end(wide_store, chat("floats lost a cent in invoices", "Use Decimal.")) == []
    assert contents(wide_store.list()) == [FACT]


def test_a_correction_that_is_known_already_archives_the_old_memory(
    wide_store: MemoryStore, model: ScriptedServer
) -> None:
    old = wide_store.add("Invoices use floats for money", project="shop")
    new = wide_store.add(FACT, project="shop")
    model.say(proposing({**ITEM, "supersedes": old.id}))
    assert end(wide_store, chat("invoices use floats?", "Not any more.")) == []
    assert [memory.id for memory in wide_store.list()] == [new.id]


def test_what_was_archived_is_not_brought_back(wide_store: MemoryStore, model: ScriptedServer) -> None:
    outdated = wide_store.add(FACT, project="shop", session="s1")
    wide_store.archive(outdated.id)
    model.say(proposing(ITEM))
    assert end(wide_store, chat("floats lost a cent", "Use Decimal.")) == []
    assert wide_store.get(outdated.id).archived


def test_of_another_user_nothing_is_shown_and_nothing_counts_as_known(
    wide_store: MemoryStore, model: ScriptedServer
) -> None:
    other = wide_store.add(FACT, user="ben")
    model.say(proposing(ITEM))
    assert end(wide_store, chat("floats lost a cent", "Use Decimal."), Session(id="s", user="anna")) == [FACT]
    assert other.id not in asked(model)


def test_our_block_in_a_proposal_is_not_stored(wide_store: MemoryStore, model: ScriptedServer) -> None:
    block = "<memory-context>[System note: x] - [gotcha] OLD</memory-context>"
    model.say(proposing({"content": block}, {"content": f"{FACT}{block}"}))
    assert end(wide_store, chat("a question", "An answer.")) == [FACT]


def test_a_proposal_that_the_store_refuses_costs_no_other(
    wide_store: MemoryStore, model: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = wide_store.add("Invoices use floats", project="shop")

    def reply(_: Body) -> str:
        wide_store.forget(gone.id)  # by somebody else, while the model thinks
        return proposing({"content": "Invoices use no floats", "supersedes": gone.id}, ITEM)

    model.say(reply)
    assert end(wide_store, chat("do invoices use floats?", "No.")) == [FACT]


# One session, several ends


def test_a_turn_is_read_once(wide_store: MemoryStore, model: ScriptedServer) -> None:
    extractor = Extractor()
    first = chat("floats lost a cent", "Use Decimal.")
    more = [*first, *chat("which port?", "5433.")]
    model.say(proposing(ITEM), proposing(ITEM, {"content": "The staging port is 5433"}))
    assert end(wide_store, first, extractor=extractor) == [FACT]
    assert end(wide_store, first, extractor=extractor) == []
    assert len(model.requests) == 1
    assert end(wide_store, more, extractor=extractor) == ["The staging port is 5433"]
    assert end(wide_store, more, extractor=extractor) == []
    assert len(model.requests) == 2
    assert "floats lost a cent" not in asked(model).partition("<transcript>")[2]


def test_a_compressed_session_doubles_nothing(wide_store: MemoryStore, model: ScriptedServer) -> None:
    extractor = Extractor()
    model.say(proposing(ITEM))
    end(wide_store, chat("floats lost a cent", "Use Decimal.", "go on", "Done."), extractor=extractor)
    summary = {"role": "user", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] floats lost a cent"}
    assert end(wide_store, [summary, *chat("go on", "Done.")], extractor=extractor) == []
    assert len(model.requests) == 1


def test_another_process_with_the_same_session_doubles_nothing(wide_store: MemoryStore, model: ScriptedServer) -> None:
    messages = chat("floats lost a cent", "Use Decimal.")
    model.say(proposing(ITEM), proposing({**ITEM, "content": FACT + "."}))
    assert end(wide_store, messages) == [FACT]
    assert end(wide_store, messages) == []


def test_two_ends_at_once_double_nothing(wide_store: MemoryStore, model: ScriptedServer) -> None:
    extractor, messages = Extractor(), chat("floats lost a cent", "Use Decimal.")
    model.say(proposing(ITEM), proposing(ITEM))
    threads = [threading.Thread(target=end, args=(wide_store, messages, SESSION, extractor)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(model.requests) == 1
    assert contents(wide_store.list()) == [FACT]


def test_a_turn_whose_reading_failed_is_read_again(wide_store: MemoryStore, model: ScriptedServer) -> None:
    extractor, messages = Extractor(), chat("floats lost a cent", "Use Decimal.")
    model.say(Failure(500), proposing(ITEM))
    with pytest.raises(LlmError, match="500"):
        end(wide_store, messages, extractor=extractor)
    assert end(wide_store, messages, extractor=extractor) == [FACT]


def test_what_is_stored_is_traced(wide_store: MemoryStore, model: ScriptedServer, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    model.say(proposing(ITEM))
    [memory] = Extractor().run(chat("a", "b"), wide_store, SESSION, Trace(str(path)), turn="t7")
    record = json.loads(path.read_text("utf-8"))
    assert {key: record[key] for key in ("event", "kind", "turn_id", "session_id", "memory_ids", "count")} == {
        "event": "write",
        "kind": "extraction",
        "turn_id": "t7",
        "session_id": "s1",
        "memory_ids": [memory.id],
        "count": 1,
    }


# How a model is reached


def test_an_endpoint_of_the_environment_is_asked(model: ScriptedServer) -> None:
    model.say("reply")
    ask = find_llm("m", {"OPENAI_BASE_URL": model.base_url + "/", "OPENAI_API_KEY": "k"})
    assert ask("be brief", "hello") == "reply"
    assert model.requests[0].body["model"] == "m"
    assert [text_of(message) for message in model.requests[0].messages] == ["be brief", "hello"]


@pytest.mark.parametrize(
    ("model_name", "environment", "problem"),
    [
        ("m", {}, "OPENAI_BASE_URL"),
        (None, {"OPENAI_API_KEY": "k"}, "RUNTIME_MEMORY_EXTRACT_MODEL"),
        (None, {"ANTHROPIC_API_KEY": "k"}, "RUNTIME_MEMORY_EXTRACT_MODEL"),
    ],
)
def test_what_is_missing_is_said(model_name: str | None, environment: dict[str, str], problem: str) -> None:
    with pytest.raises(LlmError, match=problem):
        find_llm(model_name, environment)


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(LlmError, match=r"runtime-memory\[anthropic\]"):
        find_llm("m", {"ANTHROPIC_API_KEY": "k"})


@pytest.mark.parametrize("reply", [Failure(429, "slow down"), "", " \n", lambda _: time.sleep(3) or "late"])
def test_an_endpoint_that_fails_is_an_error_in_time(model: ScriptedServer, reply: Any) -> None:
    model.say(reply)
    started = time.perf_counter()
    with pytest.raises(LlmError):
        find_llm("m", {"OPENAI_BASE_URL": model.base_url}, seconds=1)("system", "message")
    assert time.perf_counter() - started < 2.5


@pytest.mark.parametrize("base", ["http://127.0.0.1:9/v1", "file:///etc/passwd", "nonsense", "http://"])
def test_an_endpoint_that_is_not_there_is_an_error(base: str) -> None:
    with pytest.raises(LlmError):
        find_llm("m", {"OPENAI_BASE_URL": base})("system", "message")


def _module(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    module = SimpleNamespace(__spec__=SimpleNamespace(), __path__=[], **members)
    monkeypatch.setitem(sys.modules, name, module)  # type: ignore[arg-type]


def test_the_hosts_own_access_comes_first(monkeypatch: pytest.MonkeyPatch, model: ScriptedServer) -> None:
    calls: list[dict[str, Any]] = []

    class PluginLlm:
        def __init__(self, *, plugin_id: str) -> None:
            assert plugin_id == "runtimememory"

        def complete(self, messages: list[Body], **options: Any) -> Any:
            calls.append({"messages": messages, **options})
            return SimpleNamespace(text="from the host")

    _module(monkeypatch, "agent")
    _module(monkeypatch, "agent.plugin_llm", PluginLlm=PluginLlm)
    assert find_llm(None, {"OPENAI_BASE_URL": model.base_url})("system", "message") == "from the host"
    assert [message["role"] for message in calls[0]["messages"]] == ["system", "user"]
    assert {"model", "provider"} & set(calls[0]) == set()
    assert model.requests == []


def test_a_host_that_keeps_trying_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class PluginLlm:
        def __init__(self, **_: Any) -> None: ...

        def complete(self, *_: Any, **__: Any) -> None:
            time.sleep(4)

    _module(monkeypatch, "agent")
    _module(monkeypatch, "agent.plugin_llm", PluginLlm=PluginLlm)
    started = time.perf_counter()
    with pytest.raises(LlmError, match=r"no reply within 0\.5 s"):
        find_llm(None, {}, seconds=0.5)("system", "message")
    assert time.perf_counter() - started < 2


def test_a_host_finds_the_context_of_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = contextvars.ContextVar("profile", default="none")

    class PluginLlm:
        def __init__(self, **_: Any) -> None: ...

        def complete(self, *_: Any, **__: Any) -> Any:
            return SimpleNamespace(text=profile.get())

    _module(monkeypatch, "agent")
    _module(monkeypatch, "agent.plugin_llm", PluginLlm=PluginLlm)
    profile.set("work")
    assert find_llm(None, {})("system", "message") == "work"


def test_anthropic_is_asked_through_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []

    class Anthropic:
        def __init__(self, **options: Any) -> None:
            calls.append(options)
            self.messages = SimpleNamespace(create=self._create)

        def _create(self, **given: Any) -> Any:
            calls.append(given)
            return SimpleNamespace(content=[SimpleNamespace(type="thinking"), SimpleNamespace(type="text", text="hi")])

    _module(monkeypatch, "anthropic", Anthropic=Anthropic)
    assert find_llm("claude", {"ANTHROPIC_API_KEY": "k"})("system", "message") == "hi"
    assert (calls[0]["api_key"], calls[0]["max_retries"]) == ("k", 0)
    assert (calls[1]["model"], calls[1]["system"]) == ("claude", "system")


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, None),
        ({"RUNTIME_MEMORY_EXTRACT_ON_END": "true"}, "OPENAI_BASE_URL"),
        ({"RUNTIME_MEMORY_EXTRACT_ON_END": "true", "OPENAI_API_KEY": "k"}, "RUNTIME_MEMORY_EXTRACT_MODEL"),
        (
            {"RUNTIME_MEMORY_EXTRACT_ON_END": "1", "OPENAI_API_KEY": "k", "RUNTIME_MEMORY_EXTRACT_MODEL": "m"},
            None,
        ),
    ],
)
def test_that_extraction_cannot_run_is_known_at_start(
    variables: dict[str, str], said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    problem = extraction_problem(Settings.load())
    assert problem is None if said is None else said in str(problem)
