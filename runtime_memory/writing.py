"""Change an open store: everything that writes passes here, under the writers' lock, in one commit each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from indexes.consistency import Writer
from indexes.filters import Filter, In, matches
from indexes.layout import Change, Entry, Record, Vectors
from runtime_memory.content import content_hash
from runtime_memory.database import Database
from runtime_memory.errors import InvalidInputError, MemoryNotFoundError
from runtime_memory.lazy_embedder import LazyEmbedder
from runtime_memory.merging import Merging, Stored, identity
from runtime_memory.models import NewMemory
from runtime_memory.records import new_record
from runtime_memory.visibility import Caller

__all__ = ["Writing"]

_log = logging.getLogger(__name__)

_BATCH = 512
_FILL_BATCH = 64
"""Memories embedded between two looks at whether to stop: about a second's work."""


@dataclass
class Writing:
    """Write to one open store. ``model`` is None for keyword search; a write waits for it to load."""

    database: Database
    model: LazyEmbedder | None
    clock: Callable[[], datetime]
    owes_vectors: bool = False
    """Whether memories were stored while the model was still loading: their vectors are to be made when it is there."""

    def add(self, new: Sequence[NewMemory], *, embed: bool = True, dry_run: bool = False) -> list[Stored]:
        """Store memories that are not there yet, in their order; all of them are checked before any is stored.

        Without ``embed`` they are found by their words, until ``fill_vectors``. A ``dry_run`` only tells what would
        become of them.
        """
        records = [self._checked(memory, place, len(new)) for place, memory in enumerate(new, start=1)]
        keeping = {record["id"] for record, memory in zip(records, new, strict=True) if memory.id}
        stored: list[Stored] = []
        size = _BATCH if embed else 4 * _BATCH  # a commit costs as much as some hundred records without vectors
        for start in range(0, len(records), size):
            batch = records[start : start + size]
            stored += self._tried(batch, keeping) if dry_run else self._added(batch, keeping, embed=embed)
        return stored

    def _checked(self, memory: NewMemory, place: int, count: int) -> Record:
        try:
            return new_record(memory, self.clock())
        except InvalidInputError as error:
            if count == 1:
                raise
            raise InvalidInputError(f"memory {place} of {count}: {error}; none of them was stored") from error

    def edit(self, changes: Mapping[str, Mapping[str, Any]], visible: Filter, *, embed: bool = True) -> list[Record]:
        """Change columns of memories, given by id; vectors are made anew only where the content changes."""
        vectors = self._vectors([each["content"] for each in changes.values() if "content" in each], embed=embed)
        with self.database.index.writing() as writer:
            stored = {id_: _require(writer, id_, visible) for id_ in changes}
            edited = {id_: self._edited(stored[id_], change) for id_, change in changes.items()}
            _refuse_twins(writer, edited)
            rewritten = [record for id_, record in edited.items() if record["content"] != stored[id_]["content"]]
            amended = [record for id_, record in edited.items() if record["content"] == stored[id_]["content"]]
            self._write(writer, Change(replaced=_entries(rewritten, vectors), amended=amended))
        return list(edited.values())

    def _edited(self, record: Record, changes: Mapping[str, Any]) -> Record:
        edited = {**record, **changes, "updated_at": self.clock()}
        return {**edited, "content_hash": content_hash(edited["content"])}

    def forget(self, ids: Sequence[str], visible: Filter) -> None:
        """Wipe memories; raises before any is wiped when one is unknown."""
        with self.database.index.writing() as writer:
            stored = writer.get(ids)
            for id_ in ids:
                _require_visible(stored.get(id_), id_, visible)
            writer.write(Change(deleted=list(dict.fromkeys(ids))))

    def fill_vectors(self, stop: Callable[[], bool] = lambda: False) -> int:
        """Embed the memories that have no vector yet, until told to stop, and return how many; may be repeated."""
        filled, self.owes_vectors = 0, False
        if self.model:
            self.model.get(patiently=True)
        table = self.database.index.table
        pending = [record["id"] for record in table.without_vectors()]
        for start in range(0, len(pending), _FILL_BATCH):
            ids = pending[start : start + _FILL_BATCH]
            vectors = {} if stop() else self._vectors([record["content"] for record in table.get(ids).values()])
            if not vectors:
                break
            with self.database.index.writing() as writer:
                now = writer.get(ids)
                entries = [entry for entry in _entries(now.values(), vectors) if entry.vectors is not None]
                self._write(writer, Change(replaced=entries))
            filled += len(entries)
        return filled

    def _tried(self, records: Sequence[Record], keeping: Collection[str]) -> list[Stored]:
        known = self.database.index.stored([record["id"] for record in records if record["id"] in keeping])
        merging = Merging(self._said(records), known, self.clock())
        return [merging.settle(record, keeps_id=record["id"] in keeping) for record in records]

    def _added(self, records: Sequence[Record], keeping: Collection[str], *, embed: bool) -> list[Stored]:
        said = self._said(records)
        there = {identity(record) for record in said}
        vectors = self._vectors([r["content"] for r in records if identity(r) not in there], said, embed=embed)
        with self.database.index.writing() as writer:
            known = writer.get([record["id"] for record in records if record["id"] in keeping])
            merging = Merging(_same_texts(writer.find, records), known, self.clock())
            stored = [self._settle(writer, merging, record, keeping) for record in records]
            new, replaced = _entries(merging.new, vectors), _entries(merging.replaced, vectors)
            if self._write(writer, Change(new=new, replaced=replaced, amended=merging.amended)):
                stored = _without_twins(writer, stored)
        return stored

    def _said(self, records: Sequence[Record]) -> list[Record]:
        """Return what says the same already, as far as can be told without the lock."""
        index = self.database.index
        index.refresh()
        return _same_texts(lambda where: index.read_text(lambda text: text.find(where)) or [], records)

    def _settle(self, writer: Writer, merging: Merging, record: Record, keeping: Collection[str]) -> Stored:
        if record["id"] in keeping:  # what it superseded is archived, or not, by its own record
            return merging.settle(record, keeps_id=True)
        stored = merging.settle(record)
        if not record["supersedes"]:
            return stored
        # The façade has found it visible; what another user owns stays out of reach whatever profiles share.
        visible = Caller(record["user"], profiles_shared=True).sees()
        return merging.supersede(stored, _require(writer, record["supersedes"], visible))

    def _write(self, writer: Writer, change: Change) -> bool:
        """Write a change; True when another machine wrote at the same moment."""
        if not (change.new or change.replaced or change.amended):
            return False
        made = next((e.vectors for e in (*change.new, *change.replaced) if e.vectors is not None), None)
        embedder = self.model.get() if self.model and made is not None else None
        if embedder is not None:
            self.database.claim_model(embedder)
        return writer.write(change)

    def _vectors(
        self, contents: Sequence[str], stored: Sequence[Record] = (), *, embed: bool = True
    ) -> dict[str, Vectors]:
        """Return vectors by the hash of a text, a row a passage: those of stored records, and else new ones."""
        wanted = {content_hash(text): text for text in contents}
        holders = {record["id"]: record["content_hash"] for record in stored if record["content_hash"] in wanted}
        found = {holders[id_]: rows for id_, rows in self.database.index.table.vectors(list(holders)).items()}
        missing = {hash_: text for hash_, text in wanted.items() if hash_ not in found} if embed else {}
        return found | dict(zip(missing, self._embed(list(missing.values())), strict=False))

    def _embed(self, contents: Sequence[str]) -> list[Vectors]:
        """Return each text's vectors; nothing when there is no model that fits the store."""
        embedder = self.model.get() if self.model and contents else None
        self.owes_vectors |= (
            embedder is None and self.model is not None and self.model.problem is None and bool(contents)
        )
        if embedder is None or self.database.model_problem(embedder):
            return []
        try:
            passages = [embedder.passages(text) for text in contents]
            rows = iter(embedder.embed_passages([passage for cut in passages for passage in cut]))
        except Exception as error:  # noqa: BLE001 - whatever a model raises, the memory must not be lost
            _log.warning("memories are stored without vectors for now, as the model failed: %s", error)
            return []
        return [_stack(rows, len(cut)) for cut in passages]


