"""A store in a process of its own that is told by lines what to do: ``python -m tests.reliability.line FOLDER``.

A request is ``[method, arguments, options]`` as JSON; the answer is ``["value", ...]`` or ``["error", its name]``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from runtime_memory import MemoryStore, NewMemory
from runtime_memory.errors import RuntimeMemoryError
from tests.reliability.kills import ROOT
from tests.tiny_embedder import TinyEmbedder


class RefusedError(Exception):
    """The store in the other process raised an error of this name."""


class Line:
    """Call the store of another process, which can be killed and comes back at the next call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, method: str, *args: Any, **options: Any) -> Any:
        """Return what a method of the store returns, as JSON has it; raises RefusedError."""
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([method, args, options]) + "\n")
        process.stdin.flush()
        kind, answer = json.loads(process.stdout.readline() or '["died", null]')
        if kind == "error":
            raise RefusedError(answer)
        assert kind == "value", kind
        return answer

    def move(self, folder: Path) -> None:
        """Use another store from now on."""
        self._folder = folder
        if self._process is not None:
            self("move", str(folder))

    def kill(self, *cut_short: Any) -> None:
        """Kill the process; with a request, while it is at that."""
        if cut_short and self._process is not None and self._process.stdin is not None:
            method, args, options, seconds = cut_short
            self._process.stdin.write(json.dumps([method, args, options]) + "\n")
            self._process.stdin.flush()
            time.sleep(seconds)
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.reliability.line", str(self._folder)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


def plain(value: Any) -> Any:
    """Return memories and what holds them as values of JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def call(store: MemoryStore, method: str, *args: Any, **options: Any) -> Any:
    """Return what a method of the store returns, as JSON has it; ``import`` takes the fields of one memory."""
    if method == "import":
        (fields,) = args
        moments = {name: datetime.fromisoformat(fields[name]) for name in fields if name.endswith("_at")}
        return plain(store.add_many([NewMemory(**{**fields, **moments})])[0])
    return plain(getattr(store, method)(*args, **options))


def opened(folder: Path | str) -> MemoryStore:
    """Open a store as both processes do."""
    return MemoryStore.open(folder, embedder=TinyEmbedder())


def serve(folder: str) -> None:
    """Answer until the input ends."""
    store = opened(folder)
    for request in sys.stdin:
        method, args, options = json.loads(request)
        try:
            if method == "move":
                store.close()
                store, method, args = opened(args[0]), "now", []
            answer = ["value", call(store, method, *args, **options)]
        except RuntimeMemoryError as error:
            answer = ["error", type(error).__name__]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    store.close()


if __name__ == "__main__":
    serve(sys.argv[1])
