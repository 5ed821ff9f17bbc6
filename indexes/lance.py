"""What every LanceDB table of a store has in common: how it is opened, made and kept."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import lancedb
import pyarrow as pa

if TYPE_CHECKING:
    from lancedb.table import Table

__all__ = ["KEEP_VERSIONS", "create_table", "fragments", "open_table"]

KEEP_VERSIONS = timedelta(minutes=10)
"""How long a replaced version stays: another process may still be reading it."""

_ALWAYS_FRESH = timedelta(0)
_OPTIONS = {"new_table_enable_stable_row_ids": "true"}  # without them, row versions cannot be asked for


def open_table(uri: str, name: str) -> Table | None:
    """Open a table that sees the newest commit of every process; None where there is none."""
    database = lancedb.connect(uri, read_consistency_interval=_ALWAYS_FRESH)
    return database.open_table(name) if name in database.list_tables().tables else None


def create_table(uri: str, name: str, schema: pa.Schema) -> Table:
    """Make an empty table; one of the same name is replaced."""
    database = lancedb.connect(uri, read_consistency_interval=_ALWAYS_FRESH)
    if name in database.list_tables().tables:  # the mode "overwrite" complains on stderr where there is none
        database.drop_table(name)
    return database.create_table(name, schema=schema, storage_options=_OPTIONS)


def fragments(table: Table) -> int:
    """Return the number of data files: each small commit adds one, and slows every reading until they are compacted."""
    stats: Any = table.stats()
    return int(stats["fragment_stats"]["num_fragments"])
