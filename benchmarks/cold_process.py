"""Start as an agent's process does, and print when it first answers and what it holds, as JSON.

It imports nothing else before: ``python -m benchmarks.cold_process PROJECT QUESTION [words]``.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["main", "resident"]

_PATIENCE_SECONDS = 120.0


def main(project: str, question: str, until: str = "vectors") -> None:
    """Print the epoch's seconds of the first block by words and by vectors, and the MB held at each step."""
    before = resident()
    from provider import RuntimeMemoryProvider

    measured = {"before": before, "imported": resident()}
    provider = RuntimeMemoryProvider()
    provider.initialize("benchmark", agent_workspace=project)
    _wait(lambda: bool(provider.prefetch(question)))
    measured |= {"text": time.time(), "text_memory": resident()}
    if until == "vectors":
        _wait(lambda: _is_hybrid(project, question))
        provider.prefetch(question)
        measured |= {"vectors": time.time(), "memory": resident()}
    print(json.dumps(measured))


def resident() -> float:
    """Return the memory that this process holds, in MB."""
    pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages) * resource.getpagesize() / 1e6


def _is_hybrid(project: str, question: str) -> bool:
    from provider.config import load_settings
    from provider.shared import shared_store

    return shared_store(load_settings()).explain(question, outside=False, project=project).mode == "hybrid"


def _wait(done: Callable[[], bool]) -> None:
    given_up = time.monotonic() + _PATIENCE_SECONDS
    while not done():
        if time.monotonic() > given_up:
            sys.exit(f"no answer within {_PATIENCE_SECONDS:g} s; see the log above")
        time.sleep(0.01)


if __name__ == "__main__":
    main(*sys.argv[1:])
