"""The one way to the memories: add, find, change, judge and explain them."""

from __future__ import annotations

import builtins
import dataclasses
import heapq
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from indexes.filters import All, Filter, In, matches
from indexes.fusion import Fusion
from indexes.layout import Record
from runtime_memory import content
from runtime_memory.database import Database, open_database
from runtime_memory.embedding import Embedder, load_embedder
from runtime_memory.errors import AmbiguousIdError, InvalidInputError, MemoryNotFoundError, StoreClosedError
from runtime_memory.failures import store_errors
from runtime_memory.lazy_embedder import LazyEmbedder
from runtime_memory.ledger import OutcomeLedger
from runtime_memory.maintenance import Maintenance
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
from runtime_memory.outcomes import OutcomeEvent
from runtime_memory.recall import Found
from runtime_memory.searching import Searching
from runtime_memory.settings import Settings
from runtime_memory.visibility import Caller, in_project
from runtime_memory.writing import Writing

__all__ = ["MemoryStore"]

_SHORTEST_PREFIX = 4
_SHOWN = 3
_UNCHANGED: Any = object()


def _now() -> datetime:
    return datetime.now(UTC)


class MemoryStore:
    """Long-term memory in one folder, shared by any number of threads and processes.

    The folder is made, and the model loaded, on first use. With ``background_model`` the model loads on a thread of
    its own, and searches go by words alone until it is there; otherwise they wait for it. ``embedder`` replaces the
    model of the settings. Every write is durable, and seen by every other process, when its call returns.

    ``user`` and ``profile`` say who asks (None: the owner, in the default profile); what they may not see does not
    exist for them. Ids may be given by a prefix of at least four characters that fits one memory only.

    Every method raises RuntimeMemoryErrors alone: InvalidInputError for a bad value, MemoryNotFoundError for an
    unknown id, StoreErrors for what is wrong with the folder.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        embedder: Embedder | None = None,
        background_model: bool = False,
        fusion: Fusion | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self.settings = settings or Settings.load()
        self._fusion = fusion or Fusion()
        self._clock = clock
        self._wait_for_model = not background_model
        self._model = _model(self.settings, embedder)
        self._opening = threading.RLock()
        self._parts: _Parts | None = None
        self._closed = False

    @classmethod
    def open(cls, path: str | Path | None = None, **options: Any) -> Self:
        """Return the store in a folder, by default that of the settings; options are those of the constructor."""
        return cls(Settings.load(db=None if path is None else str(path)), **options)

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()

    # Writing

    def add(self, content: str, **fields: Any) -> Memory:
        """Store a memory and return it; the fields are those of NewMemory.

        A text that its readers already have gives the existing memory, made current again if it was archived.
        """
        return self.write([_new_memory(content, fields)])[0].memory

    def add_many(self, memories: Sequence[NewMemory]) -> builtins.list[Memory]:
        """Store memories in few commits and return them in order; all are checked before any is stored."""
        return [written.memory for written in self.write(memories)]

    def write(self, memories: Sequence[NewMemory]) -> builtins.list[Written]:
        """Store memories like ``add_many``, and tell which of them had been there before."""
        with self._open() as parts:
            stored = parts.writing.add([self._with_full_id(parts.database, memory) for memory in _many(memories)])
            parts.maintenance.after_writes(len(stored))
            return [Written(parts.searching.memory(item.record), item.duplicate) for item in stored]

    def edit(
        self,
        memory_id: str,
        *,
        content: str = _UNCHANGED,
        category: MemoryCategory | str = _UNCHANGED,
        tags: Sequence[str] = _UNCHANGED,
        metadata: Mapping[str, Any] = _UNCHANGED,
        user: str | None = None,
        profile: str | None = None,
    ) -> Memory:
        """Change a memory, keep its id and its outcome record, and return it."""
        given = {"content": content, "category": category, "tags": tags, "metadata": metadata}
        changes = {name: _CHECKS[name](value) for name, value in given.items() if value is not _UNCHANGED}
        return self._change(memory_id, changes, self._caller(user, profile))

    def archive(
        self, memory_id: str, *, archived: bool = True, user: str | None = None, profile: str | None = None
    ) -> Memory:
        """Take a memory out of recall without losing it; ``archived=False`` brings it back."""
        return self._change(memory_id, {"archived": archived}, self._caller(user, profile))

    def forget(self, memory_id: str, *, user: str | None = None, profile: str | None = None) -> Memory:
        """Wipe a memory for good and return what it was."""
        visible = self._caller(user, profile).sees()
        with self._open() as parts:
            memory = parts.searching.memory(_resolve(parts.database, memory_id, visible))
            parts.writing.forget([memory.id], visible)
            parts.maintenance.after_writes(1)
            return memory

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
        context = {"session": content.label(session, "session"), "turn": content.label(turn, "turn")}
        visible = self._caller(user, profile).sees()
        with self._open() as parts, parts.database.index.writing():
            records = {r["id"]: r for r in (_resolve(parts.database, i, visible) for i in _many(memory_ids))}
            events = [OutcomeEvent(id_, result, weight, self._clock()) for id_ in records]
            if events:
                parts.ledger.append(events, origin=content.label(origin, "origin"), **context)
            parts.maintenance.after_writes(1)
            return [parts.searching.memory(record) for record in records.values()]

    # Reading

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
        where = _where(
            self._caller(user, profile),
            project=project,
            session=session,
            category=category,
            tags=tags,
            include_archived=include_archived,
        )
        with self._open() as parts:
            return parts.searching.search(query, where, limit, min_score)

    def recall(self, query: str, *, limit: int = 8, **seen: str | None) -> builtins.list[SearchResult]:
        """Return the few memories that matter for a message; none when nothing here answers it.

        Unlike ``search`` it leaves out what is not relevant enough, what keeps failing, and what says the same as a
        better one; small talk recalls nothing. ``seen`` are project, user, profile and session, as in ``explain``.
        """
        return list(self.explain(query, limit=limit, outside=False, **seen).recalled)

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
        where = _where(caller, project=project, session=session, include_archived=True)
        everything = caller.sees() if outside else None
        with self._open() as parts:
            return parts.searching.recall(query, where, limit, self.settings.min_score, everything)

    def candidates(self, query: str, *, limit: int = 10, project: str | None = None) -> Found:
        """Return what each arm finds before any fusion, for those who compare fusions."""
        where = _where(self._caller(None, None), project=project)
        with self._open() as parts:
            return parts.searching.find(query, where, limit)

    def get(self, memory_id: str, *, user: str | None = None, profile: str | None = None) -> Memory:
        """Return a memory, archived or not."""
        with self._open() as parts:
            return parts.searching.memory(_resolve(parts.database, memory_id, self._caller(user, profile).sees()))

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
        where = _where(caller, project=project, category=category, tags=tags, include_archived=include_archived)
        most = None if limit is None else content.limit(limit)
        with self._open() as parts:
            table = parts.database.index.table
            dates = ((record["created_at"], record["id"]) for record in table.scan(where, ["id", "created_at"]))
            newest = heapq.nlargest(most, dates) if most else sorted(dates, reverse=True)
            records = table.get([id_ for _, id_ in newest])
            return [parts.searching.memory(records[id_]) for _, id_ in newest if id_ in records]

    def stats(self, *, user: str | None = None, profile: str | None = None) -> StoreStats:
        """Return counts of what the caller sees, and the health of the store."""
        with self._open() as parts:
            return parts.searching.stats(self._caller(user, profile).sees())

    # Upkeep

    def warm(self) -> None:
        """Open the store and begin to load the model on a thread of its own."""
        if self._model:
            self._model.start()
        with self._open() as parts:
            parts.database.index.refresh()

    def check(self) -> builtins.list[str]:
        """Return what is wrong between the two indexes, in words; empty when they agree id by id."""
        with self._open() as parts:
            return parts.database.index.disagreements()

    def optimize(self) -> None:
        """Embed what has no vector yet, compact both tables, and let the vector index follow growth."""
        with self._open() as parts:
            parts.maintenance.run()

    def close(self, *, timeout: float = 3.0) -> None:
        """Finish what is under way, within the timeout in seconds, and let go of the folder; may be called twice."""
        with self._opening:
            self._closed, parts, self._parts = True, self._parts, None
        if parts is not None:
            parts.maintenance.finish(timeout)
            parts.database.index.close()

    @contextmanager
    def _open(self) -> Iterator[_Parts]:
        """Yield the parts of the open store, with every lower error mapped."""
        with store_errors(self.settings.folder):
            parts = self._parts or self._open_parts()
            if parts.database.pid != os.getpid():
                raise StoreClosedError(
                    "the store was opened before this process was forked, and LanceDB does not survive a fork; start "
                    "processes with the method 'spawn', and open the store in each of them"
                )
            yield parts

    def _open_parts(self) -> _Parts:
        with self._opening:
            if self._closed:
                raise StoreClosedError("the store is closed; open it again with MemoryStore.open()")
            if self._parts is None:
                self._parts = self._assemble()
            return self._parts

    def _assemble(self) -> _Parts:
        database = open_database(self.settings.folder, self._model, lock_timeout=self.settings.lock_timeout)
        ledger = OutcomeLedger(database.outcomes)
        writing = Writing(database, self._model, self._clock)
        searching = Searching(database, ledger, self._model, self._wait_for_model, self._fusion, self._clock)
        return _Parts(database, ledger, writing, searching, Maintenance(database, writing))

    def _change(self, memory_id: str, changes: dict[str, Any], caller: Caller) -> Memory:
        visible = caller.sees()
        with self._open() as parts:
            found = _resolve(parts.database, memory_id, visible)
            edited = parts.writing.edit(found["id"], visible, changes)
            parts.maintenance.after_writes(1)
            return parts.searching.memory(edited)

    def _with_full_id(self, database: Database, memory: NewMemory) -> NewMemory:
        if not isinstance(memory, NewMemory):
            raise InvalidInputError(f"a memory to store must be a NewMemory, not {type(memory).__name__}")
        if not memory.supersedes:
            return memory
        visible = self._caller(memory.user, memory.profile).sees()
        return dataclasses.replace(memory, supersedes=_resolve(database, memory.supersedes, visible)["id"])

    def _caller(self, user: str | None, profile: str | None) -> Caller:
        return Caller(user, profile or self.settings.profile, self.settings.profiles == "shared")


class _Parts(NamedTuple):
    database: Database
    ledger: OutcomeLedger
    writing: Writing
    searching: Searching
    maintenance: Maintenance


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "content": content.text,
    "category": lambda value: content.choice(MemoryCategory, value, "category").value,
    "tags": content.tag_list,
    "metadata": content.json_object,
}


def _resolve(database: Database, memory_id: object, visible: Filter) -> Record:
    """Return the record of an id, or of a prefix that fits one visible memory only."""
    if not isinstance(memory_id, str) or not memory_id.strip():
        raise InvalidInputError(f"an id must be text, not {memory_id!r}")
    wanted = content.mend(memory_id).strip()
    database.index.refresh()
    found = database.index.get([wanted]).get(wanted)
    if found is not None and matches(visible, found):
        return found
    if len(wanted) >= _SHORTEST_PREFIX:
        close = database.index.read_text(lambda text: text.ids_with_prefix(wanted, visible, _SHOWN)) or []
        if len(close) == 1:
            return database.index.get(close)[close[0]]
        if close:
            raise AmbiguousIdError(f"{wanted!r} fits several memories ({', '.join(close)}, ...); give more of the id")
    raise MemoryNotFoundError(f"there is no memory {wanted!r}; look it up with a search or a list")


def _model(settings: Settings, embedder: Embedder | None) -> LazyEmbedder | None:
    if embedder is not None:
        return LazyEmbedder(lambda: embedder)

    return None if settings.embedding == "null" else LazyEmbedder(lambda: load_embedder(settings.embedding_model))


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


def _where(
    caller: Caller,
    *,
    project: str | None = None,
    session: str | None = None,
    category: MemoryCategory | str | None = None,
    tags: Sequence[str] = (),
    include_archived: bool = False,
) -> Filter:
    clauses = [caller.sees(), in_project(project, session)]
    if category is not None:
        clauses.append(In("category", (content.choice(MemoryCategory, category, "category").value,)))
    clauses += [In("tags", (tag,)) for tag in content.tag_list(tags)]
    if not include_archived:
        clauses.append(In("archived", (False,)))
    return All(tuple(clauses))
