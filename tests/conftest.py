"""Fixtures of the core: stores in temporary folders, a deterministic embedder, and a clock that tests set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

from runtime_memory import Memory, MemoryStore, SearchResult
from runtime_memory.settings import ENV_PREFIX, Settings
from tests.tiny_embedder import TinyEmbedder

OpenStore = Callable[..., MemoryStore]

settings.register_profile("shared machines", deadline=None)
settings.load_profile("shared machines")


class Clock:
    """Tell a time that only the test moves."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **duration: float) -> None:
        self.now += timedelta(**duration)


class WideEmbedder(TinyEmbedder):
    """Give nearly every word a place of its own: unrelated texts have a cosine of 0."""

    dimension = 1024

    def __init__(self, identity: str = "wide@1") -> None:
        super().__init__(identity)


class FragileEmbedder(WideEmbedder):
    """Fail for as long as ``broken`` is set."""

    broken = False

    def embed_passages(self, passages: Sequence[str]) -> NDArray[np.float32]:
        self._fail()
        return super().embed_passages(passages)

    def embed_query(self, query: str) -> NDArray[np.float32]:
        self._fail()
        return super().embed_query(query)

    def _fail(self) -> None:
        if self.broken:
            raise RuntimeError("out of memory in the model")


@pytest.fixture(autouse=True)
def _settings_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(ENV_PREFIX + name.upper(), raising=False)


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def open_store(folder: Path, clock: Clock) -> Iterator[OpenStore]:
    """Open stores, in the same folder unless told otherwise, and close them after the test."""
    opened: list[MemoryStore] = []

    def open_(path: Path = folder, **options: Any) -> MemoryStore:
        store = MemoryStore.open(path, **{"embedder": TinyEmbedder(), "clock": clock} | options)
        opened.append(store)
        return store

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: OpenStore) -> MemoryStore:
    return open_store()


@pytest.fixture
def wide_store(open_store: OpenStore) -> MemoryStore:
    """Return a store whose vectors tell unrelated texts apart, for what depends on relevance."""
    return open_store(embedder=WideEmbedder())


def contents(found: Sequence[Any]) -> list[str]:
    """Return the contents of memories or search results, in order."""
    return [(item if isinstance(item, Memory) else item.memory).content for item in found]


def ranking(found: Sequence[SearchResult]) -> list[tuple[str, float, str | None]]:
    """Return what stands where, with which score and why not; to five digits, as the arms' arithmetic may differ."""
    return [(hit.memory.id, round(hit.score, 5), hit.dropped) for hit in found]
