"""Serve one client over a pair of streams."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, TextIO, cast

import anyio
from anyio import AsyncFile
from mcp.server.stdio import stdio_server

from runtime_memory.mcp.server import build_server, keep_open

if TYPE_CHECKING:
    from runtime_memory.mcp.streams import Streams
    from runtime_memory.store import MemoryStore

__all__ = ["serve_stdio"]


def serve_stdio(store: MemoryStore, project: str | None, streams: Streams) -> int:
    """Serve until the client closes its end or a signal comes; close the store, and return the exit code."""
    return anyio.run(_serve, store, project, streams)


async def _serve(store: MemoryStore, project: str | None, streams: Streams) -> int:
    server = build_server(store, project, lifespan=keep_open(store))
    lines = cast("AsyncFile[str]", _Lines(streams.received))
    caught: list[int] = []
    try:
        async with anyio.create_task_group() as group:
            if sys.platform != "win32":
                group.start_soon(_stop_at_signal, group.cancel_scope, caught)
            async with stdio_server(stdin=lines, stdout=anyio.wrap_file(streams.sent)) as (received, sent):
                await server.run(received, sent, server.create_initialization_options())
            group.cancel_scope.cancel()
    except* (BrokenPipeError, anyio.BrokenResourceError):
        pass  # the client is gone, and with it everyone who could be told
    return 128 + caught[0] if caught else 0


async def _stop_at_signal(scope: anyio.CancelScope, caught: list[int]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            caught.append(int(number))
            scope.cancel()


class _Lines:
    """Lines of a stream, each read when it is asked for.

    A read cannot be broken off. So a daemon thread does it, for which a server that must end does not wait.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._asked: SimpleQueue[asyncio.Future[str]] = SimpleQueue()
        Thread(target=self._read, name="runtime-memory-standard-input", daemon=True).start()

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        answer = asyncio.get_running_loop().create_future()
        self._asked.put(answer)
        line: str = await answer
        if not line:
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        while True:
            answer = self._asked.get()
            try:
                line = self._stream.readline()
            except OSError:
                line = ""
            with suppress(RuntimeError):  # the loop has ended
                answer.get_loop().call_soon_threadsafe(_answer, answer, line)


def _answer(asked: asyncio.Future[str], line: str) -> None:
    if not asked.done():
        asked.set_result(line)
