"""Open a store and look after it as a whole: everything but its memories."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from indexes.fusion import Fusion
from runtime_memory.backup import BackedUp, back_up
from runtime_memory.embedding import Embedder, load_embedder
from runtime_memory.health import Health, examine
from runtime_memory.lazy_embedder import LazyEmbedder
from runtime_memory.opening import Opening, Parts, follows_tables
from runtime_memory.purge import Purged, purge, remove_leftovers
from runtime_memory.reindex import Progress, Reindexed, rebuild, reembed
from runtime_memory.settings import Settings

__all__ = ["OpenStore"]


_BY_EXPORT = "export the memories (mem export), and import them under another prefix"


def _now() -> datetime:
    return datetime.now(UTC)


class OpenStore:
    """A store's folder: how it is opened, looked after and closed. MemoryStore adds the memories."""

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
        self._clock = clock
        self._opening = Opening(
            self.settings,
            embedder,
            _load,
            wait_for_model=not background_model,
            fusion=fusion,
            clock=clock,
        )

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

    @follows_tables
    def warm(self) -> None:
        """Open the store and begin, in the background, to load the model and to embed what has no vector yet."""
        if self._model:
            self._model.start()
        with self._open() as parts:
            parts.database.index.refresh()
            index = parts.database.index
            if self._model and index.link.ask(index.table.count_without_vectors):
                parts.maintenance.start()

    @follows_tables
    def check(self) -> list[str]:
        """Return what is wrong between the two indexes, in words; empty when they agree id by id."""
        with self._open() as parts:
            return parts.database.index.disagreements()

    @follows_tables
    def health(self) -> Health:
        """Look the whole store over, whoever its memories belong to."""
        with self._open() as parts:
            return examine(parts)

    @follows_tables
    def optimize(self) -> None:
        """Embed what has no vector yet, compact both tables, and let the vector index follow growth."""
        with self._open() as parts:
            parts.maintenance.run()

    @follows_tables
    def reindex(
        self, *, embeddings: bool = False, model: str | None = None, progress: Progress | None = None
    ) -> Reindexed:
        """Build the text index anew and embed what has no vector; with ``embeddings``, embed every memory anew.

        ``model`` names the model to go over to. A run that is broken off is gone on with by the next one.
        """
        if embeddings:
            self.settings.place.refuse_remote("embedding every memory anew", _BY_EXPORT)
        with self._open(again=False) as parts:
            if not embeddings:
                return rebuild(parts.database, parts.writing)
            embedder, name = self._opening.wanted_model(model)
            done = reembed(
                parts.database, embedder, model=name, lock_timeout=self.settings.lock_timeout, progress=progress
            )
        with self._open() as parts:
            parts.database.index.refresh()
        return done

    @follows_tables
    def purge(self, *, wait: float = 1.0) -> Purged:
        """Remove every trace of forgotten memories from the folder; readers get ``wait`` seconds to finish."""
        self.settings.place.refuse_remote("purging", f"{_BY_EXPORT}, and delete the old prefix with its versions")
        trace = Path(self.settings.hermes_trace).expanduser() if self.settings.hermes_trace else None
        with self._open(again=False) as parts:
            done = purge(parts.database, trace, lock_timeout=self.settings.lock_timeout)
        self._remove_leftovers(wait)
        return done

    @follows_tables
    def _remove_leftovers(self, wait: float) -> None:
        with self._open(again=False) as parts:
            remove_leftovers(parts.database, lock_timeout=self.settings.lock_timeout, wait=wait)

    @follows_tables
    def backup(self, path: str | Path) -> BackedUp:
        """Write a consistent copy of the store to a file, or to a new file in a folder, and check it."""
        with self._open(again=False) as parts:
            return back_up(parts.database, Path(path), lock_timeout=self.settings.lock_timeout)

    def now(self) -> datetime:
        """Return the time by the store's clock."""
        return self._clock()

    def close(self, *, timeout: float = 3.0) -> None:
        """Finish what is under way, within the timeout in seconds, and let go of the folder; may be called twice."""
        self._opening.close(timeout)

    @property
    def _model(self) -> LazyEmbedder | None:
        return self._opening.model

    def _open(self, *, again: bool = True) -> AbstractContextManager[Parts]:
        return self._opening.parts(again=again)


def _load(model: str | None) -> Embedder:
    return load_embedder(model)  # by the name that this module has for it, as others may put their own there
