"""A deterministic embedder with readable vectors: each word adds to one of 16 places."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WORDS_PER_PASSAGE = 50


class TinyEmbedder:
    """Count words by the place that their checksum gives, and scale to length 1."""

    dimension = 16

    def __init__(self, identity: str = "tiny@1") -> None:
        self.identity = identity
        self.embedded: list[str] = []

    def passages(self, text: str) -> list[str]:
        words = text.split()
        if len(words) <= WORDS_PER_PASSAGE:
            return [text]
        return [" ".join(words[i : i + WORDS_PER_PASSAGE]) for i in range(0, len(words), WORDS_PER_PASSAGE)]

    def embed_passages(self, passages: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += passages
        return np.stack([self.embed_query(passage) for passage in passages])

    def embed_query(self, query: str) -> NDArray[np.float32]:
        vector = np.zeros(self.dimension, np.float32)
        for word in re.findall(r"\w+", query.lower()):
            vector[zlib.crc32(word.encode()) % self.dimension] += 1
        return vector / (np.linalg.norm(vector) or 1)
