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


class Server:
    """The S3 server: a process that can be stopped, and started again with what it held, and a proxy before it."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._port = 0
        self.start()
        self.proxy = Proxy(self._port)

    def start(self) -> None:
        command = [sys.executable, str(SERVER), str(self._port), str(self._state)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate()


@dataclass(frozen=True)
class Team:
    """Where the store is, and how to come to it."""

    uri: str
    options: str
    proxy: Proxy
    server: Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("s3") / "state")
    yield server
    server.proxy.close()
    server.stop()


@pytest.fixture
def team(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    proxy = server.proxy
    options = (
        f"endpoint=http://127.0.0.1:{proxy.port},region=us-east-1,allow_http=true,"
        "access_key_id=team,secret_access_key=secret,client_max_retries=0"
    )
    monkeypatch.setenv("RUNTIME_MEMORY_STORAGE_OPTIONS", options)
    bucket = f"team-{uuid4().hex}"  # of its own: the server looks through all keys of a bucket to list some
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{proxy.port}/{bucket}", method="PUT")).close()
    yield Team(f"s3://{bucket}/memories", options, proxy, server)
    proxy.close()
    proxy.open()


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
