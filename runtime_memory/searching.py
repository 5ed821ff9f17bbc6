"""Ask both arms of an open store, and turn what they found into results."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from statistics import fmean
from typing import TypeVar

from indexes.analysis import analyze_query
from indexes.filters import All, Filter, In
from indexes.fusion import Fusion
from indexes.layout import Record
from indexes.text import TextHit, TextIndex
from indexes.vectors import VectorHit
from runtime_memory import content, recall
from runtime_memory.database import Database
from runtime_memory.embedding import Embedder
from runtime_memory.errors import InvalidInputError
from runtime_memory.lazy_embedder import LazyEmbedder
from runtime_memory.ledger import OutcomeLedger
from runtime_memory.models import Explanation, Memory, MemoryScope, SearchMode, SearchResult, StoreStats
from runtime_memory.outcomes import FAILING_SCORE, NO_EVIDENCE, outcome_score
from runtime_memory.recall import Found
from runtime_memory.records import to_memory
from runtime_memory.relevance import Gate, gate_for, rarity
from runtime_memory.small_talk import is_small_talk

__all__ = ["Searching"]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_QUERY_ENDS = 2000
_MAX_TERMS = 64
_SIDE_BY_SIDE = 200_000
_LIVE = In("archived", (False,))


@dataclass
class Searching:
    """Search one open store. ``model`` is None for keyword search; ``wait`` lets a search wait for it to load."""

    database: Database
    ledger: OutcomeLedger
    model: LazyEmbedder | None
    wait: bool
    given_fusion: Fusion | None
    clock: Callable[[], datetime]
    problem: str | None = None
    """Why the last search went without vectors, None when it had them."""

    @property
    def fusion(self) -> Fusion:
        """The weights in use: those given, else those that the store was tuned to, else the default ones."""
        weights = self.database.manifest.weights
        return self.given_fusion or (Fusion(**weights) if weights else Fusion())

    def search(self, query: object, where: Filter, limit: object, min_score: float) -> list[SearchResult]:
        """Return the best results for a query, whatever their relevance."""
        asked, wanted, floor = _checked(query), content.limit(limit), content.number(min_score, "min_score")
        found = self.find(asked, where, wanted)
        return [result for result in self._listed(found, wanted) if result.fused >= floor][:wanted]

    def recall(
        self, query: object, where: Filter, limit: object, min_score: float, everything: Filter | None
    ) -> Explanation:
        """Return what the query deserves to be told unasked, and what is left out of what ``where`` lets pass.

        With ``everything``, also what lies out of sight of the recall but passes that filter.
        """
        asked, wanted = _checked(query), content.limit(limit)
        if is_small_talk(asked):
            return Explanation(query=asked, terms=(), mode=SearchMode.NONE, threshold=0.0, results=())
        found = self.find(asked, All((where, _LIVE)), wanted)
        gate = self._gate(found.mode)
        threshold = gate.threshold(found.memories)
        listed = self._listed(found, wanted)
        results = recall.admit(listed, threshold, gate, wanted, content.number(min_score, "min_score"))
        if everything is not None:
            results += self._out_of_sight(asked, everything, wanted, {result.memory.id for result in listed})
        return Explanation(
            query=asked, terms=tuple(found.weights), mode=found.mode, threshold=threshold, results=tuple(results)
        )

    def stats(self, visible: Filter) -> StoreStats:
        """Return counts of what passes the filter, and the health of the store."""
        evidence, now, index = self.ledger.evidence(), self.clock(), self.database.index
        index.refresh()
        rows = list(index.scan(visible, ["id", "category", "project", "archived"]))
        reported = [evidence[row["id"]] for row in rows if row["id"] in evidence]
        embedder = self.model.get(wait=self.wait) if self.model else None
        vectors = embedder is not None and not self.database.model_problem(embedder) and index.has_vectors()
        return StoreStats(
            total_memories=len(rows),
            active_memories=sum(not row["archived"] for row in rows),
            avg_outcome_score=fmean([outcome_score(each, now) for each in reported] or [0.0]),
            total_uses=sum(each.uses for each in reported),
            by_category=dict(Counter(row["category"] for row in rows).most_common()),
            by_project=dict(Counter(row["project"] for row in rows if row["project"]).most_common()),
            search_mode=_mode(text=index.text.state is not None, vectors=vectors),
            embedding_model=self.database.manifest.embedding,
            pending_embeddings=index.link.ask(index.table.count_without_vectors) or 0,
            message=self._problem(embedder),
            path=str(self.database.place),
        )

    def memory(self, record: Record) -> Memory:
        """Return a record as a memory with its outcomes."""
        return self.memories([record])[0]

    def memories(self, records: Iterable[Record]) -> list[Memory]:
        """Return records as memories with their outcomes, all as of one moment."""
        evidence, now = self.ledger.evidence(), self.clock()
        return [to_memory(record, evidence.get(record["id"], NO_EVIDENCE), now=now) for record in records]

    def find(self, query: str, where: Filter, limit: int) -> Found:
        """Return what each arm finds, before any fusion."""
        index, depth = self.database.index, max(self.fusion.depth, 2 * limit)
        index.refresh()
        look_up = partial(index.read_text, lambda text: _by_text(text, query, where, depth))
        if index.text.records >= _SIDE_BY_SIDE:  # for fewer, one thread waits for the other's interpreter lock
            begun = _begun(look_up)
            vectors = self._nearest(query, where, depth)
            by_text = begun()
        else:
            by_text, vectors = look_up(), self._nearest(query, where, depth)
        text, weights, memories = by_text or ([], {}, index.table.count(where))
        return Found(
            query=query,
            mode=_mode(text=by_text is not None, vectors=vectors is not None),
            text=text,
            vectors=[(hit.id, hit.cosine) for hit in vectors or ()],
            parts={hit.id: hit.part for hit in vectors or ()},
            weights=weights,
            memories=memories,
        )

    def _nearest(self, query: str, where: Filter, depth: int) -> list[VectorHit] | None:
        """Return the nearest memories; None when there are no vectors to compare with."""
        embedder = self.model.get(wait=self.wait) if self.model else None
        if embedder is None:
            self.problem = self.model.problem if self.model else None
            return None
        if problem := self.database.model_problem(embedder):
            self.problem = problem
            return None
        try:
            vector = embedder.embed_query(query)
        except Exception as error:  # noqa: BLE001 - whatever a model raises, the words are still there to search
            _log.warning("the query could not be embedded, its words alone are searched: %s", error)
            self.problem = f"the last query could not be embedded: {error}"
            return None
        self.problem = None
        index = self.database.index
        found = index.link.ask(lambda: index.search_vectors(vector, where, depth))
        return index.held_vectors(vector, where, depth) if found is None else found

    def _listed(self, found: Found, limit: int) -> list[SearchResult]:
        """Return the candidates worth a look, as results: twice as many as asked, failing ones not counted."""
        evidence, now = self.ledger.evidence(), self.clock()
        ids = {id_ for id_, _ in (*found.text, *found.vectors)}
        outcomes = {id_: outcome_score(evidence[id_], now) for id_ in ids if id_ in evidence}
        failing = sum(score <= FAILING_SCORE for score in outcomes.values())
        fused, ranked = recall.rank(found, outcomes, self.fusion, limit + failing)
        pool = ranked[: 2 * (limit + failing)]
        records = self.database.index.get([id_ for id_, _ in pool])
        memories = {id_: to_memory(r, evidence.get(id_, NO_EVIDENCE), now=now) for id_, r in records.items()}
        passages = self._passages(found.parts, memories)
        listed = recall.results(found, pool, fused, memories, passages=passages, gate=self._gate(found.mode))
        return recall.newer_first(listed)

    def _passages(self, parts: Mapping[str, int], memories: Mapping[str, Memory]) -> dict[str, str]:
        """Return the passages that were found beyond the beginning of a long memory."""
        embedder = self.model.get(wait=False) if self.model else None
        if embedder is None:
            return {}
        deep = {id_: part for id_, part in parts.items() if part and id_ in memories}
        cut = {id_: embedder.passages(memories[id_].content) for id_ in deep}
        return {id_: cut[id_][part] for id_, part in deep.items() if part < len(cut[id_])}

    def _gate(self, mode: SearchMode) -> Gate:
        by_text = mode in (SearchMode.TEXT, SearchMode.NONE)
        return gate_for(None if by_text else self.database.manifest.embedding)

    def _problem(self, embedder: Embedder | None) -> str | None:
        if self.database.index.link.is_down:
            return (
                f"{self.database.place} cannot be reached: this is what this machine last saw of it, and nothing can "
                "be written until it is back"
            )
        if self.model is None:
            return "search goes by keywords only, as RUNTIME_MEMORY_EMBEDDING is 'null'"
        if embedder is None:
            return self.model.problem or "the model is not loaded yet; search goes by keywords until then"
        return self.database.model_problem(embedder) or self.problem

    def _out_of_sight(self, query: str, where: Filter, limit: int, listed: Collection[str]) -> list[SearchResult]:
        others = [result for result in self.search(query, where, limit, 0.0) if result.memory.id not in listed]
        return [replace(result, dropped=self._hidden(result.memory, where)) for result in others]

    def _hidden(self, memory: Memory, visible: Filter) -> str:
        if memory.archived:
            successors = self.database.index.scan(All((In("supersedes", (memory.id,)), visible)), ["id"])
            successor = next(successors, None)
            return f"superseded by {successor['id']}" if successor else "archived"
        if memory.scope is MemoryScope.SESSION:
            return f"of another session: {memory.session}"
        if memory.scope is MemoryScope.PROJECT:
            return f"in another project: {memory.project}"
        return "less relevant than what is listed"


def _checked(query: object) -> str:
    if not isinstance(query, str):
        raise InvalidInputError(f"a query must be text, not {type(query).__name__}")
    return content.mend(query)


def _ends(query: str) -> str:
    """Return the beginning and the end of a long prompt, where its question stands."""
    return query if len(query) <= 2 * _QUERY_ENDS else f"{query[:_QUERY_ENDS]} {query[-_QUERY_ENDS:]}"


def _by_text(index: TextIndex, query: str, where: Filter, depth: int) -> tuple[list[TextHit], dict[str, float], int]:
    """Return the hits, the query's telling terms with their rarity, and the number of memories that are seen."""
    terms = _affordable(index, analyze_query(_ends(query)))
    statistics = index.statistics(terms, where)
    telling = [term for term, weight in terms.items() if weight == 1.0]
    weights = {term: rarity(statistics.frequencies[term], statistics.records) for term in telling}
    return index.search(terms, statistics, where, depth), weights, statistics.records


def _begun(call: Callable[[], _T]) -> Callable[[], _T]:
    """Begin a call on a thread of its own, and return what waits for it: that returns or raises what the call does."""
    answers: list[_T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(call())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            errors.append(error)

    def finish() -> _T:
        thread.join()
        if errors:
            raise errors[0]
        return answers[0]

    thread = threading.Thread(target=work, name="runtime-memory-text", daemon=True)
    thread.start()
    return finish


def _affordable(index: TextIndex, terms: dict[str, float]) -> dict[str, float]:
    return terms if len(terms) <= _MAX_TERMS else index.rarest(terms, _MAX_TERMS)


def _mode(*, text: bool, vectors: bool) -> SearchMode:
    if text and vectors:
        return SearchMode.HYBRID
    return SearchMode.TEXT if text else SearchMode.VECTOR if vectors else SearchMode.NONE
