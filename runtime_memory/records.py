"""Memories as rows: the columns of the table, and the way there and back."""

from __future__ import annotations

import json
import os
import threading
from datetime import datetime
from typing import Any

import pyarrow as pa

from indexes.layout import Layout, Record
from runtime_memory import content
from runtime_memory.errors import InvalidInputError
from runtime_memory.models import Memory, MemoryCategory, MemoryScope, MemorySource, NewMemory, Outcome
from runtime_memory.outcomes import NO_EVIDENCE, Evidence, OutcomeEvent, outcome_score
from runtime_memory.secrets import masked_since

__all__ = ["LAYOUT", "OUTCOME_SCHEMA", "checked_event", "masked_kinds", "new_record", "to_memory"]

_TIME = pa.timestamp("us", tz="UTC")
MAX_WEIGHT = 1_000_000

LAYOUT = Layout(
    columns=(
        *(
            pa.field(name, pa.string())
            for name in ("content_hash", "category", "scope", "project", "user", "profile", "session", "source")
        ),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("metadata", pa.string()),
        pa.field("created_at", _TIME),
        pa.field("updated_at", _TIME),
        pa.field("archived", pa.bool_()),
        pa.field("supersedes", pa.string()),
        pa.field("origin", pa.string()),
        pa.field("origin_hash", pa.string()),
        pa.field("imported_at", _TIME),
    ),
    keywords=(
        *("content_hash", "category", "scope", "project", "user", "profile", "session", "source"),
        *("tags", "archived", "supersedes", "origin"),
    ),
    unique=("content_hash", "supersedes", "origin"),
)
"""An absent project, user, profile, session, ``supersedes``, origin or its hash is the empty string."""

OUTCOME_SCHEMA = pa.schema(
    [
        pa.field("memory_id", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("weight", pa.float64(), nullable=False),
        pa.field("at", _TIME, nullable=False),
        pa.field("session", pa.string()),
        pa.field("turn", pa.string()),
        pa.field("origin", pa.string()),
    ]
)


def new_record(new: NewMemory, now: datetime) -> Record:
    """Return the record of a new memory, checked; raises InvalidInputError."""
    body = content.text(new.content, allow_secrets=new.allow_secrets)
    project = content.label(new.project, "project")
    session = content.label(new.session, "session")
    source = content.choice(MemorySource, new.source, "source")
    came = new.imported_at
    return {
        "id": content.label(new.id, "id") or new_id(now),
        "content": body,
        "content_hash": content.content_hash(body),
        "category": content.choice(MemoryCategory, new.category, "category").value,
        "scope": _scope(new, project, session).value,
        "project": project,
        "user": content.label(new.user, "user"),
        "profile": content.label(new.profile, "profile"),
        "session": session,
        "source": source.value,
        "tags": content.tag_list(new.tags),
        "metadata": content.json_object(new.metadata, allow_secrets=new.allow_secrets),
        "created_at": content.moment(new.created_at or now, "created_at"),
        "updated_at": content.moment(new.updated_at or now, "updated_at"),
        "archived": bool(new.archived),
        "supersedes": content.label(new.supersedes, "supersedes"),
        "origin": content.origin(new.origin),
        "origin_hash": content.label(new.origin_hash, "origin_hash"),
        "imported_at": None if came is None else content.moment(came, "imported_at"),
    }


def masked_kinds(new: NewMemory, record: Record) -> tuple[str, ...]:
    """Return the kinds of secret that were masked on the way from a new memory to its record."""
    kept = "\n".join((record["content"], record["metadata"], record["session"], record["origin"], *record["tags"]))
    given = (new.content, new.metadata, new.session, new.origin, new.tags)
    return masked_since(lambda: "\n".join(map(str, given)), kept)


def checked_event(event: OutcomeEvent) -> OutcomeEvent:
    """Return a report that can be stored; raises InvalidInputError."""
    if not 0 < content.number(event.weight, "weight") <= MAX_WEIGHT:
        raise InvalidInputError(f"weight must be above 0 and at most {MAX_WEIGHT}, not {event.weight!r}")
    return OutcomeEvent(
        memory_id=event.memory_id,
        outcome=content.choice(Outcome, event.outcome, "outcome"),
        weight=float(event.weight),
        at=content.moment(event.at, "at"),
        session=content.label(event.session, "session"),
        turn=content.label(event.turn, "turn"),
        origin=content.label(event.origin, "origin"),
    )


def to_memory(record: Record, evidence: Evidence = NO_EVIDENCE, *, now: datetime) -> Memory:
    """Return a record as a memory, with its outcome score as of ``now``."""
    absent: dict[str, Any] = {name: record[name] or None for name in _OPTIONAL}
    return Memory(
        id=record["id"],
        content=record["content"],
        category=MemoryCategory(record["category"]),
        scope=MemoryScope(record["scope"]),
        source=MemorySource(record["source"]),
        tags=tuple(record["tags"]),
        metadata=json.loads(record["metadata"]),
        created_at=record["created_at"],
        updated_at=record["updated_at"],
        archived=record["archived"],
        imported_at=record["imported_at"],
        outcome_score=outcome_score(evidence, now),
        uses=evidence.uses,
        **absent,
    )


def new_id(now: datetime) -> str:
    """Return a UUID of version 7 (RFC 9562): sortable by time, and never given twice."""
    global _last_id  # noqa: PLW0603 - a process gives its ids in order, also those of one millisecond
    with _id_lock:
        _last_id = max(int(now.timestamp() * 1000) << _COUNTER_BITS, _last_id + 1)
        millis, counter = divmod(_last_id, 1 << _COUNTER_BITS)
    noise = int.from_bytes(os.urandom(8)) >> 2
    digits = f"{millis << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | noise:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_OPTIONAL = ("project", "user", "profile", "session", "supersedes", "origin", "origin_hash")
_COUNTER_BITS = 12
_id_lock = threading.Lock()
_last_id = 0


def _scope(new: NewMemory, project: str, session: str) -> MemoryScope:
    if new.scope is None:
        return MemoryScope.PROJECT if project else MemoryScope.GLOBAL
    scope = content.choice(MemoryScope, new.scope, "scope")
    if scope is MemoryScope.PROJECT and not project:
        raise InvalidInputError("scope 'project' needs a project; name one, or use scope 'global'")
    if scope is MemoryScope.SESSION and not session:
        raise InvalidInputError("scope 'session' needs a session; name one, or use scope 'global'")
    return scope
