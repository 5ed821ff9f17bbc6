"""Ask a language model at the endpoint that the environment names: OpenAI-compatible, or Anthropic."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from runtime_memory.errors import RuntimeMemoryError

__all__ = ["MAX_TOKENS", "Llm", "LlmError", "chat", "endpoint", "is_installed"]

Llm = Callable[[str, str], str]
"""Return the reply to a system prompt and a message."""

MODEL_VARIABLE = "RUNTIME_MEMORY_EXTRACT_MODEL"
MAX_TOKENS = 2_000
_OPENAI = "https://api.openai.com/v1"
_MAX_BYTES = 4_000_000


class LlmError(RuntimeMemoryError):
    """No language model can be asked, or it gave no reply."""


def endpoint(model: str | None, environment: Mapping[str, str] = os.environ, *, seconds: float = 60.0) -> Llm:
    """Return the way to a language model; raises LlmError that says what is missing. Nothing is asked yet.

    The first way that is there is used, and no other when it fails: a transcript goes nowhere unexpected.
    """
    key, base = environment.get("OPENAI_API_KEY", ""), environment.get("OPENAI_BASE_URL", "")
    anthropic = environment.get("ANTHROPIC_API_KEY", "")
    if not (key or base or anthropic):
        raise LlmError("no language model is at hand: set OPENAI_BASE_URL, OPENAI_API_KEY or ANTHROPIC_API_KEY")
    if not model:
        raise LlmError(f"set {MODEL_VARIABLE} to the model to ask")
    if key or base:
        return functools.partial(_ask_openai, _Endpoint(key, model, seconds, base or _OPENAI))
    if not is_installed("anthropic"):
        raise LlmError("ANTHROPIC_API_KEY is set, but its package is missing: pip install 'runtime-memory[anthropic]'")
    return functools.partial(_ask_anthropic, _Endpoint(anthropic, model, seconds))


@dataclass(frozen=True, slots=True)
class _Endpoint:
    key: str
    model: str
    seconds: float
    base: str = ""


def is_installed(module: str) -> bool:
    """Tell whether a module can be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _ask_openai(at: _Endpoint, system: str, message: str) -> str:
    if not at.base.startswith(("https://", "http://")):
        raise LlmError(f"OPENAI_BASE_URL={at.base!r} is no http address")
    body = json.dumps({"model": at.model, "messages": chat(system, message)}).encode()
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
        model=at.model, max_tokens=MAX_TOKENS, system=system, messages=[{"role": "user", "content": message}]
    )
    return "".join(part.text for part in reply.content if part.type == "text")


def chat(system: str, message: str) -> list[dict[str, str]]:
    """Return a system prompt and a message as a chat."""
    return [{"role": "system", "content": system}, {"role": "user", "content": message}]
