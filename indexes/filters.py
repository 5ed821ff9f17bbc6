"""Say which records a search may return, in a form that both indexes compile for themselves.

Values are data: each index turns them into its own typed literals or terms, never into query text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["All", "AnyOf", "Filter", "In", "matches"]


@dataclass(frozen=True, slots=True)
class In:
    """The column's value (or, of a list column, one of its items) is one of ``values``."""

    column: str
    values: tuple[str | bool, ...]


@dataclass(frozen=True, slots=True)
class All:
    """Every clause holds; true when there is none."""

    clauses: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one clause holds; false when there is none."""

    clauses: tuple[Filter, ...]


Filter = In | All | AnyOf


def matches(where: Filter, record: Mapping[str, object]) -> bool:
    """Tell whether a record passes the filter."""
    match where:
        case In(column, values):
            value = record[column]
            return any(item in values for item in value) if isinstance(value, list | tuple) else value in values
        case All(clauses):
            return all(matches(clause, record) for clause in clauses)
        case AnyOf(clauses):
            return any(matches(clause, record) for clause in clauses)
