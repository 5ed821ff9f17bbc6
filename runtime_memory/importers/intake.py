"""Store what the formats read, batch by batch; a run that was cut short is completed by the next one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from datetime import datetime
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING

from runtime_memory import content
from runtime_memory.errors import InvalidInputError, RuntimeMemoryError, StoreError
from runtime_memory.importers import Item, Summary, sqlite_stores
from runtime_memory.importers.sync import Imported, Known, Match, closest, file_of
from runtime_memory.importers.undivided import undivided
from runtime_memory.models import Memory, NewMemory, Written

if TYPE_CHECKING:
    from runtime_memory.store import MemoryStore

__all__ = ["Intake", "as_new"]

_BATCH = 512
_EMBEDDED_BATCH, _UNEMBEDDED_BATCH = 64, 2_048
"""What is lost when an import is stopped: a second or two of work, of which a tenth is the commit's."""


class Intake:
    """Take items into a store, or with ``dry_run`` only count what would become of them.

    Without ``embed`` the memories are found by their words until their vectors are made. ``summary`` is current after
    each batch, also where that raised: what it counts is stored, and what is stored is counted.
    """

    def __init__(
        self, store: MemoryStore, *, profile: str | None = None, dry_run: bool = False, embed: bool = True
    ) -> None:
        self.summary = Summary()
        self._store = store
        self._profile = profile
        self._dry_run = dry_run
        self._embed = embed
        self._known = Known(_imported(store, profile), lambda file: Path(file).exists())
        self._waiting: list[Match] = []
        self._unread: list[str] = []
        self._repeated: dict[str, NewMemory] = {}
        self._new_texts: set[tuple[str, str | None]] = set()

    def take(self, items: Iterable[Item]) -> None:
        """Take in items, those of a file one after the other."""
        as_stored = (item._replace(origin=content.origin(item.origin)) for item in items)
        for _, of_file in groupby(as_stored, lambda item: file_of(item.origin)):
            held = False
            while chunk := list(islice(of_file, _BATCH)):
                held |= self._take_chunk(chunk)
            self.summary.read += held

    def finish(self, roots: Sequence[Path], *, prune: bool = False) -> Summary:
        """Store the rest, and report or ``prune`` what vanished from the imported paths."""
        self._flush()
        gone = self._known.vanished([str(root.resolve()) for root in roots], self._unread)
        gone = self._without_repeated(gone)
        self.summary.vanished = sorted(each.origin for each in gone if not each.archived)
        if prune:
            for start in range(0, len(gone), _BATCH):
                self._archive(gone[start : start + _BATCH])
        return self.summary

    def _without_repeated(self, gone: Sequence[Imported]) -> list[Imported]:
        """Return what is gone from its place, and give what another place says as well that place."""
        repeated = [each for each in gone if each.id in self._repeated]
        moved = [replace(self._repeated[each.id], id=each.id) for each in repeated]
        if moved:
            with undivided():
                self._store.write(moved, dry_run=self._dry_run)
                self.summary.moved += len(moved)
                self.summary.unchanged -= len(moved)
        return [each for each in gone if each.id not in self._repeated]

    def _take_chunk(self, items: Sequence[Item]) -> bool:
        for item in items:
            if item.notice:
                self.summary.notices.append((item.origin, item.notice))
            if item.memory is None:
                self.summary.skip(item.origin, item.skipped or "", fault=item.fault)
                if item.fault:
                    self._unread.append(file_of(item.origin))
        held = [item for item in items if item.memory is not None]
        placed = [item for item in held if item.memory and not item.memory.id]
        self._waiting += [Match(item, None) for item in held if item.memory and item.memory.id]
        self._waiting += self._with_closest(self._known.match(placed))
        if len(self._waiting) >= (_EMBEDDED_BATCH if self._embed else _UNEMBEDDED_BATCH):
            self._flush()
        return bool(held)

    def _with_closest(self, matches: list[Match]) -> list[Match]:
        """Return the matches with changed entries of lists found by their likeness."""
        unmet = {each.id: each for each in self._known.unmet(file_of(matches[0].item.origin))} if matches else {}
        new = {number: _new(match).content for number, match in enumerate(matches) if match.known is None}
        if not unmet or not new:
            return matches
        texts = {memory.id: memory.content for memory in self._store.memories(ids=list(unmet))}
        for number, id_ in closest(new, texts).items():
            self._known.meet(unmet[id_])
            matches[number] = Match(matches[number].item, unmet[id_])
        return matches

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        fresh = [match for match in waiting if not _is_unchanged(match)]
        self.summary.unchanged += len(waiting) - len(fresh)
        if fresh:
            with undivided():
                self._write(fresh)

    def _write(self, matches: Sequence[Match]) -> None:
        """Write a batch, and count what of it is stored, also where that raises a StoreError."""
        memories = [_version(match, self._store.now()) for match in matches]
        try:
            written = self._stored(memories)
        except InvalidInputError as error:
            if len(matches) == 1:
                self.summary.skip(matches[0].item.origin, str(error), fault=True)
            else:
                middle = len(matches) // 2  # a batch is checked as a whole, and of many few are at fault
                self._write(matches[:middle])
                self._write(matches[middle:])
            return
        except StoreError:
            with suppress(RuntimeMemoryError):  # where the store cannot even be read, nothing can be told
                self._count_stored(matches)
            raise
        for match, each in zip(matches, written, strict=True):
            self._count(match, each)
        self._record(matches, written)

    def _stored(self, memories: Sequence[NewMemory]) -> list[Written]:
        written = self._store.write(memories, embed=self._embed, dry_run=self._dry_run)
        if not self._dry_run:
            return written
        repeated = [self._is_repeated(memory) for memory in memories]
        return [each._replace(duplicate=each.duplicate or again) for each, again in zip(written, repeated, strict=True)]

    def _is_repeated(self, memory: NewMemory) -> bool:
        """Tell whether a dry run has met a text before: what it would have stored is not in the store."""
        key = (memory.content.strip(), memory.project)
        repeated = key in self._new_texts and not memory.id
        self._new_texts.add(key)
        return repeated

    def _count_stored(self, matches: Sequence[Match]) -> None:
        """Count what is in the store of a batch whose writing failed: a part of it, or all but the last step."""
        there = {(each.origin, each.origin_hash) for each in _imported(self._store, self._profile)}
        for match in matches:
            if not _new(match).id and (match.item.origin, _new(match).origin_hash) in there:
                _tally(self.summary, match, updated=match.known is not None)

    def _count(self, match: Match, written: Written) -> None:
        if written.masked and not written.duplicate:
            self.summary.notices.append((match.item.origin, f"masked: {', '.join(written.masked)}"))
        if written.duplicate:
            self.summary.unchanged += 1
            self._repeated[written.memory.id] = _new(match)
        else:
            _tally(self.summary, match, updated=written.updated)

    def _record(self, matches: Sequence[Match], written: Sequence[Written]) -> None:
        told = [
            (each.memory, match.item.outcomes)
            for match, each in zip(matches, written, strict=True)
            if match.item.outcomes and not self._dry_run
        ]
        for user, profile in {(memory.user, memory.profile) for memory, _ in told}:
            theirs = [each for each in told if (each[0].user, each[0].profile) == (user, profile)]
            recorded = self._store.outcomes([memory.id for memory, _ in theirs], user=user, profile=profile)
            # A record of an older store is one sum, whose date moves with use: it is taken over once.
            taken_over = {event.memory_id for event in recorded if event.origin == sqlite_stores.NAME}
            reports = [
                replace(event, memory_id=memory.id)
                for memory, events in theirs
                for event in events
                if event.origin != sqlite_stores.NAME or memory.id not in taken_over
            ]
            self.summary.outcomes += self._store.add_outcomes(reports, user=user, profile=profile)

    def _archive(self, gone: Sequence[Imported]) -> None:
        current = [memory for memory in self._store.memories(ids=[each.id for each in gone]) if not memory.archived]
        # Without a hash, what comes back one day is a change, and current again.
        pruned = [replace(as_new(memory), archived=True, origin_hash=None, updated_at=None) for memory in current]
        with undivided():
            self._store.write(pruned, dry_run=self._dry_run)
            self.summary.archived += len(current)


