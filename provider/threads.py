"""Run calls on threads of their own: within a time limit, or in the background; none outlives the interpreter."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Deadline", "start"]

_T = TypeVar("_T")
_EXIT_SECONDS = 3.0
_PREFIX = "runtime-memory-"


class Deadline(Generic[_T]):
    """Give a call so many seconds.

    After a call that exceeded them, further calls raise TimeoutError at once for as long as that one is stuck: a
    broken disk must not cost every turn the whole limit.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._stuck: threading.Thread | None = None

    def run(self, call: Callable[[], _T]) -> _T:
        """Return what the call returns, or raise what it raises; TimeoutError past the limit."""
        if self._stuck is not None and self._stuck.is_alive():
            raise TimeoutError("an earlier recall is still running")
        outcome: list[_T] = []
        failure: list[BaseException] = []

        def work() -> None:
            try:
                outcome.append(call())
            except BaseException as error:  # noqa: BLE001 - raised again on the caller's thread
                failure.append(error)

        thread = start(work, "recall")
        thread.join(self._seconds)
        if thread.is_alive():
            self._stuck = thread
            raise TimeoutError(f"no recall within {self._seconds:g} s")
        if failure:
            raise failure[0]
        return outcome[0]


def start(call: Callable[[], object], name: str) -> threading.Thread:
    """Begin a call on a thread of its own."""
    thread = threading.Thread(target=call, name=_PREFIX + name, daemon=True)
    thread.start()
    return thread


@atexit.register
def _wait_at_exit() -> None:
    """Let native code finish before the interpreter goes away under it; a call that hangs is left after 3 s."""
    until = time.monotonic() + _EXIT_SECONDS
    while running := [thread for thread in threading.enumerate() if thread.name.startswith(_PREFIX)]:
        if time.monotonic() >= until:
            return
        running[0].join(until - time.monotonic())  # it may start another one, such as that of the model
