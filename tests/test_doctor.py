"""``mem doctor``: one finding each, with what to do; ``--fix`` mends what is safe."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from provider import RuntimeMemoryProvider
from runtime_memory import MemoryStore, cpu
from runtime_memory.doctor import Finding, State, diagnose
from tests.conftest import OpenStore

real_probe = cpu.probe


def findings(folder: Path, tmp_path: Path, *, fix: bool = False) -> dict[str, Finding]:
    return {each.name: each for each in diagnose(db=str(folder), fix=fix, home=tmp_path / "hermes")}


@pytest.fixture(autouse=True)
def _by_words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_EMBEDDING", "null")
    monkeypatch.setattr(cpu, "probe", lambda: None)


@pytest.fixture
def filled(open_store: OpenStore, folder: Path) -> Path:
    store = open_store()
    memory = store.add("the port is 5433", project="shop")
    store.record_outcome([memory.id], "worked")
    store.close()
    return folder


def test_a_sound_store_has_no_problem(filled: Path, tmp_path: Path) -> None:
    found = findings(filled, tmp_path)
    assert {each.state for each in found.values()} <= {State.OK, State.NOTE}
    assert found["store"].message == "1 memories, 0 of them archived"
    assert found["lock"].message == "free"


def test_no_store_yet_is_no_problem_and_is_not_made(tmp_path: Path) -> None:
    found = findings(tmp_path / "none", tmp_path)
    assert all(each.state is not State.PROBLEM for each in found.values())
    assert not (tmp_path / "none").exists()


def test_files_that_others_can_read_are_named_and_closed(filled: Path, tmp_path: Path) -> None:
    (filled / "manifest.json").chmod(0o644)
    assert findings(filled, tmp_path)["permissions"].state is State.NOTE
    filled.chmod(0o755)
    assert findings(filled, tmp_path)["permissions"].state is State.PROBLEM
    assert findings(filled, tmp_path, fix=True)["permissions"].state is State.FIXED
    assert (filled / "manifest.json").stat().st_mode & 0o777 == 0o600
    assert findings(filled, tmp_path)["permissions"].state is State.OK


def test_a_missing_text_index_is_there_again_after_a_look(filled: Path, tmp_path: Path) -> None:
    shutil.rmtree(filled / "text")
    assert findings(filled, tmp_path)["indexes"].state is State.OK


def test_a_store_that_cannot_be_opened_is_a_finding(filled: Path, tmp_path: Path) -> None:
    (filled / "manifest.json").write_text("{")
    found = findings(filled, tmp_path)["store"]
    assert found.state is State.PROBLEM
    assert "manifest.json" in found.message


def test_a_bad_setting_is_a_finding(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_RECALL_LIMIT", "many")
    found = findings(filled, tmp_path)["settings"]
    assert found.state is State.PROBLEM
    assert "RUNTIME_MEMORY_RECALL_LIMIT='many'" in found.message


def test_a_project_without_memories_is_pointed_out(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_PROJECT", "shpo")
    found = findings(filled, tmp_path)["project"]
    assert found.state is State.NOTE
    assert "'shpo'" in found.message
    assert "shop" in (found.advice or "")


def test_a_held_lock_is_named_with_its_holder(filled: Path, tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store()
    with store._open() as parts, parts.database.index.writing():
        found = findings(filled, tmp_path)["lock"]
    assert found.state is State.NOTE
    assert "held by" in found.message


def test_memories_without_a_vector_are_embedded_by_fix(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_store: OpenStore
) -> None:
    open_store(embedder=None).add("the port is 5433")
    monkeypatch.delenv("RUNTIME_MEMORY_EMBEDDING")
    assert findings(folder, tmp_path)["vectors"].advice == "mem reindex"
    assert findings(folder, tmp_path, fix=True)["vectors"].state is State.FIXED
    assert findings(folder, tmp_path)["vectors"].state is State.OK


def test_a_model_that_is_not_there_is_a_finding(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_EMBEDDING", "local")
    monkeypatch.setenv("RUNTIME_MEMORY_EMBEDDING_MODEL", str(tmp_path / "no-model"))
    assert findings(filled, tmp_path)["model"].state is State.PROBLEM


def test_libraries_that_end_their_process_are_not_loaded_in_this_one(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    problem = real_probe(code)
    monkeypatch.setattr(cpu, "probe", lambda: problem)
    found = findings(filled, tmp_path)
    assert found["libraries"].state is State.PROBLEM
    assert "instruction" in found["libraries"].message
    assert "store" not in found


def test_the_real_libraries_can_be_loaded() -> None:
    assert real_probe() is None


@pytest.mark.skipif(sys.platform != "linux", reason="the flags of the processor are read from /proc")
def test_a_processor_without_what_lancedb_needs_makes_the_provider_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    info = tmp_path / "cpuinfo"
    info.write_text("model name : Celeron N5105\nflags : fpu sse4_2 popcnt\n")
    assert cpu.missing_features(info) == ("avx2", "fma")
    info.write_text("flags : fpu avx2 fma\n")
    assert cpu.missing_features(info) == ()
    monkeypatch.setattr("provider.memory_provider.missing_features", lambda: ("avx2",))
    provider = RuntimeMemoryProvider()
    assert not provider.is_available()
    assert "avx2" in str(provider.unavailable_reason())
    assert provider.prefetch("anything") == ""


def test_health_counts_outcomes_of_forgotten_memories(store: MemoryStore) -> None:
    memory = store.add("the port is 5433")
    store.record_outcome([memory.id], "worked")
    assert store.health().orphans == 0
    store.forget(memory.id)
    assert store.health().orphans == 1
