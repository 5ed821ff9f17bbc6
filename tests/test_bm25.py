"""How rare a term is does not depend on how an index came to hold its records."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime_memory import MemoryStore, SearchResult

from .grown_store import grow
from .tiny_embedder import TinyEmbedder

QUERIES = ("port of service 7", "service", "what is 5003?", "as of March")


def found(store: MemoryStore) -> list[list[SearchResult]]:
    store.search("the first of a process asks the table")
    return [store.search(query, limit=100) for query in QUERIES]


def test_what_was_deleted_and_is_not_merged_away_does_not_make_a_term_rarer(tmp_path: Path) -> None:
    with MemoryStore.open(tmp_path, embedder=TinyEmbedder()) as store:
        grow(store, store)  # each commit deletes the state of the one before
        grown = found(store)
        store.reindex()
        rebuilt = found(store)
    for one, other in zip(grown, rebuilt, strict=True):
        assert [each.memory for each in one] == [each.memory for each in other]
        for result, same in zip(one, other, strict=True):
            assert result.bm25 == pytest.approx(same.bm25, rel=0.15)  # the average length still counts them
            assert result.score == pytest.approx(same.score, abs=0.01)
