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
    """Hand out the embedder, or None with ``problem`` saying why; a failed load is tried again after five minutes."""

    def __init__(self, load: Callable[[], Embedder]) -> None:
        self._load = load
        self._loading = threading.Lock()
        self._embedder: Embedder | None = None
        self._failed_at: float | None = None
        self.problem: str | None = None

    def get(self, *, wait: bool = True) -> Embedder | None:
        """Return the embedder; without ``wait``, None while another thread loads it or nobody has begun to."""
        if self._embedder is not None or not wait:
            return self._embedder
        with self._loading:
            if self._embedder is None and self._may_try():
                self._try()
            return self._embedder

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
