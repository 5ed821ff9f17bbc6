"""One agent's use of the shared store: recall for a turn, and the four tools. Errors are for the caller to handle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any

from provider import tools
from provider.block import Block, render_block
from provider.mirror import mirror
from provider.shared import health
from provider.turn import Turn
from runtime_memory import arguments
from runtime_memory.errors import InvalidInputError
from runtime_memory.models import NewMemory
from runtime_memory.serialize import outcomes_json, results_json, stats_json, written_json
from runtime_memory.spoken import spoken, without_envelopes
from runtime_memory.trace import Trace, recall_fields

if TYPE_CHECKING:
    from provider.session import Session
    from runtime_memory.store import MemoryStore

__all__ = ["UNATTRIBUTED_WEIGHT", "Conversation", "as_json"]

UNATTRIBUTED_WEIGHT = 0.25
"""What a verdict that names no memory weighs in all; the memories of the turn share it."""


class Conversation:
    """Recall and write as one session in one turn."""

    def __init__(self, store: MemoryStore, session: Session, turn: Turn, trace: Trace) -> None:
        self._store = store
        self._session = session
        self._turn = turn
        self._trace = trace

    def recall(self, prompt: str, limit: int) -> tuple[Block, dict[str, Any]]:
        """Return the block for a prompt, and what a trace tells of it.

        It notes nothing itself: it may end after the turn has gone on without it.
        """
        explanation = self._store.explain(spoken(prompt), limit=limit, outside=False, **self._session.seen)
        today = self._store.now().astimezone(UTC).date()
        return render_block(explanation.recalled, today), recall_fields(explanation)

    def mirror(self, **note: str) -> None:
        """Do to the memories what the host did to one of its notes."""
        ids = mirror(self._store, self._session.owner, **note)
        if ids:
            self._note("write", kind="mirror", memory_ids=ids, count=len(ids))

    def call(self, tool: str, args: object) -> dict[str, Any]:
        """Run a tool and return its result."""
        given = {} if args is None else args
        if not isinstance(given, Mapping):
            raise InvalidInputError(f"arguments must be an object, not {type(args).__name__}")
        handlers = {
            tools.REMEMBER: self._remember,
            tools.RECALL: self._search,
            tools.OUTCOME: self._outcome,
            tools.STATS: self._stats,
        }
        if tool not in handlers:
            raise InvalidInputError(f"unknown tool {tool!r}; valid are: {', '.join(handlers)}")
        return handlers[tool](given)

    def _remember(self, args: Mapping[str, Any]) -> dict[str, Any]:
        self._may_write()
        content = without_envelopes(arguments.required_text(args, "content"))
        if not content:
            raise InvalidInputError("content holds recalled memories or an envelope and nothing else to save")
        category = arguments.required_text(args, "category").strip().lower()
        new = NewMemory(
            content,
            category=category,
            tags=arguments.tags(args),
            project=self._session.project,
            session=self._session.id,
            supersedes=arguments.optional_text(args, "supersedes"),
            **self._session.owner,
        )
        written = self._store.write([new])[0]
        self._note("write", kind="tool", memory_ids=[written.memory.id], count=1)
        return written_json(written)

    def _search(self, args: Mapping[str, Any]) -> dict[str, Any]:
        results = self._store.search(
            arguments.required_text(args, "query"),
            limit=arguments.limit(args),
            category=arguments.optional_text(args, "category"),
            **self._session.seen,
        )
        self._turn.show(result.memory.id for result in results)
        return results_json(results, full=False)

    def _outcome(self, args: Mapping[str, Any]) -> dict[str, Any]:
        self._may_write()
        outcome = arguments.outcome(args)
        named = arguments.id_list(args)
        known, unknown = arguments.known(named, partial(self._store.get, **self._session.owner))
        ids = known if named else self._turn.uncredited
        if not ids:
            return {"recorded": False, "reason": _nothing_to_score(unknown)}
        weight = 1.0 if named else UNATTRIBUTED_WEIGHT / len(ids)
        origin = "tool" if named else "auto"
        updated = self._store.record_outcome(
            ids,
            outcome,
            weight=weight,
            session=self._session.id,
            turn=self._turn.id,
            origin=origin,
            **self._session.owner,
        )
        self._turn.credit(ids)
        self._note("outcome", outcome=outcome, memory_ids=ids, weight=weight, origin=origin)
        result = {"recorded": True, "outcome": outcome, "updated": outcomes_json(updated)}
        return result | ({"unknown": unknown} if unknown else {})

    def _stats(self, _: Mapping[str, Any]) -> dict[str, Any]:
        stats = stats_json(self._store.stats(**self._session.owner))
        return stats | {"failures": dict(health.failures), "last_error": health.last_error}

    def _may_write(self) -> None:
        if self._session.read_only:
            raise InvalidInputError("this session is read-only: sub-agents and scheduled runs recall, but do not write")

    def _note(self, event: str, /, **fields: Any) -> None:
        self._trace.write(event, turn_id=self._turn.id, session_id=self._session.id, **fields)


def as_json(result: Mapping[str, Any]) -> str:
    """Return a tool's result as the JSON text that the host hands to the model."""
    text = json.dumps(result, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()  # a lone surrogate would break the host's next request


def _nothing_to_score(unknown: list[str]) -> str:
    if unknown:
        return f"no memory with these ids is known: {', '.join(unknown)}"
    return "no memory was recalled in this turn that has no verdict yet; name the memory_ids that you mean"
