"""The Hermes memory provider. At this boundary nothing raises: a failure is logged, counted and shown by stats."""

from __future__ import annotations

import copy
import functools
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from provider import tools
from provider.block import Block
from provider.config import config_schema, load_settings, warn_once
from provider.conversation import Conversation, as_json
from provider.host import MemoryProvider, RecallStatus
from provider.llm import extraction_problem
from provider.session import Session
from provider.session_end import Extractor
from provider.shared import health, shared_store, shared_trace
from provider.threads import Deadline, start
from provider.turn import Turn
from runtime_memory.cpu import missing_features
from runtime_memory.errors import InvalidInputError, MemoryNotFoundError, RuntimeMemoryError

if TYPE_CHECKING:
    from runtime_memory.settings import Settings

__all__ = ["RuntimeMemoryProvider"]

_log = logging.getLogger(__name__)
_P = ParamSpec("_P")
_R = TypeVar("_R")

NAME = "runtimememory"
LABEL = "Runtime Memory"
GLYPH = "◆"
PREFETCH_SECONDS = 2.0

SYSTEM_PROMPT = f"""\
# Long-term memory
Memories that matter for a message are recalled automatically and come with it, each with its id.
- `{tools.REMEMBER}` saves a durable fact for future sessions.
- `{tools.OUTCOME}` reports whether recalled memories worked, failed or partially helped: it decides what surfaces next.
"""


