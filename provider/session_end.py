"""Extract memories from a session when it ends, or when a part of it is about to be compressed away."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from provider.llm import find_llm
from provider.transcript import read_turns
from runtime_memory import extraction
from runtime_memory.errors import InvalidInputError, MemoryNotFoundError
from runtime_memory.llm import Llm
from runtime_memory.models import Memory, MemorySource, NewMemory
from runtime_memory.spoken import without_envelopes

if TYPE_CHECKING:
    from provider.session import Session
    from runtime_memory.extraction import Proposal
    from runtime_memory.store import MemoryStore
    from runtime_memory.trace import Trace

__all__ = ["Extractor"]

_log = logging.getLogger(__name__)

MAX_SHOWN = 20
_QUERIES = 8
_CLOSEST = 6


class Extractor:
    """Read the sessions of one agent; a turn that has been read is not read again."""

    def __init__(self, llm: Callable[[str | None], Llm] = find_llm) -> None:
        self._llm = llm
        self._read: set[str] = set()
        self._lock = threading.Lock()

    def run(self, messages: object, store: MemoryStore, session: Session, trace: Trace, *, turn: str) -> list[Memory]:
        """Store what a model proposes for the turns that are new, and return it; raises what goes wrong.

        Nothing is asked for a session that is read-only, or has no new turn.
        """
        stored: list[Memory] = []
        with self._lock:
            fresh = {_key(text): (words, text) for words, text in read_turns(messages) if _key(text) not in self._read}
            if session.read_only or not fresh:
                return stored
            turns = extraction.fitting([text for _, text in fresh.values()])
            shown = _closest(store, session, [words for words, _ in fresh.values()][-_QUERIES:])
            reply = self._llm(store.settings.extract_model)(extraction.SYSTEM_PROMPT, extraction.question(turns, shown))
            mine = {memory.id: memory for memory in shown if memory.profile == session.profile}
            for proposal in extraction.parse(reply, mine, without_envelopes):
                if memory := _stored(store, session, proposal, mine.get(proposal.supersedes or "")):
                    stored.append(memory)
                    _note(trace, memory, session, turn)
            self._read |= set(fresh)
        return stored


def _key(turn: str) -> str:
    return hashlib.sha256(turn.encode("utf-8", "replace")).hexdigest()


def _note(trace: Trace, memory: Memory, session: Session, turn: str) -> None:
    trace.write("write", turn_id=turn, session_id=session.id, kind="extraction", memory_ids=[memory.id], count=1)


def _closest(store: MemoryStore, session: Session, queries: Sequence[str]) -> list[Memory]:
    """Return the memories that come closest to what the user said, so that the model can name what is outdated."""
    found: dict[str, tuple[float, Memory]] = {}
    for query in queries:
        for result in store.search(query, limit=_CLOSEST, **session.seen):
            best = max(result.score, found[result.memory.id][0] if result.memory.id in found else 0.0)
            found[result.memory.id] = (best, result.memory)
    ranked = sorted(found.values(), key=lambda item: item[0], reverse=True)
    return [memory for _, memory in ranked[:MAX_SHOWN]]


def _stored(store: MemoryStore, session: Session, proposal: Proposal, old: Memory | None) -> Memory | None:
    """Store a proposal, which may correct an old memory, and return its memory; None when it is known or refused.

    A model that reads an old transcript again must not bring back what was archived since, unless it names what the
    fact corrects. Of a correction that is known already, only the old memory's end is new.
    """
    content = proposal.content
    near = [r.memory for r in store.search(content, limit=_CLOSEST, include_archived=True, **session.seen)]
    others = [memory for memory in near if old is None or memory.id != old.id]
    known = [memory for memory in others if extraction.already_said(content, [memory.content])]
    if (old and extraction.same_text(content, old.content)) or (known and not old):
        return None
    try:
        if old and any(not memory.archived for memory in known):
            store.archive(old.id, **session.owner)
            return None
        return store.write([_new(proposal, session, old)])[0].memory
    except (InvalidInputError, MemoryNotFoundError) as error:  # the others may be fine
        _log.warning("an extracted memory was not stored: %s", error)
        return None


def _new(proposal: Proposal, session: Session, old: Memory | None) -> NewMemory:
    return NewMemory(
        proposal.content,
        category=proposal.category,
        tags=proposal.tags,
        supersedes=old.id if old else None,
        source=MemorySource.EXTRACTED,
        scope=old.scope if old else None,  # a correction is seen wherever the old fact was
        project=old.project if old else session.project,
        session=session.id,
        **session.owner,
    )
