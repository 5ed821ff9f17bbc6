"""Fixtures of the provider: sessions as a host begins them, over one store in a temporary folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from provider import RuntimeMemoryProvider, shared
from provider.config import warn_once
from provider.shared import health
from runtime_memory import Memory, MemoryStore
from tests.conftest import WideEmbedder

PORT = "The staging database listens on port 5433"
PORT_QUESTION = "On which port does the staging database listen?"

Begin = Callable[..., RuntimeMemoryProvider]
Stored = Callable[..., list[Memory]]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a home of Hermes; whatever the process shares between instances is fresh for each test."""
    home = tmp_path / "hermes"
    home.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv("RUNTIME_MEMORY_DB", str(tmp_path / "store"))
    monkeypatch.setattr("runtime_memory.upkeep.load_embedder", lambda _: WideEmbedder())
    health.failures.clear()
    warn_once.cache_clear()
    shared.shared_trace.cache_clear()
    yield home
    shared._close_all()


@pytest.fixture
def begin(home: Path) -> Begin:
    """Begin sessions the way Hermes 0.19.0 does, with the store open and the model loaded when they return."""

    def begin_(session_id: str = "s1", **given: Any) -> RuntimeMemoryProvider:
        one = RuntimeMemoryProvider()
        usual = {"platform": "cli", "hermes_home": str(home), "agent_context": "primary", "agent_identity": "default"}
        one.initialize(session_id=session_id, **usual | given)
        model = shared.shared_store(one._load_settings())._model
        assert model is None or model.get() is not None
        return one

    return begin_


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Stored]:
    """List what the store holds, as another process would see it."""
    opened: list[MemoryStore] = []

    def stored_(**which: Any) -> list[Memory]:
        if not opened:
            opened.append(MemoryStore.open(tmp_path / "store", embedder=WideEmbedder()))
        return opened[0].list(**which)

    yield stored_
    for store in opened:
        store.close()


def call(one: RuntimeMemoryProvider, tool: str, args: Any = None) -> dict[str, Any]:
    """Call a tool by the last part of its name, and return its result."""
    answer: dict[str, Any] = json.loads(one.handle_tool_call(f"runtimememory_{tool}", args))
    return answer


def remember(one: RuntimeMemoryProvider, content: str = PORT, **args: Any) -> str:
    """Save a memory and return its id."""
    answer = call(one, "remember", {"content": content, "category": "environment", **args})
    assert answer.get("stored"), answer
    return str(answer["memory_id"])