def _harmless(default: Any) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a method return ``default`` where it would raise, and note the failure."""

    def decorate(method: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(method)
        def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                return method(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - a memory must never cost its host a turn
                provider: Any = args[0]
                provider.note_failure(method.__name__, error)
                return copy.copy(default)  # type: ignore[no-any-return]

        return guarded

    return decorate


class RuntimeMemoryProvider(MemoryProvider):
    """Long-term memory for one agent; all the instances of a process share one store."""

    pre_compress_checkpoint_api_version = 1

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._session: Session | None = None
        self._turn = Turn()
        self._trace = shared_trace(None)
        self._extractor = Extractor()
        self._deadline: Deadline[tuple[Block, dict[str, Any]]] = Deadline(PREFETCH_SECONDS)

    @property
    def name(self) -> str:
        """The name under which a host knows the provider."""
        return NAME

    # Availability

    @_harmless(default=False)
    def is_available(self) -> bool:
        """Tell whether the store's folder can be made and written; looks at the file system only."""
        problem = _problem(self._load_settings().folder)
        if problem is not None:
            warn_once(f"{LABEL} is unavailable: {problem}")  # the host drops the provider without a word
        return problem is None

    @_harmless(default="the settings cannot be read; see the log")
    def unavailable_reason(self) -> str | None:
        """Say what is wrong with the store's folder, and which setting changes it; None when nothing is."""
        return _problem(self._load_settings().folder)

    # Life

    @_harmless(default=None)
    def initialize(self, session_id: str, **given: Any) -> None:
        """Begin a session, and start to open the store and to load the model in the background."""
        session = self._begin(session_id, given)
        settings = self._load_settings()
        if not session.read_only and (problem := extraction_problem(settings)):
            warn_once(problem)
        start(functools.partial(self._warm, settings), "warm-up")

    @_harmless(default=None)
    def initialize_for_inspection(self, session_id: str = "", **given: Any) -> None:
        """Begin a session that only looks: no warm-up, no writes."""
        self._begin(session_id, {**given, "agent_context": "inspection"})

    def shutdown(self) -> None:
        """End the session; writes were durable when they returned, and the store stays open for the other agents."""
        self._turn = Turn()

    # Recall

    def system_prompt_block(self) -> str:
        """Return a few static lines on how the memory is used."""
        return SYSTEM_PROMPT

    @_harmless(default="")
    def prefetch(self, query: object, **_: Any) -> str:
        """Return the block of memories that matter for this message; empty when none does, and on any failure."""
        self._turn = turn = Turn()
        session = self._session
        if session is None or not isinstance(query, str):
            return ""
        started, limit = time.perf_counter(), self._load_settings().recall_limit
        block, told = self._deadline.run(lambda: self._conversation(session, turn).recall(query, limit))
        turn.inject(block.ids)
        latency = round((time.perf_counter() - started) * 1000, 2)
        ids = {"turn_id": turn.id, "session_id": session.id}
        self._trace.write("recall", **ids, project=session.project, latency_ms=latency, **told)
        return block.text

    def queue_prefetch(self, *_: Any, **__: Any) -> None:
        """Do nothing: recall is for the current message, not for the one before."""

    def recall_status(self) -> RecallStatus | None:
        """Return what the last prefetch injected; None when it injected nothing."""
        injected = self._turn.injected
        return RecallStatus(LABEL, injected, GLYPH) if injected else None

    def on_turn_start(self, *_: Any, **__: Any) -> None:
        """Begin a turn: what an earlier one recalled can no longer be credited."""
        self._turn = Turn()

    # Tools

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return fresh copies of the tool schemas."""
        return tools.schemas()

    def handle_tool_call(self, tool_name: str, args: Any = None, **_: Any) -> str:
        """Run a tool and return its result as JSON; what is wrong comes as ``{"error"}``."""
        try:
            if self._session is None:  # nobody knows who asks
                return as_json({"error": f"{LABEL} has no session yet; the host must initialize it first"})
            return as_json(self._conversation(self._session, self._turn).call(tool_name, args))
        except (InvalidInputError, MemoryNotFoundError) as error:
            return as_json({"error": _brief(str(error))})
        except Exception as error:  # noqa: BLE001 - a memory must never cost its host a turn
            self.note_failure("tool", error)
            known = isinstance(error, RuntimeMemoryError)
            message = str(error) if known else f"the memory failed: {type(error).__name__}: {error}"
            return as_json({"error": _brief(message)})

    # What happens to turns and sessions

    def sync_turn(self, *_: Any, **__: Any) -> None:
        """Store nothing: raw turns would bury the memories that were saved on purpose."""

    @_harmless(default=None)
    def on_memory_write(
        self, action: str, target: str, content: str = "", metadata: Mapping[str, Any] | None = None, **_: Any
    ) -> None:
        """Mirror what the host did to one of its built-in notes; durable when it returns."""
        session = self._session
        if session is None or session.read_only or not self._load_settings().mirror_writes:
            return
        old_text = str((metadata or {}).get("old_text") or "")
        conversation = self._conversation(session, self._turn)
        conversation.mirror(action=action, target=target, content=content or "", old_text=old_text)

    @_harmless(default=None)
    def on_session_switch(self, new_session_id: str, **given: Any) -> None:
        """Let later writes carry the new session."""
        if self._session is not None:
            self._session = self._session.renamed(str(new_session_id or ""))
        if given.get("reset") or given.get("rewound"):
            self._turn = Turn()

    @_harmless(default=None)
    def on_session_end(self, messages: object = None, *_: Any, **__: Any) -> None:
        """Let a model propose memories for what was said, where that is switched on; blocks until they are stored."""
        settings, session = self._load_settings(), self._session
        if session is None or not settings.extract_on_end or extraction_problem(settings):
            return  # what is missing was said at the start
        self._extractor.run(messages, shared_store(settings), session, self._trace, turn=self._turn.id)

    def on_pre_compress(self, *_: Any, **__: Any) -> str:
        """Add nothing to a compression."""
        return ""

    def on_delegation(self, *_: Any, **__: Any) -> None:
        """Take no notice of a sub-agent's work."""

    # Set-up

    @_harmless(default=[])
    def get_config_schema(self) -> list[dict[str, Any]]:
        """Return the settings that a person makes; the host keeps them as environment variables, or in its config."""
        return config_schema()

    @_harmless(default={})
    def get_status_config(self, provider_config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what ``hermes memory status`` shows: the store, and what is wrong with it."""
        shown = {**(provider_config or {}), "store": str(self._load_settings().place)}
        problem = self.unavailable_reason()
        return shown | ({"problem": problem} if problem else {})

    @_harmless(default=[])
    def backup_paths(self) -> list[str]:
        """Return the store's folder; nothing of a store on an object store, whose folder here is only a cache."""
        place = self._load_settings().place
        return [] if place.is_remote else [str(place.folder)]

    def _begin(self, session_id: str, given: dict[str, Any]) -> Session:
        self._settings = settings = load_settings(str(given.get("hermes_home") or ""))
        self._session = session = Session.begin(str(session_id or ""), given, settings)
        self._trace = shared_trace(settings.hermes_trace)
        self._turn = Turn()
        return session

    def _load_settings(self) -> Settings:
        if self._settings is None:
            self._settings = load_settings()
        return self._settings

    def _warm(self, settings: Settings) -> None:
        try:
            shared_store(settings).warm()
        except Exception as error:  # noqa: BLE001 - nobody waits for this thread; the next recall tries again
            self.note_failure("warm-up", error)

    def _conversation(self, session: Session, turn: Turn) -> Conversation:
        return Conversation(shared_store(self._load_settings()), session, turn, self._trace)

    def note_failure(self, what: str, error: Exception) -> None:
        """Log, trace and count a failure."""
        if not threading.main_thread().is_alive():
            return  # the interpreter ends under its threads, which is no fault to tell of
        _log.warning("%s: %s failed: %s", LABEL, what, error)
        session_id = self._session.id if self._session else ""
        self._trace.write("error", turn_id=self._turn.id, session_id=session_id, kind=what, message=str(error))
        health.count(what, error)


def _brief(message: str) -> str:
    """Return a message without the middle of a long value that it quotes."""
    return message if len(message) <= 500 else f"{message[:150]} […] {message[-300:]}"


def _problem(folder: Path) -> str | None:
    """Say why there can be no store in a folder; None when there can."""
    if missing := missing_features():  # importing LanceDB would end the host's process
        return f"this processor lacks {', '.join(missing)}, which LanceDB needs; see mem doctor"
    change = "set RUNTIME_MEMORY_DB to another folder"
    if folder.exists() and not folder.is_dir():
        return f"{folder} is a file; move it, or {change}"
    there = next((path for path in (folder, *folder.parents) if path.exists()), None)
    if there is None or not there.is_dir():
        return f"{folder} cannot be made, as {there} is not a folder; {change}"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{there} cannot be written; change its permissions, or {change}"
    return None
