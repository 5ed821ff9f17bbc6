"""What was acknowledged outlives the loss of power, of files and of room on the disk, and stays private."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import indexes.lance
import indexes.text
import indexes.vectors
import runtime_memory.maintenance
from indexes.table_files import TableVersion, fragment_files, newest_manifests
from runtime_memory import Memory, MemoryStore, NewMemory, Outcome
from runtime_memory.database import Database
from runtime_memory.errors import StoreError, StoreUnavailableError
from runtime_memory.manifest import Manifest
from tests.conftest import OpenStore, contents
from tests.tiny_embedder import TinyEmbedder

LINUX_ONLY = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
AS_ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounts, or becomes another user")
FACT = "the staging port is 5433"
QUESTION = "which staging port"


def database(store: MemoryStore) -> Database:
    return store._opening._current().database


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


# Power


class Syncs(NamedTuple):
    """What was synced, in order; each file with what it held then."""

    paths: list[Path]
    contents: dict[Path, bytes]

    def forget(self) -> None:
        self.paths.clear()
        self.contents.clear()


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    seen = Syncs([], {})
    sync = os.fsync

    def record(descriptor: int) -> None:
        sync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.paths.append(path)
        if path.is_file():
            seen.contents[path] = path.read_bytes()

    monkeypatch.setattr(os, "fsync", record)
    return seen


WRITES: dict[str, Callable[[MemoryStore, Memory], object]] = {
    "add": lambda store, _: store.add("another fact"),
    "add many": lambda store, _: store.add_many([NewMemory(f"fact {n}") for n in range(20)]),
    "edit": lambda store, memory: store.edit(memory.id, content="the staging port is 6000"),
    "tag": lambda store, memory: store.edit(memory.id, tags=["port"]),
    "outcome": lambda store, memory: store.record_outcome([memory.id], Outcome.WORKED),
    "forget": lambda store, memory: store.forget(memory.id),
    "optimize": lambda store, _: store.optimize(),
}


@LINUX_ONLY
@pytest.mark.parametrize("write", WRITES)
def test_what_a_write_leaves_is_on_the_disk_when_it_returns(
    store: MemoryStore, folder: Path, syncs: Syncs, write: str
) -> None:
    memory, _ = store.add_many([NewMemory(FACT), NewMemory("another memory of the same commit")])
    store.add("a memory of another commit")
    store.record_outcome([memory.id], Outcome.WORKED)
    before = files(folder / "lance")
    syncs.forget()
    WRITES[write](store, memory)
    new = {path for path in files(folder / "lance") - before if path.suffix != ".json"}
    assert new
    assert {path: path.read_bytes() for path in new} == {path: syncs.contents.get(path) for path in new}
    assert {path.parent for path in new} <= set(syncs.paths)


@LINUX_ONLY
def test_a_manifest_is_synced_after_the_files_that_it_names(store: MemoryStore, syncs: Syncs) -> None:
    store.add(FACT)
    syncs.forget()
    store.add("another fact")
    kinds = [path.suffix for path in syncs.paths if path.is_file()]
    assert sorted(kinds) == [".lance", ".manifest", ".txn"]
    assert kinds[-1] == ".manifest"


@LINUX_ONLY
def test_the_folders_of_a_new_store_are_synced_up_to_its_own(store: MemoryStore, folder: Path, syncs: Syncs) -> None:
    store.add(FACT)
    assert {folder, folder / "lance", folder / "lance" / "memories.lance"} <= set(syncs.paths)


@LINUX_ONLY
def test_a_write_syncs_also_what_a_process_left_that_died_before_it_could(
    store: MemoryStore, open_store: OpenStore, syncs: Syncs, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(FACT)
    table = database(store).index.table
    with monkeypatch.context() as patch:
        patch.setattr(table, "_sync", lambda: None)
        store.add("written, and not synced")
    manifests = newest_manifests(database(store).folder / "lance" / "memories.lance")
    unsynced = TableVersion.read(manifests[0][1])
    other = open_store()
    syncs.forget()
    other.add("another fact")
    named = {path.name for path in syncs.paths}
    assert {Path(file.path).name for fragment in unsynced.fragments for file in fragment_files(fragment)} <= named


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_write_that_cannot_be_synced_is_not_acknowledged(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    store.add(FACT)

    def fail(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(StoreError):
            store.add("another fact")
    again = store.add("another fact")
    assert sorted(contents(store.list())) == sorted([FACT, again.content])
    assert store.check() == []


# Privacy


def test_nobody_else_can_read_a_file_of_the_store_whatever_the_umask(open_store: OpenStore, folder: Path) -> None:
    before = os.umask(0)
    try:
        store = open_store()
        for write in WRITES.values():
            write(store, store.add(FACT))
        store.search(QUESTION)
        shutil.rmtree(folder / "text")
        store.search(QUESTION)
    finally:
        os.umask(before)
    open_to_others = {
        str(path.relative_to(folder)): oct(stat.S_IMODE(path.stat().st_mode))
        for path in (folder, *folder.rglob("*"))
        if stat.S_IMODE(path.stat().st_mode) != (0o700 if path.is_dir() else 0o600)
    }
    assert open_to_others == {}


# Damage of a table


def newest(folder: Path, table: str) -> TableVersion:
    return TableVersion.read(newest_manifests(folder / "lance" / f"{table}.lance")[0][1])


def newest_manifest(folder: Path, table: str) -> Path:
    return newest_manifests(folder / "lance" / f"{table}.lance")[0][1]


def newest_data(folder: Path, table: str) -> Path:
    return folder / "lance" / f"{table}.lance" / fragment_files(newest(folder, table).fragments[-1])[0].path


def oldest_data(folder: Path, table: str) -> Path:
    return folder / "lance" / f"{table}.lance" / fragment_files(newest(folder, table).fragments[0])[0].path


def deletions(folder: Path, table: str) -> Path:
    named = [file.path for each in newest(folder, table).fragments for file in fragment_files(each)]
    return folder / "lance" / f"{table}.lance" / next(path for path in named if path.startswith("_deletions"))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def removed(path: Path) -> None:
    path.unlink()


class Filled(NamedTuple):
    """A closed store's folder, and what it held: contents, and outcomes recorded."""

    folder: Path
    contents: list[str]
    uses: int


