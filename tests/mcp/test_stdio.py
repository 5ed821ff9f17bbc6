"""The server over standard input and output: nothing but the protocol leaves, and it ends cleanly."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from runtime_memory import MemoryStore
from runtime_memory.mcp.server import keep_open
from runtime_memory.store import MemoryStore as Store
from tests.conftest import WideEmbedder, contents
from tests.mcp.conftest import SERVE, environment, use_everything

INITIALIZE = {
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "a test", "version": "1"},
    },
}
NOISY = """\
import os, sys
class Loud:
    def find_spec(self, name, *_):
        if name == "lancedb":
            print("a library that prints")
            os.write(1, b"a native library that prints\\n")
            os.system("echo a child that prints")
sys.meta_path.insert(0, Loud())
from runtime_memory.cli import main
main()
"""


class Raw:
    """A client that sees every byte."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._id = 0
        self.request(INITIALIZE["method"], INITIALIZE["params"])
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: object) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, raw: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(raw)
        self.process.stdin.flush()

    def request(self, method: Any, params: Any) -> dict[str, Any]:
        """Send a request and return what the next line holds, which must be its answer."""
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        assert self.process.stdout
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", self._id)
        return answer

    def call(self, tool: str, **args: Any) -> dict[str, Any]:
        answer = self.request("tools/call", {"name": tool, "arguments": args})
        result: dict[str, Any] = answer["result"]
        return result

    def finish(self) -> tuple[bytes, bytes]:
        """Close the input, and return what was left in the output and all that went to standard error."""
        rest, errors = self.process.communicate(timeout=90)
        return rest, errors


@contextmanager
def speaking(home: Path, command: tuple[str, ...] = SERVE, **settings: str) -> Iterator[Raw]:
    process = subprocess.Popen(
        command,
        env=environment(home, **settings),
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield Raw(process)
        finally:
            process.kill()


@pytest.mark.anyio
async def test_the_client_of_the_sdk_uses_everything_in_an_empty_home(tmp_path: Path) -> None:
    server = StdioServerParameters(command=SERVE[0], args=list(SERVE[1:]), env=environment(tmp_path), cwd=tmp_path)
    async with Client(server) as client:
        await use_everything(client)
    assert (tmp_path / ".runtime-memory").is_dir()


def test_nothing_but_the_protocol_leaves_cold_and_warm_and_bad_lines_do_no_harm(tmp_path: Path) -> None:
    with speaking(tmp_path, (SERVE[0], "-P", "-c", NOISY, "serve", "--mcp")) as cold:
        assert not cold.call("remember", content="The port is 5433", category="environment")["isError"]
        for raw in (b"no json\n", b"\n", b"{}\n", b"[1, 2]\n", b'{"jsonrpc": "2.0"}\n', b"\xff\xfe\n", b"null\n"):
            cold.write(raw)
        assert cold.call("recall", query="port")["structuredContent"]["count"] == 1
        long = cold.call("remember", content="x" * 10_000_000, category="context")
        assert long["isError"]
        assert "100,000" in long["content"][0]["text"]
        assert "error" in cold.request("tools/call", {"name": "recall", "arguments": "no object"})
        assert "error" in cold.request("nonsense", {})
        rest, errors = cold.finish()
        assert (rest, cold.process.returncode) == (b"", 0)
        for noise in (b"a library", b"a native library", b"a child"):
            assert noise + b" that prints" in errors
    with speaking(tmp_path) as warm:
        assert warm.call("recall", query="port")["structuredContent"]["count"] == 1
        assert warm.finish()[0] == b""


def test_a_signal_ends_it_though_the_client_is_silent(tmp_path: Path) -> None:
    with speaking(tmp_path) as client:
        client.call("remember", content="The port is 5433", category="environment")
        client.process.send_signal(signal.SIGINT)
        assert client.process.wait(timeout=90) == 128 + signal.SIGINT
        assert client.finish() == (b"", b"")
    with MemoryStore.open(tmp_path / ".runtime-memory") as store:
        assert contents(store.list()) == ["The port is 5433"]


def test_a_client_that_disappears_ends_it(tmp_path: Path) -> None:
    with speaking(tmp_path) as client:
        assert client.process.stdin
        assert client.process.stdout
        client.process.stdout.close()
        request = {"name": "remember", "arguments": {"content": "The port is 5433", "category": "environment"}}
        client.send({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": request})
        client.process.stdin.close()
        assert client.process.wait(timeout=90) == 0
        assert client.process.stderr
        assert b"Traceback" not in client.process.stderr.read()


@pytest.mark.anyio
async def test_the_store_is_closed_when_the_server_ends(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    async with keep_open(store)(None):  # type: ignore[arg-type]
        pass
    with pytest.raises(Exception, match="closed"):
        store.list()


def test_the_first_call_is_answered_by_words_while_the_model_loads(tmp_path: Path) -> None:
    slow = """\
import time, runtime_memory.upkeep as upkeep
upkeep.load_embedder = lambda *_: time.sleep(600)
from runtime_memory.cli import main
main()
"""
    with MemoryStore.open(tmp_path / ".runtime-memory", embedder=WideEmbedder()) as store:
        store.add("The port is 5433", category="environment")
    with speaking(tmp_path, (SERVE[0], "-P", "-c", slow, "serve", "--mcp"), EMBEDDING="local") as client:
        found = client.call("recall", query="port")["structuredContent"]
        assert found["count"] == 1
        assert client.call("stats")["structuredContent"]["search_mode"] == "text"
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(timeout=90) == 128 + signal.SIGTERM
