"""A backup is the whole store as of one moment, and comes back as it was."""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from runtime_memory import Memory, MemoryStore, NewMemory, Outcome
from runtime_memory import restore as restoring
from runtime_memory.backup import read_backup
from runtime_memory.cli import app
from runtime_memory.errors import InvalidInputError, RuntimeMemoryError, StoreDamagedError, StoreFormatError
from runtime_memory.restore import Restored, memories_in
from tests.conftest import Clock, OpenStore, WideEmbedder
from tests.other_process import another_writer
from tests.tiny_embedder import TinyEmbedder

TOKEN = "zq7wx4kvtt91forgotten"


def restore(folder: Path, path: Path) -> Restored:
    return restoring.restore(folder, path, lock_timeout=30)


def everything(store: MemoryStore) -> list[Memory]:
    return store.list(include_archived=True)


def fill(store: MemoryStore) -> list[Memory]:
    kept = store.add_many([NewMemory(f"fact {number} about subject{number}", tags=["t"]) for number in range(20)])
    store.add(" ".join(f"word{number}" for number in range(120)), metadata={"k": "é"}, project="shop")
    store.archive(kept[3].id)
    store.record_outcome([kept[1].id, kept[2].id], Outcome.WORKED, session="s")
    store.forget(store.add(f"{TOKEN} is the secret").id)
    return kept


@pytest.fixture
def made(store: MemoryStore, tmp_path: Path) -> Path:
    """Return a backup of a filled store."""
    fill(store)
    return store.backup(tmp_path / "made.tar.gz").path


# There and back


def test_a_backup_comes_back_as_it_was(store: MemoryStore, open_store: OpenStore, made: Path, tmp_path: Path) -> None:
    embedder = TinyEmbedder()
    restored = restore(tmp_path / "new" / "place", made)
    back = open_store(tmp_path / "new" / "place", embedder=embedder)
    assert restored.memories == 21
    assert restored.kept is None
    assert everything(back) == everything(store)
    assert back.check() == []
    assert back.stats().pending_embeddings == 0
    assert embedder.embedded == []
    mine, theirs = ([(hit.memory.id, hit.vector_rank) for hit in each.search("fact 7")] for each in (store, back))
    assert mine == theirs
    assert back.add("and goes on").content == "and goes on"


def test_nothing_that_was_forgotten_is_in_a_backup(store: MemoryStore, made: Path, tmp_path: Path) -> None:
    read_backup(made, tmp_path / "unpacked")
    texts = [path.read_bytes() for path in (tmp_path / "unpacked").rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in text for text in texts)
    assert any(b"subject7" in text for text in texts)


def test_a_backup_in_a_folder_names_itself(store: MemoryStore, tmp_path: Path) -> None:
    fill(store)
    done = store.backup(tmp_path)
    assert done.path.parent == tmp_path
    assert done.path.name.startswith("runtime-memory-")
    assert done.bytes == done.path.stat().st_size
    assert done.memories == 21
    assert stat.S_IMODE(done.path.stat().st_mode) == 0o600


def test_nothing_is_left_beside(store: MemoryStore, made: Path, folder: Path) -> None:
    assert {path.name for path in made.parent.iterdir()} == {"made.tar.gz", folder.name}
    assert {path.name for path in folder.iterdir()} == {"lance", "text", "lock", "upkeep.lock", "manifest.json"}
    restore(folder, made)
    names = {path.name for path in folder.iterdir() if not path.name.startswith("replaced-")}
    assert names == {"lance", "text", "lock", "upkeep.lock", "manifest.json"}
    assert everything(store)


def test_a_newer_backup_takes_the_place_of_an_older_one(store: MemoryStore, made: Path) -> None:
    store.add("one more")
    store.backup(made)
    assert read_backup(made).memories == 22


@pytest.mark.parametrize("name", ["notes.txt", "taken.tar.gz", "store/inside.tar.gz", "nowhere/x.tar.gz", "folder.zip"])
def test_a_path_that_will_not_do_is_refused(store: MemoryStore, tmp_path: Path, name: str) -> None:
    fill(store)
    (tmp_path / "taken.tar.gz").write_bytes(b"someone's own")
    with pytest.raises(InvalidInputError):
        store.backup(tmp_path / name)
    assert (tmp_path / "taken.tar.gz").read_bytes() == b"someone's own"


TEXTS = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=40)
MEMORIES = st.lists(
    st.tuples(TEXTS, st.sampled_from(["plain", "archived", "forgotten", "judged", "edited"])), min_size=1, max_size=8
)


