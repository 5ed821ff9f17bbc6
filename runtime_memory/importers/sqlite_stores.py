"""Read the SQLite stores of Runtime Memory 3 and 4: every memory, with its id, dates and outcome record.

Version 3 kept one score that each report moved by a step, 4 decayed counts of reports and their date (its schema 3).
How often a memory was retrieved, which both counted too, is no evidence and is left behind.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runtime_memory.importers import Item
from runtime_memory.importers.fields import category, tag_list
from runtime_memory.importers.files import below, origin
from runtime_memory.importers.sqlite_files import SUFFIXES, columns, has_columns, opened, why
from runtime_memory.importers.text_files import fault, guarded
from runtime_memory.importers.timestamps import noticed_moment
from runtime_memory.models import MemoryScope, MemorySource, NewMemory, Outcome
from runtime_memory.outcomes import OutcomeEvent

__all__ = ["NAME", "detects", "find", "read", "reports_of_counts", "reports_of_score"]

NAME = "runtime-memory"

_NEEDED = frozenset({"id", "content", "category", "outcome_score", "created_at", "archived"})
_COUNTS = frozenset({"worked", "failed", "evidence_at"})
_READ = (
    *("id", "content", "category", "outcome_score", "confidence", "importance", "project", "scope", "source", "tags"),
    *("entities", "supersedes", "archived", "created_at", "updated_at", "metadata", "worked", "failed", "evidence_at"),
)
_DEFAULTS = {"confidence": 1.0, "importance": 0.5}
_STEPS = {Outcome.WORKED: 0.2, Outcome.FAILED: 0.3}
_FEWEST = 1e-6


def detects(path: Path) -> bool:
    """Tell whether a file is such a store."""
    return has_columns(path, "memories", _NEEDED)


def find(path: Path) -> Iterator[Path | Item]:
    """Yield the stores of a folder, and what is passed over; a file yields itself."""
    return below(path, lambda file: file.suffix.lower() in SUFFIXES and detects(file))


@guarded
def read(file: Path, root: Path) -> Iterator[Item]:  # noqa: ARG001
    """Yield an item a memory, as of one moment; the store may be in use.

    ``supersedes`` may name a memory that comes later, or is gone.
    """
    where = origin(file)
    try:
        with opened(file) as connection:
            there = columns(connection, "memories")
            if missing := _NEEDED - there:
                yield fault(where, f"it is no store of Runtime Memory 3 or 4 (no {', '.join(sorted(missing))})")
                return
            names = ", ".join(name for name in _READ if name in there)
            empty = True
            for row in connection.execute(f"SELECT {names} FROM memories ORDER BY rowid"):  # noqa: S608 - our names
                empty = False
                yield _item(dict(row), where, counted=there >= _COUNTS)
            if empty:
                yield Item(where, skipped="empty")
    except sqlite3.Error as error:
        yield fault(where, why(error))


def reports_of_score(score: float) -> Iterator[tuple[Outcome, float]]:
    """Yield the reports that a score of version 3 stands for: so many of one kind would have moved it there.

    It moved by +0.2 and -0.3 and was held between -1 and 1: how a mixed record came about, and what went beyond, was
    not kept. Version 4 reads these scores in the same way when it takes over a store.
    """
    kind = Outcome.WORKED if score > 0 else Outcome.FAILED
    if count := round(abs(score) / _STEPS[kind], 6):
        yield kind, count


def reports_of_counts(worked: float, failed: float) -> Iterator[tuple[Outcome, float]]:
    """Yield the counts of version 4 as reports: one counted there is one here, and they fade alike."""
    for outcome, count in ((Outcome.WORKED, worked), (Outcome.FAILED, failed)):
        if count > _FEWEST:
            yield outcome, count


def _item(row: Mapping[str, Any], where: str, *, counted: bool) -> Item:
    id_ = row["id"]
    place = f"{where}#id={id_}"
    if not isinstance(id_, str) or not isinstance(row["content"], str) or not row["content"].strip():
        return fault(place, "it has no text or no id")
    notices: list[str] = []
    created = noticed_moment(row["created_at"] or None, "created_at", notices)
    updated = noticed_moment(row.get("updated_at") or None, "updated_at", notices) or created
    kind, leftover = category(row["category"])
    project = row.get("project") or None
    scope = _scope(row.get("scope"), project)
    memory = NewMemory(
        row["content"],
        id=id_,
        category=kind,
        scope=scope,
        project=project,
        source=_source(row.get("source")),
        tags=[*tag_list(_json(row, "tags", notices)), *leftover],
        metadata=_metadata(row, scope, notices),
        created_at=created,
        updated_at=updated,
        archived=bool(row["archived"]),
        supersedes=row.get("supersedes") or None,
        origin=place,
    )
    if counted:
        reports = reports_of_counts(_number(row["worked"]), _number(row["failed"]))
        at = noticed_moment(row["evidence_at"] or None, "evidence_at", notices) or updated
    else:
        reports, at = reports_of_score(_number(row["outcome_score"])), updated
    outcomes = tuple(OutcomeEvent(id_, outcome, weight, at, origin=NAME) for outcome, weight in reports if at)
    return Item(place, memory, notice="; ".join(notices) or None, outcomes=outcomes)


def _metadata(row: Mapping[str, Any], scope: MemoryScope | None, notices: list[str]) -> dict[str, Any]:
    held = _json(row, "metadata", notices)
    metadata = dict(held) if isinstance(held, dict) else {}
    if entities := _json(row, "entities", notices):
        metadata.setdefault("entities", entities)
    for name, default in _DEFAULTS.items():
        if row.get(name) not in (None, default):
            metadata.setdefault(name, row[name])
    if row.get("scope") != scope and row.get("scope"):
        metadata.setdefault("scope", row["scope"])
    return metadata


def _scope(given: Any, project: str | None) -> MemoryScope | None:
    """Return the scope; None, for the usual one, where it was without the project or session that it needs.

    A scope of 'project' without a project was seen everywhere. Which session one belonged to was not kept.
    """
    if given == MemoryScope.GLOBAL or (given == MemoryScope.PROJECT and project):
        return MemoryScope(given)
    return None


def _source(given: Any) -> MemorySource:
    try:
        return MemorySource(given)
    except ValueError:
        return MemorySource.IMPORTED


def _json(row: Mapping[str, Any], name: str, notices: list[str]) -> Any:
    given = row.get(name)
    if not given:
        return None
    try:
        return json.loads(given, parse_constant=lambda _: None)
    except (ValueError, TypeError, RecursionError):
        notices.append(f"its {name} could not be read")
        return None


def _number(given: Any) -> float:
    return float(given) if isinstance(given, int | float) and math.isfinite(given) else 0.0
