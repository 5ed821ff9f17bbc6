"""One writer at a time over all threads and processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = ["WriterLock"]

_POLL_SECONDS = 0.005


class WriterLock:
    """Hold the store's file lock; the kernel frees it when its holder dies."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._timeout = timeout
        self._threads = threading.Lock()  # a file lock is the process's: threads take turns among themselves
        self._file = FileLock(path, thread_local=False, mode=0o600)

    @contextmanager
    def held(self, *, wait: bool = True) -> Iterator[bool]:
        """Yield True with the lock held; without ``wait``, yield False when another has it.

        Raises ``filelock.Timeout`` when it was not free within the timeout.
        """
        started = time.monotonic()
        if not self._threads.acquire(timeout=self._timeout if wait else 0):
            if wait:
                raise Timeout(self._file.lock_file)
            yield False
            return
        try:
            left = max(0.0, self._timeout - (time.monotonic() - started))
            taken = self._take(left) if wait else self._try()
            try:
                yield taken
            finally:
                if taken:
                    self._file.release()
        finally:
            self._threads.release()

    def _take(self, seconds: float) -> bool:
        self._file.acquire(timeout=seconds, poll_interval=_POLL_SECONDS)
        return True

    def _try(self) -> bool:
        try:
            return self._take(0)
        except Timeout:
            return False