@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(memories=MEMORIES)
def test_whatever_is_stored_outlives_all_upkeep(
    tmp_path_factory: pytest.TempPathFactory, memories: list[tuple[str, str]]
) -> None:
    place = tmp_path_factory.mktemp("upkeep")
    clock = Clock(datetime(2026, 3, 1, tzinfo=UTC))
    with MemoryStore.open(place / "store", embedder=TinyEmbedder(), clock=clock) as store:
        for text, fate in memories:
            memory = store.add(text, tags=[fate], metadata={"text": text})
            match fate:
                case "archived":
                    store.archive(memory.id)
                case "forgotten":
                    store.forget(memory.id)
                case "judged":
                    store.record_outcome([memory.id], Outcome.PARTIAL)
                case "edited":
                    store.edit(memory.id, category="gotcha")
            clock.advance(days=1)
        before = everything(store)
        store.reindex(embeddings=True)
        assert everything(store) == before
        path = store.backup(place / "b.tar.gz").path
        store.purge(wait=0)
        assert everything(store) == before
        assert store.reindex().memories == len(before)
        restore(place / "other", path)
        with MemoryStore.open(place / "other", embedder=TinyEmbedder(), clock=clock) as other:
            assert everything(other) == before
            assert other.check() == store.check() == []


# Over a store that is there, and in use


def test_open_stores_go_over_to_the_backup_and_the_old_one_is_kept(
    store: MemoryStore, open_store: OpenStore, made: Path, folder: Path
) -> None:
    before = everything(store)
    other = open_store()
    late = other.add("written after the backup")
    store.record_outcome([late.id], Outcome.WORKED)
    now = everything(store)

    restored = restore(folder, made)

    assert everything(store) == everything(other) == before
    assert store.check() == []
    other.add("written after the restore")
    assert len(everything(store)) == len(before) + 1
    assert restored.kept is not None
    assert restored.kept.parent == folder
    assert everything(open_store(restored.kept)) == now


def test_a_backup_of_another_model_brings_its_own(open_store: OpenStore, made: Path, tmp_path: Path) -> None:
    wide = open_store(tmp_path / "wide", embedder=WideEmbedder())
    wide.add("fact 7 about subject7")
    restore(tmp_path / "wide", made)
    assert "mem reindex --embeddings" in (wide.stats().message or "")
    assert wide.search("subject7")[0].memory.content == "fact 7 about subject7"
    tiny = open_store(tmp_path / "wide")
    assert tiny.stats().message is None


@pytest.mark.parametrize("damage", ["manifest", "table", "manifest gone", "recovery broken off"])
def test_a_damaged_store_is_mended_by_a_restore(
    store: MemoryStore, open_store: OpenStore, made: Path, folder: Path, damage: str
) -> None:
    before = everything(store)
    store.close()
    if damage == "manifest":
        (folder / "manifest.json").write_text("{", "utf-8")
    elif damage == "recovery broken off":
        (folder / "recovery.json").write_text('{"aside": "damaged-1", "reached": {"memories": 3}}', "utf-8")
        (folder / "lance" / "memories.lance").rename(folder / "away")
    elif damage == "table":
        (folder / "lance" / "memories.lance").rename(folder / "away")
    else:
        (folder / "manifest.json").unlink()
    assert memories_in(folder) is None
    restored = restore(folder, made)
    assert restored.kept
    assert everything(open_store()) == before


def test_a_backup_is_consistent_while_another_process_writes(
    store: MemoryStore, open_store: OpenStore, folder: Path, tmp_path: Path
) -> None:
    fill(store)
    with another_writer(folder) as written:
        written.next()
        ids = list(written)
        path = store.backup(tmp_path).path
        written.next()
    restore(tmp_path / "back", path)
    back = {memory.id: memory for memory in everything(open_store(tmp_path / "back"))}
    assert set(ids) <= set(back)
    saved = [id_ for id_ in written if id_ in back]
    assert saved == written[: len(saved)]
    assert sum(not back[id_].uses for id_ in saved) <= 1  # a report comes right after its memory
    assert set(back) <= {memory.id for memory in everything(store)}


# What is no backup


def rewritten(path: Path, change: Callable[[str, bytes], tuple[str, bytes] | None], *more: tarfile.TarInfo) -> None:
    """Write an archive anew with its members changed, and more of them."""
    with tarfile.open(path) as archive:
        members = [(each.name, (archive.extractfile(each) or io.BytesIO()).read()) for each in archive]
    with tarfile.open(path, "w:gz") as archive:
        for member in filter(None, (change(*each) for each in members)):
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            archive.addfile(info, io.BytesIO(member[1]))
        for info in more:
            archive.addfile(info)


def as_is(name: str, content: bytes) -> tuple[str, bytes]:
    return name, content


