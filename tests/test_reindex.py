"""The vectors of a store can be made anew, with another model too, while it stays in use."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from runtime_memory import Memory, MemoryStore, NewMemory, Outcome, Settings
from runtime_memory.cli import app
from runtime_memory.embedding import Embedder
from runtime_memory.errors import EmbeddingError, StoreBusyError
from runtime_memory.leftovers import upkeep_lock
from runtime_memory.models import SearchMode
from tests.conftest import FragileEmbedder, OpenStore, WideEmbedder
from tests.other_process import another_writer
from tests.tiny_embedder import TinyEmbedder

SPAWN = multiprocessing.get_context("spawn")
LONG = " ".join(f"word{number}" for number in range(120))
"""Three passages."""


class Interrupting(WideEmbedder):
    """Do something when a batch is about to be embedded."""

    def __init__(self, act: Callable[[int], None]) -> None:
        super().__init__()
        self._act = act
        self._batches = 0

    def embed_passages(self, passages: Sequence[str]) -> NDArray[np.float32]:
        self._batches += 1
        self._act(self._batches)
        return super().embed_passages(passages)


def fill(store: MemoryStore, count: int = 20) -> list[Memory]:
    """Store memories of every kind: with outcomes, archived, superseded, long, forgotten."""
    stored = store.add_many([NewMemory(f"fact {number} about subject{number}", tags=["t"]) for number in range(count)])
    store.add(LONG, category="pattern", project="shop", metadata={"k": [1, "é"]})
    store.add("fact 0 was wrong", supersedes=stored[0].id)
    store.record_outcome([stored[1].id, stored[2].id], Outcome.WORKED, session="s")
    store.record_outcome([stored[2].id], Outcome.FAILED)
    store.forget(store.add("nobody may know this").id)
    return stored


def everything(store: MemoryStore) -> list[Memory]:
    return store.list(include_archived=True)


def tables(folder: Path) -> set[str]:
    return {path.name for path in (folder / "lance").iterdir()}


def table_of(folder: Path) -> str:
    return str(json.loads((folder / "manifest.json").read_text("utf-8"))["table"])


# Another model


@pytest.mark.parametrize("other", [WideEmbedder(), TinyEmbedder("tiny@2")], ids=["dimension", "same dimension"])
def test_vectors_of_another_model_are_not_compared_until_they_are_made_anew(
    store: MemoryStore, open_store: OpenStore, other: Embedder
) -> None:
    fill(store)
    before = everything(store)
    changed = open_store(embedder=other)

    message = changed.stats().message or ""
    assert "mem reindex --embeddings" in message
    assert store.stats().embedding_model in message
    assert changed.search("subject7")[0].vector_rank is None

    done = changed.reindex(embeddings=True)

    assert (done.memories, done.embedded, done.resumed) == (len(before), len(before), 0)
    assert done.embedding == other.identity
    assert everything(changed) == before
    assert changed.check() == []
    stats = changed.stats()
    assert (stats.search_mode, stats.embedding_model, stats.pending_embeddings) == (
        SearchMode.HYBRID,
        other.identity,
        0,
    )
    assert stats.message is None
    assert changed.search("subject7")[0].vector_rank is not None
    assert changed.search("word100 word101")[0].memory.content == LONG


def test_embedding_anew_with_the_same_model_doubles_nothing(store: MemoryStore) -> None:
    fill(store)
    before, found = everything(store), [hit.memory.id for hit in store.search("fact subject3")]
    for _ in range(2):
        store.reindex(embeddings=True)
    assert everything(store) == before
    assert [hit.memory.id for hit in store.search("fact subject3")] == found


def test_an_empty_store_goes_over_to_another_model(store: MemoryStore, open_store: OpenStore) -> None:
    store.stats()
    wide = open_store(embedder=WideEmbedder())
    assert wide.reindex(embeddings=True).memories == 0
    wide.add("the first")
    assert wide.stats().search_mode is SearchMode.HYBRID


def test_a_model_that_fails_changes_nothing_and_keeps_what_was_done(store: MemoryStore, open_store: OpenStore) -> None:
    fill(store, 100)
    before = everything(store)
    fragile = FragileEmbedder()
    broken = open_store(embedder=fragile)

    def fail_at_the_second_batch(done: int, total: int) -> None:
        fragile.broken = True

    with pytest.raises(EmbeddingError, match="run mem reindex --embeddings again"):
        broken.reindex(embeddings=True, progress=fail_at_the_second_batch)
    assert everything(store) == before
    assert store.stats().search_mode is SearchMode.HYBRID

    fragile.broken = False
    done = broken.reindex(embeddings=True)
    assert done.resumed == 64
    assert done.embedded == len(before) - 64
    assert everything(broken) == before


def test_without_a_model_there_is_nothing_to_embed_with(folder: Path) -> None:
    with (
        MemoryStore(Settings.load(db=str(folder), embedding="null")) as store,
        pytest.raises(EmbeddingError, match="null"),
    ):
        store.reindex(embeddings=True)


# Others go on


def test_what_others_change_meanwhile_is_in_the_new_table(store: MemoryStore, open_store: OpenStore) -> None:
    stored = fill(store, 200)

    def meddle(batch: int) -> None:
        if batch > 3:
            return
        store.add(f"added at batch {batch}")
        store.edit(stored[batch].id, content=f"edited at batch {batch}")
        store.archive(stored[20 + batch].id)
        store.edit(stored[40 + batch].id, tags=["new"])
        store.forget(stored[199 - batch].id)
        store.record_outcome([stored[60 + batch].id], Outcome.WORKED)

    changing = open_store(embedder=Interrupting(meddle))
    changing.reindex(embeddings=True)

    after = everything(changing)
    assert everything(store) == after
    assert len({memory.id for memory in after}) == len(after) == 202 + 3 - 3
    contents = {memory.content for memory in after}
    assert {f"added at batch {b}" for b in range(1, 4)} | {f"edited at batch {b}" for b in range(1, 4)} <= contents
    assert not {f"fact {199 - b} about subject{199 - b}" for b in range(1, 4)} & contents
    assert changing.get(stored[61].id).uses == 1
    assert changing.get(stored[21].id).archived
    assert changing.get(stored[41].id).tags == ("new",)
    assert changing.check() == []
    assert changing.stats().pending_embeddings == 0


def test_a_write_that_waited_during_the_swap_lands_in_the_new_table(
    wide_store: MemoryStore, open_store: OpenStore, folder: Path
) -> None:
    fill(wide_store)
    old = table_of(folder)

    def swap(batch: int) -> None:
        if batch == 1:
            wide_store.reindex(embeddings=True)

    late = open_store(embedder=Interrupting(swap))
    added = late.add("written while the table was swapped")

    assert table_of(folder) != old
    assert wide_store.get(added.id).content == "written while the table was swapped"
    assert [memory.content for memory in everything(wide_store)].count(added.content) == 1
    assert wide_store.search("swapped")[0].vector_rank == 1


def test_open_stores_go_over_at_their_next_call(store: MemoryStore, open_store: OpenStore, folder: Path) -> None:
    stored = fill(store)
    store.search("fact")
    wide = open_store(embedder=WideEmbedder())
    wide.reindex(embeddings=True)

    new = store.add("said by one who still has the former model")
    store.record_outcome([stored[5].id], Outcome.FAILED)
    store.forget(stored[6].id)

    assert wide.get(new.id).content == new.content
    assert wide.get(stored[5].id).outcome_score < 0
    assert stored[6].id not in {memory.id for memory in everything(wide)}
    assert "mem reindex --embeddings" in (store.stats().message or "")
    assert wide.stats().pending_embeddings == 1
    wide.optimize()
    assert wide.stats().pending_embeddings == 0
    assert wide.check() == store.check() == []


def test_no_write_of_another_process_is_lost(store: MemoryStore, open_store: OpenStore, folder: Path) -> None:
    fill(store)
    with another_writer(folder, judging=False) as ids:
        wide = open_store(embedder=WideEmbedder())
        ids.next()
        for _ in range(2):
            wide.reindex(embeddings=True)
            ids.next()
    after = everything(wide)
    assert set(ids) <= {memory.id for memory in after}
    assert len({memory.id for memory in after}) == len(after)
    assert wide.check() == []


# Breaking off


def die_at_the_third_batch(folder: str) -> None:
    def die(batch: int) -> None:
        if batch == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    MemoryStore.open(folder, embedder=Interrupting(die)).reindex(embeddings=True)


def test_a_killed_run_is_gone_on_with(store: MemoryStore, open_store: OpenStore, folder: Path) -> None:
    stored = fill(store, 254)
    killed = SPAWN.Process(target=die_at_the_third_batch, args=(str(folder),))
    killed.start()
    killed.join(120)
    assert killed.exitcode == -signal.SIGKILL
    assert store.stats().search_mode is SearchMode.HYBRID  # the old vectors are in use as before
    store.edit(stored[0].id, content="changed after the kill")
    store.forget(stored[1].id)
    before = everything(store)

    embedder = WideEmbedder()
    wide = open_store(embedder=embedder)
    steps: list[tuple[int, int]] = []
    done = wide.reindex(embeddings=True, progress=lambda *step: steps.append(step))

    assert done.resumed == 128
    assert done.embedded == len(embedder.embedded) - 2 == len(before) - 126  # the long one has three passages
    assert steps[-1][0] == steps[-1][1]
    assert everything(wide) == before
    assert wide.check() == []


def test_ctrl_c_changes_nothing(store: MemoryStore, open_store: OpenStore) -> None:
    fill(store, 100)
    before = everything(store)

    def interrupt(batch: int) -> None:
        if batch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_store(embedder=Interrupting(interrupt)).reindex(embeddings=True)
    assert everything(store) == before
    assert store.add("the lock is free").content


@pytest.mark.parametrize("note", ["other model", "damaged", "missing table"])
def test_a_run_that_cannot_be_gone_on_with_begins_anew(
    store: MemoryStore, open_store: OpenStore, folder: Path, note: str
) -> None:
    fill(store, 100)
    before = everything(store)

    def interrupt(batch: int) -> None:
        if batch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_store(embedder=Interrupting(interrupt)).reindex(embeddings=True)
    embedder = WideEmbedder("wide@2") if note == "other model" else WideEmbedder()
    if note == "damaged":
        (folder / "reindex.json").write_text("{", "utf-8")
    if note == "missing table":
        made = json.loads((folder / "reindex.json").read_text("utf-8"))["table"]
        (folder / "lance" / f"{made}.lance").rename(folder / "lance" / "away.lance")

    wide = open_store(embedder=embedder)
    done = wide.reindex(embeddings=True)
    assert (done.resumed, done.embedded) == (0, len(before))
    assert everything(wide) == before
    assert not (folder / "reindex.json").exists()


def test_only_one_at_a_time(store: MemoryStore, folder: Path) -> None:
    fill(store)
    impatient = MemoryStore(Settings.load(db=str(folder), lock_timeout=0.05), embedder=WideEmbedder())
    with impatient, upkeep_lock(folder, 1), pytest.raises(StoreBusyError):
        impatient.reindex(embeddings=True)


# The replaced table


def make_old(path: Path, seconds: float) -> None:
    os.utime(path, (path.stat().st_mtime - seconds,) * 2)


def test_the_replaced_table_stays_for_those_who_read_it_and_goes_later(
    store: MemoryStore, open_store: OpenStore, folder: Path
) -> None:
    fill(store)
    before = tables(folder)
    store.reindex(embeddings=True)
    assert before < tables(folder)
    open_store().stats()
    assert before < tables(folder)

    make_old(folder / "lance" / "memories.lance", 11 * 60)
    open_store().stats()
    assert tables(folder) == {"outcomes.lance", f"{table_of(folder)}.lance"}
    assert len(everything(store)) == 22


def test_a_half_made_table_waits_a_week(store: MemoryStore, open_store: OpenStore, folder: Path) -> None:
    fill(store, 100)

    def interrupt(batch: int) -> None:
        if batch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_store(embedder=Interrupting(interrupt)).reindex(embeddings=True)
    made = folder / "lance" / "memories-2.lance"
    make_old(made, 6 * 86400)
    open_store().stats()
    assert made.exists()
    make_old(folder / "reindex.json", 8 * 86400)
    (folder / "lance" / "stray.lance").mkdir()
    make_old(folder / "lance" / "stray.lance", 8 * 86400)
    open_store().stats()
    assert not made.exists()
    assert not (folder / "reindex.json").exists()


# The text index


def test_reindex_without_more_mends_the_text_index_and_fills_in_vectors(open_store: OpenStore, folder: Path) -> None:
    embedder = FragileEmbedder()
    embedder.broken = True
    store = open_store(embedder=embedder)
    stored = [store.add(f"offline fact {number}") for number in range(20)]
    assert store.stats().pending_embeddings == 20
    for path in (folder / "text").glob("*.store"):
        path.write_bytes(b"\0" * path.stat().st_size)
    embedder.broken = False

    done = store.reindex()

    assert (done.memories, done.embedded) == (20, 20)
    assert store.stats().pending_embeddings == 0
    assert store.check() == []
    hit = store.search("offline fact 7")[0]
    assert (hit.memory.id, hit.text_rank, hit.vector_rank) == (stored[7].id, 1, 1)


# The model's name


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str | None, Embedder]:
    """Return the models that can be loaded, by their names."""
    known: dict[str | None, Embedder] = {None: TinyEmbedder(), "some/wide": WideEmbedder("some/wide@1")}
    monkeypatch.setattr("runtime_memory.upkeep.load_embedder", known.__getitem__)
    return known


@pytest.mark.usefixtures("models")
def test_the_store_knows_its_model_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MemoryStore.open(folder) as store, MemoryStore.open(folder, background_model=True) as host:
        fill(store)
        host.warm()
        host.search("fact")
        done = store.reindex(embeddings=True, model="some/wide")
        assert (done.embedding, done.model) == ("some/wide@1", "some/wide")
        assert store.stats().search_mode is SearchMode.HYBRID
        host.search("fact")
        assert host._model is not None
        assert host._model.get() is not None  # it loads the new model without being told
        assert host.search("subject3")[0].vector_rank == 1
    with MemoryStore.open(folder) as later:
        assert later.search("subject3")[0].vector_rank == 1
        assert later.reindex(embeddings=True).embedding == "some/wide@1"

    monkeypatch.setitem(os.environ, "RUNTIME_MEMORY_EMBEDDING_MODEL", "some/wide")
    with MemoryStore.open(folder) as same:
        assert same.stats().message is None


def test_a_setting_that_names_another_model_is_told_of(folder: Path, models: dict[str | None, Embedder]) -> None:
    models["other"] = TinyEmbedder("other@1")
    with MemoryStore.open(folder) as store:
        fill(store)
        store.reindex(embeddings=True, model="some/wide")
    with MemoryStore(Settings.load(db=str(folder), embedding_model="other")) as store:
        assert "mem reindex --embeddings" in (store.stats().message or "")
        assert store.search("subject3")[0].vector_rank is None
        store.reindex(embeddings=True)
        assert store.search("subject3")[0].vector_rank is not None
    with MemoryStore.open(folder) as store:
        assert store.stats().embedding_model == "other@1"
        assert store.stats().message is None


def test_a_store_that_a_setting_made_needs_it_no_more(folder: Path, models: dict[str | None, Embedder]) -> None:
    with MemoryStore(Settings.load(db=str(folder), embedding_model="some/wide")) as store:
        store.add("made with the wide model")
    with MemoryStore.open(folder) as store:
        assert store.search("wide model")[0].vector_rank == 1


@pytest.mark.usefixtures("models")
def test_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_DB", str(folder))
    with MemoryStore.open(folder) as store:
        fill(store)
    run = CliRunner().invoke(app, ["reindex"])
    assert "holds 22 memories" in run.stdout
    assert run.stderr == ""
    run = CliRunner().invoke(app, ["reindex", "--embeddings", "--model", "some/wide"])
    assert "22 memories are embedded with some/wide@1" in run.stdout
    assert "python -m benchmarks calibrate --model some/wide" in run.stderr
    monkeypatch.setenv("RUNTIME_MEMORY_EMBEDDING_MODEL", "some/wide")
    run = CliRunner().invoke(app, ["reindex", "--embeddings", "--json"])
    assert json.loads(run.stdout) == {
        "memories": 22,
        "embedded": 22,
        "resumed": 0,
        "embedding": "some/wide@1",
        "model": "some/wide",
    }
    monkeypatch.setenv("RUNTIME_MEMORY_EMBEDDING", "null")
    run = CliRunner().invoke(app, ["reindex", "--embeddings"])
    assert run.exit_code == 1
    assert CliRunner().invoke(app, ["reindex", "--model", "some/wide"]).exit_code == 2
