"""Retrieval test sets in one form, read by path, and the small one that ships with the project."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from runtime_memory.importers.markdown import read

__all__ = ["Dataset", "folder_datasets", "sample_datasets"]

_SAMPLE = Path(__file__).parent / "sample"


@dataclass(frozen=True)
class Dataset:
    """Documents, queries and relevance judgements (qrels).

    ``scopes`` gives the project of each document and query where every query is to be searched among its own
    project's documents only. ``foreign`` are prompts that no document answers.
    """

    name: str
    documents: Mapping[str, str]
    queries: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    scopes: Mapping[str, str] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()


def sample_datasets() -> Iterator[Dataset]:
    """Yield the data that ships with the project: notes of two projects, and memories of four conversations."""
    foreign = tuple(row["question"] for row in _rows("foreign.jsonl"))
    notes = {path.relative_to(_SAMPLE / "notes").as_posix(): path for path in sorted(_SAMPLE.glob("notes/*/*.md"))}
    questions = _rows("questions.jsonl")
    yield Dataset(
        "sample-notes",
        {id_: memory.content for id_, path in notes.items() if (memory := read(path, _SAMPLE).memory)},
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


def folder_datasets(folder: Path, names: list[str]) -> Iterator[Dataset]:
    """Yield the test sets of a folder with a ``loaders.py``, by name; all of its ``ALL`` without names."""
    loaders = _module(folder / "loaders.py")
    for name in names or loaders.ALL:
        documents, queries, qrels = getattr(loaders, name)()
        scopes = loaders.DOC_SCOPE.get(name, {}) | loaders.SCOPE.get(name, {})
        yield Dataset(name, documents, queries, qrels, scopes)


def _rows(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (_SAMPLE / name).read_text("utf-8").splitlines() if line]


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("loaders", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"there is no {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
