"""Hold a store open over one folder, and go over to its new tables when another process has replaced them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

from indexes.consistency import TableReplaced
from indexes.fusion import Fusion
from runtime_memory.database import Database, open_database
from runtime_memory.embedding import Embedder
from runtime_memory.errors import EmbeddingError, RuntimeMemoryError, StoreBusyError, StoreClosedError
from runtime_memory.failures import forked, store_errors
from runtime_memory.lazy_embedder import LazyEmbedder
from runtime_memory.ledger import OutcomeLedger
from runtime_memory.maintenance import Maintenance
from runtime_memory.manifest import model_name, stored_model
from runtime_memory.searching import Searching
from runtime_memory.settings import Settings
from runtime_memory.shared import keep_manifest, open_shared
from runtime_memory.writing import Writing

__all__ = ["Opening", "Parts", "follows_tables"]

_P = ParamSpec("_P")
_T = TypeVar("_T")
_ATTEMPTS = 5
_PATIENCE_SECONDS = 2.0
"""How long a write waits for a model that loads in the background: usually it is there, unless it is fetched first."""


class Parts(NamedTuple):
    """What an open store consists of; all of it belongs to the same tables."""

    database: Database
    ledger: OutcomeLedger
    writing: Writing
    searching: Searching
    maintenance: Maintenance


class Opening:
    """Open the folder on first use, once for all threads.

    ``load`` makes the embedder of a model's name (None: the default model); ``embedder`` stands in for all of that.
    """

    def __init__(
        self,
        settings: Settings,
        embedder: Embedder | None,
        load: Callable[[str | None], Embedder],
        *,
        wait_for_model: bool,
        fusion: Fusion | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._place = settings.place
        self._embedder = embedder
        self._load = load
        self._wait_for_model = wait_for_model
        self._fusion = fusion
        self._clock = clock
        self._opening = threading.RLock()
        self._parts: Parts | None = None
        self._closed = False
        self.model = self._lazy_model()

    @contextmanager
    def parts(self, *, again: bool = True) -> Iterator[Parts]:
        """Yield the parts of the open store, with every lower error mapped.

        What fails because its tables have been replaced raises TableReplaced: with ``again``, at any point; without,
        for what is not to be done twice, only before anything was written.
        """
        with store_errors(self._place):
            parts = self._current()
            try:
                yield parts
            except Exception as error:  # a purge may have removed what was to be read, a fault damaged it
                if not again or isinstance(error, RuntimeMemoryError):
                    raise
                if parts.database.is_replaced() or parts.database.mend():
                    raise TableReplaced from error
                raise

    def wanted_model(self, name: str | None) -> tuple[Embedder, str | None]:
        """Return the model to embed with and its name: the given one, else that of the settings or of the store.

        Raises EmbeddingError where there is none.
        """
        if name:
            return self._load(name), model_name(name)
        embedder = self.model.get() if self.model else None
        if embedder is None:
            off = "RUNTIME_MEMORY_EMBEDDING is 'null'; unset it, or name a model with --model"
            raise EmbeddingError((self.model and self.model.problem) or off)
        return embedder, self._configured_name()

    def close(self, timeout: float) -> None:
        """Finish what is under way, within the timeout in seconds, and let go of the folder."""
        if forked():  # the parent's threads are not here, but the locks that they held are
            return
        with self._opening:
            self._closed, parts, self._parts = True, self._parts, None
        if parts is not None:
            parts.maintenance.finish(timeout)
            parts.database.index.close()

    def _current(self) -> Parts:
        parts = self._parts or self._open()
        if parts.database.pid != os.getpid():
            raise StoreClosedError(
                "the store was opened before this process was forked, and LanceDB does not survive a fork; start "
                "processes with the method 'spawn', and open the store in each of them"
            )
        return self._reopened(parts) if parts.database.is_replaced() else parts

    def _open(self) -> Parts:
        with self._opening:
            if self._closed:
                raise StoreClosedError("the store is closed; open it again with MemoryStore.open()")
            if self._parts is None:
                self._parts = self._assemble()
            return self._parts

    def _reopened(self, old: Parts) -> Parts:
        """Open the tables that have replaced those of ``old``; threads that are reading these go on."""
        with self._opening:
            if self._parts is old:
                self._parts = None
                if stored_model(self._place.folder) != old.database.manifest.model:
                    self._change_model()
            return self._open()

    def _change_model(self) -> None:
        if self._embedder is None and self._settings.embedding_model is None:
            self.model = self._lazy_model()
            if self.model and not self._wait_for_model:
                self.model.start()

    def _assemble(self) -> Parts:
        settings, model = self._settings, self.model
        options: Any = {"lock_timeout": settings.lock_timeout, "model_name": self._configured_name()}
        if self._place.is_remote:
            database = open_shared(self._place, model, **options)
        else:
            database = open_database(self._place.folder, model, **options)
        ledger = OutcomeLedger(database.outcomes, database.index.link)
        writing = Writing(database, model, self._clock)
        searching = Searching(database, ledger, model, self._wait_for_model, self._fusion, self._clock)
        return Parts(database, ledger, writing, searching, Maintenance(database, writing))

    def _configured_name(self) -> str | None:
        if self._embedder is not None:
            return None
        return model_name(self._settings.embedding_model) or self._stored_model()

    def _stored_model(self) -> str | None:
        if self._place.is_remote:
            keep_manifest(self._place)
        return stored_model(self._place.folder)

    def _lazy_model(self) -> LazyEmbedder | None:
        if self._embedder is not None:
            stand_in = self._embedder
            return LazyEmbedder(lambda: stand_in, loaded=stand_in)
        if self._settings.embedding == "null":
            return None
        patience = None if self._wait_for_model else _PATIENCE_SECONDS
        return LazyEmbedder(lambda: self._load(self._configured_name()), patience=patience)


def follows_tables(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Call a method of the store again when its tables were replaced while it was at work."""

    @wraps(method)
    def follow(*args: _P.args, **options: _P.kwargs) -> _T:
        for _ in range(_ATTEMPTS):
            try:
                return method(*args, **options)
            except TableReplaced:
                continue
        raise StoreBusyError("the store's tables were replaced again and again in the meantime; try again")

    return follow
