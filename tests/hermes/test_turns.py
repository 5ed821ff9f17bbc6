"""Turns of the real Hermes: what the model saves is in the next request that needs it, and in no other."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime_memory import MemoryStore

from .scripted_server import Request, Step, ToolCall

if TYPE_CHECKING:
    from .harness import Hermes, Run

PORT, USER = "The staging database listens on port 5433", "The staging database user is called heron"
PORT_QUESTION = "On which port does the staging database listen?"
BOTH = "On which port does the staging database listen, and what is the staging database user called?"


def remember(content: str) -> ToolCall:
    return ToolCall("runtimememory_remember", {"content": content, "category": "environment"})


def ids_in(text: str) -> list[str]:
    return re.findall(r"`([0-9a-f-]{36})`", text)


def quiet(run: Run, answer: str) -> bool:
    """Tell whether a one-shot run ended well and printed its answer alone."""
    return (run.code, run.stdout, run.stderr) == (0, f"{answer}\n", "")


def test_what_one_process_saved_the_next_is_told_and_its_verdict_the_one_after(hermes: Hermes) -> None:
    saving = hermes.ask("note both", [remember(PORT), remember(USER)], "noted")
    assert quiet(saving, "noted"), saving
    first, second = saving.requests
    assert first.tool_names[-4:] == [f"runtimememory_{name}" for name in ("remember", "recall", "outcome", "stats")]
    assert "runtimememory_outcome" in first.system
    assert first.recalled == ""
    results = [json.loads(text) for text in second.tool_results]
    assert [(result["stored"], result["project"]) for result in results] == [(True, "hermes")] * 2

    def judge(body: dict[str, Any]) -> list[ToolCall]:
        best, other = ids_in(Request(body, side=False).recalled)
        return [
            ToolCall("runtimememory_outcome", {"outcome": "failed", "memory_ids": [best]}),
            ToolCall("runtimememory_outcome", {"outcome": "worked", "memory_ids": other}),
        ]

    asking = hermes.ask(BOTH, judge, "5433, heron")
    assert quiet(asking, "5433, heron"), asking
    before = asking.requests[0].recalled
    assert asking.requests[0].last_user.startswith(f"{BOTH}\n\n<memory-context>\n")
    assert before.startswith("## Relevant memories\n\n- [environment] ")
    assert PORT in before
    assert USER in before
    assert "before)" not in before
    verdicts = [json.loads(text) for text in asking.requests[1].tool_results]
    assert [verdict["updated"][0]["outcome_score"] for verdict in verdicts] == [-0.3, 0.2]

    after = hermes.ask(BOTH, "the same").requests[0].recalled
    marks = {ids_in(line)[0]: line.split(" (")[1].split(")")[0] for line in after.splitlines()[2:]}
    best, other = ids_in(before)
    assert marks == {best: "has failed before", other: "has worked before"}


def test_small_talk_and_other_questions_are_sent_as_they_are(hermes: Hermes) -> None:
    code = f"""
from inside import agent, ask, provider, report
one = agent(session_id="s1", platform="cli")
ask(one, "note it")
for question in ({PORT_QUESTION!r}, "thanks!", "Write a haiku about autumn leaves", {PORT_QUESTION!r}):
    ask(one, question)
    status = provider(one).recall_status()
    report(status.count if status else 0)
report(provider(agent(skip_memory=True)) is None)
"""
    run = hermes.python(code, remember(PORT), "noted", *["answered"] * 4)
    assert run.reports == [1, 0, 0, 1, True], run.stderr
    asked = [request for request in run.requests if request.messages[-1]["role"] == "user"][1:]
    assert [PORT in request.recalled for request in asked] == [True, False, False, True]
    assert asked[1].last_user == "thanks!"
    assert asked[2].last_user == "Write a haiku about autumn leaves"
    assert asked[0].recalled == asked[3].recalled


def test_a_memory_survives_a_kill_right_after_its_tool_result(hermes: Hermes) -> None:
    running: list[subprocess.Popen[bytes]] = []

    def kill(body: dict[str, Any]) -> str:
        os.kill(running[0].pid, signal.SIGKILL)
        running[0].wait(30)
        return "nobody hears this"

    hermes.model.say(remember(PORT), kill)
    command = [str(hermes.venv.script("hermes")), "-z", "note it", "-t", "memory"]
    running.append(
        subprocess.Popen(
            command, env=hermes.environment(), cwd=hermes.workdir, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
    )
    running[0].communicate(timeout=120)
    assert running[0].returncode == -signal.SIGKILL
    killed = hermes.model.requests[-1]
    assert json.loads(killed.tool_results[0])["stored"] is True
    assert PORT in hermes.ask(PORT_QUESTION, "5433").requests[0].recalled


NOTES = """
from inside import agent, ask
for number, question in enumerate(QUESTIONS):
    ask(agent(session_id=f"s{number}", platform="cli"), question)
