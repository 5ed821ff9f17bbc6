"""After a purge nothing in the folder tells of a forgotten memory, and everything else is as it was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import indexes.events
from indexes.filters import All
from indexes.vectors import VectorTable
from runtime_memory import Memory, MemoryStore, NewMemory, Outcome, Settings
from runtime_memory.cli import app
from runtime_memory.database import ManifestState
from runtime_memory.errors import StoreUnavailableError
from runtime_memory.purge import scrub_trace
from runtime_memory.records import LAYOUT
from runtime_memory.trace import Trace
from tests.conftest import OpenStore, WideEmbedder
from tests.other_process import another_writer
from tests.tiny_embedder import TinyEmbedder

FORGOTTEN, FORMER, KEPT = "zq7wx4kvtt91forgotten", "jx3qpp0vbn55former", "hv8rrk2qzm66kept"


def files_with(folder: Path, token: str) -> list[str]:
    """Return the files below a folder that hold a token in some encoding, or are named by it."""
    wanted = [each.encode(code) for each in (token, token.upper()) for code in ("utf-8", "utf-16-le", "utf-16-be")]
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return [str(p.relative_to(folder)) for p in paths if token in str(p) or any(w in p.read_bytes() for w in wanted)]


def fill(store: MemoryStore) -> tuple[list[Memory], Memory]:
    """Store memories that stay, one with a former text, and one that is forgotten after it was judged."""
    kept = store.add_many([NewMemory(f"fact {number} about subject{number}", tags=["t"]) for number in range(30)])
    store.add(f"{KEPT} stays", metadata={"a": 1})
    edited = store.add(f"{FORMER} is what it said first")
    store.edit(edited.id, content="what it says now")
    store.archive(kept[3].id)
    secret = store.add(f"{FORGOTTEN} is the secret", tags=[FORGOTTEN], metadata={"k": FORGOTTEN})
    store.record_outcome([kept[1].id], Outcome.WORKED, session="of one that stays")
    store.record_outcome([secret.id], Outcome.FAILED, session=FORGOTTEN)
    return kept, secret


def everything(store: MemoryStore) -> list[Memory]:
    return store.list(include_archived=True)


def test_no_byte_of_what_was_forgotten_is_left(store: MemoryStore, open_store: OpenStore, folder: Path) -> None:
    _, secret = fill(store)
    store.forget(secret.id)
    for name in ("damaged-20260301", "text.new", "replaced-20260301"):
        (folder / name / "lance").mkdir(parents=True)
        (folder / name / "lance" / "data.lance").write_bytes(FORGOTTEN.encode())
    (folder / "manifest.json.new").write_bytes(FORGOTTEN.encode("utf-16-le"))
    VectorTable.create(str(folder / "lance"), "memories-9", LAYOUT, 16)
    (folder / "lance" / "memories-9.lance" / "data" / "x.lance").parent.mkdir(exist_ok=True)
    (folder / "lance" / "memories-9.lance" / "data" / "x.lance").write_bytes(FORGOTTEN.encode())
    before = everything(store)
    for token in (FORGOTTEN, FORMER, KEPT):
        assert files_with(folder, token)

    done = store.purge(wait=0)

    assert (done.memories, done.forgotten) == (len(before), 1)
    assert [files_with(folder, token) for token in (FORGOTTEN, FORMER, secret.id)] == [[], [], []]
    assert files_with(folder, KEPT)
    assert files_with(folder, "of one that stays")
    assert everything(store) == before == everything(open_store())
    assert {path.name for path in folder.iterdir()} <= {"lance", "text", "lock", "upkeep.lock", "manifest.json"}
    assert len(list((folder / "lance").iterdir())) == 2


def test_after_a_long_life_a_byte_search_finds_nothing(store: MemoryStore, folder: Path) -> None:
    for number in range(40):
        memory = store.add(f"{FORGOTTEN} number {number} " + "and much more text " * number, tags=[FORGOTTEN])
        if number % 3 == 0:
            store.edit(memory.id, content=f"{FORGOTTEN} edited {number}", metadata={"x": FORGOTTEN})
        if number % 20 == 0:
            store.optimize()
    store.add("this stays")
    assert files_with(folder, FORGOTTEN)
    store.forget_many([memory.id for memory in everything(store) if FORGOTTEN in memory.content])
    assert files_with(folder, FORGOTTEN)
    store.purge(wait=0)
    assert files_with(folder, FORGOTTEN) == []
    assert [memory.content for memory in everything(store)] == ["this stays"]


def test_all_that_stays_is_as_it_was(open_store: OpenStore) -> None:
    embedder = WideEmbedder()
    store = open_store(embedder=embedder)
    kept, secret = fill(store)
    store.forget(secret.id)
    before, found = everything(store), [(h.memory.id, h.vector_rank) for h in store.search("fact subject3")]
    embedded = list(embedder.embedded)

    store.purge(wait=0)

    assert everything(store) == before
    assert store.get(kept[1].id).uses == 1
    assert [(h.memory.id, h.vector_rank) for h in store.search("fact subject3")] == found
    assert embedder.embedded == embedded
    assert store.check() == []
    assert store.stats().pending_embeddings == 0
    assert store.purge(wait=0).forgotten == 0
    assert everything(store) == before


def test_reports_about_a_forgotten_memory_go_with_it(store: MemoryStore) -> None:
    kept, secret = fill(store)
    store.forget(secret.id)
    store.purge(wait=0)
    with store._open() as parts:
        assert parts.database.outcomes.values("memory_id") == {kept[1].id}


def test_an_empty_store_can_be_purged(store: MemoryStore) -> None:
    assert store.purge(wait=0).memories == 0
    assert store.add("the first").content == "the first"


# Others


def test_open_stores_go_over_at_their_next_call(store: MemoryStore, open_store: OpenStore) -> None:
    kept, secret = fill(store)
    other = open_store()
    other.search("fact")
    store.forget(secret.id)
    store.purge(wait=0)
    new = other.add("written by one who had the store open")
    other.record_outcome([kept[7].id], Outcome.WORKED)
    assert everything(store) == everything(other)
    assert new.id in {memory.id for memory in everything(store)}
    assert store.get(kept[7].id).outcome_score > 0


@pytest.mark.parametrize("read", ["list", "search", "get", "stats", "explain"])
def test_a_reader_whose_files_go_in_the_middle_reads_again(
    store: MemoryStore, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    kept, _ = fill(store)
    reader = open_store()

    def answer() -> str:
        arguments = {"search": ("fact 5",), "get": (kept[5].id,), "explain": ("fact 5",)}.get(read, ())
        return " ".join(re.findall(r"\bid='[^']+'|total_memories=\d+", repr(getattr(reader, read)(*arguments))))

    expected = answer()
    assert expected

    def purge_after_the_look(state: ManifestState) -> bool:
        monkeypatch.undo()
        store.purge(wait=0)
        return False

    monkeypatch.setattr(ManifestState, "is_replaced", purge_after_the_look)
    assert answer() == expected


def test_no_write_of_another_process_is_lost(store: MemoryStore, folder: Path) -> None:
    _, secret = fill(store)
    store.forget(secret.id)
    with another_writer(folder) as ids:
        ids.next()
        for _ in range(2):
            store.purge(wait=0.2)
            ids.next()
    after = {memory.id: memory for memory in everything(store)}
    assert set(ids) <= set(after)
    assert {after[id_].uses for id_ in ids} == {1}
    assert store.check() == []


def test_a_purge_that_fails_changes_nothing(store: MemoryStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    before, tables = everything(store), set((folder / "lance").iterdir())

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(indexes.events.EventLog, "load", no_space)
        with pytest.raises(StoreUnavailableError, match="disk is full"):
            store.purge(wait=0)
    assert set((folder / "lance").iterdir()) == tables
    assert everything(store) == before
    store.purge(wait=0)
    assert everything(store) == before


# The trace


def test_the_questions_of_turns_with_a_forgotten_memory_are_blanked_in_place(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(str(path))
    trace.write("recall", turn_id="1", query="my key is é-secret", retrieved=[], latency_ms=1.5)
    trace.write("write", turn_id="1", memory_ids=["gone"], count=1, kind="tool")
    trace.write("recall", turn_id="2", query="another question", retrieved=[{"memory_id": "kept", "score": 0.5}])
    trace.write("recall", turn_id=None, query="found it", retrieved=[{"memory_id": "gone", "score": 0.25}])
    with path.open("ab") as file:
        file.write(b'not a record\n[1]\n{"query": "cut')
    before = path.read_bytes()

    assert scrub_trace(path, {"gone"}) == 2

    after = path.read_bytes()
    assert [len(line) for line in after.split(b"\n")] == [len(line) for line in before.split(b"\n")]
    assert b"secret" not in after
    assert b"found it" not in after
    old, new = before.split(b"\n"), after.split(b"\n")
    assert [new[i] for i in (1, 2, 4, 5, 6)] == [old[i] for i in (1, 2, 4, 5, 6)]
    assert json.loads(new[0]) == {**json.loads(old[0]), "query": ""}
    assert json.loads(new[3]) == {**json.loads(old[3]), "query": ""}
    assert scrub_trace(path, {"gone"}) == 0


@pytest.mark.parametrize("place", ["inside", "outside"])
def test_purge_scrubs_the_trace_of_the_settings(folder: Path, tmp_path: Path, place: str) -> None:
    path = (folder if place == "inside" else tmp_path) / "trace.jsonl"
    with MemoryStore(Settings.load(db=str(folder), hermes_trace=str(path)), embedder=TinyEmbedder()) as store:
        secret = store.add(FORGOTTEN)
        Trace(str(path)).write(
            "recall", turn_id="1", query=f"what is {FORGOTTEN}", retrieved=[{"memory_id": secret.id}]
        )
        store.forget(secret.id)
        done = store.purge(wait=0)
    assert done.trace_records == 1
    assert files_with(tmp_path, FORGOTTEN) == []


# The commands


@pytest.fixture
def mem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RUNTIME_MEMORY_DB", str(folder))
    monkeypatch.setattr("runtime_memory.upkeep.load_embedder", lambda name: TinyEmbedder())

    def run(*args: str, stdin: str = "", code: int = 0) -> Any:
        result = CliRunner().invoke(app, list(args), input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return run


def test_the_command(mem: Any, folder: Path) -> None:
    with MemoryStore.open(folder) as store:
        _, secret = fill(store)
    mem("forget", secret.id, "--yes")
    result = mem("purge")
    assert "nothing is left of 1 forgotten" in result.stdout
    assert "Backups made earlier" in result.stderr
    assert json.loads(mem("purge", "--json").stdout) == {"memories": 32, "forgotten": 0, "trace_records": 0}
    assert files_with(folder, f"{FORGOTTEN} is") == []


def test_forget_with_purge(mem: Any, folder: Path) -> None:
    id_ = mem("add", f"{FORGOTTEN} is here").stdout.strip()
    assert files_with(folder, FORGOTTEN)
    assert mem("forget", id_, "--purge", "--yes").stdout.strip() == id_
    assert files_with(folder, FORGOTTEN) == []


def test_forget_by_options_takes_just_what_fits(mem: Any, folder: Path) -> None:
    with MemoryStore.open(folder) as store:
        store.add_many(
            [
                NewMemory("of the shop", project="shop"),
                NewMemory("of the shop, imported", project="shop", source="imported"),
                NewMemory("of the shop, imported, archived", project="shop", source="imported", archived=True),
                NewMemory("of all", source="imported"),
                NewMemory("of the bank", project="bank", category="gotcha"),
            ]
        )

    def left() -> list[str]:
        listed = json.loads(mem("list", "-l", "0", "--all", "--json").stdout)
        return sorted(each["content"] for each in listed["memories"])

    mem("forget", "-p", "shop", "--source", "imported", stdin="n\n", code=1)
    assert len(left()) == 5
    result = mem("forget", "-p", "shop", "--source", "imported", stdin="y\n")
    assert "Forget these 2 for good?" in result.stderr
    assert left() == ["of all", "of the bank", "of the shop"]
    mem("forget", "-c", "gotcha", "--yes")
    assert left() == ["of all", "of the shop"]
    mem("forget", "-p", "nowhere", "--yes")
    assert len(left()) == 2
    mem("forget", "--all", "--yes")
    assert left() == []


@pytest.mark.parametrize("args", [(), ("0192f3c4", "--all"), ("-p", "")])
def test_forget_asks_for_ids_or_options(mem: Any, args: tuple[str, ...]) -> None:
    mem("forget", *args, code=2)


def test_forget_many_forgets_all_or_none(store: MemoryStore) -> None:
    ids = [memory.id for memory in store.add_many([NewMemory(f"fact {number}") for number in range(3)])]
    with pytest.raises(LookupError):
        store.forget_many([ids[0], "0192f3c4-unknown"])
    assert len(everything(store)) == 3
    assert [memory.id for memory in store.forget_many(ids[:2])] == ids[:2]
    with store._open() as parts:
        assert parts.database.index.table.count(All()) == 1
