"""Turn reports of what worked and what failed into one score: evidence that saturates, and fades.

The score is ``(w - f) / (w + f + 4)`` over decayed evidence, as of a Beta prior of strength 4 that expects neither:
the first report moves a fresh memory by +0.2 (worked), +0.05 (partial) or -0.3 (failed), later ones by less, and
nothing clamps. Evidence halves every 90 days. How often a memory is retrieved is no evidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from runtime_memory.models import Outcome

__all__ = ["FAILING_SCORE", "HALF_LIFE_DAYS", "NO_EVIDENCE", "Evidence", "OutcomeEvent", "fold", "outcome_score"]

HALF_LIFE_DAYS = 90
PRIOR_STRENGTH = 4.0
"""How many reports the expectation of neither success nor failure weighs."""
FAILING_SCORE = -0.5
"""At or below this score a memory is left out of automatic recall: about three plain failures."""

_GAIN = {Outcome.WORKED: (1.0, 0.0), Outcome.PARTIAL: (4 / 19, 0.0), Outcome.FAILED: (0.0, 12 / 7)}


@dataclass(frozen=True, slots=True)
class OutcomeEvent:
    """One report about one memory.

    ``weight`` is below 1 for evidence that named no memory, and above it for several reports in one, as another store
    may keep them. ``session``, ``turn`` and ``origin`` (who reported) are for reading; they count for nothing.
    """

    memory_id: str
    outcome: Outcome
    weight: float
    at: datetime
    session: str = ""
    turn: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for and against a memory, decayed to ``day``, and how many reports that was."""

    worked: float = 0.0
    failed: float = 0.0
    day: int = 0
    uses: int = 0


NO_EVIDENCE = Evidence()


def fold(events: Iterable[OutcomeEvent], evidence: dict[str, Evidence]) -> dict[str, Evidence]:
    """Return evidence with events added, by memory id; the order of events does not matter."""
    folded = dict(evidence)
    for event in events:
        folded[event.memory_id] = _add(folded.get(event.memory_id, NO_EVIDENCE), event)
    return folded


def outcome_score(evidence: Evidence, now: datetime) -> float:
    """Return the score, above -1 and below 1; 0 without evidence.

    Age counts in whole days (UTC), so that a score, and what is shown of it, stays the same over a day.
    """
    fading = _fading(_day(now) - evidence.day)
    worked, failed = evidence.worked * fading, evidence.failed * fading
    return (worked - failed) / (worked + failed + PRIOR_STRENGTH)


def _add(evidence: Evidence, event: OutcomeEvent) -> Evidence:
    day = max(evidence.day, _day(event.at))
    earlier, later = _fading(day - evidence.day), _fading(day - _day(event.at)) * event.weight
    worked, failed = _GAIN[event.outcome]
    return Evidence(
        worked=evidence.worked * earlier + worked * later,
        failed=evidence.failed * earlier + failed * later,
        day=day,
        uses=evidence.uses + 1,
    )


def _day(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp() // 86_400)


def _fading(days: int) -> float:
    return math.pow(0.5, max(0, days) / HALF_LIFE_DAYS)
