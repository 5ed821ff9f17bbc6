"""Turn what the libraries below raise into the project's own errors, in one place."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from indexes.link import Unreachable, is_unreachable
from runtime_memory.errors import (
    RuntimeMemoryError,
    StoreBusyError,
    StoreClosedError,
    StoreDamagedError,
    StoreUnavailableError,
)
from runtime_memory.place import Place

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

_REFUSALS = {
    "NoSuchBucket": "there is no such bucket",
    "status: 401": "the credentials are not accepted",
    "status: 403": "access is denied, the credentials lack a right or are wrong",
    "403 Forbidden": "access is denied, the credentials lack a right or are wrong",
    "ConnectionRefused": "the connection is refused",
    "TimedOut": "it does not answer in time",
    "dns error": "its name cannot be resolved",
    "error sending request": "there is no connection to it, or no answer",
}
"""What an object store's errors hold, in words."""

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
def store_errors(place: Path | Place) -> Iterator[None]:
    """Raise errors of the file system, the object store, LanceDB, Tantivy and the lock as StoreErrors that name it.

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
        if (mapped := _mapped(error, place)) is None:
            raise
        raise mapped from error


def _mapped(error: BaseException, folder: Path | Place) -> RuntimeMemoryError | None:
    import filelock

    if is_unreachable(error):
        written = "Nothing was written" if isinstance(error, Unreachable) else "What was being written may be lost"
        return StoreUnavailableError(
            f"the store {folder} cannot be reached: {_refusal(error)}. {written}; memories can still be found on a "
            "machine that has seen them. Check the network, the bucket, the credentials and "
            "RUNTIME_MEMORY_STORAGE_OPTIONS, and try again."
        )
    if "commit conflict" in str(error).lower():
        return StoreBusyError(f"other machines were writing to {folder} at the same moment; try again")
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


def _refusal(error: BaseException) -> str:
    """Return the gist of what an object store, or the way to it, answered."""
    text = str(error)
    known = next((sentence for mark, sentence in _REFUSALS.items() if mark in text), None)
    return known or (text.strip().splitlines() or ["no answer"])[0][:200]


def _unavailable(error: BaseException) -> str | None:
    if isinstance(error, OSError) and error.errno in _UNAVAILABLE:
        return _UNAVAILABLE[error.errno]
    text = str(error).lower()
    return next((_UNAVAILABLE[code] for phrase, code in _PHRASES.items() if phrase in text), None)
