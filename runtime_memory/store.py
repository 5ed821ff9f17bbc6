"""The one way to the memories: add, find, change, judge and explain them."""

from __future__ import annotations

import builtins
import dataclasses
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from indexes.filters import All, In, matches
from indexes.fusion import Fusion
from runtime_memory import content
from runtime_memory.database import Database
from runtime_memory.errors import InvalidInputError
from runtime_memory.ids import resolve
from runtime_memory.judgements import Judged, gather
from runtime_memory.models import (
    Explanation,
    Memory,
    MemoryCategory,
    NewMemory,
    Outcome,
    SearchResult,
    StoreStats,
    Written,
)
from runtime_memory.opening import follows_tables
from runtime_memory.outcomes import OutcomeEvent
from runtime_memory.recall import Found
from runtime_memory.records import checked_event, masked_kinds
from runtime_memory.tuning import Proposal, propose
from runtime_memory.upkeep import OpenStore
from runtime_memory.visibility import Caller, where

__all__ = ["MemoryStore"]

_BATCH = 1_024
_UNCHANGED: Any = object()


class MemoryStore(OpenStore):
    """Long-term memory in one folder, shared by any number of threads and processes.

    The folder is made, and the model loaded, on first use. With ``background_model`` the model loads on a thread of
    its own, and searches go by words alone until it is there; otherwise they wait for it. ``embedder`` replaces the
    model of the settings. Every write is durable, and seen by every other process, when its call returns.

    ``user`` and ``profile`` say who asks (None: the owner, in the default profile); what they may not see does not
    exist for them. Ids may be given by a prefix of at least four characters that fits one memory only.

    Every method raises RuntimeMemoryErrors alone: InvalidInputError for a bad value, MemoryNotFoundError for an
    unknown id, StoreErrors for what is wrong with the folder.
    """

    # Writing

    def add(self, content: str, **fields: Any) -> Memory:
        """Store a memory and return it; the fields are those of NewMemory.

        A text that its readers already have gives the existing memory, made current again if it was archived.
        """
        return self.write([_new_memory(content, fields)])[0].memory

    def add_many(self, memories: Sequence[NewMemory]) -> builtins.list[Memory]:
        """Store memories in few commits and return them in order; all are checked before any is stored."""
        return [written.memory for written in self.write(memories)]

    @follows_tables
    def write(
        self, memories: Sequence[NewMemory], *, embed: bool = True, dry_run: bool = False
    ) -> builtins.list[Written]:
        """Store memories like ``add_many``, and tell which of them had been there before.

        One with an id of its own that is there already is replaced when the given one was updated later. Without
        ``embed`` nothing waits for the model: they are found by their words until ``optimize``, or the next process
        that warms up, has embedded them. A ``dry_run`` stores nothing and tells what would become of them.
        """
        with self._open(again=False) as parts:
            new = [self._with_full_id(parts.database, memory) for memory in _many(memories)]
            stored = parts.writing.add(new, embed=embed, dry_run=dry_run)
            parts.maintenance.after_writes(0 if dry_run else len(stored))
            found = parts.searching.memories(each.record for each in stored)
            return [
                Written(memory, each.duplicate, each.updated, masked_kinds(given, each.record))
                for given, memory, each in zip(new, found, stored, strict=True)
            ]

    def edit(
        self,
        memory_id: str,
        *,
        content: str = _UNCHANGED,
        category: MemoryCategory | str = _UNCHANGED,
        tags: Sequence[str] = _UNCHANGED,
        metadata: Mapping[str, Any] = _UNCHANGED,
        allow_secrets: bool = False,
        user: str | None = None,
        profile: str | None = None,
    ) -> Memory:
        """Change a memory, keep its id and its outcome record, and return it; secrets are masked as in ``add``."""
        given = {"content": content, "category": category, "tags": tags, "metadata": metadata}
        checks = {**_CHECKS, **(_KEEPING_SECRETS if allow_secrets else {})}
        changes = {name: checks[name](value) for name, value in given.items() if value is not _UNCHANGED}
        return self._change(memory_id, changes, self._caller(user, profile))

    def archive(
        self, memory_id: str, *, archived: bool = True, user: str | None = None, profile: str | None = None
    ) -> Memory:
        """Take a memory out of recall without losing it; ``archived=False`` brings it back."""
        return self._change(memory_id, {"archived": archived}, self._caller(user, profile))

    @follows_tables
    def forget(self, memory_id: str, *, user: str | None = None, profile: str | None = None) -> Memory:
        """Wipe a memory for good and return what it was."""
        visible = self._caller(user, profile).sees()
        with self._open(again=False) as parts:
            memory = parts.searching.memory(resolve(parts.database, memory_id, visible))
            parts.writing.forget([memory.id], visible)
            parts.maintenance.after_writes(1)
            return memory

    @follows_tables
    def forget_many(
        self, memory_ids: Sequence[str], *, user: str | None = None, profile: str | None = None
    ) -> builtins.list[Memory]:
        """Wipe memories, given by their full ids, in one commit and return what they were; all of them or none."""
        visible, ids = self._caller(user, profile).sees(), _many(memory_ids)
        with self._open(again=False) as parts:
            records = parts.database.index.stored(ids)
            parts.writing.forget(ids, visible)
            parts.maintenance.after_writes(1)
            return parts.searching.memories(records[id_] for id_ in dict.fromkeys(ids) if id_ in records)

    @follows_tables
    def record_outcome(
        self,
        memory_ids: Sequence[str],
        outcome: Outcome | str,
        *,
        weight: float = 1.0,
        user: str | None = None,
        profile: str | None = None,
        session: str | None = None,
        turn: str | None = None,
        origin: str = "tool",
    ) -> builtins.list[Memory]:
        """Record whether memories helped, and return them with their new scores.

        ``weight`` (above 0, at most 1) is less for evidence that names no memory. Nothing is recorded when an id is
        unknown.
        """
        result = content.choice(Outcome, outcome, "outcome")
        if not 0 < content.number(weight, "weight") <= 1:
            raise InvalidInputError(f"weight must be above 0 and at most 1, not {weight!r}")
        told = {"session": session, "turn": turn, "origin": origin}
        context = {name: content.label(value, name) for name, value in told.items()}
        visible = self._caller(user, profile).sees()
        with self._open(again=False) as parts, parts.database.index.writing():
            records = {r["id"]: r for r in (resolve(parts.database, i, visible) for i in _many(memory_ids))}
            events = [OutcomeEvent(id_, result, weight, self._clock(), **context) for id_ in records]
            if events:
                parts.ledger.append(events)
            parts.maintenance.after_writes(1)
            return parts.searching.memories(records.values())

    @follows_tables
    def add_outcomes(
        self, events: Iterable[OutcomeEvent], *, user: str | None = None, profile: str | None = None
    ) -> int:
        """Record reports that another store kept, as they are, and return how many were not there yet."""
        reports = [checked_event(event) for event in events]
        visible = self._caller(user, profile).sees()
        with self._open(again=False) as parts, parts.database.index.writing():
            for id_ in {report.memory_id for report in reports}:
                resolve(parts.database, id_, visible)
            missing = parts.ledger.missing(reports)
            if missing:
                parts.ledger.append(missing)
                parts.maintenance.after_writes(1)
            return len(missing)

    # Reading

    @follows_tables
    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        project: str | None = None,
        category: MemoryCategory | str | None = None,
        tags: Sequence[str] = (),
        include_archived: bool = False,
        min_score: float = 0.0,
        user: str | None = None,
        profile: str | None = None,
        session: str | None = None,
    ) -> builtins.list[SearchResult]:
        """Return the best memories for a query, whatever their relevance, best first."""
        seen = where(
            self._caller(user, profile),
            project=project,
            session=session,
            category=category,
            tags=tags,
            include_archived=include_archived,
        )
        with self._open() as parts:
            return parts.searching.search(query, seen, limit, min_score)

    def recall(self, query: str, *, limit: int = 8, **seen: str | None) -> builtins.list[SearchResult]:
        """Return the few memories that matter for a message; none when nothing here answers it.

        Unlike ``search`` it leaves out what is not relevant enough, what keeps failing, and what says the same as a
        better one; small talk recalls nothing. ``seen`` are project, user, profile and session, as in ``explain``.
        """
        return list(self.explain(query, limit=limit, outside=False, **seen).recalled)

    @follows_tables
    def explain(
        self,
        query: str,
        *,
        limit: int = 8,
        outside: bool = True,
        project: str | None = None,
        user: str | None = None,
        profile: str | None = None,
        session: str | None = None,
    ) -> Explanation:
        """Return what ``recall`` returns for this query, what it leaves out, and why; writes nothing.

        With ``outside`` also what another project, session or the archive holds for it.
        """
        caller = self._caller(user, profile)
        seen = where(caller, project=project, session=session, include_archived=True)
        everything = caller.sees() if outside else None
        with self._open() as parts:
            return parts.searching.recall(query, seen, limit, self.settings.min_score, everything)

    @follows_tables
    def candidates(self, query: str, *, limit: int = 10, project: str | None = None) -> Found:
        """Return what each arm finds before any fusion, for those who compare fusions."""
        seen = where(self._caller(None, None), project=project)
        with self._open() as parts:
            return parts.searching.find(query, seen, limit)

    @follows_tables
    def get(self, memory_id: str, *, user: str | None = None, profile: str | None = None) -> Memory:
        """Return a memory, archived or not."""
        with self._open() as parts:
            return parts.searching.memory(resolve(parts.database, memory_id, self._caller(user, profile).sees()))

    @follows_tables
    def list(
        self,
        *,
        limit: int | None = None,
        project: str | None = None,
        category: MemoryCategory | str | None = None,
        tags: Sequence[str] = (),
        include_archived: bool = False,
        user: str | None = None,
        profile: str | None = None,
    ) -> builtins.list[Memory]:
        """Return memories, newest first; all of them without a limit."""
        caller = self._caller(user, profile)
        seen = where(caller, project=project, category=category, tags=tags, include_archived=include_archived)
        most = None if limit is None else content.limit(limit)
        with self._open() as parts:
            index = parts.database.index
            dates = ((record["created_at"], record["id"]) for record in index.scan(seen, ["id", "created_at"]))
            newest = heapq.nlargest(most, dates) if most else sorted(dates, reverse=True)
            records = index.stored([id_ for _, id_ in newest])
            return parts.searching.memories(records[id_] for _, id_ in newest if id_ in records)

    def memories(
        self,
        *,
        ids: Sequence[str] | None = None,
        project: str | None = None,
        include_archived: bool = False,
        user: str | None = None,
        profile: str | None = None,
    ) -> Iterator[Memory]:
        """Yield memories one by one, in no order, without holding them all in memory; with ``ids`` only these."""
        seen = where(self._caller(user, profile), project=project, include_archived=include_archived or bool(ids))
        wanted = seen if ids is None else All((seen, In("id", tuple(_many(ids)))))
        with self._open() as parts:
            records = parts.database.index.table.scan(wanted)
            while batch := list(islice(records, _BATCH)):
                yield from parts.searching.memories(batch)

    @follows_tables
    def outcomes(
        self, memory_ids: Sequence[str], *, user: str | None = None, profile: str | None = None
    ) -> builtins.list[OutcomeEvent]:
        """Return every report about memories, oldest first; ids that the caller does not see have none."""
        visible = self._caller(user, profile).sees()
        with self._open() as parts:
            seen = [r["id"] for r in parts.database.index.table.get(_many(memory_ids)).values() if matches(visible, r)]
            return sorted(parts.ledger.history(seen), key=lambda event: (event.at, event.memory_id))

    @follows_tables
    def stats(self, *, user: str | None = None, profile: str | None = None) -> StoreStats:
        """Return counts of what the caller sees, and the health of the store."""
        with self._open() as parts:
            return parts.searching.stats(self._caller(user, profile).sees())

    def tune(self, judged: Sequence[Judged]) -> Proposal:
        """Propose fusion weights that suit these questions better than those in use; changes nothing."""
        cases = gather(self, judged, self._clock())
        with self._open() as parts:
            return propose(cases, parts.searching.fusion)

    @follows_tables
    def tune_to(self, fusion: Fusion | None) -> None:
        """Use other weights from now on, in every process; None for the default ones."""
        with self._open() as parts, parts.database.index.writing():
            parts.database.set_weights(None if fusion is None else dataclasses.asdict(fusion))

    @follows_tables
    def _change(self, memory_id: str, changes: dict[str, Any], caller: Caller) -> Memory:
        visible = caller.sees()
        with self._open(again=False) as parts:
            found = resolve(parts.database, memory_id, visible)
            edited = parts.writing.edit({found["id"]: changes}, visible)
            parts.maintenance.after_writes(1)
            return parts.searching.memory(edited[0])

    def _with_full_id(self, database: Database, memory: NewMemory) -> NewMemory:
        if not isinstance(memory, NewMemory):
            raise InvalidInputError(f"a memory to store must be a NewMemory, not {type(memory).__name__}")
        if not memory.supersedes or memory.id:
            return memory
        visible = self._caller(memory.user, memory.profile).sees()
        return dataclasses.replace(memory, supersedes=resolve(database, memory.supersedes, visible)["id"])

    def _caller(self, user: str | None, profile: str | None) -> Caller:
        return Caller(user, profile or self.settings.profile, self.settings.profiles == "shared")


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "content": content.text,
    "category": lambda value: content.choice(MemoryCategory, value, "category").value,
    "tags": content.tag_list,
    "metadata": content.json_object,
}
_KEEPING_SECRETS: Mapping[str, Callable[[Any], Any]] = {
    "content": partial(content.text, allow_secrets=True),
    "metadata": partial(content.json_object, allow_secrets=True),
}


def _new_memory(text: str, fields: Mapping[str, Any]) -> NewMemory:
    try:
        return NewMemory(text, **fields)
    except TypeError as error:
        valid = ", ".join(field.name for field in dataclasses.fields(NewMemory))
        raise InvalidInputError(f"{error}; the fields of a memory are: {valid}") from error


def _many(values: Any) -> builtins.list[Any]:
    """Return what a caller gave as several; a text is one, and no list of characters."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInputError(f"a list is needed, not {values!r}"[:200])
    return list(values)
