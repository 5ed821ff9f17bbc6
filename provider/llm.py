"""Ask a language model: through the host when it offers its own, else at an endpoint that the environment names."""

from __future__ import annotations

import contextvars
import functools
import importlib.util
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from provider.threads import Deadline

if TYPE_CHECKING:
    from runtime_memory.settings import Settings

__all__ = ["LLM_SECONDS", "Llm", "LlmError", "extraction_problem", "find_llm"]

Llm = Callable[[str, str], str]
"""Return the reply to a system prompt and a message."""

LLM_SECONDS = 25.0
"""Hermes ends its process 30 s after a session; what was asked for must be stored by then."""

MODEL_VARIABLE = "RUNTIME_MEMORY_EXTRACT_MODEL"
_OPENAI = "https://api.openai.com/v1"
_MAX_TOKENS = 2_000
_MAX_BYTES = 4_000_000


class LlmError(Exception):
    """No language model can be asked, or it gave no reply."""


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
    if _has("agent") and _has("agent.plugin_llm"):
        return functools.partial(_ask_host, seconds)
    key, base = environment.get("OPENAI_API_KEY", ""), environment.get("OPENAI_BASE_URL", "")
    anthropic = environment.get("ANTHROPIC_API_KEY", "")
    if not (key or base or anthropic):
        raise LlmError("no language model is at hand: set OPENAI_BASE_URL, OPENAI_API_KEY or ANTHROPIC_API_KEY")
    if not model:
        raise LlmError(f"set {MODEL_VARIABLE} to the model to ask")
    if key or base:
        return functools.partial(_ask_openai, _Endpoint(key, model, seconds, base or _OPENAI))
    if not _has("anthropic"):
        raise LlmError("ANTHROPIC_API_KEY is set, but its package is missing: pip install 'runtime-memory[anthropic]'")
    return functools.partial(_ask_anthropic, _Endpoint(anthropic, model, seconds))


@dataclass(frozen=True, slots=True)
class _Endpoint:
    key: str
    model: str
    seconds: float
    base: str = ""


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


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

    messages = _messages(system, message)
    reply = PluginLlm(plugin_id="runtimememory").complete(
        messages, max_tokens=_MAX_TOKENS, timeout=seconds, purpose="memory extraction"
    )
    return str(reply.text or "")


def _ask_openai(at: _Endpoint, system: str, message: str) -> str:
    if not at.base.startswith(("https://", "http://")):
        raise LlmError(f"OPENAI_BASE_URL={at.base!r} is no http address")
    body = json.dumps({"model": at.model, "messages": _messages(system, message)}).encode()
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {at.key}"} if at.key else {})
    url = f"{at.base.rstrip('/')}/chat/completions"
    request = urllib.request.Request(url, body, headers)  # noqa: S310 - http alone, see above
    try:
        with urllib.request.urlopen(request, timeout=at.seconds) as response:  # noqa: S310 - http alone, see above
            answer = json.loads(response.read(_MAX_BYTES))
        return str(answer["choices"][0]["message"]["content"] or "")
    except urllib.error.HTTPError as error:
        raise LlmError(f"{url} answered {error.code}: {error.read(300).decode('utf-8', 'replace')}") from error
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise LlmError(f"{url} gave no usable answer: {type(error).__name__}: {error}") from error


def _ask_anthropic(at: _Endpoint, system: str, message: str) -> str:
    from anthropic import Anthropic

    reply = Anthropic(api_key=at.key, timeout=at.seconds, max_retries=0).messages.create(
        model=at.model, max_tokens=_MAX_TOKENS, system=system, messages=[{"role": "user", "content": message}]
    )
    return "".join(part.text for part in reply.content if part.type == "text")


def _messages(system: str, message: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": message}]
