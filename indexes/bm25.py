"""How rare terms are, for BM25: among the records that a search may find, and as Tantivy reckons it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import tantivy

__all__ = ["TermStatistics", "idf", "reckoned_documents"]


def idf(frequency: int, records: int) -> float:
    """Return the inverse document frequency as BM25 has it; greatest for a term that no record holds."""
    held = min(frequency, records)  # of a large index the frequency also counts what is deleted and not merged away
    return math.log1p((records - held + 0.5) / (held + 0.5))


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """How many records there are, and how many hold each term of a query."""

    records: int
    frequencies: Mapping[str, int]

    def rarity(self, term: str) -> float:
        """Return a term's inverse document frequency among these records."""
        return idf(self.frequencies[term], self.records)


def reckoned_documents(searcher: tantivy.Searcher, query: tantivy.Query) -> int:
    """Return the number of documents that Tantivy reckons with, by the query of a term that some document holds.

    It is more than there are: what is deleted counts until it is merged away. Tantivy tells it in explanations only.
    """
    (_, address), *_ = searcher.search(query, 1, count=False).hits
    parts = json.loads(query.explain(searcher, address).to_json())["details"]
    told = [each for part in parts for each in part.get("details") or () if each["description"].startswith("N,")]
    return int(told[0]["value"])