def in_index(**changes: Any) -> Callable[[str, bytes], tuple[str, bytes]]:
    def change(name: str, content: bytes) -> tuple[str, bytes]:
        return name, json.dumps(json.loads(content) | changes).encode() if name == "backup.json" else content

    return change


def with_file(name: str) -> Callable[[str, bytes], tuple[str, bytes]]:
    def change(member: str, content: bytes) -> tuple[str, bytes]:
        if member != "backup.json":
            return member, content
        index = json.loads(content)
        index["files"][name] = [0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]
        return member, json.dumps(index).encode()

    return change


def link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    return info


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


BAD: dict[str, tuple[type[RuntimeMemoryError], Callable[[Path], None]]] = {
    "missing": (InvalidInputError, Path.unlink),
    "text": (InvalidInputError, lambda p: p.write_text("no archive", "utf-8") and None),
    "empty": (InvalidInputError, lambda p: p.write_bytes(b"") and None),
    "another archive": (InvalidInputError, lambda p: tarfile.open(p, "w:gz").close()),
    "without index": (InvalidInputError, lambda p: rewritten(p, lambda n, c: None if n == "backup.json" else (n, c))),
    "of another kind": (InvalidInputError, lambda p: rewritten(p, in_index(kind="photos"))),
    "newer": (StoreFormatError, lambda p: rewritten(p, in_index(format=99))),
    "cut off": (StoreDamagedError, lambda p: os.truncate(p, p.stat().st_size * 2 // 3)),
    "cut to its head": (StoreDamagedError, lambda p: os.truncate(p, 40)),
    "a flipped byte": (StoreDamagedError, flip),
    "another content": (
        StoreDamagedError,
        lambda p: rewritten(p, lambda n, c: (n, c[:-1] + bytes([c[-1] ^ 1])) if n.endswith(".lance") else (n, c)),
    ),
    "a file less": (StoreDamagedError, lambda p: rewritten(p, lambda n, c: None if n == "manifest.json" else (n, c))),
    "fewer memories than it says": (StoreDamagedError, lambda p: rewritten(p, in_index(memories=9))),
    "an index of nonsense": (StoreDamagedError, lambda p: rewritten(p, in_index(files=[1]))),
    "a path outside": (StoreDamagedError, lambda p: rewritten(p, with_file("lance/memories.lance/../../../evil"))),
    "an absolute path": (StoreDamagedError, lambda p: rewritten(p, with_file("/tmp/evil"))),
    "a link": (
        StoreDamagedError,
        lambda p: rewritten(p, with_file("lance/memories.lance/x"), link("lance/memories.lance/x", "/etc")),
    ),
    "a file that the index does not name": (
        StoreDamagedError,
        lambda p: rewritten(p, as_is, tarfile.TarInfo("../evil")),
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_whole_backup_changes_nothing(
    store: MemoryStore, made: Path, folder: Path, tmp_path: Path, bad: str
) -> None:
    before, there = everything(store), {p for p in folder.rglob("*") if "text" not in p.parts}
    error, spoil = BAD[bad]
    spoil(made)
    with pytest.raises(error, match="made"):
        restore(folder, made)
    assert everything(store) == before
    assert {p for p in folder.rglob("*") if "text" not in p.parts} == there
    assert {p.name for p in tmp_path.iterdir()} <= {"made.tar.gz", folder.name}


# The commands


def test_the_commands(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_DB", str(folder))
    monkeypatch.setattr("runtime_memory.upkeep.load_embedder", lambda name: TinyEmbedder())

    def mem(*args: str, stdin: str = "", code: int = 0) -> Any:
        result = CliRunner().invoke(app, list(args), input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    with MemoryStore.open(folder) as store:
        fill(store)
    path = Path(mem("backup", str(tmp_path)).stdout.strip())
    assert path.parent == tmp_path
    assert json.loads(mem("backup", str(tmp_path / "b.tgz"), "--json").stdout) == {
        "path": str(tmp_path / "b.tgz"),
        "bytes": (tmp_path / "b.tgz").stat().st_size,
        "memories": 21,
    }
    mem("add", "one more")
    assert "Replace the 22 memories" in mem("restore", str(path), stdin="\n", code=1).stderr
    assert memories_in(folder) == 22
    result = mem("restore", str(path), stdin="y\n")
    assert "21 memories are back" in result.stdout
    assert "kept in" in result.stderr
    assert memories_in(folder) == 21
    elsewhere = json.loads(mem("restore", str(path), "--db", str(tmp_path / "new"), "--json").stdout)
    assert (elsewhere["memories"], elsewhere["kept"]) == (21, None)
    assert json.loads(mem("restore", str(path), "--yes", "--json").stdout)["kept"]
    assert "no backup" in mem("restore", str(folder / "manifest.json"), "--yes", code=1).stderr
