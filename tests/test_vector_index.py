from __future__ import annotations

import time
from pathlib import Path

import pytest

import indexes.resident
import indexes.text
import indexes.vectors
import runtime_memory.searching
from indexes.filters import All, AnyOf, Filter, In
from indexes.vectors import VectorHit, VectorTable
from runtime_memory import MemoryStore, NewMemory

from .tiny_embedder import TinyEmbedder


@pytest.fixture
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes.vectors, "ANN_ROWS", 300)
    monkeypatch.setattr(indexes.resident, "ANN_ROWS", 300)


def fill(store: MemoryStore, start: int, count: int) -> None:
    store.add_many([NewMemory(f"fact {n} of shelf {n % 17} in room {n % 5}") for n in range(start, start + count)])


@pytest.mark.usefixtures("_few_are_many")
def test_an_index_over_the_vectors_appears_with_growth_and_finds_what_came_after_it(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path, embedder=TinyEmbedder()) as store:
        fill(store, 0, 200)
        store.optimize()
        table = store._opening._current().database.index.table
        assert not table.is_indexed()
        fill(store, 200, 400)
        store.optimize()
        assert table.is_indexed()
        late = store.add("zebra crossing")
        for _ in range(2):  # before the index covers it, and after
            assert store.candidates("zebra crossing").vectors[0][0] == late.id
            store.optimize()
        store.forget(late.id)
        assert late.id not in dict(store.candidates("zebra crossing").vectors)


@pytest.mark.usefixtures("_few_are_many")
def test_searches_go_on_in_the_table_when_the_vectors_outgrow_the_copy_in_memory(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path, embedder=TinyEmbedder()) as store:
        fill(store, 0, 250)
        before = [store.search("fact 7 of shelf 7", limit=3)[0].memory.content for _ in range(3)]
        fill(store, 250, 200)
        assert before == ["fact 7 of shelf 7 in room 2"] * 3
        assert store.search("fact 7 of shelf 7", limit=3)[0].memory.content == before[0]
        assert len(store.candidates("fact 440 of shelf 15").vectors) == 100


def _of_both(store: MemoryStore, question: str, where: Filter) -> tuple[list[VectorHit], list[VectorHit]]:
    """Return what the map of rows finds, once it is there, and what the table does."""
    index = store._opening._current().database.index
    index.refresh()
    vector = TinyEmbedder().embed_query(question)
    for _ in range(2):
        found = index.rows.search(vector, where, 20, share=0.5, version=index.table.version)
        while index.rows.is_loading:
            time.sleep(0.01)
    return found, index.table.search(vector, where, 20)


def _same(found: list[VectorHit], expected: list[VectorHit]) -> bool:
    """Tell whether two searches agree, but for which of equally near records come last."""
    nearest = {hit.id: hit.cosine for hit in expected}
    worst = min(nearest.values())
    certain = {hit.id for hit in expected if hit.cosine > worst + 1e-5}
    cosines = sorted(hit.cosine for hit in found)
    return certain <= {hit.id for hit in found} and cosines == pytest.approx(sorted(nearest.values()), abs=1e-4)


@pytest.mark.usefixtures("_few_are_many")
def test_rows_looked_up_in_memory_are_those_of_the_table_after_every_kind_of_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up: list[int] = []
    search = VectorTable.search
    monkeypatch.setattr(VectorTable, "search", lambda *given: given_up.append(1) or search(*given))
    live = In("archived", (False,))
    here = All((live, AnyOf((In("scope", ("global",)), In("project", ("p",))))))
    with MemoryStore.open(tmp_path, embedder=TinyEmbedder()) as store:
        fill(store, 0, 250)
        stored = store.add_many([NewMemory(f"fact {n} of shelf {n % 17}", project="pq"[n % 2]) for n in range(250)])
        store.optimize()
        assert _same(*_of_both(store, "fact 7 of shelf 7", here))
        given_up.clear()
        store.archive(stored[6].id)
        store.forget(stored[8].id)
        store.edit(stored[10].id, content="an octopus in the greenhouse")
        added = store.add("a zebra in the greenhouse", project="p")
        for question in ("fact 6 of shelf 6", "fact 8 of shelf 8", "octopus greenhouse", "zebra greenhouse"):
            found, expected = _of_both(store, question, here)
            assert _same(found, expected)
            assert not {stored[6].id, stored[8].id} & {hit.id for hit in found}
        assert added.id == _of_both(store, "a zebra in the greenhouse", here)[0][0].id
        assert stored[10].id == _of_both(store, "an octopus in the greenhouse", here)[0][0].id
        assert len(given_up) == 6  # the searches to compare with
        store.optimize()
        assert _same(*_of_both(store, "fact 12 of shelf 12", live))


@pytest.mark.usefixtures("_few_are_many")
def test_a_filter_that_few_pass_or_that_asks_for_tags_is_for_the_table(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path, embedder=TinyEmbedder()) as store:
        fill(store, 0, 400)
        tagged = store.add("fact 7 of shelf 7 again", tags=["kept"])
        store.optimize()
        found, _ = _of_both(store, "fact 7 of shelf 7", In("tags", ("kept",)))
        assert [hit.id for hit in found] == [tagged.id]
        found, _ = _of_both(store, "fact 7 of shelf 7", In("id", (tagged.id,)))
        assert [hit.id for hit in found] == [tagged.id]


def test_a_large_text_index_finds_what_a_small_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MemoryStore.open(tmp_path, embedder=TinyEmbedder()) as store:
        fill(store, 0, 300)
        store.add_many([NewMemory(f"fact {n} of another shelf {n % 17}", project="q") for n in range(100)])
        questions = [f"fact {n} of shelf {n % 17}, room {n % 5}?" for n in range(0, 300, 30)]
        small = [store.candidates(question, project="p") for question in questions]
        monkeypatch.setattr(indexes.text, "_LARGE", 100)
        monkeypatch.setattr(runtime_memory.searching, "_SIDE_BY_SIDE", 100)
        store.add("another state of the index", project="r")
        large = [store.candidates(question, project="p") for question in questions]
        for before, after in zip(small, large, strict=True):
            assert before.text[0][0] == after.text[0][0]
            assert len(after.text) == len(before.text)
            assert not {id_ for id_, _ in after.text} - {memory.id for memory in store.list(project="p")}
