"""Read which memories answered which question: from a trace's verdicts, and from a file of questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from runtime_memory.errors import InvalidInputError
from runtime_memory.models import Outcome
from runtime_memory.outcomes import fold, outcome_score
from runtime_memory.tuning import Case

if TYPE_CHECKING:
    from runtime_memory.store import MemoryStore

__all__ = ["Judged", "from_questions", "from_trace", "gather"]

_GAINS = {Outcome.WORKED: 1.0, Outcome.PARTIAL: 0.25, Outcome.FAILED: 0.0}


@dataclass(frozen=True, slots=True)
class Judged:
    """A question with the memories that answer it and how well, 0 to 1 (its qrels).

    ``at`` is when it was asked, None for one that was written down: only outcomes from before count for its ranking, or
    a verdict would foretell itself.
    """

    query: str
    gains: Mapping[str, float]
    project: str | None = None
    at: datetime | None = None


class _Recall(BaseModel):
    event: str
    ts: AwareDatetime
    turn_id: str
    query: str
    project: str | None = None


class _Verdict(BaseModel):
    event: str
    turn_id: str
    outcome: Outcome
    memory_ids: list[str]
    origin: str = "tool"


class _Question(BaseModel):
    query: str
    ids: Annotated[list[str], Field(min_length=1)]
    project: str | None = None


def from_trace(lines: Iterable[str | bytes]) -> list[Judged]:
    """Return the questions of a trace with a verdict that names memories, of which at least one helped.

    A verdict that names none is left out: it does not say which memory it is about. So is what is no record.
    """
    recalls: dict[str, _Recall] = {}
    gains: dict[str, dict[str, float]] = {}
    for record in _records(lines):
        try:
            if record.get("event") == "recall":
                recall = _Recall.model_validate(record)
                recalls[recall.turn_id] = recall
            elif record.get("event") == "outcome":
                verdict = _Verdict.model_validate(record)
                if verdict.origin == "tool":
                    given = gains.setdefault(verdict.turn_id, {})
                    given |= dict.fromkeys(verdict.memory_ids, _GAINS[verdict.outcome])
        except ValidationError:
            continue
    return [
        Judged(recall.query, gains[turn], recall.project or None, recall.ts)
        for turn, recall in recalls.items()
        if any(gains.get(turn, {}).values())
    ]


def from_questions(lines: Iterable[str | bytes]) -> list[Judged]:
    """Return the questions of a file: JSON Lines with ``query``, ``ids`` and, where it has one, ``project``.

    Raises InvalidInputError that names the line.
    """
    judged = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            asked = _Question.model_validate_json(line)
        except ValidationError as error:
            example = '{"query": "which port?", "ids": ["0192f3c4-…"]}'
            problem = error.errors()[0]["msg"]
            raise InvalidInputError(f"line {number} of the questions: {problem}; a line is {example}") from error
        judged.append(Judged(asked.query, dict.fromkeys(asked.ids, 1.0), asked.project or None))
    return judged


def gather(store: MemoryStore, judged: Iterable[Judged], now: datetime) -> list[Case]:
    """Return what the store finds for judged questions; those whose memories are all gone are left out."""
    cases = []
    for each in judged:
        there = {memory.id for memory in store.memories(ids=list(each.gains)) if not memory.archived}
        gains = {id_: gain for id_, gain in each.gains.items() if id_ in there}
        if not any(gains.values()):
            continue
        found = store.candidates(each.query, project=each.project)
        ids = {id_ for id_, _ in (*found.text, *found.vectors)}
        asked = each.at or now
        earlier = fold((event for event in store.outcomes(list(ids)) if event.at < asked), {})
        outcomes = {id_: outcome_score(evidence, asked) for id_, evidence in earlier.items()}
        cases.append(Case(found, outcomes, gains))
    return cases


def _records(lines: Iterable[str | bytes]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record
