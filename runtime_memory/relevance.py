"""Decide whether a question deserves any memory at all, by evidence rather than by rank.

A fused rank is high for the best of nothing. The evidence for a memory is ``0.7 * cosine + 0.3 * coverage``, where
coverage is the share of the question's terms that it holds, each weighted by its rarity among the memories that the
question can see. A question is answered when its best memory reaches a threshold, and then every memory is recalled
whose evidence comes near it. The best of many memories looks relevant by chance more often than the best of few, so
the threshold grows with the logarithm of their number.

The numbers of a model are measured on the sample data that ships with the project (``python -m benchmarks gate``)
and kept in ``calibration.json``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import regex

from indexes.bm25 import idf

__all__ = ["Gate", "coverage", "gate_for", "is_calibrated", "latin_share", "rarity"]

_REFERENCE_SIZE = 60
_LETTER = regex.compile(r"\p{L}")
_LATIN = regex.compile(r"\p{Latin}")


@dataclass(frozen=True, slots=True)
class Gate:
    """The evidence that automatic recall asks for, of one embedding model or of text alone.

    ``base`` is the threshold for 60 memories, ``growth`` what each e-fold more adds, between ``least`` and ``most``
    memories. Once a question is answered, a memory needs ``follow`` times the threshold. A model that knows only the
    Latin script finds all texts in another one alike: ``other_scripts`` is what their cosines are worth then.
    """

    cosine_share: float
    base: float
    growth: float
    follow: float = 0.75
    least: int = 5
    most: int = 1000
    other_scripts: float = 1.0

    def relevance(self, cosine: float | None, covered: float, latin: float = 1.0) -> float:
        """Return the evidence for a memory; a cosine that is not known counts as 0.

        ``latin`` is the share of the question's letters that are Latin.
        """
        worth = latin + (1 - latin) * self.other_scripts
        return self.cosine_share * worth * max(cosine or 0.0, 0.0) + (1 - self.cosine_share) * covered

    def threshold(self, memories: int) -> float:
        """Return the evidence that the best memory needs among this many."""
        size = min(max(memories, self.least), self.most)
        return self.base + self.growth * math.log(size / _REFERENCE_SIZE)


TEXT_GATE = Gate(cosine_share=0.0, base=0.42, growth=0.0)
"""For recall without vectors."""


def gate_for(identity: str | None) -> Gate:
    """Return the gate of an embedding model, by its identity; None for text alone."""
    if identity is None:
        return TEXT_GATE
    gates = _calibrated()
    return gates.get(identity) or gates["default"]


def is_calibrated(identity: str) -> bool:
    """Tell whether an embedding model has a gate of its own; another gets one that suits most."""
    return identity in _calibrated()


@cache
def _calibrated() -> Mapping[str, Gate]:
    stored = json.loads(resources.files("runtime_memory").joinpath("calibration.json").read_text("utf-8"))
    return {identity: Gate(**values) for identity, values in stored.items()}


def rarity(frequency: int, memories: int) -> float:
    """Return how telling a term is; fewer than 60 memories count as 60: what a handful lacks is not rare for that."""
    return idf(frequency, max(memories, _REFERENCE_SIZE))


def latin_share(question: str) -> float:
    """Return the share of a text's letters that are Latin; 1 for a text without letters."""
    letters = len(_LETTER.findall(question))
    return len(_LATIN.findall(question)) / letters if letters else 1.0


def coverage(weights: Mapping[str, float], terms: Collection[str]) -> float:
    """Return the share of the question's weight that a memory's terms hold; 0 for a question without terms."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in terms) / total if total else 0.0
