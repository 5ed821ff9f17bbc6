"""A provider's life in a host: nothing raises, nothing hangs, nothing leaks, and no instance takes another down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from provider import RuntimeMemoryProvider, host, register
from provider.memory_provider import PREFETCH_SECONDS
from provider.shared import health
from runtime_memory import MemoryStore
from tests.conftest import FragileEmbedder
from tests.provider.conftest import PORT, PORT_QUESTION, Begin, Stored, call, remember

ROOT = Path(__file__).parents[2]
Member = Callable[[RuntimeMemoryProvider], Any]
MEMBERS: dict[str, Member] = {
    "name": lambda one: one.name,
    "is_available": lambda one: one.is_available(),
    "unavailable_reason": lambda one: one.unavailable_reason(),
    "system_prompt_block": lambda one: one.system_prompt_block(),
    "prefetch": lambda one: one.prefetch(PORT_QUESTION, session_id="s", unknown=1),
    "prefetch of no text": lambda one: one.prefetch([{"type": "text"}]),
    "queue_prefetch": lambda one: one.queue_prefetch("q", session_id="s", unknown=1),
    "recall_status": lambda one: one.recall_status(),
    "sync_turn": lambda one: one.sync_turn("u", "a", session_id="s", messages=[], unknown=1),
    "on_turn_start": lambda one: one.on_turn_start(1, "m", unknown=1),
    "on_memory_write": lambda one: one.on_memory_write("add", "memory", "a note", {"old_text": None}, unknown=1),
    "on_memory_write of nonsense": lambda one: one.on_memory_write(None, 5, None, "text"),  # type: ignore[arg-type]
    "on_session_switch": lambda one: one.on_session_switch("s2", parent_session_id="", rewound=True, unknown=1),
    "on_session_switch to nothing": lambda one: one.on_session_switch(None),  # type: ignore[arg-type]
    "on_session_end": lambda one: one.on_session_end([], unknown=1),
    "on_pre_compress": lambda one: one.on_pre_compress([], unknown=1),
    "on_delegation": lambda one: one.on_delegation("t", "r", child_session_id="c", unknown=1),
    "get_tool_schemas": lambda one: one.get_tool_schemas(),
    "handle_tool_call": lambda one: one.handle_tool_call("runtimememory_stats", {}, unknown=1),
    "get_config_schema": lambda one: one.get_config_schema(),
    "get_status_config": lambda one: one.get_status_config({"recall_limit": 3}),
    "backup_paths": lambda one: one.backup_paths(),
}


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Let every recall hang until the event is set."""
    ends = threading.Event()
    explain = MemoryStore.explain

    def hang(*args: Any, **kwargs: Any) -> Any:
        ends.wait(60)
        return explain(*args, **kwargs)

    monkeypatch.setattr(MemoryStore, "explain", hang)
    yield ends
    ends.set()


def in_fresh_process(code: str, folder: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "RUNTIME_MEMORY_DB": str(folder / "store")} | environment,
    )


