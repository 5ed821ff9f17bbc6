"""Ask a language model: through the host when it offers its own, else at an endpoint that the environment names."""

from __future__ import annotations

import contextvars
import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from provider.threads import Deadline
from runtime_memory.llm import MAX_TOKENS, Llm, LlmError, chat, endpoint, is_installed

if TYPE_CHECKING:
    from runtime_memory.settings import Settings

__all__ = ["LLM_SECONDS", "extraction_problem", "find_llm"]

LLM_SECONDS = 25.0
"""Hermes ends its process 30 s after a session; what was asked for must be stored by then."""


def find_llm(model: str | None, environment: Mapping[str, str] = os.environ, *, seconds: float = LLM_SECONDS) -> Llm:
    """Return the way to a language model; raises LlmError that says what is missing. Nothing is asked yet.

    The first way that is there is used, and no other when it fails: a transcript goes nowhere unexpected.
    """
    return functools.partial(_within, _way(model, environment, seconds), seconds)


def extraction_problem(settings: Settings) -> str | None:
    """Say why extraction is switched on and cannot run; None when it is off, or can."""
    if not settings.extract_on_end:
        return None
    try:
        find_llm(settings.extract_model)
    except LlmError as error:
        return f"RUNTIME_MEMORY_EXTRACT_ON_END is on, but sessions are not read: {error}"
    return None


def _way(model: str | None, environment: Mapping[str, str], seconds: float) -> Llm:
    if is_installed("agent") and is_installed("agent.plugin_llm"):
        return functools.partial(_ask_host, seconds)
    return endpoint(model, environment, seconds=seconds)


def _within(way: Llm, seconds: float, system: str, message: str) -> str:
    """Ask on a thread of its own: no client's time limit covers its retries and a slow trickle of bytes."""
    context = contextvars.copy_context()  # a gateway keeps the secrets of its profiles there
    try:
        reply = Deadline[str](seconds).run(lambda: context.run(way, system, message))
    except TimeoutError as error:
        raise LlmError(f"the language model gave no reply within {seconds:g} s") from error
    if not reply.strip():
        raise LlmError("the language model gave an empty reply")
    return reply


def _ask_host(seconds: float, system: str, message: str) -> str:
    from agent.plugin_llm import PluginLlm

    messages = chat(system, message)
    reply = PluginLlm(plugin_id="runtimememory").complete(
        messages, max_tokens=MAX_TOKENS, timeout=seconds, purpose="memory extraction"
    )
    return str(reply.text or "")
