"""Embed each text once: vectors kept in a folder, by the hash of the text and the identity of the model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runtime_memory.embedding import Embedder

__all__ = ["CachedEmbedder"]


class CachedEmbedder:
    """An embedder that remembers passages and queries over runs; call ``save`` to keep what is new."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        self.identity, self.dimension = embedder.identity, embedder.dimension
        self._path = folder / f"{hashlib.sha256(self.identity.encode()).hexdigest()[:16]}.npz"
        self._vectors: dict[str, NDArray[np.float32]] = {}
        if self._path.exists():
            with np.load(self._path) as stored:
                self._vectors = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    def passages(self, text: str) -> list[str]:
        """Cut a text as the model's own embedder does."""
        return self._embedder.passages(text)

    def embed_passages(self, passages: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a passage, from the cache where it is there."""
        keys = [_key("p", passage) for passage in passages]
        missing = {key: text for key, text in zip(keys, passages, strict=True) if key not in self._vectors}
        if missing:
            self._vectors |= dict(zip(missing, self._embedder.embed_passages(list(missing.values())), strict=True))
        return np.stack([self._vectors[key] for key in keys])

    def embed_query(self, query: str) -> NDArray[np.float32]:
        """Return the query's vector."""
        key = _key("q", query)
        if key not in self._vectors:
            self._vectors[key] = self._embedder.embed_query(query)
        return self._vectors[key]

    def save(self) -> None:
        """Write the cache."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(self._path, keys=np.array(list(self._vectors)), vectors=np.stack(list(self._vectors.values())))


def _key(kind: str, text: str) -> str:
    return kind + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:31]
