"""A store with more vectors than a machine holds in memory: they are searched on the object store."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest

import indexes.resident
import indexes.vectors
from indexes.filters import In
from indexes.replica import Replica
from indexes.vectors import VectorHit
from runtime_memory import MemoryStore, NewMemory
from tests.object_store.conftest import Machine
from tests.tiny_embedder import TinyEmbedder

QUESTION = "fact 7 of shelf 7"


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (indexes.vectors, indexes.resident):
        monkeypatch.setattr(module, "ANN_ROWS", 300)
    monkeypatch.setattr(Replica, "most_resident", 200)


@pytest.fixture
def filled(machine: Machine) -> MemoryStore:
    store = machine()
    store.add_many([NewMemory(f"fact {n} of shelf {n % 17} in room {n % 5}") for n in range(400)])
    store.optimize()
    return store


def nearest(store: MemoryStore) -> tuple[list[VectorHit], list[VectorHit]]:
    """Return what a search finds, once what it keeps in memory is there, and what the newest version holds."""
    index, where = store._opening._current().database.index, In("archived", (False,))
    vector = TinyEmbedder().embed_query(QUESTION)
    for _ in range(3):
        index.refresh()
        found = index.search_vectors(vector, where, 10)
        while index.is_warming:
            time.sleep(0.01)
    return found, index.table.search(vector, where, 10)


def test_every_machine_finds_what_the_newest_version_holds(filled: MemoryStore, machine: Machine) -> None:
    other = machine("other")
    added = filled.add(QUESTION)
    changes: list[Callable[[], object]] = [
        lambda: other.edit(added.id, tags=["changed"]),
        lambda: filled.archive(added.id),
        lambda: other.archive(added.id, archived=False),
        filled.optimize,
        lambda: other.forget(added.id),
    ]
    for number, change in enumerate(changes):
        change()
        for store in (filled, other):
            found, expected = nearest(store)
            assert (added.id in {hit.id for hit in found}) == (number not in (1, 4))
            assert [hit.cosine for hit in found] == pytest.approx([hit.cosine for hit in expected], abs=1e-4)


@pytest.mark.filterwarnings("ignore:optimize")
def test_instead_of_a_version_that_was_removed_meanwhile_the_newest_is_searched(filled: MemoryStore) -> None:
    index, where = filled._opening._current().database.index, In("archived", (False,))
    nearest(filled)
    added = filled.add(QUESTION)
    index.table._table.optimize(cleanup_older_than=timedelta(0))
    hits = index.rows.search(TinyEmbedder().embed_query(QUESTION), where, 10, share=1.0, version=2)
    assert added.id in {hit.id for hit in hits}
