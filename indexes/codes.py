"""Hold vectors as bytes, a quarter of their size, to compare a query with all of them at once.

A vector of 384 dimensions takes 384 bytes, and a product with a hundred thousand of them 2 ms. Each vector is scaled so
that its largest component is 127, and rounded: its cosine to a query is then wrong by 0.0006 on average (scalar
quantization to 8 bits).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

import numkong
import numpy as np
from numpy.typing import NDArray

from indexes.layout import Vectors

__all__ = ["Codes", "greatest"]

_GREATEST_CODE = 127
_GROUP = 32
_SMALLEST_BLOCK = 4_096
_SIDE_BY_SIDE, _MOST_THREADS = 200_000, 4
"""From so many rows on a product is made by several threads: for fewer, to hand it over takes as long."""


@dataclass(frozen=True)
class Codes:
    """Vectors as rows of whole numbers, in blocks of shape (rows, dimension), and one over the length of each row."""

    blocks: tuple[NDArray[np.int8], ...]
    shrink: Vectors

    @classmethod
    def of(cls, vectors: Vectors) -> Codes:
        """Return the codes of vectors of shape (rows, dimension) and of any length."""
        largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0.0), np.float32(1e-12))
        rows = np.rint(vectors * (_GREATEST_CODE / largest))
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        return cls((rows.astype(np.int8),), (1 / np.maximum(lengths, 1)).astype(np.float32))

    @classmethod
    def joined(cls, parts: Sequence[Codes]) -> Codes:
        """Return the rows of several codes, one after the other; large blocks are shared with them."""
        blocks = tuple(block for each in parts for block in each.blocks)
        shrink = np.concatenate([each.shrink for each in parts])
        return cls((np.concatenate(blocks),) if len(shrink) < _SMALLEST_BLOCK * len(blocks) else blocks, shrink)

    def kept(self, rows: NDArray[np.bool_]) -> Codes:
        """Return the rows that a mask keeps."""
        ends = np.cumsum([len(block) for block in self.blocks])
        masks = np.split(rows, ends[:-1])
        return Codes(tuple(block[mask] for block, mask in zip(self.blocks, masks, strict=True)), self.shrink[rows])

    def cosines(self, vector: Vectors) -> Vectors:
        """Return the cosine of each row to a vector of shape (dimension,)."""
        asked = Codes.of(vector[None])
        multiply = _threads().map if len(self.shrink) >= _SIDE_BY_SIDE else map
        cosines = np.concatenate([*multiply(partial(_products, asked.blocks[0]), self.blocks)])
        cosines *= self.shrink
        cosines *= asked.shrink[0]
        return cosines


def _products(asked: NDArray[np.int8], block: NDArray[np.int8]) -> Vectors:
    if not len(block):
        return np.zeros(0, np.float32)
    products: Vectors = np.asarray(numkong.cdist(asked, block, "dot", out_dtype="float32"))[0]
    return products


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_THREADS), "runtime-memory-vectors")


def greatest(values: Vectors, count: int) -> NDArray[np.intp]:
    """Return the places of the so many greatest of some values, the greatest first; minus infinity is none.

    Of groups of values, as many as are asked for have a greatest one that is no less than the least of those: so few
    of a million values have to be sorted.
    """
    groups = len(values) // _GROUP
    least = np.finfo(np.float32).min
    if groups > count:
        maxima = values[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
        least = max(least, np.partition(maxima, groups - count)[groups - count])
    places = np.flatnonzero(values >= least)
    return places[np.argsort(-values[places], kind="stable")][:count]
