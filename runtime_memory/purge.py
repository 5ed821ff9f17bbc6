"""Make forgetting physical: what is kept moves to new tables, and everything else goes from the folder.

Deleting wipes a record, but LanceDB's older versions, the segments of the text index and parts that a recovery has
set aside still hold its text. New tables that were never given it cannot.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexes.filters import All
from runtime_memory.database import Database
from runtime_memory.leftovers import leftovers, new_table_name, remove, table_folder, upkeep_lock
from runtime_memory.manifest import Manifest

__all__ = ["Purged", "copy_tables", "purge", "remove_leftovers", "scrub_trace"]


_TOLD = ("query", "message")
"""The fields of a trace's record that hold text."""


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge left and removed: memories that stay, forgotten ones, and scrubbed records of the trace."""

    memories: int
    forgotten: int
    trace_records: int


def purge(database: Database, trace: Path | None, *, lock_timeout: float) -> Purged:
    """Move what is stored to new tables and let the manifest name them; the old files are ``remove_leftovers``' to go.

    The query texts of turns that had to do with a forgotten memory go from the trace as well. Raises TableReplaced.
    """
    with upkeep_lock(database.folder, lock_timeout), database.index.writing():
        table, forgotten = database.index.table, database.index.table.deleted_ids()
        names = [new_table_name(database.folder, kind) for kind in ("memories", "outcomes")]
        try:
            forgotten |= copy_tables(database, database.uri, *names)
            scrubbed = scrub_trace(trace, forgotten) if trace else 0
            database.replace_tables(database.manifest.replaced(table=names[0], outcomes=names[1]))
        except BaseException:
            for name in set(names) - _named(database.folder):
                remove(table_folder(database.folder, name))
            raise
        return Purged(table.count(All()), len(forgotten), scrubbed)


def _named(folder: Path) -> set[str]:
    manifest = Manifest.read(folder)
    return {manifest.table, manifest.outcomes} if manifest else set()


def copy_tables(database: Database, uri: str, table: str, outcomes: str) -> set[str]:
    """Make new tables of what is stored, under the writers' lock; return the ids that reports are about in vain."""
    database.index.table.copied(uri, table)
    kept = {record["id"] for record in database.index.table.scan(All(), ["id"])}
    database.outcomes.copied(uri, outcomes, "memory_id", kept)
    return database.outcomes.values("memory_id") - kept


def remove_leftovers(database: Database, *, lock_timeout: float, wait: float) -> None:
    """Remove from the folder all that is not the store's, and bring the text index to the new table.

    ``wait`` is how many seconds those get who are in the middle of reading what goes; who takes longer finds the
    files gone and reads again.
    """
    time.sleep(wait)
    with upkeep_lock(database.folder, lock_timeout), database.index.writing() as writer:
        for path in leftovers(database.folder):
            remove(path)
        if database.index.text.state is None:  # else the new table's, as the lock's holder has brought it there
            writer.rebuild_text()
        writer.optimize()


def scrub_trace(path: Path, ids: Collection[str]) -> int:
    """Blank what was said in every record of a turn that had to do with one of these memories; return how many.

    It writes in place, each line with the length that it had, so that others may append meanwhile.
    """
    if not ids or not path.is_file():
        return 0
    lines = _lines(path)
    turns = {record.get("turn_id") for _, _, record in lines if not _mentioned(record).isdisjoint(ids)} - {None}
    scrubbed = 0
    with path.open("r+b") as file:
        for start, length, record in lines:
            concerned = record.get("turn_id") in turns or not _mentioned(record).isdisjoint(ids)
            told = {name: "" for name in _TOLD if record.get(name)}
            if concerned and told:
                line = json.dumps({**record, **told}, separators=(",", ":")).encode()
                file.seek(start)
                file.write((line if len(line) <= length else b"").ljust(length))
                scrubbed += 1
        file.flush()
        os.fsync(file.fileno())
    return scrubbed


def _lines(path: Path) -> list[tuple[int, int, dict[str, Any]]]:
    """Return the records of a trace with where each stands: its place and length in bytes, without the line end."""
    found, start = [], 0
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if isinstance(record, dict):
            found.append((start, len(line.rstrip(b"\r\n")), record))
        start += len(line)
    return found


def _mentioned(record: dict[str, Any]) -> set[str]:
    retrieved = record.get("retrieved") or ()
    ids = [*(record.get("memory_ids") or ()), *(each.get("memory_id") for each in retrieved if isinstance(each, dict))]
    return {each for each in ids if isinstance(each, str)}
