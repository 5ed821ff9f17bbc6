"""Bring a store's tables back to what can be read, after files of them were lost or cut off.

A look at the newest manifest of each table, and at the sizes of the files that it names, finds the damage. What can
still be read goes into one new commit: the last sound version, and what later ones wrote to files that are whole. Of
the memories, the text index's copies fill the rest. The damaged files are kept aside. A note says that this is under
way, so that it is finished when it was interrupted. The caller holds the writers' lock.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indexes.durable import make_private, sync_folder, sync_new_file
from indexes.filters import All
from indexes.lance import create_table, open_table, syncing
from indexes.layout import Change, Entry, Layout, Record
from indexes.table_files import TableVersion, fragment_files, fragment_rows, is_whole, newest_manifests
from indexes.text import TextIndex
from indexes.vectors import VectorTable

if TYPE_CHECKING:
    from lancedb.table import Table

__all__ = ["NOTE", "StoredTables", "finish", "is_damaged", "recover"]

_log = logging.getLogger(__name__)

NOTE = "recovery.json"
"""The note of a recovery that is under way."""

_REPORT = "report.txt"
_MOST_STEPS = 100


@dataclass(frozen=True, slots=True)
class StoredTables:
    """Where the tables are, and what they are called; ``epoch`` is that of a text index of this table."""

    folder: Path
    memories: str
    outcomes: str
    epoch: str
    layout: Layout
    dimension: int
    outcome_schema: pa.Schema

    def path(self, name: str) -> Path:
        """Return a table's folder."""
        return self.folder / "lance" / f"{name}.lance"


@dataclass(frozen=True, slots=True)
class _Damage:
    """What is wrong with a table.

    ``unreadable`` are manifests that cannot be read. ``newest`` is the newest that can, ``fragments`` the places of its
    damaged fragments; ``sound`` is the last version without damage. None where there is none.
    """

    newest_number: int
    unreadable: tuple[Path, ...]
    newest: TableVersion | None
    fragments: tuple[int, ...]
    sound: TableVersion | None
    indexes: tuple[Path, ...]


def is_damaged(tables: StoredTables) -> bool:
    """Tell whether a table needs recovery, or an earlier one was interrupted; costs the reading of two manifests."""
    names = (tables.memories, tables.outcomes)
    return (tables.folder / NOTE).exists() or any(_examine(tables.path(name)) for name in names)


def recover(tables: StoredTables) -> list[str]:
    """Repair both tables, and return in plain sentences what was done and what was lost.

    Afterwards the epoch must be changed, as other versions of the rows have gone; then ``finish`` removes the note.
    """
    note = _noted(tables)
    aside = tables.folder / note["aside"]
    said = []
    for name, schema in (
        (tables.memories, tables.layout.schema(tables.dimension)),
        (tables.outcomes, tables.outcome_schema),
    ):
        if damage := _examine(tables.path(name)):
            said += _restored(tables, name, schema, damage, aside)
            note["reached"][name] = max(damage.newest_number, note["reached"].get(name, 0))
            _write_note(tables.folder, note)
    if tables.memories in note["reached"]:
        said += _fill_from_text(tables, note["reached"][tables.memories])
    if said:
        aside.mkdir(mode=0o700, exist_ok=True)
        said.append(f"What was damaged is kept in {aside}.")
        (aside / _REPORT).write_text("\n".join(said) + "\n", "utf-8")
        make_private(aside)
    return said


def finish(tables: StoredTables) -> None:
    """Note that the recovery is complete, once the epoch has been changed."""
    (tables.folder / NOTE).unlink(missing_ok=True)
    sync_folder(tables.folder, private=False)


def _noted(tables: StoredTables) -> dict[str, Any]:
    path = tables.folder / NOTE
    try:
        note: dict[str, Any] = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        note = {"aside": time.strftime("damaged-%Y%m%d-%H%M%S"), "reached": {}}
        _write_note(tables.folder, note)
    return note


def _write_note(folder: Path, note: dict[str, Any]) -> None:
    beside = folder / f"{NOTE}.new"
    beside.write_text(json.dumps(note), "utf-8")
    sync_new_file(beside)
    beside.replace(folder / NOTE)
    sync_folder(folder, private=False)


