"""What a store should hold after a sequence of operations: a dict of plain values by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["Entry", "Model", "added", "entries", "imported", "twin"]

_WORKED = {"worked": 1.0, "partial": 4 / 19, "failed": 0.0}
_FAILED = {"worked": 0.0, "partial": 0.0, "failed": 12 / 7}


@dataclass(frozen=True)
class Entry:
    """A memory; ``reports`` are the outcomes reported of it, in any order."""

    content: str
    archived: bool = False
    tags: tuple[str, ...] = ()
    supersedes: str | None = None
    reports: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """The outcome score of reports of the same day."""
        worked = sum(_WORKED[report] for report in self.reports)
        failed = sum(_FAILED[report] for report in self.reports)
        return (worked - failed) / (worked + failed + 4)


Model = dict[str, Entry]


def twin(model: Model, content: str) -> str | None:
    """Return the id of the memory that says this; None where there is none."""
    return next((id_ for id_, entry in model.items() if entry.content == content), None)


def added(model: Model, content: str, id_: str, supersedes: str | None = None) -> Model:
    """Return the model after an addition that gave a memory this id."""
    kept = model.get(id_, Entry(content))
    after = {**model, id_: replace(kept, archived=False)}
    if supersedes is None or supersedes == id_:
        return after
    after[supersedes] = replace(after[supersedes], archived=True)
    after[id_] = replace(after[id_], supersedes=supersedes)
    return after


def imported(model: Model, id_: str, content: str, tags: tuple[str, ...], *, newer: bool) -> Model:
    """Return the model after a memory of another store came, which has an id and was updated before or after."""
    same = twin(model, content)
    if id_ in model:
        if same not in (None, id_) or not newer:
            return model
        return {**model, id_: Entry(content, False, tags, None, model[id_].reports)}
    if same is not None:
        return {**model, same: replace(model[same], archived=False)}
    return {**model, id_: Entry(content, False, tags)}


def entries(memories: list[dict[str, Any]], model: Mapping[str, Entry]) -> Model:
    """Return listed memories as a model; the reports are those of the model where they amount to the same."""
    return {
        memory["id"]: Entry(
            memory["content"],
            memory["archived"],
            tuple(memory["tags"]),
            memory["supersedes"],
            _reports(memory, model.get(memory["id"])),
        )
        for memory in memories
    }


def _reports(memory: dict[str, Any], expected: Entry | None) -> tuple[str, ...]:
    reports = expected.reports if expected else ()
    same = memory["uses"] == len(reports) and abs(memory["outcome_score"] - Entry("", reports=reports).score) < 0.01
    return reports if same else (f"{memory['uses']} reports with the score {memory['outcome_score']}",)