"""


def note(action: str, target: str = "memory", **values: Any) -> ToolCall:
    return ToolCall("memory", {"action": action, "target": target, **values})


def test_built_in_notes_are_recalled_as_they_now_are(hermes: Hermes) -> None:
    question = "What is the office door code, and what does the user drink?"
    old, new, drink = "The office door code is 1234", "The office door code is 9876", "The user drinks green tea"
    operations = [
        {"action": "replace", "old_text": "9876", "content": f"{new} since May"},
        {"action": "add", "content": "The office plant needs water on Mondays"},
    ]
    questions = ["note", question, "correct", question, "batch", question, "remove", question]
    adding = [note("add", content=old), note("add", "user", content=drink), note("add", content=old)]
    removing = [note("remove", old_text="since May"), note("remove", "user", old_text="tea")]
    run = hermes.python(
        f"QUESTIONS = {questions!r}{NOTES}",
        *(adding, "ok", "1234"),
        *(note("replace", old_text="1234", content=new), "ok", "9876"),
        *(ToolCall("memory", {"target": "memory", "operations": operations}), "ok", "since May"),
        *(removing, "ok", "unknown"),
    )
    assert run.code == 0, run.stderr
    results = [json.loads(text) for request in run.requests for text in request.tool_results]
    assert [result["success"] for result in results] == [True] * len(results)
    blocks = [request.recalled for request in run.requests if request.last_user.startswith(question)]
    seen = [[text in block for text in (old, new, "since May", drink)] for block in blocks]
    assert seen == [
        [True, False, False, True],
        [False, True, False, True],
        [False, True, True, True],
        [False, False, False, False],
    ]
    with MemoryStore.open(hermes.root / ".runtime-memory") as store:
        (left,) = store.list()
        assert (left.content, left.category.value, left.source.value) == (
            "The office plant needs water on Mondays",
            "context",
            "imported",
        )
        assert len(store.list(include_archived=True)) == 5


USERS = """
from inside import agent, ask, provider, report
def gateway(user, session):
    return agent(user_id=user, platform="telegram", session_id=session, chat_id=session)
one, other, ben = gateway("anna", "a1"), gateway("anna", "a2"), gateway("ben", "b1")
for each in (other, ben):
    ask(each, "hello")
ask(one, "note it")
for each in (other, ben, gateway("anna", "a3"), agent(platform="cli", session_id="c1")):
    ask(each, QUESTION)
