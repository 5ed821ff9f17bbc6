"""The object store goes away and comes back: reading goes on, writing is refused, and nobody waits for long."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

import indexes.link
import runtime_memory.shared
from runtime_memory import MemoryStore, SearchMode
from runtime_memory.errors import StoreError, StoreUnavailableError
from runtime_memory.restore import restore
from tests.conftest import contents
from tests.object_store.conftest import Machine, Team
from tests.tiny_embedder import TinyEmbedder

FACTS = ["the staging port is 5433", "money is kept as decimals"]


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes.link, "_RETRY_SECONDS", 0.1)


@pytest.fixture
def filled(machine: Machine) -> MemoryStore:
    store = machine()
    for fact in FACTS:
        store.add(fact)
    store.record_outcome([store.list()[0].id], "worked")
    for _ in range(2):  # the second search of a process holds the vectors
        assert contents(store.search("staging port"))[0] == FACTS[0]
    return store


def test_reading_goes_on_from_the_last_replica_and_says_so(filled: MemoryStore, team: Team) -> None:
    before = filled.list()
    team.proxy.close()
    assert contents(filled.search("staging port"))[0] == FACTS[0]
    assert filled.list() == before
    assert filled.get(before[0].id) == before[0]
    stats = filled.stats()
    assert (stats.total_memories, stats.total_uses, stats.search_mode) == (2, 1, SearchMode.HYBRID)
    assert "cannot be reached" in (stats.message or "")


def test_writing_is_refused_and_nothing_of_it_appears_later(filled: MemoryStore, team: Team) -> None:
    team.proxy.close()
    first = filled.list()[0]
    for write in (
        lambda: filled.add("too late"),
        lambda: filled.edit(first.id, content="too late"),
        lambda: filled.forget(first.id),
        lambda: filled.record_outcome([first.id], "failed"),
    ):
        with pytest.raises(StoreUnavailableError, match=r"cannot be reached.*Nothing was written"):
            write()
    team.proxy.open()
    filled.add("in time")
    assert sorted(contents(filled.list())) == sorted(["in time", *FACTS])
    assert filled.get(first.id).uses == first.uses


def test_a_store_that_is_back_is_used_again_without_a_write(filled: MemoryStore, machine: Machine, team: Team) -> None:
    team.proxy.close()
    filled.search("staging port")
    team.proxy.open()
    machine("other").add("the staging port has moved to 6000")
    deadline = time.monotonic() + 60
    while len(filled.search("staging port")) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert filled.stats().message is None
    assert filled.check() == []


def test_a_process_that_starts_while_the_store_is_away_reads_the_replica(
    filled: MemoryStore, machine: Machine, team: Team
) -> None:
    team.proxy.close()
    late = machine()
    assert contents(late.search("staging port")) == FACTS[:1]
    assert contents(late.list()) == contents(filled.list())
    stats = late.stats()
    assert (stats.total_memories, stats.search_mode) == (2, SearchMode.TEXT)
    assert "cannot be reached" in (stats.message or "")
    with pytest.raises(StoreUnavailableError):
        late.add("too late")
    team.proxy.open()
    late.add("in time")
    assert len(late.list()) == 3
    assert late.check() == []


def test_a_machine_that_never_saw_the_store_says_that_it_cannot_be_reached(machine: Machine, team: Team) -> None:
    team.proxy.close()
    new = machine("new")
    with pytest.raises(StoreUnavailableError, match=r"s3://team-.*RUNTIME_MEMORY_STORAGE_OPTIONS"):
        new.search("staging port")
    team.proxy.open()
    new.add(FACTS[0])
    assert contents(new.search("staging port")) == FACTS[:1]


def test_a_server_that_accepts_and_never_answers_is_away_too(
    filled: MemoryStore, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes.link, "_PATIENCE_SECONDS", 0.5)
    team.proxy.hang()
    assert contents(filled.search("staging port"))[0] == FACTS[0]
    with pytest.raises(StoreUnavailableError, match="did not answer within"):
        filled.add("too late")
    team.proxy.close()
    team.proxy.open()
    monkeypatch.setattr(indexes.link, "_PATIENCE_SECONDS", 30)
    filled.add("in time")
    assert len(filled.list()) == 3


def test_a_bucket_that_is_not_there_is_named(machine: Machine, tmp_path: Path) -> None:
    refused = pytest.raises(StoreUnavailableError, match=r"s3://no-such-bucket/memories.*no such bucket")
    with MemoryStore.open("s3://no-such-bucket/memories", embedder=TinyEmbedder()) as store, refused:
        store.list()


def test_a_replica_that_cannot_be_used_leaves_the_table_to_be_read(filled: MemoryStore, tmp_path: Path) -> None:
    shutil.rmtree(filled.settings.folder / "text")
    filled._opening._current().database.index.text.discard()
    assert contents(filled.search("staging port"))[0] == FACTS[0]
    assert filled.check() == []


def test_what_belongs_to_a_folder_says_what_to_do_instead(filled: MemoryStore, tmp_path: Path) -> None:
    for refused in (filled.purge, lambda: filled.reindex(embeddings=True)):
        with pytest.raises(StoreError, match=r"on an object store; .*mem export"):
            refused()


def test_a_backup_of_a_shared_store_is_a_store_in_a_folder(filled: MemoryStore, tmp_path: Path) -> None:
    done = filled.backup(tmp_path / "team.tar.gz")
    assert done.memories == 2
    restore(tmp_path / "folder", done.path, lock_timeout=10)
    with MemoryStore.open(tmp_path / "folder", embedder=TinyEmbedder()) as store:
        assert contents(store.list()) == contents(filled.list())
        assert store.stats().total_uses == 1


def test_a_machine_learns_the_name_of_the_model_from_the_manifest(
    filled: MemoryStore, team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled._opening._current().database.state.change(lambda now: now.with_embedding("tiny@1", "some/model"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
    with MemoryStore.open(team.uri) as store:
        assert store._opening._configured_name() == "some/model"
    assert runtime_memory.shared.Manifest.read(store.settings.folder) is not None
