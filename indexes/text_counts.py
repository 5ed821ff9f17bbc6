"""What was looked up of one state of a text index: how many records pass a filter, and how many hold a term."""

from __future__ import annotations

from typing import NamedTuple

import tantivy

from indexes.analysis import ANALYZER_VERSION
from indexes.filters import All, Filter
from indexes.remembered import remembered

__all__ = ["COUNTS_KEPT", "FILTERS_KEPT", "LARGE", "MOST", "Known", "Seen", "TextState"]

LARGE = 20_000
"""From so many records on an index reckons where counting would take long."""

MOST = 0.5
"""A filter that this share passes is passed by most."""

COUNTS_KEPT, FILTERS_KEPT = 4_096, 64
_COUNTED, _RARE = 10_000, 200


class TextState(NamedTuple):
    """What an index has applied: of which table (its epoch), up to which version, with which analysis."""

    epoch: str
    version: int
    analyzer: int = ANALYZER_VERSION


class Seen(NamedTuple):
    """The records that pass a filter, of all, and how many of them are known to hold a term."""

    where: Filter
    records: int
    all: int
    holding: dict[str, int]

    @property
    def share(self) -> float:
        """How much of all that is."""
        return self.records / max(1, self.all)

    def reckons(self, frequency: int) -> bool:
        """Tell whether a term that so many hold of all is not counted, but takes its share: to count takes long."""
        if self.where == All():
            return self.all >= LARGE
        return self.all >= LARGE and min(frequency, self.records) > (_RARE if self.share >= MOST else _COUNTED)


class Known:
    """What was looked up of one state of an index: what passes filters, and where the last hits are."""

    def __init__(self, state: TextState | None) -> None:
        self.state = state
        self.passing: dict[Filter, int] = {}
        self.telling: dict[Filter, Filter] = {}
        self.found: tuple[tantivy.Searcher | None, dict[str, tantivy.DocAddress]] = None, {}
        self._holding: dict[Filter, dict[str, int]] = {}

    def holding(self, where: Filter) -> dict[str, int]:
        """Return how many records that pass a filter hold a term, as far as they were counted."""
        return remembered(self._holding, where, dict, most=FILTERS_KEPT)
