from __future__ import annotations

from pathlib import Path

import pytest

import indexes.resident
import indexes.vectors
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
        assert not table._has_ann_index()
        fill(store, 200, 400)
        store.optimize()
        assert table._has_ann_index()
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
