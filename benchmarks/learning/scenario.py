"""Build the test: a store of true memories and their rivals, and what its arms find for every question.

What the arms find does not depend on outcomes. So the store is asked once a question, and sessions are then simulated
on arrays, by thousands.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.datasets import Dataset
from benchmarks.learning.rivals import Vocabulary, contradicted, cue
from indexes.fusion import Fusion, fuse
from runtime_memory import MemoryStore, NewMemory, SearchResult, Settings
from runtime_memory.embedding import Embedder
from runtime_memory.recall import contradict, newer_first, results
from runtime_memory.relevance import Gate, gate_for

__all__ = ["NOW", "Question", "Scenario", "Topic", "World", "build", "filled", "world"]

DEPTH = 64
"""Candidates kept a question, best first: recall looks at 16, and at one more for each that is failing."""
PAIRS = 12
_NEAR = 40
NOW = datetime(2026, 6, 1, tzinfo=UTC)
_LEAST_TOPICS = 50
_CUES = 3
_MOST_UNTOUCHED = 300


@dataclass(frozen=True)
class Topic:
    """A true memory and the rivals that say it wrong: ids of documents."""

    truth: str
    rivals: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """A question about topics (``about``, ids of their truths), or about memories that have no rival.

    ``human`` tells that the data set has it; only such questions are ever held out.
    """

    text: str
    scope: str | None
    relevant: frozenset[str]
    about: tuple[str, ...]
    human: bool


@dataclass(frozen=True)
class World:
    """Documents with their times of writing, topics and questions."""

    name: str
    documents: Mapping[str, tuple[str, str | None, datetime]]
    topics: Sequence[Topic]
    questions: Sequence[Question]


@dataclass(frozen=True)
class Scenario:
    """A world as arrays: Q questions, K candidates each (best first, -1 where there are fewer), T topics.

    ``about`` (Q, T) is true for the topics of a question. ``role`` (Q, K) tells of each candidate whether it is a
    right memory of the question (1), a rival of one (-1) or neither (0). ``topic_of`` gives a document's topic, -1 for
    none. ``newer`` (Q, PAIRS, 2) are candidates of which the first corrects the second where outcomes do not object.
    ``contrary`` (Q, PAIRS, 2) are candidates that contradict each other.
    ``found`` (Q, D) tells which memories either arm found at all.
    """

    name: str
    world: World
    documents: Sequence[str]
    candidates: NDArray[np.intp]
    fused: NDArray[np.float64]
    role: NDArray[np.int8]
    about: NDArray[np.bool_]
    human: NDArray[np.bool_]
    topic_of: NDArray[np.intp]
    newer: NDArray[np.intp]
    contrary: NDArray[np.intp]
    found: NDArray[np.float32]

    @property
    def untouched(self) -> NDArray[np.bool_]:
        """Questions about no topic."""
        return ~self.about.any(axis=1)


def world(dataset: Dataset, seed: int, limit: int | None = None) -> World:
    """Return a data set's documents with rivals, half of them wrong at the same time, half of them outdated.

    Topics are the memories of which the data has at least two questions. Where these are few, they are a random half of
    the judged memories, and questions made of their words stand in for the second one. ``limit`` bounds the topics.
    """
    rng = random.Random(seed)
    asked: dict[str, list[str]] = {}
    for query, relevant in dataset.qrels.items():
        for document in relevant:
            asked.setdefault(document, []).append(query)
    truths = [document for document, queries in asked.items() if len(queries) >= 2]
    cued = len(truths) < _LEAST_TOPICS or len(truths) > 0.6 * len(asked)
    if cued:
        truths = rng.sample(sorted(asked), len(asked) // 2)
    truths = sorted(truths if limit is None else rng.sample(sorted(truths), min(limit, len(truths))))
    documents = {
        id_: (text, dataset.scopes.get(id_), NOW - timedelta(days=30) + timedelta(minutes=place % 10_000))
        for place, (id_, text) in enumerate(dataset.documents.items())
    }
    topics = list(_topics(truths, documents, rng))
    known = {topic.truth for topic in topics}
    questions = [
        Question(
            dataset.queries[query],
            dataset.scopes.get(query),
            frozenset(relevant),
            tuple(document for document in relevant if document in known),
            human=True,
        )
        for query, relevant in dataset.qrels.items()
    ]
    aside = [question for question in questions if not question.about]
    if len(aside) > _MOST_UNTOUCHED:
        spared = set(rng.sample(range(len(aside)), _MOST_UNTOUCHED))
        questions = [q for q in questions if q.about] + [q for n, q in enumerate(aside) if n in spared]
    if cued:
        questions += [_cued(topic.truth, documents, rng) for topic in topics for _ in range(_CUES)]
    return World(dataset.name, documents, topics, questions)


def _topics(
    truths: Sequence[str], documents: dict[str, tuple[str, str | None, datetime]], rng: random.Random
) -> Iterator[Topic]:
    """Yield topics, and add their rivals to the documents."""
    texts: dict[str | None, list[str]] = {}
    for text, scope, _ in documents.values():
        texts.setdefault(scope, []).append(text)
    vocabularies = {scope: Vocabulary(found) for scope, found in texts.items()}
    taken = {text for text, _, _ in documents.values()}
    for place, truth in enumerate(truths):
        text, scope, written = documents[truth]
        wrong = contradicted(text, vocabularies[scope], rng)
        if wrong in taken:
            continue
        taken.add(wrong)
        outdated = place % 2 == 0
        age = timedelta(days=-60 if outdated else rng.choice((-1, 1)))
        name = f"{truth}~{'outdated' if outdated else 'wrong'}"
        documents[name] = (wrong, scope, written + age)
        yield Topic(truth, (name,))


def _cued(truth: str, documents: Mapping[str, tuple[str, str | None, datetime]], rng: random.Random) -> Question:
    text, scope, _ = documents[truth]
    return Question(cue(text, rng), scope, frozenset([truth]), (truth,), human=False)


def filled(made: World, store: MemoryStore) -> dict[str, str]:
    """Fill a store with a world's documents; return of each document the id of its memory."""
    order = sorted(made.documents, key=lambda id_: (made.documents[id_][2], id_))
    memories = [
        NewMemory(text, project=scope, created_at=written)
        for text, scope, written in (made.documents[id_] for id_ in order)
    ]
    stored = dict(zip(order, (memory.id for memory in store.add_many(memories)), strict=True))
    store.optimize()
    return stored