@pytest.fixture
def filled(folder: Path) -> Filled:
    """Make a store with a memory of every fate, the last one added after all others."""
    with MemoryStore.open(folder, embedder=TinyEmbedder()) as store:
        first, second, third = store.add_many([NewMemory(f"fact {n} of the first commit") for n in range(3)])
        store.edit(first.id, content="an edited fact")
        store.forget(second.id)
        store.record_outcome([first.id], Outcome.WORKED)
        store.record_outcome([third.id], Outcome.FAILED)
        store.add("the last fact")
        return Filled(folder, sorted(contents(store.list())), 2)


DAMAGE = [
    (newest_manifest, emptied),
    (newest_manifest, halved),
    (newest_data, emptied),
    (newest_data, halved),
    (newest_data, removed),
    (oldest_data, halved),
    (deletions, removed),
]


@pytest.mark.parametrize(("which", "how"), DAMAGE, ids=lambda part: part.__name__)
def test_memories_in_damaged_files_come_back_from_the_text_index(
    filled: Filled, open_store: OpenStore, which: Any, how: Any, caplog: pytest.LogCaptureFixture
) -> None:
    how(which(filled.folder, "memories"))
    store = open_store()
    assert sorted(contents(store.list())) == filled.contents
    assert "No memory was lost." in database(store).recovered
    assert "No memory was lost." in caplog.text
    store.optimize()
    last = next(hit for hit in store.search("the last fact") if hit.memory.content == "the last fact")
    assert (last.text_rank, last.vector_rank) == (1, 1)
    assert store.stats().total_uses == filled.uses
    assert store.check() == []
    store.close()
    assert database(open_store()).recovered == ()


def test_what_the_damaged_files_held_is_kept_aside_with_a_report(filled: Filled, open_store: OpenStore) -> None:
    path = newest_manifest(filled.folder, "memories")
    halved(path)
    damaged = path.read_bytes()
    store = open_store()
    store.list()
    (aside,) = filled.folder.glob("damaged-*")
    assert (aside / path.relative_to(filled.folder)).read_bytes() == damaged
    report = (aside / "report.txt").read_text("utf-8")
    assert report.splitlines() == list(database(store).recovered)