def seconds_of(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


@pytest.mark.parametrize("member", MEMBERS.values(), ids=MEMBERS)
def test_every_member_is_harmless_before_during_and_after_a_session(member: Member, begin: Begin) -> None:
    member(RuntimeMemoryProvider())
    one = begin(unknown_keyword=1)
    member(one)
    one.shutdown()
    one.shutdown()
    member(one)
    assert "failed" not in call(RuntimeMemoryProvider(), "stats").get("error", "")


def test_before_a_session_nothing_is_told(begin: Begin) -> None:
    remember(begin())
    one = RuntimeMemoryProvider()
    assert one.prefetch(PORT_QUESTION) == ""
    assert "no session yet" in call(one, "recall", {"query": PORT_QUESTION})["error"]
    assert "no session yet" in call(one, "remember", {"content": "a", "category": "general"})["error"]


def test_the_host_gets_the_provider_under_its_name() -> None:
    class Collector:
        def register_memory_provider(self, one: RuntimeMemoryProvider) -> None:
            self.one = one

    register(collector := Collector())
    assert collector.one.name == "runtimememory"
    assert collector.one.pre_compress_checkpoint_api_version == 1
    assert type(collector.one).save_config is host.MemoryProvider.save_config


def test_initializing_is_quick_and_imports_nothing_heavy_on_its_thread(tmp_path: Path) -> None:  # K9, L3
    code = """
import sys, threading, time
main, seen = threading.main_thread(), []
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("lancedb", "pyarrow", "numpy", "tantivy", "tokenizers", "runtime_memory.store"):
            seen.append((name, threading.current_thread() is main))
sys.meta_path.insert(0, Watch())
from provider import RuntimeMemoryProvider
one = RuntimeMemoryProvider()
assert one.is_available()
started = time.perf_counter()
one.initialize(session_id="s1", platform="cli", hermes_home="/nowhere")
assert time.perf_counter() - started < 0.2
[thread.join() for thread in threading.enumerate() if thread.name == "runtime-memory-warm-up"]
assert [name for name, on_main in seen if on_main] == [], seen
assert "runtime_memory.store" in dict(seen)
"""
    done = in_fresh_process(code, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_recall_that_hangs_costs_one_turn_its_deadline_and_no_more(
    begin: Begin, stuck: threading.Event
) -> None:  # L1
    one = begin()
    remember(one)
    assert seconds_of(lambda: one.prefetch(PORT_QUESTION)) == pytest.approx(PREFETCH_SECONDS, abs=0.5)
    assert seconds_of(lambda: [one.prefetch(PORT_QUESTION) for _ in range(5)]) < 0.2
    assert seconds_of(lambda: one.sync_turn("u", "a")) < 0.01
    assert seconds_of(one.shutdown) < 0.1
    assert health.failures["prefetch"] == 6
    stuck.set()
    hung = one._deadline._stuck
    assert hung is not None
    hung.join(10)
    assert PORT in one.prefetch(PORT_QUESTION)


def test_another_instance_is_not_held_up(begin: Begin, stuck: threading.Event) -> None:
    one, other = begin(), begin()
    remember(one)
    one.prefetch(PORT_QUESTION)
    stuck.set()
    assert PORT in other.prefetch(PORT_QUESTION)


def test_a_failed_recall_is_tried_again_at_the_next_turn(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:  # A4
    one = begin()
    remember(one)
    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "explain", lambda *_, **__: 1 / 0)
        assert one.prefetch(PORT_QUESTION) == ""
        assert one.recall_status() is None
    assert PORT in one.prefetch(PORT_QUESTION)
    stats = call(one, "stats")
    assert stats["failures"] == {"prefetch": 1}
    assert "division by zero" in stats["last_error"]


def test_a_model_that_fails_once_is_asked_again(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:  # A4
    model = FragileEmbedder()
    monkeypatch.setattr("runtime_memory.upkeep.load_embedder", lambda _: model)
    one = begin()
    remember(one)
    model.broken = True
    assert PORT in one.prefetch(PORT_QUESTION)  # by its words
    assert "out of memory in the model" in call(one, "stats")["message"]
    model.broken = False
    assert PORT in one.prefetch(PORT_QUESTION)
    assert call(one, "stats")["message"] is None


def test_a_new_instance_for_every_turn_recalls(begin: Begin) -> None:  # A1, A3
    remember(begin())
    for turn in range(5):
        assert PORT in begin(f"turn-{turn}").prefetch(PORT_QUESTION)


def test_the_answer_is_for_this_message(begin: Begin) -> None:  # A2
    one = begin()
    remember(one)
    assert one.prefetch("hello") == ""
    one.queue_prefetch("hello")
    assert PORT in one.prefetch(PORT_QUESTION)
    assert one.prefetch("thanks!") == ""


def test_a_slow_recall_is_waited_for(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:  # A5
    one = begin()
    remember(one)
    explain = MemoryStore.explain

    def slow(*args: Any, **kwargs: Any) -> Any:
        time.sleep(0.5)
        return explain(*args, **kwargs)

    monkeypatch.setattr(MemoryStore, "explain", slow)
    assert PORT in one.prefetch(PORT_QUESTION)


def test_the_status_is_of_the_last_prefetch(begin: Begin) -> None:
    one = begin()
    assert one.recall_status() is None
    remember(one)
    one.prefetch(PORT_QUESTION)
    assert one.recall_status() == host.RecallStatus("Runtime Memory", 1, "◆")
    for empty in ("thanks!", "", 5):
        one.prefetch(empty)
        assert one.recall_status() is None
        one.prefetch(PORT_QUESTION)
    one.on_turn_start(2, "next")
    assert one.recall_status() is None


def test_sixteen_prefetches_at_once(begin: Begin) -> None:
    one = begin()
    remember(one)
    with ThreadPoolExecutor(16) as pool:
        blocks = list(pool.map(lambda _: one.prefetch(PORT_QUESTION), range(16)))
    assert set(blocks) == {one.prefetch(PORT_QUESTION)}
    assert PORT in blocks[0]


def test_eight_instances_write_while_one_is_shut_down(begin: Begin, stored: Stored) -> None:
    ones = [begin(f"s{number}") for number in range(8)]

    def work(number: int) -> None:
        for fact in range(4):
            remember(ones[number], f"fact {fact} of agent {number}")
            ones[0].shutdown()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    expected = {f"fact {fact} of agent {number}" for fact in range(4) for number in range(8)}
    assert {memory.content for memory in stored()} == expected
    found = call(ones[7], "recall", {"query": "fact 3 of agent 2", "limit": 50})["memories"]
    assert "fact 3 of agent 2" in [memory["content"] for memory in found]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc")
def test_a_thousand_instances_leak_nothing(begin: Begin) -> None:
    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    remember(begin())
    before = threading.active_count(), open_files()
    for number in range(1000):
        one = RuntimeMemoryProvider()
        one.initialize(session_id=f"s{number}", platform="api")
        if number % 50 == 0:
            assert PORT in one.prefetch(PORT_QUESTION)
    until = time.monotonic() + 10
    while threading.active_count() > before[0] and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() <= before[0]
    assert open_files() <= before[1] + 3


def test_an_inspection_recalls_and_never_writes(begin: Begin, stored: Stored) -> None:
    remember(begin())
    one = RuntimeMemoryProvider()
    one.initialize_for_inspection("s2", unknown=1)
    assert PORT in one.prefetch(PORT_QUESTION)
    assert "read-only" in call(one, "remember", {"content": "a fact", "category": "general"})["error"]
    assert len(stored()) == 1


def test_an_inspection_makes_no_store(tmp_path: Path) -> None:
    one = RuntimeMemoryProvider()
    one.initialize_for_inspection()
    assert one.is_available()
    assert one.system_prompt_block()
    assert one.backup_paths() == [str(tmp_path / "store")]
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("place", ["a file", "in a file"])
def test_an_unusable_folder_is_told_with_the_setting_that_changes_it(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("RUNTIME_MEMORY_DB", str(file if place == "a file" else file / "store"))
    for _ in range(3):
        one = RuntimeMemoryProvider()
        assert not one.is_available()
        reason = str(one.unavailable_reason())
        assert str(file) in reason
        assert "RUNTIME_MEMORY_DB" in reason
        assert one.get_status_config()["problem"] == reason
    assert [record.message for record in caplog.records] == [f"Runtime Memory is unavailable: {reason}"]


def test_an_unusable_store_costs_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RUNTIME_MEMORY_DB", str(tmp_path / "file"))
    one = RuntimeMemoryProvider()
    one.initialize(session_id="s1")
    assert one.prefetch(PORT_QUESTION) == ""
    assert str(tmp_path / "file") in call(one, "remember", {"content": "a fact", "category": "general"})["error"]
    assert one.on_memory_write("add", "memory", "a note", {}) is None


def test_nothing_is_printed_and_the_environment_stays(
    begin: Begin, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dict(os.environ)
    one = begin()
    remember(one)
    one.prefetch(PORT_QUESTION)
    one.shutdown()
    assert tuple(capfd.readouterr()) == ("", "")
    assert dict(os.environ) == before


def test_a_process_that_ends_in_the_middle_of_a_recall_ends_well(tmp_path: Path) -> None:  # L5
    code = """
import sys, threading, time
from provider import RuntimeMemoryProvider
one = RuntimeMemoryProvider()
one.initialize(session_id="s1", hermes_home="/nowhere")
threading.Thread(target=one.prefetch, args=("which port?",), daemon=True).start()
time.sleep(float(sys.argv[1]))
"""
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda delay: in_fresh_process(code, tmp_path, delay), ["0", "0.3", "0.6", "0.9"]))
    assert [(done.returncode, done.stdout, done.stderr) for done in ended] == [(0, "", "")] * 4


def test_a_host_may_end_its_sessions_at_exit(tmp_path: Path) -> None:
    code = """
import atexit
@atexit.register
def end():
    print(one.handle_tool_call("runtimememory_remember", {"content": "a last fact", "category": "general"}))
from provider import RuntimeMemoryProvider
one = RuntimeMemoryProvider()
one.initialize(session_id="s1", hermes_home="/nowhere")
print(one.handle_tool_call("runtimememory_remember", {"content": "a fact", "category": "general"}))
"""
    done = in_fresh_process(code, tmp_path, RUNTIME_MEMORY_EMBEDDING="null")
    assert [json.loads(line).get("stored") for line in done.stdout.splitlines()] == [True, True], done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_a_write_survives_a_process_that_dies_right_after(tmp_path: Path) -> None:
    code = """
import os
from provider import RuntimeMemoryProvider
one = RuntimeMemoryProvider()
one.initialize(session_id="s1", hermes_home="/nowhere")
print(one.handle_tool_call("runtimememory_remember", {"content": "a fact", "category": "general"}), flush=True)
one.on_memory_write("add", "user", "a note", {})
os._exit(0)
"""
    done = in_fresh_process(code, tmp_path, RUNTIME_MEMORY_EMBEDDING="null")
    assert json.loads(done.stdout)["stored"] is True, done.stderr
    with MemoryStore.open(tmp_path / "store") as store:
        assert [memory.content for memory in store.list()] == ["a note", "a fact"]
