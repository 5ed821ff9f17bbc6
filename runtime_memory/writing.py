"""Change an open store: everything that writes passes here, under the writers' lock, in one commit each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
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
from runtime_memory.models import MemoryScope, NewMemory
from runtime_memory.records import new_record
from runtime_memory.visibility import Caller

__all__ = ["Stored", "Writing"]

_log = logging.getLogger(__name__)

_SAME = ("content_hash", "scope", "project", "user", "profile")
"""Two memories that agree in these are one, as the same people see them; those of a session also need the same one."""

_BATCH = 512


@dataclass(frozen=True, slots=True)
class Stored:
    """A record that a write left in the store; ``duplicate`` when it had been there before."""

    record: Record
    duplicate: bool


@dataclass
class Writing:
    """Write to one open store. ``model`` is None for keyword search; a write waits for it to load."""

    database: Database
    model: LazyEmbedder | None
    clock: Callable[[], datetime]

    def add(self, new: Sequence[NewMemory]) -> list[Stored]:
        """Store memories that are not there yet, in their order; all of them are checked before any is stored."""
        records = [self._checked(memory, place, len(new)) for place, memory in enumerate(new, start=1)]
        stored: list[Stored] = []
        for start in range(0, len(records), _BATCH):
            stored += self._add_batch(records[start : start + _BATCH])
        return stored

    def _checked(self, memory: NewMemory, place: int, count: int) -> Record:
        try:
            return new_record(memory, self.clock())
        except InvalidInputError as error:
            if count == 1:
                raise
            raise InvalidInputError(f"memory {place} of {count}: {error}; none of them was stored") from error

    def edit(self, id_: str, visible: Filter, changes: dict[str, Any]) -> Record:
        """Change columns of a memory; its vectors are made anew only when its content changes."""
        vectors = self._embed([changes["content"]])[0] if "content" in changes else None
        with self.database.index.writing() as writer:
            record = _require(writer, id_, visible)
            edited = {**record, **changes, "updated_at": self.clock()}
            if "content" in changes:
                edited["content_hash"] = content_hash(edited["content"])
            if other := _twin(writer, edited):
                raise InvalidInputError(f"the memory {other['id']} already says exactly this; archive one of the two")
            if edited["content"] != record["content"]:
                self._claim_model(vectors)
                writer.write(Change(replaced=[Entry(edited, vectors)]))
            else:
                writer.write(Change(amended=[edited]))
        return edited

    def forget(self, ids: Sequence[str], visible: Filter) -> None:
        """Wipe memories; raises before any is wiped when one is unknown."""
        with self.database.index.writing() as writer:
            for id_ in ids:
                _require(writer, id_, visible)
            writer.write(Change(deleted=list(dict.fromkeys(ids))))

    def fill_vectors(self) -> int:
        """Embed the memories that have no vector yet, and return how many; safe to interrupt and to repeat."""
        filled = 0
        pending = list(self.database.index.table.without_vectors())
        for start in range(0, len(pending), _BATCH):
            batch = pending[start : start + _BATCH]
            vectors = self._embed([record["content"] for record in batch])
            made = {r["id"]: (r["content_hash"], v) for r, v in zip(batch, vectors, strict=True) if v is not None}
            if not made:
                break
            with self.database.index.writing() as writer:
                now = writer.get(list(made))
                entries = [Entry(r, made[i][1]) for i, r in now.items() if r["content_hash"] == made[i][0]]
                self._claim_model(entries[0].vectors if entries else None)
                writer.write(Change(replaced=entries))
            filled += len(entries)
        return filled

    def _add_batch(self, records: Sequence[Record]) -> list[Stored]:
        index = self.database.index
        index.refresh()
        there = _existing(lambda where: index.read_text(lambda text: text.find(where)) or [], records)
        fresh = list({_identity(r): r for r in records if _identity(r) not in there}.values())
        vectors = dict(zip(map(_identity, fresh), self._embed([r["content"] for r in fresh]), strict=True))
        with self.database.index.writing() as writer:
            return self._store(writer, records, vectors)

    def _store(
        self, writer: Writer, records: Sequence[Record], vectors: dict[tuple[Any, ...], Vectors | None]
    ) -> list[Stored]:
        there = _existing(writer.find, records)
        new: dict[tuple[Any, ...], Entry] = {}
        amended: dict[str, Record] = {}
        stored: list[Stored] = []
        for record in records:
            key = _identity(record)
            kept = there.get(key) or (new[key].record if key in new else None)
            if kept is None:
                new[key] = Entry(record, vectors.get(key))
            elif kept["archived"]:  # saying it again makes it current again
                kept = there[key] = amended[kept["id"]] = {**kept, "archived": False, "updated_at": self.clock()}
            if record["supersedes"] and record["supersedes"] != (kept or record)["id"]:
                old = self._superseded(writer, record)
                there[_identity(old)] = amended[old["id"]] = old
                if kept is not None and key not in new:
                    kept = there[key] = amended[kept["id"]] = {**kept, "supersedes": old["id"]}
            stored.append(Stored(kept or record, kept is not None))
        if new or amended:
            self._claim_model(next((entry.vectors for entry in new.values()), None))
            writer.write(Change(new=list(new.values()), amended=list(amended.values())))
        return stored

    def _superseded(self, writer: Writer, record: Record) -> Record:
        # The façade has found it visible; what another user owns stays out of reach whatever profiles share.
        visible = Caller(record["user"], profiles_shared=True).sees()
        old = _require(writer, record["supersedes"], visible)
        return {**old, "archived": True, "updated_at": self.clock()}

    def _embed(self, contents: Sequence[str]) -> list[Vectors | None]:
        """Return each text's vectors, a row a passage; None for all when there is no model that fits the store."""
        embedder = self.model.get() if self.model and contents else None
        if embedder is None or self.database.model_problem(embedder):
            return [None] * len(contents)
        try:
            passages = [embedder.passages(text) for text in contents]
            rows = iter(embedder.embed_passages([passage for cut in passages for passage in cut]))
        except Exception as error:  # noqa: BLE001 - whatever a model raises, the memory must not be lost
            _log.warning("memories are stored without vectors for now, as the model failed: %s", error)
            return [None] * len(contents)
        return [_stack(rows, len(cut)) for cut in passages]

    def _claim_model(self, vectors: Vectors | None) -> None:
        embedder = self.model.get() if self.model and vectors is not None else None
        if embedder is not None:
            self.database.claim_model(embedder)


def _stack(rows: Iterator[Any], count: int) -> Vectors | None:
    import numpy as np

    return np.stack([next(rows) for _ in range(count)]) if count else None


def _require(writer: Writer, id_: str, visible: Filter) -> Record:
    record = writer.get([id_]).get(id_)
    if record is None or not matches(visible, record):
        raise MemoryNotFoundError(f"there is no memory {id_!r}; look it up with a search or a list")
    return record


def _identity(record: Record) -> tuple[Any, ...]:
    of_session = record["session"] if record["scope"] == MemoryScope.SESSION else ""
    return (*(record[name] for name in _SAME), of_session)


def _existing(find: Callable[[Filter], list[Record]], records: Sequence[Record]) -> dict[tuple[Any, ...], Record]:
    hashes = In("content_hash", tuple({record["content_hash"] for record in records}))
    return {_identity(record): record for record in find(hashes)}


def _twin(writer: Writer, edited: Record) -> Record | None:
    twin = _existing(writer.find, [edited]).get(_identity(edited))
    return twin if twin and twin["id"] != edited["id"] else None
