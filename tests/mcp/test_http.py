"""The server over HTTP: many clients at once, and none that may not."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import MCPError
from typer.testing import CliRunner

from provider import RuntimeMemoryProvider, shared
from runtime_memory import MemoryStore
from runtime_memory.cli import app
from runtime_memory.errors import ServerError
from runtime_memory.mcp.http import MAX_BODY, Address, check, is_loopback, listen
from tests.conftest import contents
from tests.mcp.conftest import START, TOKEN, Running, call, environment, remember, serving, use_everything

CLIENTS = 50


def message(method: str, params: Any = None, number: int = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}).encode()


def a_call(tool: str, **args: Any) -> bytes:
    return message("tools/call", {"name": tool, "arguments": args})


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_client_of_the_sdk_uses_everything(running: Running, mode: str) -> None:
    async with running.client(mode=mode) as client:
        await use_everything(client)


@pytest.mark.anyio
async def test_fifty_clients_at_once_lose_no_write(running: Running) -> None:
    stored: dict[int, str] = {}

    async def write(number: int) -> None:
        async with running.client() as client:
            stored[number] = await remember(client, f"what client {number} knows", "context")
            await call(client, "outcome", outcome="worked", memory_ids=[stored[number]])

    async with anyio.create_task_group() as group:
        for number in range(CLIENTS):
            group.start_soon(write, number)
    with MemoryStore.open(running.home / ".runtime-memory") as store:
        scores = {memory.id: memory.outcome_score for memory in store.list()}
        assert store.check() == []
    assert len(set(stored.values())) == CLIENTS
    assert {round(scores[each], 3) for each in stored.values()} == {0.2}


@pytest.mark.anyio
async def test_provider_command_line_and_server_write_at_once_and_each_sees_all(
    running: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_DB", str(running.home / ".runtime-memory"))
    monkeypatch.setenv("RUNTIME_MEMORY_EMBEDDING", "null")
    monkeypatch.setenv("RUNTIME_MEMORY_PROJECT", "together")
    provider = RuntimeMemoryProvider()
    provider.initialize("s1", platform="cli", agent_context="primary", hermes_home=str(tmp_path))

    def ask(tool: str, **args: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(provider.handle_tool_call(f"runtimememory_{tool}", args))
        return answer

    def mem(*args: str) -> str:
        command = [*START, *args, "--project", "together"]
        env = environment(running.home)
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=True).stdout

    expected = {*(f"apple {writer} {n}" for writer in ("provider", "server") for n in range(8)), "apple line"}
    async with running.client() as client, anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, partial(mem, "add", "apple line"))
        for n in range(8):
            await anyio.to_thread.run_sync(partial(ask, "remember", content=f"apple provider {n}", category="context"))
            await remember(client, f"apple server {n}", "context", project="together")
            seen = await call(client, "recall", query=f"apple provider {n}", project="together", limit=50)
            assert f"apple provider {n}" in str(seen)
            assert f"apple server {n}" in str(ask("recall", query="apple", limit=50))
    async with running.client() as client:
        there = await call(client, "recall", query="apple", limit=50, project="together")
    for found in (there, ask("recall", query="apple", limit=50), json.loads(mem("list", "--limit", "0", "--json"))):
        assert {each["content"] for each in found["memories"]} >= expected
    shared._close_all()


@pytest.mark.anyio
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x"])
async def test_a_client_without_the_token_is_refused(running: Running, token: str | None) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - the SDK wraps what it raises in groups of its own
        async with running.client(token) as client:
            await client.list_tools()


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer \xff", f"Bearer {TOKEN}é"]
)
def test_a_wrong_token_is_answered_with_401(running: Running, header: str) -> None:
    answer = running.request(body=a_call("stats"), authorization=header.encode("latin-1"))  # type: ignore[arg-type]
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "total_memories" not in answer.text


def test_the_right_token_is_let_through(running: Running) -> None:
    assert '"total_memories"' in running.request(body=a_call("stats")).text
    assert running.request(body=a_call("stats"), authorization=f"bearer  {TOKEN}").status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://localhost.evil.example", "null", "http://127.0.0.1:1"]
)
def test_a_page_of_another_origin_is_refused(running: Running, origin: str) -> None:
    answer = running.request(body=a_call("stats"), origin=origin)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example", ""])
def test_another_host_is_refused(running: Running, host: str) -> None:
    assert running.request(body=a_call("stats"), host=host).status_code in (400, 421)


def test_the_own_origin_is_let_through(running: Running) -> None:
    origin = running.url.removesuffix("/mcp")
    assert running.request(body=a_call("stats"), origin=origin).status_code == 200


@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"[]", b'"text"', b"{}", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_malformed_request_is_refused_and_the_server_goes_on(running: Running, body: bytes) -> None:
    assert 400 <= running.request(body=body).status_code < 500
    assert running.request(body=a_call("stats")).status_code == 200


@pytest.mark.parametrize("params", [{"name": 5}, {"name": "recall", "arguments": "text"}, {}, [1]])
def test_malformed_parameters_are_an_error_of_the_protocol(running: Running, params: Any) -> None:
    answer = running.request(body=message("tools/call", params))
    assert answer.status_code < 500
    assert "error" in answer.json()


@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS", "DELETE"])
def test_other_methods_are_refused(running: Running, method: str) -> None:
    assert running.request(method).status_code == 405


def test_a_body_that_is_too_large_is_answered_with_413(running: Running) -> None:
    assert running.request(body=a_call("remember", content="x" * 10_000_000, category="context")).status_code == 413
    below = a_call("remember", content="x" * (MAX_BODY - 1_000), category="context")
    assert running.request(body=below).json()["result"]["isError"]


@pytest.mark.anyio
async def test_a_client_survives_an_argument_of_ten_megabytes(running: Running) -> None:
    async with running.client() as client:
        with pytest.raises(MCPError):
            await client.call_tool("remember", {"content": "x" * 10_000_000, "category": "context"})
        assert (await call(client, "stats"))["total_memories"] >= 0


def test_a_client_that_disappears_loses_nothing_that_it_sent(running: Running) -> None:
    host, _, port = running.url.removeprefix("http://").removesuffix("/mcp").partition(":")
    body = a_call("remember", content="said before it left", category="context")
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    )
    for sent in (f"{head}Content-Length: {len(body) + 99}\r\n\r\n", f"{head}Transfer-Encoding: chunked\r\n\r\n9"):
        with socket.create_connection((host, int(port))) as broken:
            broken.sendall(sent.encode() + body[:9])
    with socket.create_connection((host, int(port))) as gone:
        gone.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    assert running.request(body=a_call("stats")).status_code == 200
    with MemoryStore.open(running.home / ".runtime-memory") as store:
        store.add("a write that waits for the one before")
        assert "said before it left" in contents(store.list())


def test_a_signal_ends_it_and_what_was_written_is_there(tmp_path: Path) -> None:
    with serving(tmp_path, "--project", "shop") as server:
        server.request(body=a_call("remember", content="The port is 5433", category="environment"))
        with socket.create_connection(("127.0.0.1", int(server.url.split(":")[2].split("/")[0]))):
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(timeout=90)
        assert server.process.stdout
        assert server.process.stdout.read() == ""
    with MemoryStore.open(tmp_path / ".runtime-memory") as store:
        assert [(memory.content, memory.project) for memory in store.list()] == [("The port is 5433", "shop")]


# What is refused before anything is served


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", "127.0.0.1.example.com"])
def test_an_address_for_others_needs_a_token(host: str) -> None:
    with pytest.raises(ServerError, match="RUNTIME_MEMORY_MCP_TOKEN"):
        check(Address(host))
    check(Address(host, token=TOKEN))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost", "LOCALHOST"])
def test_an_address_of_this_machine_needs_none(host: str) -> None:
    assert is_loopback(host)
    check(Address(host))


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "x" * 20 + "\n", "é" * 20])
def test_a_weak_token_is_refused(token: str) -> None:
    with pytest.raises(ServerError, match="16 characters"):
        check(Address(token=token))


def test_a_port_that_is_taken_is_told() -> None:
    with listen(Address(port=0)) as taken, pytest.raises(ServerError, match="choose another --port"):
        listen(Address(port=taken.getsockname()[1]))


def test_a_token_is_read_from_a_file_and_a_missing_file_is_told(tmp_path: Path) -> None:
    missing = CliRunner().invoke(app, ["serve", "--mcp", "--http", "--token-file", str(tmp_path / "missing")])
    (tmp_path / "token").write_text("short\n")
    short = CliRunner().invoke(app, ["serve", "--mcp", "--http", "--token-file", str(tmp_path / "token")])
    assert (missing.exit_code, short.exit_code) == (1, 1)
    assert "missing" in missing.output
    assert "16 characters" in short.output


def test_a_server_that_cannot_start_prints_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_MCP_TOKEN", "a secret")
    done = CliRunner().invoke(app, ["serve", "--mcp", "--http"])
    assert done.exit_code == 1
    assert "a secret" not in done.output


def test_serve_says_what_to_serve_and_what_is_missing() -> None:
    assert "mem serve --mcp" in CliRunner().invoke(app, ["serve"]).output
    hidden = "import sys; sys.modules['mcp'] = None; from runtime_memory.cli import main; main()"
    command = [sys.executable, "-P", "-c", hidden, "serve", "--mcp"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'runtime-memory[mcp]'" in done.stderr
