from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import indexes.resident
import indexes.text
import indexes.text_counts
import indexes.vectors
import runtime_memory.searching
from indexes.consistency import HybridIndex
from indexes.filters import All, AnyOf, Filter, In
from indexes.table_files import newest_version
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
def test_vectors_that_outgrow_what_may_be_held_are_searched_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HybridIndex, "most_resident", 280)
    with MemoryStore.open(tmp_path, embedder=TinyEmbedder()) as store:
        fill(store, 0, 250)
        before = [store.search("fact 7 of shelf 7", limit=3)[0].memory.content for _ in range(3)]
        fill(store, 250, 200)
        assert before == ["fact 7 of shelf 7 in room 2"] * 3
        assert store.search("fact 7 of shelf 7", limit=3)[0].memory.content == before[0]
        assert len(store.candidates("fact 440 of shelf 15").vectors) == 100


@pytest.mark.parametrize("many", [False, True], ids=["with exact vectors", "as bytes alone"])
def test_vectors_in_memory_find_what_the_table_finds_after_every_kind_of_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    if many:
        monkeypatch.setattr(indexes.resident, "ANN_ROWS", 300)
    monkeypatch.setattr(indexes.resident, "_LEAST_BESIDE", 20)
    here = All((In("archived", (False,)), AnyOf((In("scope", ("global",)), In("project", ("p",))))))
    with MemoryStore.open(tmp_path, embedder=TinyEmbedder()) as store:
        fill(store, 0, 250)
        stored = store.add_many([NewMemory(f"fact {n} of shelf {n % 17}", project="pq"[n % 2]) for n in range(250)])
        _resident(store, "fact 7 of shelf 7", here)
        changes: list[Callable[[], object]] = [
            lambda: store.archive(stored[6].id),
            lambda: store.archive(stored[6].id, archived=False),
            lambda: store.forget(stored[8].id),
            lambda: store.edit(stored[10].id, content="an octopus in the greenhouse"),
            lambda: store.edit(stored[10].id, content="a zebra in the greenhouse"),
            lambda: store.add("fact 8 of shelf 8 once more", project="p"),
            store.optimize,
            lambda: fill(store, 300, 60),  # so many that they are joined
            lambda: store.forget(stored[12].id),
        ]
        for change in changes:
            change()
            for question in ("fact 6 of shelf 6", "fact 8 of shelf 8", "octopus greenhouse", "zebra greenhouse"):
                found, expected = _resident(store, question, here)
                assert _same(found, expected, by=1e-2 if many else 1e-4)


def _resident(store: MemoryStore, question: str, where: Filter) -> tuple[list[VectorHit], list[VectorHit]]:
    """Return what the vectors in memory find, once they are there, and what the table does."""
    index = store._opening._current().database.index
    index.refresh()
    vector = TinyEmbedder().embed_query(question)
    found = None
    while found is None:
        found = index._resident.search(vector, where, 20, index.table.version)
    return found, index.table.search(vector, where, 20)


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


def _same(found: list[VectorHit], expected: list[VectorHit], *, by: float = 1e-4) -> bool:
    """Tell whether two searches agree to a cosine's error, but for which of equally near records come last."""
    nearest = {hit.id: hit.cosine for hit in expected}
    worst = min(nearest.values())
    certain = {hit.id for hit in expected if hit.cosine > worst + 2 * by}
    cosines = sorted(hit.cosine for hit in found)
    return certain <= {hit.id for hit in found} and cosines == pytest.approx(sorted(nearest.values()), abs=by)


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
        monkeypatch.setattr(indexes.text, "LARGE", 100)
        monkeypatch.setattr(indexes.text_counts, "LARGE", 100)
        monkeypatch.setattr(runtime_memory.searching, "_SIDE_BY_SIDE", 100)
        store.add("another state of the index", project="r")
        large = [store.candidates(question, project="p") for question in questions]
        for before, after in zip(small, large, strict=True):
            assert before.text[0][0] == after.text[0][0]
            assert len(after.text) == len(before.text)
            assert not {id_ for id_, _ in after.text} - {memory.id for memory in store.list(project="p")}


def test_the_newest_version_is_told_by_the_names_of_the_manifests(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path, embedder=TinyEmbedder()) as store:
        added = store.add("fact 1 of shelf 1")
        table = store._opening._current().database.index.table
        for change in (lambda: store.add("fact 2"), lambda: store.archive(added.id), store.optimize):
            before = table.version
            change()
            assert table.version == newest_version(tmp_path / "lance" / "memories.lance") == table._table.version
            assert table.version > before


@pytest.mark.parametrize(
    "names", [[], ["7.manifest"], ["latest_version_hint.json"], ["d18446744073709551611.manifest"]]
)
def test_other_names_of_manifests_tell_no_version(tmp_path: Path, names: list[str]) -> None:
    (tmp_path / "_versions").mkdir()
    for name in names:
        (tmp_path / "_versions" / name).touch()
    assert newest_version(tmp_path) is None
    assert newest_version(tmp_path / "absent") is None


def test_a_store_without_vectors_in_memory_has_none_to_find(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path, embedder=TinyEmbedder()) as store:
        only = store.add("fact 1 of shelf 1")
        for _ in range(3):
            assert [id_ for id_, _ in store.candidates("fact 1").vectors] == [only.id]
        store.forget(only.id)
        assert not store.candidates("fact 1").vectors
        assert _resident(store, "fact 1", All()) == ([], [])