def build(made: World, embedder: Embedder, fusion: Fusion) -> Scenario:
    """Return the arrays of a world: what the store's arms find for its questions, fused."""
    with (
        tempfile.TemporaryDirectory() as folder,
        MemoryStore(Settings(db=folder), embedder=embedder, fusion=fusion) as store,
    ):
        return _arrays(made, store, filled(made, store), gate_for(embedder.identity), fusion)


def _arrays(made: World, store: MemoryStore, stored: Mapping[str, str], gate: Gate, fusion: Fusion) -> Scenario:
    kept = {memory.id: memory for memory in store.list()}
    place = {id_: number for number, id_ in enumerate(sorted(kept))}
    number_of = {document: place[id_] for document, id_ in stored.items()}
    topic_number = {topic.truth: number for number, topic in enumerate(made.topics)}
    rivals = {topic.truth: {number_of[rival] for rival in topic.rivals} for topic in made.topics}
    topic_of = np.full(len(place), -1)
    for topic in made.topics:
        topic_of[[number_of[topic.truth], *rivals[topic.truth]]] = topic_number[topic.truth]
    count = len(made.questions)
    candidates, scores = np.full((count, DEPTH), -1), np.full((count, DEPTH), -np.inf)
    role = np.zeros((count, DEPTH), np.int8)
    newer, contrary = np.full((count, PAIRS, 2), -1), np.full((count, PAIRS, 2), -1)
    about = np.zeros((count, len(made.topics)), bool)
    seen = np.zeros((count, len(place)), np.float32)
    for row, question in enumerate(track(made.questions, description=f"{made.name}: asking")):
        found = store.candidates(question.text, project=question.scope)
        fused = fuse(found.text, found.vectors, fusion)
        ranked = sorted(fused.items(), key=lambda hit: (hit[1], hit[0]), reverse=True)[:DEPTH]
        numbers = [place[id_] for id_, _ in ranked]
        seen[row, [place[id_] for id_ in fused]] = 1
        candidates[row, : len(ranked)] = numbers
        scores[row, : len(ranked)] = [score for _, score in ranked]
        right = {number_of[document] for document in question.relevant}
        wrong = {rival for truth in question.about for rival in rivals[truth]}
        role[row, : len(ranked)] = [(number in right) - (number in wrong) for number in numbers]
        about[row, [topic_number[truth] for truth in question.about]] = True
        listed = results(found, ranked[:_NEAR], fused, kept, passages={}, gate=gate)
        for into, pairs in ((newer, _corrections(listed)), (contrary, _contradictions(listed))):
            into[row, : len(pairs[:PAIRS])] = np.array(pairs[:PAIRS]).reshape(-1, 2)
    human = np.array([question.human for question in made.questions])
    names = {number: document for document, number in number_of.items()}
    ids = [names[number] for number in range(len(place))]
    return Scenario(made.name, made, ids, candidates, scores, role, about, human, topic_of, newer, contrary, seen)


def _corrections(listed: Sequence[SearchResult]) -> list[tuple[int, int]]:
    """Return places of results of which the first is put before the second where no outcome objects."""
    return [
        (late, early)
        for early, older in enumerate(listed)
        for late, newer in enumerate(listed)
        if newer.memory.created_at > older.memory.created_at and newer_first([older, newer])[0] is newer
    ]


def _contradictions(listed: Sequence[SearchResult]) -> list[tuple[int, int]]:
    texts = [result.memory.content for result in listed]
    return [(one, other) for other in range(len(texts)) for one in range(other) if contradict(texts[one], texts[other])]