def _tally(done: Summary, match: Match, *, updated: bool) -> None:
    if match.known is not None and match.known.origin_hash == _new(match).origin_hash:
        done.moved += 1
    elif updated:
        done.updated += 1
    else:
        done.added += 1


def as_new(memory: Memory) -> NewMemory:
    """Return a stored memory as one to store: the same in every field."""
    names = {each.name for each in fields(NewMemory)} & {each.name for each in fields(Memory)}
    return NewMemory(**{name: getattr(memory, name) for name in names}, allow_secrets=True)


def _imported(store: MemoryStore, profile: str | None) -> Iterator[Imported]:
    for memory in store.memories(include_archived=True, profile=profile):
        if memory.origin:
            yield Imported(memory.id, memory.origin, memory.origin_hash or "", memory.archived)


def _is_unchanged(match: Match) -> bool:
    known, memory = match.known, _new(match)
    return known is not None and (known.origin, known.origin_hash) == (memory.origin, memory.origin_hash)


def _new(match: Match) -> NewMemory:
    if match.item.memory is None:
        raise ValueError("an item without a memory has nothing to store")
    return match.item.memory


def _version(match: Match, now: datetime) -> NewMemory:
    """Return what to store: a new memory, or the next version of the one that is there."""
    memory = _new(match)
    if memory.id and memory.origin != match.item.origin:  # an export says itself when it was imported
        return memory
    memory = replace(memory, imported_at=memory.imported_at or now)
    if memory.id or match.known is None:
        return memory
    archived = match.known.archived and match.known.origin_hash == memory.origin_hash
    return replace(memory, id=match.known.id, archived=archived)
