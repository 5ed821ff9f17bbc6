"""Open SQLite databases of other programs to read them, also while these use them, and leave no trace there."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["SUFFIXES", "columns", "has_columns", "is_sqlite", "opened", "why"]

SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})

_MAGIC = b"SQLite format 3\0"
_WAL = 2
_VERSIONS_AT = 18
_WAIT = 10.0


def is_sqlite(path: Path) -> bool:
    """Tell whether a file begins as SQLite databases do; never raises."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading only; raises sqlite3.Error or OSError.

    One with a write-ahead log is read with what is in the log; where its folder does not let SQLite share the log with
    other programs, a copy of both is read. A lock is waited for, ten seconds at most.
    """
    with contextlib.ExitStack() as held:
        try:
            connection = held.enter_context(_connected(_uri(file)))
        except sqlite3.OperationalError as error:
            if not _needs_copy(file, error):
                raise
            copy = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="runtime-memory-")), "copy.db")
            shutil.copyfile(file, copy)
            shutil.copyfile(_log_of(file), _log_of(copy))
            connection = held.enter_context(_connected(_uri(copy)))
        yield connection


def has_columns(file: Path, table: str, wanted: frozenset[str]) -> bool:
    """Tell whether a file is a database with a table that has these columns; never raises."""
    if not is_sqlite(file):
        return False
    try:
        with opened(file) as connection:
            return wanted <= columns(connection, table)
    except (sqlite3.Error, OSError):
        return False


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the names of a table's columns, none for a table that is not there."""
    return frozenset(row["name"] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))


def why(error: sqlite3.Error) -> str:
    """Return what is wrong with a database, and what to do about it."""
    if "locked" in str(error) or "busy" in str(error):
        return f"another program keeps it locked ({error}); import it again when that is done"
    return f"its database cannot be read ({error})"


@contextlib.contextmanager
def _connected(uri: str) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=_WAIT)) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.execute("PRAGMA query_only = ON")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opening alone reads nothing
        yield connection


def _uri(file: Path) -> str:
    # Without a log nobody has a database in this mode open, and to open it shared would make a new log beside it.
    alone = _is_wal(file) and not _log_of(file).exists()
    return f"{file.resolve().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"


def _needs_copy(file: Path, error: sqlite3.OperationalError) -> bool:
    return "unable to open" in str(error) and _log_of(file).is_file()


def _is_wal(file: Path) -> bool:
    with file.open("rb") as stream:
        stream.seek(_VERSIONS_AT)
        return _WAL in stream.read(2)


def _log_of(file: Path) -> Path:
    return file.with_name(file.name + "-wal")