def _examine(table: Path) -> _Damage | None:
    """Return what is wrong with a table; None when its newest version is whole, or there is no such table."""
    manifests = newest_manifests(table)
    if not manifests:
        return _Damage(0, (), None, (), None, ()) if table.is_dir() else None
    unreadable: list[Path] = []
    newest: TableVersion | None = None
    fragments: list[int] = []
    indexes: tuple[Path, ...] = ()
    for _, path in manifests:
        try:
            version = TableVersion.read(path)
        except ValueError:
            unreadable.append(path)
            continue
        except FileNotFoundError:  # cleaned meanwhile
            continue
        damaged = version.damaged(table)
        if newest is None:
            indexes = tuple(path for path in version.index_files(table) if not is_whole(path))
            if not (damaged or unreadable or indexes):
                return None
            newest, fragments = version, damaged
        if not damaged:
            return _Damage(manifests[0][0], tuple(unreadable), newest, tuple(fragments), version, indexes)
    return _Damage(manifests[0][0], tuple(unreadable), newest, tuple(fragments), None, indexes)


def _restored(tables: StoredTables, name: str, schema: pa.Schema, damage: _Damage, aside: Path) -> list[str]:
    """Bring a table to one sound version that is newer than every damaged one."""
    path = tables.path(name)
    said = [f"{name}: the manifest of version {damage.newest_number} cannot be read."] if damage.unreadable else []
    if damage.newest is None:
        _keep_aside([path], tables.folder, aside, move=True)
        syncing(create_table(str(tables.folder / "lance"), name, schema))()
        return [f"{name}: no version of the table can be read; it is made anew."]
    _keep_aside(damage.unreadable, tables.folder, aside, move=True)
    (path / "_versions" / "latest_version_hint.json").unlink(missing_ok=True)
    table = _existing(tables, name)
    if damage.indexes:
        for index in table.list_indices():
            table.drop_index(index.name)
        _keep_aside(damage.indexes, tables.folder, aside, move=True)
        said.append(f"{name}: the index of the vectors is damaged; it is made anew when the table is next compacted.")
    if damage.fragments:
        said += _without_damaged(table, name, damage)
        _keep_aside(_damaged_files(path, damage), tables.folder, aside)
    for _ in range(min(_MOST_STEPS, damage.newest_number + 1 - int(table.version))):
        table.restore(int(table.version))  # another process may know the damaged version by its number
    syncing(table)()
    return said


def _without_damaged(table: Table, name: str, damage: _Damage) -> list[str]:
    """Commit what the last sound version holds and what newer files still give, and say what that leaves out."""
    assert damage.newest is not None  # noqa: S101 - the caller has seen to it
    lost = sum(fragment_rows(damage.newest.fragments[place]) for place in damage.fragments)
    said = [f"{name}: of version {damage.newest.number} files are damaged that held {lost} rows."]
    newer = _whole_fragments(table, damage)
    if damage.sound is None:
        rows = newer
    else:
        table.checkout(damage.sound.number)
        before = table.search().select(table.schema.names).to_arrow()
        rows = before if newer is None else _united(before, newer)
        table.checkout_latest()  # type: ignore[no-untyped-call]
        said.append(f"{name}: those rows are as in version {damage.sound.number} again, the last that is whole.")
    if rows is None:
        raise OSError(f"no version of the table {name} can be read; restore the folder from a backup")
    table.add(rows.cast(table.schema), mode="overwrite", on_bad_vectors="null")
    return said


def _whole_fragments(table: Table, damage: _Damage) -> pa.Table | None:
    """Read the rows of the newest version that are in whole files and not in those of the sound version.

    None when LanceDB cannot tell them apart, for want of the record of what was deleted.
    """
    assert damage.newest is not None  # noqa: S101 - the caller has seen to it
    known = {f for each in (damage.sound.fragments if damage.sound else ()) for f in _data_files(each)}
    found, start = [table.schema.empty_table()], 0
    for place, fragment in enumerate(damage.newest.fragments):
        count = fragment_rows(fragment)
        if place not in damage.fragments and not known.issuperset(_data_files(fragment)):
            offsets = list(range(start, start + count))
            try:
                rows = table.take_offsets(offsets).select(table.schema.names).to_arrow()
            except RuntimeError as error:
                _log.warning("rows of whole files cannot be read: %s", error)
                return None
            found.append(rows.cast(table.schema))
        start += count
    return pa.concat_tables(found)


