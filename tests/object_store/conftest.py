"""A store on a local S3 server, and machines: the same store with a cache folder of each one's own."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from runtime_memory import MemoryStore
from tests.conftest import Clock, OpenStore
from tests.object_store.proxy import Proxy
from tests.tiny_embedder import TinyEmbedder

Machine = Callable[..., MemoryStore]
SERVER = Path(__file__).with_name("s3_server.py")


@dataclass(frozen=True)
class Team:
    """Where the store is, and how to come to it."""

    uri: str
    options: str
    proxy: Proxy


@pytest.fixture(scope="session")
def server() -> Iterator[Proxy]:
    with subprocess.Popen([sys.executable, str(SERVER), "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        proxy = Proxy(port)
        yield proxy
        proxy.close()
        process.terminate()


@pytest.fixture
def team(server: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    options = (
        f"endpoint=http://127.0.0.1:{server.port},region=us-east-1,allow_http=true,"
        "access_key_id=team,secret_access_key=secret,client_max_retries=0"
    )
    monkeypatch.setenv("RUNTIME_MEMORY_STORAGE_OPTIONS", options)
    bucket = f"team-{uuid4().hex}"  # of its own: the server looks through all keys of a bucket to list some
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{server.port}/{bucket}", method="PUT")).close()
    yield Team(f"s3://{bucket}/memories", options, server)
    server.close()
    server.open()


@pytest.fixture
def machine(team: Team, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Open the team's store as one of several machines."""
    opened: list[MemoryStore] = []

    def open_(name: str = "one", **options: Any) -> MemoryStore:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        store = MemoryStore.open(team.uri, **{"embedder": TinyEmbedder(), "clock": clock} | options)
        opened.append(store)
        return store

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def open_store(machine: Machine) -> OpenStore:
    """Open the team's store where the core's tests open one in a folder."""
    return machine
