"""Turn what the libraries below raise into the project's own errors, in one place."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime_memory.errors import (
    RuntimeMemoryError,
    StoreBusyError,
    StoreDamagedError,
    StoreUnavailableError,
)

__all__ = ["store_errors"]

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


@contextmanager
def store_errors(folder: Path) -> Iterator[None]:
    """Raise errors of the file system, LanceDB, Tantivy and the lock as StoreErrors that name the folder."""
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
        return StoreBusyError(
            f"another process has been writing to {folder} for too long; try again, or look for a process that hangs"
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
