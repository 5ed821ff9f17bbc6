"""Keep standard input and output for the protocol alone, from before the first import that might print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any, TextIO

__all__ = ["Streams", "protocol_streams"]


@dataclass(frozen=True, slots=True)
class Streams:
    """The client's ends: what it sends, and what it receives."""

    received: TextIO
    sent: TextIO


@contextmanager
def protocol_streams() -> Iterator[Streams]:
    """Yield standard input and output under descriptors of their own.

    Meanwhile descriptor 0 reads as empty, for whatever else may read from it, and what is printed goes to standard
    error: by Python, by native code, and by child processes.
    """
    sys.stdout.flush()
    received, sent = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    # They are not closed at the end: a thread that was left behind may still read.
    lines: Any = os.fdopen(received, encoding="utf-8", errors="replace", closefd=False)
    answers: Any = os.fdopen(sent, "w", encoding="utf-8", newline="\n", closefd=False)
    try:
        with redirect_stdout(sys.stderr):
            yield Streams(lines, answers)
    finally:
        os.dup2(sent, 1)
        os.dup2(received, 0)
