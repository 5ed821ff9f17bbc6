"""What a memory is, and what a search returns: small frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

__all__ = [
    "Explanation",
    "Memory",
    "MemoryCategory",
    "MemoryScope",
    "MemorySource",
    "NewMemory",
    "Outcome",
    "SearchMode",
    "SearchResult",
    "StoreStats",
    "Written",
]


class MemoryCategory(StrEnum):
    """What kind of knowledge a memory is."""

    ARCHITECTURE = "architecture"
    CONVENTION = "convention"
    DECISION = "decision"
    DEPENDENCY = "dependency"
    PATTERN = "pattern"
    GOTCHA = "gotcha"
    WORKAROUND = "workaround"
    TROUBLESHOOTING = "troubleshooting"
    COMMAND = "command"
    ENVIRONMENT = "environment"
    PREFERENCE = "preference"
    CODING_STYLE = "coding_style"
    TOOL_PREFERENCE = "tool_preference"
    CONTEXT = "context"
    TODO = "todo"
    GENERAL = "general"


class MemoryScope(StrEnum):
    """Where a memory is seen: everywhere, in its project, or in its session."""

    GLOBAL = "global"
    PROJECT = "project"
    SESSION = "session"


class MemorySource(StrEnum):
    """Where a memory came from: saved on purpose, extracted by a model, or imported."""

    EXPLICIT = "explicit"
    EXTRACTED = "extracted"
    IMPORTED = "imported"


class Outcome(StrEnum):
    """Whether a recalled memory helped."""

    WORKED = "worked"
    FAILED = "failed"
    PARTIAL = "partial"


class SearchMode(StrEnum):
    """Which arms answered a search."""

    HYBRID = "hybrid"
    TEXT = "text"
    VECTOR = "vector"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to store.

    ``scope`` defaults to ``project`` when a project is given, to ``global`` otherwise; ``created_at`` to now (a naive
    time is taken as UTC). ``supersedes`` is the id of a memory that this one corrects: it is archived in the same
    commit. ``user`` and ``profile`` say whom it belongs to (None: the owner, the default profile). Secrets in its
    content and metadata are masked unless ``allow_secrets``.

    The rest is for what comes from elsewhere. ``origin`` says where it was (a file and an anchor in it) and
    ``origin_hash`` what was there, ``imported_at`` when it came. ``id``, ``updated_at`` and
    ``archived`` keep those of an earlier store; by default they are new, now and False.
    """

    content: str
    _: KW_ONLY
    category: MemoryCategory | str = MemoryCategory.GENERAL
    scope: MemoryScope | str | None = None
    project: str | None = None
    user: str | None = None
    profile: str | None = None
    session: str | None = None
    source: MemorySource | str = MemorySource.EXPLICIT
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    supersedes: str | None = None
    origin: str | None = None
    origin_hash: str | None = None
    imported_at: datetime | None = None
    id: str | None = None
    updated_at: datetime | None = None
    archived: bool = False
    allow_secrets: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A stored memory, with what its outcomes amount to at the time of reading."""

    id: str
    content: str
    category: MemoryCategory
    scope: MemoryScope
    project: str | None
    user: str | None
    profile: str | None
    session: str | None
    source: MemorySource
    tags: tuple[str, ...]
    metadata: Mapping[str, Any] = field(hash=False)
    created_at: datetime
    updated_at: datetime
    archived: bool
    supersedes: str | None
    origin: str | None
    origin_hash: str | None = None
    imported_at: datetime | None = None
    outcome_score: float = 0.0
    uses: int = 0


class Written(NamedTuple):
    """A memory that a write left in the store.

    ``duplicate`` when it had been there before; ``updated`` when it was there, by its id, in an older version.
    ``masked`` are the kinds of secret that were masked in it, as in ``aws key``.
    """

    memory: Memory
    duplicate: bool
    updated: bool = False
    masked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """A memory found, and why it stands where it does.

    ``score`` is ``fused`` (0 to 1) plus ``outcome_term`` plus ``suspect_term``, which is below 0 for a memory that
    reads like an instruction; ``suspect`` says why it does. Ranks count from 1; a rank, a cosine or a BM25 score is
    None where that arm did not find the memory. ``coverage`` is the share of the query's terms, weighted by how telling
    they are, that the memory holds; ``relevance`` is the evidence that the gate of automatic recall weighs.
    ``passage`` is the part of a long memory that was found, None where that is its beginning. ``dropped`` says why
    ``recall`` leaves the memory out, where it does.
    """

    memory: Memory
    score: float
    fused: float
    outcome_term: float
    vector_rank: int | None
    text_rank: int | None
    cosine: float | None
    bm25: float | None
    coverage: float
    relevance: float
    passage: str | None = None
    dropped: str | None = None
    suspect: str | None = None
    suspect_term: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a recall found and left out, in order of score; the diagnosis writes nothing.

    ``threshold`` is the relevance that the best memory must reach for anything to be recalled.
    """

    query: str
    terms: tuple[str, ...]
    mode: SearchMode
    threshold: float
    results: tuple[SearchResult, ...]

    @property
    def recalled(self) -> tuple[SearchResult, ...]:
        """What ``recall`` returns."""
        return tuple(result for result in self.results if result.dropped is None)

    @property
    def dropped(self) -> tuple[SearchResult, ...]:
        """What ``recall`` leaves out, with the reason."""
        return tuple(result for result in self.results if result.dropped is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStats:
    """Counts and health of the part of a store that a caller sees.

    ``pending_embeddings`` counts memories that are found by text only, so far; ``message`` says why vectors are not
    used, where they are not.
    """

    total_memories: int
    active_memories: int
    avg_outcome_score: float
    total_uses: int
    by_category: Mapping[str, int]
    by_project: Mapping[str, int]
    search_mode: SearchMode
    embedding_model: str | None
    pending_embeddings: int
    message: str | None
    path: str
