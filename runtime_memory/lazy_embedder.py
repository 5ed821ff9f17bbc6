"""Load the embedding model once, when it is first needed or in the background, and go on without it when it fails."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from runtime_memory.embedding import Embedder

__all__ = ["LazyEmbedder"]

_log = logging.getLogger(__name__)
_RETRY_SECONDS = 300.0


class LazyEmbedder:
    """Hand out the embedder, or None with ``problem`` saying why; a failed load is tried again after five minutes.

    ``patience`` is how many seconds a caller waits for another thread that is loading; None for as long as it takes.
    """

    def __init__(
        self, load: Callable[[], Embedder], *, loaded: Embedder | None = None, patience: float | None = None
    ) -> None:
        self._load = load
        self._loading = threading.Lock()
        self._embedder = loaded
        self._patience = -1.0 if patience is None else patience
        self._failed_at: float | None = None
        self.problem: str | None = None

    def get(self, *, wait: bool = True, patiently: bool = False) -> Embedder | None:
        """Return the embedder; without ``wait``, None while another thread loads it or nobody has begun to.

        ``patiently`` waits for that thread as long as it takes.
        """
        if self._embedder is not None or not wait:
            return self._embedder
        if not self._loading.acquire(timeout=-1.0 if patiently else self._patience):
            return None
        try:
            if self._embedder is None and self._may_try():
                self._try()
            return self._embedder
        finally:
            self._loading.release()

    def start(self) -> None:
        """Begin to load on a thread of its own, and return at once."""
        threading.Thread(target=self.get, name="runtime-memory-model", daemon=True).start()

    def _may_try(self) -> bool:
        return self._failed_at is None or time.monotonic() - self._failed_at >= _RETRY_SECONDS

    def _try(self) -> None:
        try:
            self._embedder, self.problem = self._load(), None
        except Exception as error:  # noqa: BLE001 - whatever a model's files do, the words can still be searched
            if self.problem is None:
                _log.warning("%s Memories are found by their words until then.", error)
            self._failed_at, self.problem = time.monotonic(), str(error)
