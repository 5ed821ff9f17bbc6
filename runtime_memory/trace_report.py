"""Sum up a trace: what was recalled, whether it helped, and what it cost. Pure: others read the file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter, ValidationError

from runtime_memory.models import Outcome

__all__ = ["Category", "TraceReport", "Use", "summarize"]

UNKNOWN = "unknown"
"""The category of a memory that no recall of the trace shows."""

_MOST_USED = 10


class _Retrieved(BaseModel):
    memory_id: str
    category: str


class _Record(BaseModel):
    ts: AwareDatetime
    session_id: str | None = None


class _Recall(_Record):
    event: Literal["recall"]
    latency_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    search_mode: str = UNKNOWN
    retrieved: list[_Retrieved]
    characters: int | None = None


class _Write(_Record):
    event: Literal["write"]
    kind: str = UNKNOWN
    memory_ids: list[str]


class _Verdict(_Record):
    event: Literal["outcome"]
    outcome: Outcome
    memory_ids: list[str]
    origin: str = "tool"


class _Error(_Record):
    event: Literal["error"]
    kind: str


_RECORD: TypeAdapter[_Recall | _Write | _Verdict | _Error] = TypeAdapter(
    Annotated[_Recall | _Write | _Verdict | _Error, Field(discriminator="event")]
)


@dataclass
class Category:
    """What became of the memories of one category: each verdict counts once for each memory that it credits.

    ``named`` verdicts name the memory, ``unattributed`` ones fall on all that a turn recalled.
    """

    recalled: int = 0
    worked: int = 0
    failed: int = 0
    partial: int = 0
    named: int = 0
    unattributed: int = 0

    @property
    def hit_rate(self) -> float | None:
        """The share of the verdicts that say it worked, a partial one counted as half; None without a verdict."""
        verdicts = self.worked + self.failed + self.partial
        return (self.worked + self.partial / 2) / verdicts if verdicts else None

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return vars(self) | {"hit_rate": _rounded(self.hit_rate)}


@dataclass
class Use:
    """How often one memory was recalled, and what was said of it."""

    category: str = UNKNOWN
    recalled: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {"category": self.category, "recalled": self.recalled, **{o.value: self.outcomes[o] for o in Outcome}}


@dataclass
class TraceReport:
    """The sums of a trace. A recall is ``answered`` when it returned a memory."""

    first: datetime | None = None
    last: datetime | None = None
    sessions: set[str] = field(default_factory=set)
    recalls: int = 0
    answered: int = 0
    retrieved: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    characters: int | None = None
    writes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    uses: dict[str, Use] = field(default_factory=lambda: defaultdict(Use))
    verdicts: list[tuple[str, str, str]] = field(default_factory=list)
    unreadable: int = 0

    @property
    def categories(self) -> dict[str, Category]:
        """What became of the memories, by category, the most recalled first."""
        found: dict[str, Category] = defaultdict(Category)
        for use in self.uses.values():
            found[use.category].recalled += use.recalled
        for memory_id, outcome, origin in self.verdicts:
            category = found[self.uses[memory_id].category]
            kind = "unattributed" if origin == "auto" else "named"
            setattr(category, outcome, getattr(category, outcome) + 1)
            setattr(category, kind, getattr(category, kind) + 1)
        return dict(sorted(found.items(), key=lambda item: (-item[1].recalled, item[0])))

    @property
    def most_used(self) -> list[tuple[str, Use]]:
        """The memories that were recalled most often, with their ids."""
        recalled = [item for item in self.uses.items() if item[1].recalled]
        return sorted(recalled, key=lambda item: (-item[1].recalled, item[0]))[:_MOST_USED]

    def latency(self, percent: int) -> float | None:
        """Return the time in milliseconds within which so many percent of the recalls were done."""
        ranked = sorted(self.latencies)
        return ranked[-(-len(ranked) * percent // 100) - 1] if ranked else None

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {
            "first": self.first.isoformat() if self.first else None,
            "last": self.last.isoformat() if self.last else None,
            "sessions": len(self.sessions),
            "recalls": self.recalls,
            "answered": self.answered,
            "answered_share": _share(self.answered, self.recalls),
            "memories_per_answered_recall": _share(self.retrieved, self.answered),
            "search_modes": dict(self.modes),
            "latency_ms": {"p50": self.latency(50), "p95": self.latency(95)},
            "injected_characters": self.characters,
            "writes": dict(self.writes),
            "categories": {name: category.to_json() for name, category in self.categories.items()},
            "most_used": [{"memory_id": id_, **use.to_json()} for id_, use in self.most_used],
            "errors": dict(self.errors),
            "unreadable_lines": self.unreadable,
        }


def summarize(lines: Iterable[str | bytes]) -> TraceReport:
    """Return the report of a trace; lines that are no record are counted and left out."""
    report = TraceReport()
    for line in lines:
        if not line.strip():
            continue
        try:
            record = _RECORD.validate_json(line)
        except ValidationError:
            report.unreadable += 1
            continue
        _add(report, record)
    return report


def _add(report: TraceReport, record: _Recall | _Write | _Verdict | _Error) -> None:
    report.first = min(report.first or record.ts, record.ts)
    report.last = max(report.last or record.ts, record.ts)
    if record.session_id:
        report.sessions.add(record.session_id)
    match record:
        case _Recall():
            _add_recall(report, record)
        case _Write():
            report.writes[record.kind] += len(record.memory_ids)
        case _Verdict():
            for id_ in record.memory_ids:
                report.uses[id_].outcomes[record.outcome] += 1
                report.verdicts.append((id_, record.outcome.value, record.origin))
        case _Error():
            report.errors[record.kind] += 1


def _add_recall(report: TraceReport, record: _Recall) -> None:
    report.recalls += 1
    report.answered += bool(record.retrieved)
    report.retrieved += len(record.retrieved)
    report.modes[record.search_mode] += 1
    report.latencies.append(record.latency_ms)
    if record.characters is not None:
        report.characters = (report.characters or 0) + record.characters
    for item in record.retrieved:
        report.uses[item.memory_id].category = item.category
        report.uses[item.memory_id].recalled += 1


def _share(part: int, whole: int) -> float | None:
    return _rounded(part / whole) if whole else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