ask(other, "wait for another process")
ask(other, QUESTION)
"""


def test_users_of_a_gateway_have_memories_of_their_own(hermes: Hermes) -> None:
    def from_elsewhere(_: Any) -> str:
        with MemoryStore.open(hermes.root / ".runtime-memory") as store:
            store.add(USER, category="environment", user="anna")
        return "done"

    script: list[Step] = ["hi", "hi", remember(PORT), "noted", *["answered"] * 4, from_elsewhere, "answered"]
    run = hermes.python(f"QUESTION = {BOTH!r}{USERS}", *script)
    assert run.code == 0, run.stderr
    blocks = [request.recalled for request in run.requests if request.last_user.startswith(BOTH)]
    assert [PORT in block for block in blocks] == [True, False, True, False, True]
    assert [USER in block for block in blocks] == [False, False, False, False, True]


CONTEXTS = """
from inside import agent, ask, provider, report
one = agent(session_id="s1", platform="cli", toolsets=("memory", "delegation"))
ask(one, "note it")
cron = agent(session_id="s2", platform="cron")
ask(cron, QUESTION)
ask(one, "delegate it")
sub = provider(agent(session_id="s3", platform="cli"))
sub.initialize("s3", agent_context="subagent", platform="cli", agent_workspace="hermes")
report(sub.prefetch(QUESTION))
sub.on_memory_write("add", "memory", "a note", {})
report(sub.handle_tool_call("runtimememory_remember", {"content": "a fact", "category": "general"}))
"""


def test_scheduled_runs_and_sub_agents_recall_and_never_write(hermes: Hermes) -> None:
    writes: Step = [remember(USER), note("add", content="A note of a scheduled run")]
    run = hermes.python(
        f"QUESTION = {PORT_QUESTION!r}{CONTEXTS}",
        *(remember(PORT), "noted"),
        *(writes, "5433"),
        *(ToolCall("delegate_task", {"goal": "SUBTASK: find the port"}), "done by the sub-agent", "done"),
    )
    assert run.code == 0, run.stderr
    scheduled = [request for request in run.requests if request.last_user.startswith(PORT_QUESTION)]
    assert PORT in scheduled[0].recalled
    assert "read-only" in scheduled[1].tool_results[0]
    child = next(request for request in run.requests if "SUBTASK" in request.last_user)
    assert not [name for name in child.tool_names if name.startswith("runtimememory")]
    block, refused = run.reports
    assert PORT in block
    assert "read-only" in refused
    with MemoryStore.open(hermes.root / ".runtime-memory") as store:
        assert [memory.content for memory in store.list(include_archived=True)] == [PORT]


WRONG: list[Any] = [None, True, -1, 0.5, "", "nonsense", [], ["\ud800"], {}, "x" * 5000]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "remember": {"content": "a fact", "category": "general", "tags": ["a"]},
    "recall": {"query": "a fact", "limit": 3, "category": "general"},
    "outcome": {"outcome": "worked", "memory_ids": ["x"]},
    "stats": {},
}
QUERIES = """
import time
from inside import agent, ask, provider, report
one = agent(session_id="s1", platform="cli", tool_delay=0)
ask(one, "call the tools")
queries = [
    *(None, 5, b"x", ["a"], {}, "", " ", "x" * 100_000, "why? " * 20_000),
    *("a AND b OR NOT (c", '"', "'", "[", "{", "a:b", "-x", "+y*", "~1", "C:\\\\dir", "\\U0001f600\\U0001f44d"),
    *("\\x00", "a\\x00b", "\\ud800", "e\\u0301" * 500, "\\u202eabc", "שלום עולם, מה הפורט?", "ｆｕｌｌ"),
    *("ฐานข้อมูลใช้พอร์ตใด", "数据库在哪个端口？", "データベースのポートは？"),
]
slowest = 0.0
for query in queries:
    started = time.perf_counter()
    assert isinstance(provider(one).prefetch(query), str), query
    slowest = max(slowest, time.perf_counter() - started)
report(slowest)
report(provider(one).handle_tool_call("runtimememory_nonsense", {}))
report(provider(one).handle_tool_call("runtimememory_stats", {}))
"""


def test_wrong_arguments_and_odd_queries_are_answered(hermes: Hermes) -> None:
    calls = [
        ToolCall(f"runtimememory_{tool}", {**given, name: value})
        for tool, given in ARGUMENTS.items()
        for name in given
        for value in WRONG
    ]
    calls += [
        ToolCall(f"runtimememory_{tool}", {n: v for n, v in given.items() if n != name})
        for tool, given in ARGUMENTS.items()
        for name in given or [""]
    ]
    run = hermes.python(QUERIES, calls, "done")
    assert run.code == 0, run.stderr
    results = run.requests[1].tool_results
    assert len(results) == len(calls)
    for call, result in zip(calls, results, strict=True):
        answer = json.loads(result.partition("\n\n[Tool loop warning")[0])
        assert "memory failed" not in str(answer.get("error", "")), (call, answer)
        assert "Memory tool" not in str(answer.get("error", "")), (call, answer)
    slowest, unknown, stats = run.reports
    assert slowest < 2.5
    assert "runtimememory_recall" in json.loads(unknown)["error"]
    assert json.loads(stats)["failures"] == {}


def test_a_home_of_its_own_stays_the_only_place_written(hermes: Hermes) -> None:
    hermes.ask("note it", remember(PORT), "noted")
    assert {path.name for path in hermes.root.iterdir()} - {".cache", ".local", ".config"} == {
        ".hermes",
        ".runtime-memory",
        "work",
    }
    assert list(Path(hermes.workdir).iterdir()) == []
