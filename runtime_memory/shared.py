"""Open a store whose tables are on an object store: make it when it is new, and hold this machine's replica of it.

The manifest is a table too, of one row. Who makes a store makes its tables under names of their own first; then the
one manifest that comes first decides whose they are. A copy of it is kept in the folder on this machine, with the text
index: while the object store cannot be reached, reading goes on from there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from indexes.events import EventLog
from indexes.lance import Location, drop_table
from indexes.link import RemoteLink, Unreachable, is_unreachable, within
from indexes.lock import WriterLock
from indexes.replica import Replica
from indexes.shared_text import Revision, SharedText
from indexes.vectors import VectorTable
from runtime_memory.database import Database, StoredManifest, first_manifest, make_private
from runtime_memory.errors import StoreBusyError, StoreDamagedError, StoreUnavailableError
from runtime_memory.lazy_embedder import LazyEmbedder
from runtime_memory.manifest import Manifest
from runtime_memory.place import Place
from runtime_memory.records import LAYOUT, OUTCOME_SCHEMA

__all__ = ["keep_manifest", "open_shared"]

_MANIFEST = "manifest"
_ATTEMPTS = 5
_LOOK_SECONDS = 1.0
_PATIENCE_SECONDS = 10.0
"""How long the first request of a process may take."""


class SharedManifest:
    """What an open store knows of its manifest, which other machines may change at any time."""

    def __init__(self, text: SharedText, place: Place, link: RemoteLink) -> None:
        self._text = text
        self._place = place
        self._link = link
        self._looked_at = time.monotonic()
        self._version, self._read, self.manifest = self._newest()
        self._keep()

    def is_replaced(self) -> bool:
        """Tell whether the manifest names other tables by now; not while it cannot be reached.

        Once a second at most: the tables of a shared store stay, and weights may take that long to be used.
        """
        if self._link.is_down or time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return False
        self._looked_at = time.monotonic()
        if self._link.look(lambda: self._text.version) in (None, self._version):
            return False
        newest = self._link.ask(self._newest)
        if newest is None:
            return False
        if newest[2].epoch != self.manifest.epoch:
            return True
        self._version, self._read, self.manifest = newest
        self._keep()
        return False

    def change(self, update: Callable[[Manifest], Manifest]) -> None:
        """Replace the manifest by what ``update`` makes of the newest one."""
        for _ in range(_ATTEMPTS):
            self._version, self._read, self.manifest = self._newest()
            changed = update(self.manifest)
            if changed == self.manifest or self._text.replace(self._read, changed.encoded().decode()):
                self.manifest = changed
                self._keep()
                return
        raise StoreBusyError(f"other machines keep changing the manifest of {self._place}; try again")

    def _newest(self) -> tuple[int, Revision, Manifest]:
        version = self._text.version  # first, so that a change after it is noticed
        revision = self._text.read()
        return version, revision, _parsed(revision, self._place)

    def _keep(self) -> None:
        with suppress(OSError):  # a full disk: the next change is kept again
            if Manifest.read(self._place.folder) != self.manifest:
                self.manifest.write(self._place.folder)


class KeptManifest:
    """The copy of a manifest, for as long as the object store cannot be reached."""

    def __init__(self, manifest: Manifest, link: RemoteLink) -> None:
        self.manifest = manifest
        self._link = link

    def is_replaced(self) -> bool:
        """Tell whether the store is back, so that its tables can be opened."""
        return self._link.look(lambda: True) is not None

    def change(self, update: Callable[[Manifest], Manifest]) -> None:  # noqa: ARG002 - as StoredManifest has it
        """Raise Unreachable: what was opened while the store was away is never written to."""
        self._link.insist()
        raise Unreachable("it was away until now")


class _Away:
    """Stands for a table that cannot be reached; only its schema is known."""

    def __init__(self, schema: Any, reason: str) -> None:
        self.schema = schema
        self._dataset_uri = "away://"
        self._reason = reason

    def __getattr__(self, name: str) -> Any:
        raise Unreachable(self._reason)


class _Tables(NamedTuple):
    state: StoredManifest
    link: RemoteLink
    table: VectorTable
    outcomes: EventLog


def open_shared(
    place: Place, model: LazyEmbedder | None, *, lock_timeout: float, model_name: str | None = None
) -> Database:
    """Open the store at a place, and make it where there is none; ``model`` says how long its vectors are.

    While the object store cannot be reached, it is the store as this machine last saw it, to read from.
    """
    make_private(place.folder)
    lock = WriterLock(place.folder / "lock", lock_timeout)
    location = Location(str(place.uri), place.options)
    try:
        text = _opened_text(location) or _create(location, place, model, model_name)
        parts = _opened(location, place, text)
    except Exception as error:
        kept = Manifest.read(place.folder) if is_unreachable(error) else None
        if kept is None:
            raise
        parts = _as_last_seen(location, kept, error)
    index = Replica(
        parts.table,
        place.folder / "text",
        LAYOUT,
        epoch=parts.state.manifest.epoch,
        lock=lock,
        is_replaced=parts.state.is_replaced,
        link=parts.link,
        open_at=partial(_table_at, location, parts.state.manifest.table),
    )
    return Database(place, parts.state, index, parts.outcomes, model_name, os.getpid())


def keep_manifest(place: Place) -> None:
    """Keep a copy of the manifest on this machine if there is none yet; nothing where it cannot be had."""
    with suppress(Exception):  # opening the store says what is wrong
        if Manifest.read(place.folder) is None:
            text = _opened_text(Location(str(place.uri), place.options))
            if text is not None:
                make_private(place.folder)
                _parsed(text.read(), place).write(place.folder)


def _opened_text(location: Location) -> SharedText | None:
    return within(lambda: SharedText.open(location, _MANIFEST), _PATIENCE_SECONDS)


def _opened(location: Location, place: Place, text: SharedText) -> _Tables:
    link = RemoteLink(lambda: text.version)
    state = SharedManifest(text, place, link)
    manifest = state.manifest
    table = VectorTable.open(location, manifest.table, LAYOUT)
    outcomes = EventLog.open(location, manifest.outcomes)
    if table is None or outcomes is None:
        raise StoreDamagedError(
            f"{place} has a manifest but its table {manifest.table!r} or {manifest.outcomes!r} is missing. Restore the "
            "objects from the bucket's own versions, or set RUNTIME_MEMORY_DB to another prefix and import an export."
        )
    return _Tables(state, link, table, outcomes)


def _table_at(location: Location, name: str, version: int) -> VectorTable:
    table = VectorTable.open(location, name, LAYOUT, version=version)
    if table is None:
        raise StoreDamagedError(f"the table {name!r} has gone from {location.uri}")
    return table


def _create(location: Location, place: Place, model: LazyEmbedder | None, model_name: str | None) -> SharedText:
    new = first_manifest(model, model_name)
    manifest = new.renamed(f"memories-{new.epoch[:12]}", f"outcomes-{new.epoch[:12]}")
    VectorTable.create(location, manifest.table, LAYOUT, manifest.dimension, keyed=True)
    EventLog.create(location, manifest.outcomes, OUTCOME_SCHEMA)
    made = SharedText.create(location, _MANIFEST, manifest.encoded().decode())
    if made is not None:
        return made
    for name in (manifest.table, manifest.outcomes):  # another machine was first; nobody knows of these
        drop_table(location, name)
    first = SharedText.open(location, _MANIFEST)
    if first is None:
        raise StoreUnavailableError(f"{place} is being made by another machine; try again")
    return first


def _as_last_seen(location: Location, manifest: Manifest, error: Exception) -> _Tables:
    link = RemoteLink(lambda: SharedText.open(location, _MANIFEST))
    link.lost(error)
    table: Any = _Away(LAYOUT.schema(manifest.dimension), str(error))
    outcomes: Any = _Away(OUTCOME_SCHEMA, str(error))
    return _Tables(KeptManifest(manifest, link), link, VectorTable(table, LAYOUT), EventLog(outcomes))


def _parsed(revision: Revision, place: Place) -> Manifest:
    try:
        return Manifest.parse(revision.text.encode(), str(place))
    except ValueError as error:
        raise StoreDamagedError(
            f"the manifest of {place} cannot be read ({error}). Set RUNTIME_MEMORY_DB to another prefix, and import an "
            "export."
        ) from error
