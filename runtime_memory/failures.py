"""Turn what the libraries below raise into the project's own errors, in one place."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime_memory.errors import (
    RuntimeMemoryError,
    StoreBusyError,
    StoreClosedError,
    StoreDamagedError,
    StoreUnavailableError,
)

__all__ = ["forked", "store_errors"]

_UNAVAILABLE = {
    errno.EACCES: "permission is missing; make the folder writable, or set RUNTIME_MEMORY_DB to another one",
    errno.EPERM: "permission is missing; make the folder writable, or set RUNTIME_MEMORY_DB to another one",
    errno.EROFS: "the file system is read-only; set RUNTIME_MEMORY_DB to a folder that can be written",
    errno.ENOSPC: "the disk is full; free some space and try again",
    errno.EDQUOT: "the disk quota is used up; free some space and try again",
    errno.ENOTDIR: "a file is in the place of a folder; move it, or set RUNTIME_MEMORY_DB to another folder",
    errno.EEXIST: "a file is in the place of a folder; move it, or set RUNTIME_MEMORY_DB to another folder",
}
# LanceDB and Tantivy report the operating system's errors as text only.
_PHRASES = {
    "permission denied": errno.EACCES,
    "read-only file system": errno.EROFS,
    "no space left": errno.ENOSPC,
    "quota exceeded": errno.EDQUOT,
    "not a directory": errno.ENOTDIR,
}

_forked_from: list[int] = []


def forked() -> bool:
    """Tell whether this process was forked after LanceDB was loaded: its threads are gone, its locks may be held."""
    return bool(_forked_from)


def _remember_fork() -> None:
    if "lancedb" in sys.modules:
        _forked_from.append(os.getppid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_remember_fork)


@contextmanager
def store_errors(folder: Path) -> Iterator[None]:
    """Raise errors of the file system, LanceDB, Tantivy and the lock as StoreErrors that name the folder.

    Raises StoreClosedError at once in a process in which none of them can work.
    """
    if forked():
        raise StoreClosedError(
            "this process was forked from one that uses a store, and LanceDB does not survive a fork; start processes "
            "with the method 'spawn', and open the store in each of them"
        )
    try:
        yield
    except RuntimeMemoryError:
        raise
    except BaseException as error:  # a panic in Rust code is no Exception
        if (mapped := _mapped(error, folder)) is None:
            raise
        raise mapped from error


def _mapped(error: BaseException, folder: Path) -> RuntimeMemoryError | None:
    import filelock

    if isinstance(error, filelock.Timeout):
        holder = getattr(error, "holder", None) or "another process"
        return StoreBusyError(
            f"{folder} is locked for writing by {holder}, and was not free in time; try again. If that process "
            "hangs, end it, and the lock is free. RUNTIME_MEMORY_LOCK_TIMEOUT is how long to wait."
        )
    reason = _unavailable(error)
    if reason is not None:
        return StoreUnavailableError(f"the store {folder} cannot be used: {reason}")
    if isinstance(error, OSError | ValueError | TypeError | RuntimeError) or type(error).__name__ == "PanicException":
        summary = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        return StoreDamagedError(
            f"the store {folder} cannot be read or written: {summary}. Keep a copy of the folder; "
            "its text/ part may be deleted at any time and is rebuilt."
        )
    return None


def _unavailable(error: BaseException) -> str | None:
    if isinstance(error, OSError) and error.errno in _UNAVAILABLE:
        return _UNAVAILABLE[error.errno]
    text = str(error).lower()
    return next((_UNAVAILABLE[code] for phrase, code in _PHRASES.items() if phrase in text), None)
