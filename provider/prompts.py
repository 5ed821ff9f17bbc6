"""Take from what a host hands over the words that a person wrote."""

from __future__ import annotations

import re

from provider.block import strip_blocks

__all__ = ["MAX_PROMPT", "spoken", "without_envelopes"]

MAX_PROMPT = 20_000

_REPLY = re.compile(r'\A\s*\[Replying to(?: your previous message)?: ".*?"\]\s*', re.DOTALL)
_SENDER = re.compile(r"\A\s*\[[^\[\]\n]{1,80}\] (?=\S)")
_ENVELOPE = re.compile(
    r"^[ \t]*(?:Conversation info|Sender|Replied message|Forwarded message context|Thread starter)"
    r" \(untrusted[^)\n]*\):\s*```(?:json)?\n.*?\n```[ \t]*$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_ATTACHMENT = re.compile(r"\[(?:media|image|file|audio|video) attached[^\]\n]*\]", re.IGNORECASE)


def without_envelopes(text: str) -> str:
    """Return a text without injected blocks and transport envelopes."""
    return _ATTACHMENT.sub("", _ENVELOPE.sub("", strip_blocks(text))).strip()


def spoken(prompt: str) -> str:
    """Return a prompt without injected blocks, transport envelopes and the marks of a gateway.

    Of a prompt longer than ``MAX_PROMPT`` characters its beginning and its end are kept.
    """
    if len(prompt) > MAX_PROMPT:
        prompt = f"{prompt[: MAX_PROMPT // 2]} {prompt[-MAX_PROMPT // 2 :]}"
    return _SENDER.sub("", _REPLY.sub("", without_envelopes(prompt))).strip()