@pytest.mark.parametrize(("which", "how"), [DAMAGE[0], DAMAGE[4]], ids=lambda part: part.__name__)
def test_without_the_text_index_the_last_good_version_comes_back_and_the_loss_is_told(
    filled: Filled, open_store: OpenStore, which: Any, how: Any
) -> None:
    how(which(filled.folder, "memories"))
    shutil.rmtree(filled.folder / "text")
    store = open_store()
    assert sorted(contents(store.list())) == [each for each in filled.contents if each != "the last fact"]
    assert any("is lost" in sentence for sentence in database(store).recovered)
    store.add("the last fact")
    assert len(store.list()) == len(filled.contents)
    assert store.check() == []


def test_a_damaged_file_of_an_old_commit_costs_nothing_of_the_later_ones(folder: Path, open_store: OpenStore) -> None:
    with MemoryStore.open(folder, embedder=TinyEmbedder()) as store:
        for n in range(5):
            store.add(f"fact {n}")
    halved(oldest_data(folder, "memories"))
    shutil.rmtree(folder / "text")
    assert sorted(contents(open_store().list())) == [f"fact {n}" for n in range(1, 5)]


def test_writes_that_neither_index_holds_any_more_are_named(filled: Filled, open_store: OpenStore) -> None:
    text = filled.folder / "text"
    shutil.copytree(text, filled.folder.parent / "earlier")
    version = newest(filled.folder, "memories").number
    with MemoryStore.open(filled.folder, embedder=TinyEmbedder()) as store:
        store.add("known to nobody any more")
    halved(newest_manifest(filled.folder, "memories"))
    shutil.rmtree(text)
    shutil.copytree(filled.folder.parent / "earlier", text)
    store = open_store()
    assert sorted(contents(store.list())) == filled.contents
    lost = f"What was written after version {version}, up to version {version + 1}, is lost."
    assert lost in database(store).recovered


def test_a_table_without_any_readable_version_comes_back_from_the_text_index(
    filled: Filled, open_store: OpenStore
) -> None:
    for _, path in newest_manifests(filled.folder / "lance" / "memories.lance"):
        emptied(path)
    store = open_store()
    assert sorted(contents(store.list())) == filled.contents
    store.optimize()
    assert store.stats().total_uses == filled.uses
    assert store.check() == []


@pytest.mark.parametrize(("which", "how"), [DAMAGE[1], DAMAGE[2]], ids=lambda part: part.__name__)
def test_outcomes_in_whole_files_survive_the_loss_of_others(
    filled: Filled, open_store: OpenStore, which: Any, how: Any
) -> None:
    how(which(filled.folder, "outcomes"))
    store = open_store()
    assert store.stats().total_uses == filled.uses - 1
    assert sorted(contents(store.list())) == filled.contents
    assert any("outcomes" in sentence for sentence in database(store).recovered)
    store.record_outcome([store.list()[0].id], Outcome.WORKED)
    assert store.stats().total_uses == filled.uses


def test_an_open_store_repairs_damage_that_it_meets(store: MemoryStore, folder: Path) -> None:
    store.add(FACT)
    store.add("another fact")
    halved(newest_manifest(folder, "memories"))
    assert sorted(contents(store.list())) == sorted([FACT, "another fact"])
    assert store.add(FACT).content == FACT
    assert store.check() == []


