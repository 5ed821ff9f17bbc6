"""Drive one system in a process of its own, by JSON over its pipes."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from runtime_memory.errors import RuntimeMemoryError

__all__ = ["Document", "Found", "System", "TooSlowError"]

_BATCH = 1000
_FILLING = 20
"""How many times as long as a search it may take to start and to store a batch."""
_CHILD = Path(__file__).with_name("child.py")
Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Document:
    """A memory to store: ``vector`` is that of its whole text, ``passages`` are those that this source would cut."""

    id: str
    text: str
    project: str | None
    vector: Vector | None = None
    passages: Sequence[tuple[str, Vector]] = ()


@dataclass(frozen=True)
class Found:
    """What a search answered, and how long it took inside of the process."""

    ids: Sequence[str]
    milliseconds: float


class TooSlowError(RuntimeMemoryError):
    """A request took longer than the system was given; its process was ended."""


class System:
    """A memory in a process of its own, from entering to leaving the context; a request has ``patience`` seconds."""

    def __init__(self, name: str, module: str, python: Path, folder: Path, patience: float) -> None:
        self.name, self.patience = name, patience
        self._command = [str(python), "-u", str(_CHILD), module, str(folder)]
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith(("RUNTIME_MEMORY_", "PYTHON"))}
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the context is left

    def __enter__(self) -> Self:
        """Start the process."""
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env=self._environment,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the process end, and end it when it does not."""
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        self._errors.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def add(self, documents: Sequence[Document]) -> float:
        """Store documents, and return the seconds that it took."""
        seconds = 0.0
        for start in range(0, len(documents), _BATCH):
            batch = [_packed(document) for document in documents[start : start + _BATCH]]
            seconds += self._ask({"do": "add", "documents": batch}, _FILLING * self.patience)["seconds"]
        return seconds

    def search(self, query: str, vector: Vector | None, project: str | None, limit: int = 10) -> Found:
        """Return what the system finds."""
        asked = {"do": "search", "query": query, "vector": _encoded(vector), "project": project, "limit": limit}
        answer = self._ask(asked)
        return Found(answer["ids"], answer["milliseconds"])

    def state(self) -> dict[str, float]:
        """Return the process's resident memory in MB, and the size of its folder in MB."""
        answer = self._ask({"do": "state"})
        return {"resident, MB": answer["resident"] or float("nan"), "on disk, MB": answer["bytes"] / 1e6}

    def _ask(self, request: Mapping[str, object], patience: float | None = None) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise RuntimeMemoryError(f"{self.name} is not running; enter its context first")
        waited = threading.Timer(patience or self.patience, process.kill)
        waited.start()
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            late = waited.finished.is_set()
            waited.cancel()
        if not line and late:
            raise TooSlowError(f"{self.name} took longer than {self.patience:.0f} s over one request")
        if not line:
            self._errors.seek(0)
            said = self._errors.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            raise RuntimeMemoryError(f"{self.name} ended: {' '.join(said)}. It was run as {' '.join(self._command)}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _packed(document: Document) -> dict[str, object]:
    return {
        "id": document.id,
        "text": document.text,
        "project": document.project,
        "vector": _encoded(document.vector),
        "passages": [(text, _encoded(vector)) for text, vector in document.passages],
    }


def _encoded(vector: Vector | None) -> str | None:
    return None if vector is None else base64.b64encode(np.ascontiguousarray(vector, np.float32).tobytes()).decode()
