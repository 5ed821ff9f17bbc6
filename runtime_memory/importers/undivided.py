"""Let Ctrl-C and SIGTERM wait for the end of a step that must be done as a whole or not at all."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["undivided"]

_Handler = Callable[[int, FrameType | None], object]


@contextmanager
def undivided() -> Iterator[None]:
    """Hold a signal back until the end, where its handler is called; a second one is handled at once.

    Only the main thread is ever interrupted by signals, so that in another one there is nothing to hold back. A signal
    that ends the process without a handler of Python still does.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, _Handler] = {}
    came: list[int] = []
    holding = True

    def hold(number: int, frame: FrameType | None) -> None:
        if came or not holding:
            handlers[number](number, frame)
        else:
            came.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if callable(handler):
            handlers[number] = handler
            signal.signal(number, hold)
    try:
        yield
    finally:
        holding = False  # from here on ``hold`` passes on what comes before it is replaced
        for held, handler in handlers.items():
            signal.signal(held, handler)
        for held in came:
            handlers[held](held, None)
