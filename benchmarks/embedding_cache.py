"""Embed each text once: vectors kept on disk by the hash of the text and the identity of the model."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from runtime_memory.embedding import Embedder

__all__ = ["CachedEmbedder"]

_Item = TypeVar("_Item")
_BATCH = 256
_MAX_VARIABLES = 500


class CachedEmbedder:
    """An embedder that remembers passages and queries over runs, and between processes that run at once.

    A batch is kept as soon as it is embedded: a run that was cut short goes on where it stopped.
    """

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        self.identity, self.dimension = embedder.identity, embedder.dimension
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{hashlib.sha256(self.identity.encode()).hexdigest()[:16]}.sqlite"
        self._database = sqlite3.connect(path, timeout=60, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID")
        # The store loads its model on a thread of its own, and a connection serves one thread at a time.
        self._lock = threading.Lock()

    def passages(self, text: str) -> list[str]:
        """Cut a text as the model's own embedder does."""
        return self._embedder.passages(text)

    def missing(self, texts: Iterable[str]) -> list[str]:
        """Return the passages of texts that are not in the cache yet, the shortest first."""
        passages = {_key("p", passage): passage for text in texts for passage in self.passages(text)}
        with self._lock:
            known = self._read(list(passages))
        return sorted((passage for key, passage in passages.items() if key not in known), key=len)

    def embed_passages(self, passages: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a passage, from the cache where it is there."""
        keys = [_key("p", passage) for passage in passages]
        with self._lock:
            vectors = self._read(keys)
            # Texts of a length side by side make a batch without padding.
            new = sorted({k: p for k, p in zip(keys, passages, strict=True) if k not in vectors}.items(), key=_length)
            for batch in _chunks(new, _BATCH):
                rows = self._embedder.embed_passages([passage for _, passage in batch])
                vectors |= self._write({key: row for (key, _), row in zip(batch, rows, strict=True)})
        return np.stack([vectors[key] for key in keys])

    def embed_query(self, query: str) -> NDArray[np.float32]:
        """Return the query's vector."""
        key = _key("q", query)
        with self._lock:
            found = self._read([key]) or self._write({key: self._embedder.embed_query(query)})
        return found[key]

    def save(self) -> None:
        """Bring what was written into one file."""
        with self._lock:
            self._database.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _read(self, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        found: dict[str, NDArray[np.float32]] = {}
        for chunk in _chunks(keys, _MAX_VARIABLES):
            marks = ",".join("?" * len(chunk))
            rows = self._database.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", chunk)  # noqa: S608 - question marks alone
            found |= {key: np.frombuffer(blob, np.float32) for key, blob in rows}
        return found

    def _write(self, vectors: Mapping[str, NDArray[np.float32]]) -> Mapping[str, NDArray[np.float32]]:
        rows = [(key, np.ascontiguousarray(vector, np.float32).tobytes()) for key, vector in vectors.items()]
        self._database.execute("BEGIN IMMEDIATE")
        with self._database:
            self._database.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
        return vectors


def _length(item: tuple[str, str]) -> int:
    return len(item[1])


def _chunks(values: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _key(kind: str, text: str) -> str:
    return kind + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:31]
