"""Read the times that programs write, and date a file that holds none."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from runtime_memory.importers.dates import named, undated
from runtime_memory.importers.frontmatter import noon

__all__ = ["file_date", "moment", "noticed_moment"]

_EARLIEST, _LATEST = 1970, 2200
_PLAIN_DAY = len("2024-01-01")
_COMPACT_DAY = len("20240101")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""From such a count on it is in nano-, micro- and milliseconds: seconds would lie past the year 5000."""


def noticed_moment(given: Any, name: str, notices: list[str]) -> datetime | None:
    """Return the time in a field, None for an empty one; what is not understood is noticed."""
    if given is None or given == "":
        return None
    try:
        return moment(given)
    except ValueError:
        notices.append(f"its {name} {str(given)[:60]!r} is not understood")
        return None


def moment(value: Any) -> datetime:
    """Return the time in UTC of an ISO 8601 text or a count since 1970 (in s, ms, µs or ns).

    A day without a time is its noon; a time without a zone is UTC, as programs mean it. Raises ValueError for what is
    none, and for what lies outside 1970 to 2200.
    """
    try:
        match value:
            case str():
                found = _written(value.strip())
            case int() | float() if not isinstance(value, bool):
                found = _counted(float(value))
            case _:
                raise ValueError(f"{value!r} is no date")
    except (OverflowError, OSError) as error:
        raise ValueError(f"{value!r} is no date") from error
    if not _EARLIEST <= found.year < _LATEST:
        raise ValueError(f"the date {value!r} lies outside {_EARLIEST} to {_LATEST}")
    return found


def file_date(file: Path) -> datetime:
    """Return when what a file holds was made: by its name, else by git, else its last change; raises OSError."""
    return named(file.name) or undated(file, datetime.fromtimestamp(file.stat().st_mtime, UTC))


def _written(text: str) -> datetime:
    if _NUMBER.fullmatch(text) and len(text) != _COMPACT_DAY:
        return _counted(float(text))
    normal = re.sub(r"\s+(?=[+-]\d|[Zz]$)", "", text.replace("/", "-"))
    normal = re.sub(r"\s*UTC$", "Z", normal)
    if len(normal) <= _PLAIN_DAY:
        return noon(date.fromisoformat(normal))
    found = datetime.fromisoformat(normal)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _counted(count: float) -> datetime:
    if not math.isfinite(count):
        raise ValueError(f"{count} is no date")
    unit = next((unit for least, unit in _UNITS if abs(count) >= least), 1.0)
    return datetime.fromtimestamp(count / unit, UTC)