@pytest.mark.parametrize("step", ["write", "unlink"])
def test_a_repair_that_was_interrupted_is_finished_at_the_next_opening(
    filled: Filled, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    halved(newest_data(filled.folder, "memories"))

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if step == "write":
            patch.setattr(Manifest, "write", die)
        else:
            patch.setattr("runtime_memory.mending.finish", die)
        with pytest.raises(KeyboardInterrupt):
            open_store().list()
    store = open_store()
    assert sorted(contents(store.list())) == filled.contents
    assert store.check() == []
    assert not (filled.folder / "recovery.json").exists()


def test_a_damaged_index_over_the_vectors_is_dropped_and_made_anew(
    folder: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes.vectors, "ANN_ROWS", 300)
    monkeypatch.setattr("indexes.resident.ANN_ROWS", 300)
    with MemoryStore.open(folder, embedder=TinyEmbedder()) as store:
        store.add_many([NewMemory(f"fact {n} of shelf {n % 17} in room {n % 5}") for n in range(320)])
        store.optimize()
        before = [hit.memory.id for hit in store.search("fact 7 of shelf 7", limit=3)]
    for path in sorted((folder / "lance" / "memories.lance" / "_indices").glob("*/*")):
        halved(path)
    reopened = open_store()
    assert [hit.memory.id for hit in reopened.search("fact 7 of shelf 7", limit=3)] == before
    assert "index of the vectors" in " ".join(database(reopened).recovered)
    reopened.optimize()
    assert database(reopened).index.table.is_indexed()


def test_a_healthy_store_is_opened_without_a_repair(filled: Filled, open_store: OpenStore) -> None:
    store = open_store()
    store.list()
    assert database(store).recovered == ()
    assert not list(filled.folder.glob("damaged-*"))


# Damage of the text index


def found(store: MemoryStore) -> list[tuple[str, int | None, int | None]]:
    hits = store.search("fact 0 violin", include_archived=True)
    return [(hit.memory.content, hit.text_rank, hit.vector_rank) for hit in hits]


@pytest.fixture
def texts(folder: Path) -> list[tuple[str, int | None, int | None]]:
    """Make a store with some segments and deletions in its text index, and return what a search finds."""
    with MemoryStore.open(folder, embedder=TinyEmbedder()) as store:
        store.add_many([NewMemory(f"fact {n} about the {word}") for n, word in enumerate(("violin", "vault", "sea"))])
        store.forget(store.add("fact 3 about to go").id)
        return found(store)


def flip(path: Path, place: float) -> None:
    body = bytearray(path.read_bytes())
    body[int(place * (len(body) - 1))] ^= 0x10
    path.write_bytes(bytes(body))


@pytest.mark.parametrize("kind", [".term", ".idx", ".store", ".fast", ".fieldnorm", ".del", "meta.json"])
def test_a_flipped_bit_in_the_text_index_changes_no_result(
    texts: list[tuple[str, int | None, int | None]], open_store: OpenStore, folder: Path, kind: str
) -> None:
    damaged = [path for path in (folder / "text").iterdir() if path.name.endswith(kind)]
    for number, path in enumerate(damaged):
        flip(path, (0.1, 0.5, 0.95)[number % 3])
    store = open_store()
    assert damaged
    assert found(store) == texts
    assert store.check() == []


def test_a_check_finds_what_a_large_text_index_does_not_look_for_when_it_is_opened(
    texts: list[tuple[str, int | None, int | None]],
    open_store: OpenStore,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(indexes.text, "_CHECKED_BYTES", 0)
    for path in (folder / "text").glob("*.fieldnorm"):
        flip(path, 0.1)
    (finding, *_) = open_store().check()
    assert ".fieldnorm of the text index is damaged" in finding


@pytest.mark.parametrize(
    "state", [{"analyzer": 0}, {"version": 10_000}, {"epoch": "another"}], ids=["analyzer", "ahead", "another table"]
)
def test_a_text_index_that_does_not_fit_the_table_is_rebuilt(
    texts: list[tuple[str, int | None, int | None]], open_store: OpenStore, folder: Path, state: dict[str, Any]
) -> None:
    with MemoryStore.open(folder, embedder=TinyEmbedder()) as store:
        store.search("fact")
        text = database(store).index.text
        assert text.state is not None
        text.apply([], [], text.state._replace(**state))
    reopened = open_store()
    assert found(reopened) == texts
    assert reopened.check() == []


def test_a_text_index_that_cannot_be_written_delays_no_write_and_hides_no_memory(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gone = store.add("a fact to be forgotten")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(indexes.text, "_write", full)
        memory = store.add(FACT)
        store.forget(gone.id)
        assert store.add(FACT).id == memory.id
        assert [hit.memory.id for hit in store.search(QUESTION)] == [memory.id]
        assert contents(store.list()) == [FACT]
        assert len([record for record in caplog.records if "text index stays behind" in record.message]) == 1
    store.add("another fact")
    assert {hit.memory.content for hit in store.search(QUESTION) if hit.text_rank} == {FACT}
    assert store.check() == []


# No room, no permission


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 3 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill_up(disk: Path, leave: int) -> None:
    (disk / "ballast").unlink(missing_ok=True)
    room = os.statvfs(disk)
    (disk / "ballast").write_bytes(b"x" * max(0, room.f_bavail * room.f_frsize - leave))


@AS_ROOT
def test_a_full_disk_stops_writes_with_a_clear_error_and_nothing_else(small_disk: Path, open_store: OpenStore) -> None:
    store = open_store(small_disk / "store")
    kept = [store.add(FACT), store.add("another fact")]
    refused = []
    for leave in (40_000, 12_000, 0):
        fill_up(small_disk, leave)
        for write in (
            lambda: kept.append(store.add(f"added with {leave} bytes left")),  # noqa: B023 - called at once
            lambda: store.record_outcome([kept[0].id], Outcome.WORKED),
            store.optimize,
        ):
            try:
                write()
            except StoreUnavailableError as error:
                refused.append(str(error))
        assert {memory.id for memory in kept} <= {memory.id for memory in store.list()}
        assert FACT in contents(store.search(QUESTION))
        assert FACT in contents(open_store(small_disk / "store").search(QUESTION))
    assert len(refused) >= 3
    assert all("the disk is full" in reason for reason in refused)
    (small_disk / "ballast").unlink()
    kept.append(store.add("there is room again"))
    assert sorted(contents(store.list())) == sorted(contents(kept))
    assert store.check() == []
    assert database(open_store(small_disk / "store")).recovered == ()


@AS_ROOT
def test_a_store_on_a_read_only_file_system_is_read(small_disk: Path, open_store: OpenStore) -> None:
    with MemoryStore.open(small_disk / "store", embedder=TinyEmbedder()) as writer:
        memory = writer.add(FACT)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        store = open_store(small_disk / "store")
        (hit,) = store.search(QUESTION)
        assert (hit.memory.id, hit.text_rank, hit.vector_rank) == (memory.id, 1, 1)
        assert contents(store.recall(QUESTION)) == contents(store.list()) == [FACT]
        with pytest.raises(StoreUnavailableError, match="read-only"):
            store.add("another fact")
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert store.add("another fact").content == "another fact"
    assert store.check() == []


STRANGER = """
import json, os, sys
sys.path[:0] = {path!r}
from runtime_memory import MemoryStore
from runtime_memory.errors import StoreUnavailableError
from tests.tiny_embedder import TinyEmbedder
with MemoryStore.open({warm!r}, embedder=TinyEmbedder()) as warm:  # while this environment can be read
    warm.add("a fact")
    warm.search("fact")
os.setgid(65534); os.setuid(65534)
store = MemoryStore.open({folder!r}, embedder=TinyEmbedder())
hits = [(hit.memory.content, hit.text_rank, hit.vector_rank) for hit in store.search({question!r})]
try:
    store.add("from a stranger")
    refused = ""
except StoreUnavailableError as error:
    refused = str(error)
store.close()
print(json.dumps([hits, refused]))
"""


@AS_ROOT
def test_a_user_who_may_only_read_the_folder_reads_and_is_told_so_when_writing(
    store: MemoryStore, folder: Path, tmp_path: Path
) -> None:
    store.add(FACT)
    store.close()
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    code = STRANGER.format(path=sys.path, folder=str(folder), warm=str(tmp_path / "warm"), question=QUESTION)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90, check=False)
    hits, refused = json.loads(done.stdout or json.dumps([done.stderr, ""]))
    assert hits == [[FACT, 1, 1]]
    assert "permission is missing" in refused


# Upkeep


def test_the_record_of_single_writes_is_shortened_and_every_reader_keeps_up(
    store: MemoryStore, open_store: OpenStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes.lance, "_HISTORY_FACTOR", 0.0)
    memories = [store.add(f"fact {n}") for n in range(12)]
    for memory in memories[:6]:
        store.record_outcome([memory.id], Outcome.WORKED)
    reader = open_store()
    for _ in range(2):  # the first search of a process asks the table, the next ones its copy in memory
        assert len(reader.search("fact", limit=20)) == 12
    assert reader.stats().total_uses == 6
    before = newest(folder, "memories").history_bytes()
    store.forget(memories[0].id)
    store.optimize()
    assert newest(folder, "memories").history_bytes() < before / 5
    assert newest(folder, "outcomes").history_bytes() < before / 5
    late = store.add("a late fact")
    store.record_outcome([memories[1].id], Outcome.WORKED)
    for each in (store, reader, open_store()):
        assert len(each.search("fact", limit=20)) == 12
        assert {hit.memory.id for hit in each.search("fact", limit=20)} == {m.id for m in (*memories[1:], late)}
        assert each.stats().total_uses == 6
        assert each.get(memories[1].id).uses == 2
        assert each.check() == []


def test_a_long_reading_goes_on_when_its_version_is_cleaned() -> None:
    class Query:
        def __init__(self, *times_cleaned_after: int) -> None:
            self.cleanings = list(times_cleaned_after)

        def to_batches(self, rows: int) -> Iterator[pa.RecordBatch]:
            for n in range(6):
                if self.cleanings and self.cleanings[0] == n:
                    self.cleanings.pop(0)
                    raise RuntimeError("lance error: Not found: /a/data/file.lance")
                yield pa.RecordBatch.from_pylist([{"id": str(n)}])

    for query in (Query(), Query(0), Query(3), Query(3, 5)):
        assert [record["id"] for record in indexes.vectors._each(query)] == list("012345")
    with pytest.raises(RuntimeError, match="Not found"):
        list(indexes.vectors._each(Query(*[2] * 9)))


def test_readings_are_done_again_when_their_version_was_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[object] = [RuntimeError("lance error: Not found: /a/data/file.lance"), 7]

    def reading() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return int(str(answer))

    assert indexes.lance.read(reading) == 7
    answers += [RuntimeError("Not found"), RuntimeError("Not found")]
    with pytest.raises(RuntimeError):
        indexes.lance.read(reading)
    answers += [RuntimeError("something else"), 7]
    with pytest.raises(RuntimeError, match="something else"):
        indexes.lance.read(reading)


def test_short_lived_processes_leave_few_files_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_memory.maintenance, "_MANY_FRAGMENTS", 4)
    for n in range(9):
        with MemoryStore.open(folder, embedder=TinyEmbedder()) as store:
            store.add(f"fact {n}")
    assert len(newest(folder, "memories").fragments) <= 5
    assert not [thread for thread in threading.enumerate() if thread.name == "runtime-memory-maintenance"]


def test_upkeep_that_fails_is_no_error_of_the_writer(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("lance error: no luck")

    monkeypatch.setattr(runtime_memory.maintenance, "_MANY_FRAGMENTS", 1)
    monkeypatch.setattr(indexes.vectors.VectorTable, "optimize", fail)
    assert store.add(FACT).content == FACT
    store.close()
    assert "no luck" in caplog.text


def test_files_of_a_writer_that_died_are_removed_by_the_next_upkeep(store: MemoryStore, folder: Path) -> None:
    store.add(FACT)
    data = folder / "lance" / "memories.lance" / "data"
    orphan = data / f"{'01' * 24}.lance"
    shutil.copy(next(data.iterdir()), orphan)
    store.add("another fact")
    store.optimize()
    assert not orphan.exists()
    assert len(store.list()) == 2


# Forks

FORK = """
import os, signal, sys, threading, time
sys.path[:0] = {path!r}
from runtime_memory import MemoryStore
from runtime_memory.errors import StoreClosedError
from tests.tiny_embedder import TinyEmbedder
store = MemoryStore.open({folder!r}, embedder=TinyEmbedder())
store.add("a fact")
ready = threading.Event()
def hold():
    with store._opening._opening, store._opening._current().database.index.writing():
        ready.set()
        time.sleep(60)
threading.Thread(target=hold, daemon=True).start()
ready.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    told = 0
    for use in (lambda: store.add("from the child"), lambda: store.search("fact"),
                lambda: MemoryStore.open({folder!r}, embedder=TinyEmbedder()).search("fact")):
        try:
            use()
        except StoreClosedError as error:
            told += "fork" in str(error)
    store.close()
    os._exit(told)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""


def test_a_child_forked_while_locks_are_held_is_refused_at_once(folder: Path) -> None:
    code = FORK.format(path=sys.path, folder=str(folder))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout.strip() == "3", done.stderr
