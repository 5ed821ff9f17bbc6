"""One open store and one loaded model per folder, for all the provider instances of a process."""

from __future__ import annotations

import atexit
import functools
import os
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime_memory.errors import StoreClosedError
from runtime_memory.trace import Trace

if TYPE_CHECKING:
    from runtime_memory.settings import Settings
    from runtime_memory.store import MemoryStore

__all__ = ["Health", "health", "shared_store", "shared_trace"]


@dataclass
class Health:
    """How often something failed in this process, by what it was, and the last failure in words."""

    failures: Counter[str] = field(default_factory=Counter)
    last_error: str | None = None

    def count(self, what: str, error: BaseException) -> None:
        """Note a failure."""
        self.failures[what] += 1
        self.last_error = f"{what}: {error}"


_OF_A_SESSION = {
    "recall_limit": 8,
    "project": None,
    "mirror_writes": True,
    "extract_on_end": False,
    "owners": (),
    "hermes_trace": None,
}
_lock = threading.Lock()
_ended = threading.Event()
_open: dict[tuple[object, ...], MemoryStore] = {}
health = Health()


def shared_store(settings: Settings) -> MemoryStore:
    """Return the process's store for these settings; it stays open until the process ends.

    A gateway drops its agents without shutting them down, and an API server makes one for every request: so no
    instance owns the store, and none closes it.
    """
    from runtime_memory.store import MemoryStore

    wanted = settings.model_copy(update=_OF_A_SESSION)  # profiles may differ in these and share a folder
    key = (os.getpid(), wanted.model_dump_json())  # a forked child must not use what its parent opened
    with _lock:
        # A host may still end its sessions at exit; a thread that dies with the interpreter must not begin anything.
        if _ended.is_set() and threading.current_thread().daemon:
            raise StoreClosedError("the process ends")
        if key not in _open:
            _open[key] = MemoryStore(wanted, background_model=True)
        return _open[key]


@functools.lru_cache(maxsize=64)
def shared_trace(path: str | None) -> Trace:
    """Return the process's trace at a path: a failing one is told of once, not by every agent."""
    return Trace(path)


@atexit.register
def _end() -> None:
    """Finish: native code that runs on when the interpreter is gone brings the process down."""
    _ended.set()
    _close_all()


def _close_all() -> None:
    with _lock:
        stores = [store for (pid, _), store in _open.items() if pid == os.getpid()]
        _open.clear()
    for store in stores:
        store.close()
