"""Tell which rows of an Arrow table pass a filter, all at once."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from indexes.filters import All, AnyOf, Filter, In

__all__ = ["asks_only", "passing"]


def passing(where: Filter, rows: pa.Table) -> NDArray[np.bool_]:
    """Return for each row whether it passes; where a row has no value, it does not."""
    found = pa.compute.fill_null(_passing(where, rows), False)  # noqa: FBT003 - Arrow's signature
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def asks_only(where: Filter, columns: Collection[str]) -> bool:
    """Tell whether a filter can be answered from these columns."""
    match where:
        case In(column, _):
            return column in columns
        case All(clauses) | AnyOf(clauses):
            return all(asks_only(clause, columns) for clause in clauses)


def _passing(where: Filter, rows: pa.Table) -> Any:
    match where:
        case In(column, values):
            return pa.compute.is_in(rows[column], pa.array(values, rows.schema.field(column).type))
        case All(clauses):
            return reduce(pa.compute.and_, (_passing(each, rows) for each in clauses), _all(rows, passing=True))
        case AnyOf(clauses):
            return reduce(pa.compute.or_, (_passing(each, rows) for each in clauses), _all(rows, passing=False))


def _all(rows: pa.Table, *, passing: bool) -> pa.Array:
    return pa.repeat(pa.scalar(passing), len(rows))