def _united(before: pa.Table, newer: pa.Table) -> pa.Table:
    """Return all rows of ``newer``, and those of ``before`` whose record is not among them."""
    if "part" not in before.column_names:  # events are appended only: the fuller table has them all
        return max(before, newer, key=len)
    replaced = pa.compute.is_in(before["id"], value_set=newer["id"].combine_chunks())
    return pa.concat_tables([before.filter(pa.compute.invert(replaced)).cast(newer.schema), newer])


def _fill_from_text(tables: StoredTables, reached: int) -> list[str]:
    """Write what the text index has and the table has lost, and say what neither has.

    ``reached`` is the newest version that the table had before it was damaged.
    """
    table = VectorTable.open(str(tables.folder / "lance"), tables.memories, tables.layout)
    text = TextIndex(tables.folder / "text", tables.layout)
    state = text.reload()
    if table is None or state is None or state.epoch != tables.epoch:
        text.close()
        return ["There is no text index from which to restore memories: what only the damaged files held is lost."]
    copies: dict[str, Record] = {record["id"]: record for record in text.find(All())}
    text.close()
    stored = {record["id"]: record for record in table.scan(All())}
    current = state.version >= reached
    change = _difference(stored, copies, table.deleted_ids(), current=current)
    if change.new or change.replaced or change.amended or change.deleted:
        table.write(change)
    said = []
    if restored := sorted(entry.record["id"] for entry in (*change.new, *change.replaced)):
        said.append(f"Restored from the text index: {_shortened(restored)}.")
    lost = f"What was written after version {state.version}, up to version {reached}, is lost."
    return [*said, "No memory was lost." if current else lost]


def _difference(stored: dict[str, Record], copies: dict[str, Record], deleted: set[str], *, current: bool) -> Change:
    """Return what makes the table as new as the text index; what is missing there is deleted when it is current."""
    new = [Entry(record, None) for id_, record in copies.items() if id_ not in stored and id_ not in deleted]
    newer = [record for id_, record in copies.items() if _is_newer(record, stored.get(id_))]
    replaced = [Entry(record, None) for record in newer if record["content"] != stored[record["id"]]["content"]]
    amended = [record for record in newer if record["content"] == stored[record["id"]]["content"]]
    return Change(new, replaced, amended, sorted(stored.keys() - copies.keys()) if current else ())


def _is_newer(copy: Record, stored: Record | None) -> bool:
    return stored is not None and copy["updated_at"] > stored["updated_at"]


def _data_files(fragment: bytes) -> list[str]:
    return [file.path for file in fragment_files(fragment) if file.path.startswith("data/")]


def _damaged_files(table: Path, damage: _Damage) -> list[Path]:
    fragments = damage.newest.fragments if damage.newest else ()
    files = [file for place in damage.fragments for file in fragment_files(fragments[place])]
    return [table / file.path for file in files if not file.is_sound(table)]


def _keep_aside(paths: Sequence[Path], store: Path, aside: Path, *, move: bool = False) -> None:
    """Copy or move files or folders into the folder for damaged ones; what a version still names stays as well."""
    put: Callable[[Path, Path], Any] = shutil.move if move else shutil.copy2
    for path in paths:
        target = aside / path.relative_to(store)
        if path.exists() and not target.exists():
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            put(path, target)
            make_private(target)


def _existing(tables: StoredTables, name: str) -> Table:
    table = open_table(str(tables.folder / "lance"), name)
    if table is None:
        raise FileNotFoundError(f"the table {name} has gone while it was repaired")
    return table


def _shortened(ids: Sequence[str], shown: int = 20) -> str:
    return ", ".join(ids[:shown]) + (f" and {len(ids) - shown} more" if len(ids) > shown else "")