def _stack(rows: Iterator[Any], count: int) -> Vectors:
    import numpy as np

    return np.stack([next(rows) for _ in range(count)])


def _entries(records: Iterable[Record], vectors: Mapping[str, Vectors]) -> list[Entry]:
    return [Entry(record, vectors.get(record["content_hash"])) for record in records]


def _require(writer: Writer, id_: str, visible: Filter) -> Record:
    return _require_visible(writer.get([id_]).get(id_), id_, visible)


def _require_visible(record: Record | None, id_: str, visible: Filter) -> Record:
    if record is None or not matches(visible, record):
        raise MemoryNotFoundError(f"there is no memory {id_!r}; look it up with a search or a list")
    return record


def _same_texts(find: Callable[[Filter], list[Record]], records: Iterable[Record]) -> list[Record]:
    hashes = tuple({record["content_hash"] for record in records})
    return find(In("content_hash", hashes)) if hashes else []


def _without_twins(writer: Writer, stored: Sequence[Stored]) -> list[Stored]:
    """Leave the first of memories that two machines added at the same moment, as the lock would have within one.

    Both look, and both keep the lowest id.
    """
    first: dict[tuple[Any, ...], Record] = {}
    twins = sorted(_same_texts(writer.find, [each.record for each in stored]), key=lambda record: record["id"])
    surplus = [record["id"] for record in twins if first.setdefault(identity(record), record)["id"] != record["id"]]
    if surplus:
        writer.write(Change(deleted=surplus))
    gone = set(surplus)
    return [Stored(first[identity(e.record)], duplicate=True) if e.record["id"] in gone else e for e in stored]


def _refuse_twins(writer: Writer, edited: Mapping[str, Record]) -> None:
    said = {identity(r): r["id"] for r in _same_texts(writer.find, edited.values()) if r["id"] not in edited}
    for record in edited.values():
        other = said.setdefault(identity(record), record["id"])
        if other != record["id"]:
            raise InvalidInputError(f"the memory {other} already says exactly this; archive one of the two")
