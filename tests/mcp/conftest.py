"""Fixtures of the MCP server: in this process over a store of the test, and as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from runtime_memory.mcp.server import build_server
from runtime_memory.settings import ENV_PREFIX
from tests.conftest import OpenStore

TOKEN = "correct-horse-battery-staple"
START = (sys.executable, "-P", "-m", "runtime_memory")
SERVE = (*START, "serve", "--mcp")

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def connect(open_store: OpenStore) -> Connect:
    """Return a client of a server in this process, over a store that stays open."""
    store = open_store()

    @asynccontextmanager
    async def connect_(project: str | None = None, **options: Any) -> AsyncIterator[Client]:
        async with Client(build_server(store, project), **options) as client:
            yield client

    return connect_


def environment(home: Path, **settings: str) -> dict[str, str]:
    """Return the environment of a process that finds nothing of this user's, and searches by words."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)}
    given = {ENV_PREFIX + name: value for name, value in {"EMBEDDING": "null", **settings}.items()}
    return kept | {"HOME": str(home)} | given


@dataclass(frozen=True)
class Running:
    """A server over HTTP in a process of its own."""

    url: str
    home: Path
    process: subprocess.Popen[str]

    @asynccontextmanager
    async def client(self, token: str | None = TOKEN, **options: Any) -> AsyncIterator[Client]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(self.url, http_client=http), **options) as client,
        ):
            yield client

    def request(self, method: str = "POST", body: bytes = b"", **headers: str) -> httpx2.Response:
        """Send one request with the token and the headers of a client, which ``headers`` replace (``_`` is a dash)."""
        usual = {
            "authorization": f"Bearer {TOKEN}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        with httpx2.Client(timeout=90) as http:
            return http.request(method, self.url, content=body, headers=usual | given)


@contextmanager
def serving(home: Path, *options: str, **settings: str) -> Iterator[Running]:
    """Run a server over HTTP at a free port, with its store in the home folder."""
    process = subprocess.Popen(
        [*SERVE, "--http", "--port", "0", *options],
        env=environment(home, MCP_TOKEN=TOKEN, **settings),
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr
        line = process.stderr.readline()
        found = re.search(r"at (http://\S+)", line)
        assert found, line + process.stderr.read()
        yield Running(found[1], home, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=90)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as home, serving(Path(home)) as server:
        yield server


def text_of(result: CallToolResult) -> str:
    """Return the text of a tool's result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def call(client: Client, tool: str, **args: Any) -> dict[str, Any]:
    """Call a tool that must succeed, and return its structured result."""
    result = await client.call_tool(tool, args)
    assert not result.is_error, text_of(result)
    structured: dict[str, Any] = result.structured_content
    return structured


async def remember(client: Client, content: str, category: str = "environment", **args: Any) -> str:
    """Save a memory and return its id."""
    return str((await call(client, "remember", content=content, category=category, **args))["memory_id"])


async def use_everything(client: Client) -> None:
    """Use every tool, the resources and the prompt of a server that nobody else writes to meanwhile."""
    port = await remember(client, "The staging database listens on port 5433", tags=["database"])
    again = await call(client, "remember", content="The staging database listens on port 5433", category="environment")
    assert (again["memory_id"], again["duplicate"]) == (port, True)
    found = await call(client, "recall", query="staging database port")
    assert found["memories"][0]["id"] == port
    judged = await call(client, "outcome", outcome="worked", memory_ids=[port])
    assert judged == {"recorded": True, "outcome": "worked", "updated": [{"id": port, "outcome_score": 0.2}]}
    edited = await call(client, "edit", memory_id=port, content="The staging database listens on port 6432")
    assert (edited["id"], edited["outcome_score"], edited["tags"]) == (port, 0.2, ["database"])
    why = await call(client, "why", query="staging database port")
    assert [each["id"] for each in why["recalled"]] == [port]
    assert (await call(client, "stats"))["total_memories"] >= 1
    assert f"memory://{port}" in [resource.uri for resource in (await client.list_resources()).resources]
    assert "6432" in str((await client.read_resource(f"memory://{port}")).contents)
    assert "6432" in str((await client.get_prompt("project_context")).messages)
    assert await call(client, "forget", memory_ids=[port]) == {"forgotten": [port]}
    assert (await call(client, "recall", query="staging database port"))["memories"] == []
