"""Retrieval test sets in one form, read by path, and the small one that ships with the project."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from runtime_memory.errors import InvalidInputError

__all__ = ["Dataset", "folder_datasets", "sample_datasets", "sampled"]

_SAMPLE = Path(__file__).parent / "sample"


@dataclass(frozen=True)
class Dataset:
    """Documents, queries and relevance judgements (qrels).

    ``scopes`` gives the project of each document and query where every query is to be searched among its own
    project's documents only. ``sessions`` gives the session of a document that is one turn of it, and
    ``haystacks`` the sessions that a query brought into the collection. ``foreign`` are prompts that no document
    answers. Sets of one ``family`` share their texts, and are held out together.
    """

    name: str
    documents: Mapping[str, str]
    queries: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    scopes: Mapping[str, str] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    sessions: Mapping[str, str] = field(default_factory=dict)
    haystacks: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """Return the beginning of the name: ``longmemeval`` for ``longmemeval-haystack``."""
        return self.name.partition("-")[0]

    @property
    def fingerprint(self) -> str:
        """Return a hash over everything that is searched, asked and judged."""
        digest = hashlib.sha256()
        for part in (self.documents, self.queries, self.qrels, self.scopes, self.sessions, self.foreign):
            digest.update(json.dumps(part, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace"))
        return digest.hexdigest()[:16]


def sample_datasets() -> Iterator[Dataset]:
    """Yield the data that ships with the project: notes of two projects, and memories of four conversations."""
    foreign = tuple(row["question"] for row in _rows("foreign.jsonl"))
    notes = {path.relative_to(_SAMPLE / "notes").as_posix(): path for path in sorted(_SAMPLE.glob("notes/*/*.md"))}
    questions = _rows("questions.jsonl")
    yield Dataset(
        "sample-notes",
        {id_: _note(path.read_text("utf-8")) for id_, path in notes.items()},
        {row["id"]: row["question"] for row in questions},
        {row["id"]: dict.fromkeys(row["relevant"], 1) for row in questions},
        {id_: id_.split("/")[0] for id_ in notes} | {row["id"]: row["project"] for row in questions},
        foreign,
    )
    memories, questions = _rows("conversations.jsonl"), _rows("conversation_questions.jsonl")
    yield Dataset(
        "sample-conversations",
        {row["id"]: row["text"] for row in memories},
        {row["id"]: row["question"] for row in questions},
        {row["id"]: dict.fromkeys(row["relevant"], 1) for row in questions},
        {row["id"]: row["scope"] for row in (*memories, *questions)},
        foreign,
    )


def folder_datasets(path: Path, names: list[str]) -> Iterator[Dataset]:
    """Yield the test sets found at a path (a file, or a folder of them) by name; all of them without names.

    Raises InvalidInputError where there is none, or none of a name.
    """
    from benchmarks.readers import found

    available = dict(found(path))
    if unknown := set(names) - available.keys():
        raise InvalidInputError(f"{path} has no data set {sorted(unknown)}; it has {sorted(available)}")
    if not available:
        raise InvalidInputError(
            f"{path} holds no data set that can be read: docs/benchmarks.md lists the files that are known"
        )
    for name in names or available:
        yield available[name]()


def sampled(dataset: Dataset, limit: int | None, seed: int) -> Dataset:
    """Return a data set with at most so many judged queries, drawn at random.

    All documents stay, except those of projects that are not asked any more, and of sessions that no query which is
    left has brought.
    """
    if limit is None or limit >= len(dataset.qrels):
        return dataset
    kept = sorted(random.Random(seed).sample(sorted(dataset.qrels), limit))
    asked = {dataset.scopes.get(query) for query in kept}
    brought = set().union(*(dataset.haystacks.get(query, ()) for query in kept))
    documents = {
        id_: text
        for id_, text in dataset.documents.items()
        if dataset.scopes.get(id_) in asked and (not dataset.haystacks or dataset.sessions[id_] in brought)
    }
    return replace(dataset, documents=documents, qrels={query: dataset.qrels[query] for query in kept})


def _note(text: str) -> str:
    """Return a sample note as one memory: its title and its text."""
    _, front, body = text.split("---\n", 2)
    return f"{yaml.safe_load(front)['title']}\n\n{body.strip()}"


def _rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (_SAMPLE / name).read_text("utf-8").splitlines() if line]
