"""What every LanceDB table of a store has in common: how it is opened, made and kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import lancedb
import pyarrow as pa

from indexes.durable import TableSync
from indexes.link import is_unreachable
from indexes.table_files import TableVersion, manifest_path, newest_version

if TYPE_CHECKING:
    from lancedb.table import Table

__all__ = [
    "KEEP_VERSIONS",
    "Location",
    "clean",
    "create_table",
    "drop_table",
    "fragments",
    "is_cleaned",
    "is_conflict",
    "open_table",
    "read",
    "rewrite_long_history",
    "syncing",
    "versions",
]

_T = TypeVar("_T")

KEEP_VERSIONS = timedelta(minutes=10)
"""How long a replaced version stays: another process may still be reading it."""

KEEP_CROWDED = timedelta(seconds=2)
"""How long it stays when old versions take more room than the table: a reading that takes longer is done again."""

_METADATA_BYTES = 64_000_000
"""What LanceDB may remember of versions: a process that writes for days would keep a gigabyte of old ones."""

_CROWDED = 2.0
_HISTORY_FACTOR = 7.0
_REWRITTEN_AT_ONCE = 256_000_000
_SMALL_BYTES = 4_000_000

_ALWAYS_FRESH = timedelta(0)
_OPTIONS = {"new_table_enable_stable_row_ids": "true"}  # without them, row versions cannot be asked for


@dataclass(frozen=True, slots=True)
class Location:
    """Where tables are on an object store, and what LanceDB is told of that store (endpoint, region, credentials)."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def open_table(where: str | Location, name: str) -> Table | None:
    """Open a table that sees the newest commit of every process; None where there is none.

    ``where`` is a folder or a location on an object store. A folder without a version and without data is no table:
    whoever was making it has died.
    """
    database = _connection(where)
    if isinstance(where, str) and name not in database.list_tables().tables:
        return None
    try:
        return database.open_table(name)
    except ValueError as error:
        if is_unreachable(error) or "not found" not in str(error):
            raise
        if isinstance(where, str) and any(Path(where, f"{name}.lance", "data").glob("*")):
            raise
        return None


def _connection(where: str | Location) -> lancedb.DBConnection:
    if isinstance(where, Location):
        return _remote_connection(where.uri, tuple(sorted(where.options.items())))
    session = lancedb.Session(metadata_cache_size_bytes=_METADATA_BYTES)
    return lancedb.connect(where, read_consistency_interval=_ALWAYS_FRESH, session=session)


@lru_cache(maxsize=8)  # connecting takes several requests
def _remote_connection(uri: str, options: tuple[tuple[str, str], ...]) -> lancedb.DBConnection:
    return lancedb.connect(uri, read_consistency_interval=_ALWAYS_FRESH, storage_options=dict(options))


def create_table(where: str | Location, name: str, schema: pa.Schema, rows: Sequence[Mapping[str, Any]] = ()) -> Table:
    """Make a table with some rows; one of the same name in a folder is replaced, elsewhere it is a ValueError."""
    database = _connection(where)
    if isinstance(where, str) and name in database.list_tables().tables:
        database.drop_table(name)  # the mode "overwrite" complains on stderr where there is none
    data = pa.Table.from_pylist([dict(row) for row in rows], schema=schema) if rows else None
    return database.create_table(name, data, schema=schema, storage_options=_OPTIONS)


def drop_table(where: str | Location, name: str) -> None:
    """Remove a table."""
    _connection(where).drop_table(name)


def is_conflict(error: BaseException) -> bool:
    """Tell whether a commit was refused because another one came first; the same may be tried again."""
    text = str(error).lower()
    return "conflict" in text or "concurrent" in text


def fragments(table: Table) -> int:
    """Return the number of data files: each small commit adds one, and slows every reading until they are compacted."""
    stats: Any = table.stats()
    return int(stats["fragment_stats"]["num_fragments"])


def clean(table: Table) -> None:
    """Compact the small files of single writes, let indexes follow growth, and remove what no version needs any more.

    In a folder the caller holds the writers' lock: files that no version names are what a writer left that died.
    Elsewhere they may be those of a writer that is about to commit.
    """
    keep = KEEP_CROWDED if _is_crowded(table) else KEEP_VERSIONS
    table.optimize(cleanup_older_than=keep, delete_unverified=_folder(table) is not None)


def rewrite_long_history(table: Table) -> None:
    """Write the table anew when its manifest has grown long, as changed in this version as a whole.

    A manifest tells of every row in which version it was written. After many single writes that is the larger part of
    each further one. With a rewriting every k writes a write costs about 12 k + size / k bytes, least where that part
    is 7 * sqrt(size) long. A copy is held in memory, which is why a large table is left as it is.
    """
    if (folder := _folder(table)) is None:
        return
    stats: Any = table.stats()
    live = int(stats["total_bytes"])
    version = TableVersion.read(manifest_path(folder, int(table.version)))
    if live <= _REWRITTEN_AT_ONCE and version.history_bytes() > _HISTORY_FACTOR * math.sqrt(live):
        rows = table.search().select(table.schema.names).to_arrow().cast(table.schema)
        table.add(rows, mode="overwrite", on_bad_vectors="null")


def _is_crowded(table: Table) -> bool:
    if (folder := _folder(table)) is None:
        return False
    stats: Any = table.stats()
    live = int(stats["total_bytes"])
    return sum(entry.stat().st_size for entry in folder.rglob("*")) > _CROWDED * live + _SMALL_BYTES


def _folder(table: Table) -> Path | None:
    where = table._dataset_uri  # noqa: SLF001 - LanceDB tells nowhere else where a table is
    return None if "://" in where else Path(where)


def syncing(table: Table) -> Callable[[], None]:
    """Return what makes the table's newest commit durable; a store elsewhere than in a folder sees to that itself."""
    if (folder := _folder(table)) is None:
        return lambda: None
    files = TableSync(folder)
    return lambda: files.sync(int(table.version))


def versions(table: Table) -> Callable[[], int]:
    """Return what tells the number of the newest commit.

    In a folder it is that of the newest manifest: to ask LanceDB takes 0.5 ms, most of it between threads.
    """
    folder = _folder(table)

    def asked() -> int:
        return int(table.version)

    return asked if folder is None else lambda: newest_version(folder) or asked()


def read(table_read: Callable[[], _T]) -> _T:
    """Return what a reading gives; done again when the version that it read was cleaned meanwhile."""
    try:
        return table_read()
    except RuntimeError as error:
        if not is_cleaned(error):
            raise
        return table_read()


def is_cleaned(error: Exception) -> bool:
    """Tell whether a file or a version was not there any more."""
    text = str(error).lower()
    return "not found" in text or "no longer exists" in text
