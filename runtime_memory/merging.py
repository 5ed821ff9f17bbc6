"""Decide what a write changes: which memories are new, which are there, and which are there in an older form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from indexes.layout import Record
from runtime_memory.errors import InvalidInputError
from runtime_memory.models import MemoryScope

__all__ = ["Merging", "Stored", "identity"]

_SAME = ("content_hash", "scope", "project", "user", "profile")
"""Two memories that agree in these are one, as the same people see them; those of a session also need the same one."""


def identity(record: Record) -> tuple[Any, ...]:
    """Return what a memory shares with every other one that says the same to the same people."""
    of_session = record["session"] if record["scope"] == MemoryScope.SESSION else ""
    return (*(record[name] for name in _SAME), of_session)


_WHEN = ("updated_at", "imported_at")


def _differ(record: Record, other: Record) -> bool:
    return any(record[name] != other[name] for name in record if name not in _WHEN)


@dataclass(frozen=True, slots=True)
class Stored:
    """A record that a write left in the store; ``duplicate`` and ``updated`` are those of Written."""

    record: Record
    duplicate: bool = False
    updated: bool = False


class Merging:
    """Settle records one after the other against what is there, and gather what has to be written.

    ``same`` are stored records with the same texts, ``known`` stored records by id. ``new`` and ``replaced`` need
    vectors, ``amended`` keep theirs.
    """

    def __init__(self, same: Iterable[Record], known: Mapping[str, Record], now: datetime) -> None:
        self._same = {identity(record): record for record in same}
        self._known = known
        self._now = now
        self._new: dict[str, Record] = {}
        self._replaced: dict[str, Record] = {}
        self._amended: dict[str, Record] = {}

    @property
    def new(self) -> list[Record]:
        """Records under ids that were never used."""
        return list(self._new.values())

    @property
    def replaced(self) -> list[Record]:
        """Records whose id may be there already, with another text."""
        return list(self._replaced.values())

    @property
    def amended(self) -> list[Record]:
        """Records that are there with the same text."""
        return list(self._amended.values())

    def settle(self, record: Record, *, keeps_id: bool = False) -> Stored:
        """Take one record in; with ``keeps_id`` its id is one of an earlier store, which may be this one."""
        if keeps_id and (kept := self._replaced.get(record["id"]) or self._known.get(record["id"])):
            return self._settle_version(record, kept)
        kept = self._same.get(identity(record))
        if kept is None:
            (self._replaced if keeps_id else self._new)[record["id"]] = record
            self._same[identity(record)] = record
            return Stored(record)
        if kept["archived"] and not record["archived"]:  # saying it again makes it current again
            kept = self._amend({**kept, "archived": False, "updated_at": self._now})
        return Stored(kept, duplicate=True)

    def supersede(self, stored: Stored, old: Record) -> Stored:
        """Archive a memory that another one corrects, and link the two."""
        if old["id"] == stored.record["id"]:
            return stored
        self._amend({**old, "archived": True, "updated_at": self._now})
        if not stored.duplicate or stored.record["id"] in self._new:
            return stored
        return Stored(self._amend({**stored.record, "supersedes": old["id"]}), duplicate=True)

    def _settle_version(self, record: Record, kept: Record) -> Stored:
        if record["user"] != kept["user"]:
            raise InvalidInputError(f"the id {record['id']!r} is taken; leave it out, and a new one is given")
        twin = self._same.get(identity(record))
        if twin is not None and twin["id"] != kept["id"]:
            return Stored(twin, duplicate=True)
        if record["updated_at"] < kept["updated_at"] or not _differ(record, kept):
            return Stored(kept, duplicate=True)
        if record["content"] == kept["content"] and record["id"] not in self._replaced:
            return Stored(self._amend(record), updated=True)
        self._replaced[record["id"]] = self._same[identity(record)] = record
        return Stored(record, updated=True)

    def _amend(self, record: Record) -> Record:
        for gathered in (self._new, self._replaced):
            if record["id"] in gathered:
                gathered[record["id"]] = record
                break
        else:
            self._amended[record["id"]] = record
        self._same[identity(record)] = record
        return record
