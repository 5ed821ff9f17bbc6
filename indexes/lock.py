"""One writer at a time over all threads and processes."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = ["Holder", "LockTimeout", "WriterLock"]

_POLL_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock: a process and its program, and since when (seconds of the epoch)."""

    pid: int
    program: str
    since: float

    def __str__(self) -> str:
        """Return it in words."""
        if self.pid == os.getpid():
            return f"another thread of this process, since {self._clock()}"
        return f"process {self.pid} ({self.program}), since {self._clock()}"

    def _clock(self) -> str:
        return datetime.fromtimestamp(self.since).astimezone().strftime("%H:%M:%S")


class LockTimeout(Timeout):
    """The lock was not free in time; ``holder`` is None when it cannot be told who has it."""

    def __init__(self, path: str, holder: Holder | None) -> None:
        super().__init__(path)
        self.holder = holder


class WriterLock:
    """Hold the store's file lock; the kernel frees it when its holder dies.

    A note beside it says who holds it. It is for people: the lock does not depend on it.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        self._timeout = timeout
        self._threads = threading.Lock()  # a file lock is the process's: threads take turns among themselves
        self._file = FileLock(path, thread_local=False, mode=0o600)
        self._note = path.with_name(path.name + ".holder")

    @contextmanager
    def held(self, *, wait: bool = True) -> Iterator[bool]:
        """Yield True with the lock held; without ``wait``, yield False when another has it or nobody can.

        Raises LockTimeout when it was not free within the timeout, OSError when the lock cannot be taken at all.
        """
        started = time.monotonic()
        if not self._threads.acquire(timeout=self._timeout if wait else 0):
            if wait:
                raise LockTimeout(self._file.lock_file, self.holder())
            yield False
            return
        try:
            left = max(0.0, self._timeout - (time.monotonic() - started))
            taken = self._take(left) if wait else self._try()
            try:
                yield taken
            finally:
                if taken:
                    self._release()
        finally:
            self._threads.release()

    def holder(self) -> Holder | None:
        """Return who holds the lock as far as can be told; None when the one that said so is dead."""
        try:
            holder = Holder(**json.loads(self._note.read_text("utf-8")))
        except (OSError, ValueError, TypeError):  # none, one that is being written, or of another version
            return None
        return holder if _is_alive(holder.pid) else None

    def _take(self, seconds: float) -> bool:
        try:
            self._file.acquire(timeout=seconds, poll_interval=_POLL_SECONDS)
        except Timeout:
            raise LockTimeout(self._file.lock_file, self.holder()) from None
        with suppress(OSError):  # on a full disk there is no note, and deleting must still be possible
            _write(self._note, json.dumps(asdict(Holder(os.getpid(), _program(), time.time()))))
        return True

    def _release(self) -> None:
        with suppress(OSError):  # the next holder replaces it
            self._note.unlink(missing_ok=True)
        self._file.release()

    def _try(self) -> bool:
        try:
            return self._take(0)
        except (Timeout, OSError):  # a folder that can only be read has no writer to wait for
            return False


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _program() -> str:
    started = Path(sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c") else sys.executable)
    return (started.parent if started.name == "__main__.py" else started).name


def _is_alive(pid: int) -> bool:
    if os.name != "posix":  # there a signal of 0 would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's process
        return True
    return True
