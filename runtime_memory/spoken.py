"""Take from what a host hands over, or has logged, the words that a person wrote."""

from __future__ import annotations

import json
import re

__all__ = ["MAX_PROMPT", "spoken", "strip_blocks", "without_envelopes"]

MAX_PROMPT = 20_000

_BLOCK = re.compile(
    r"<\s*memory-context\s*>(?:(?:(?!<\s*memory-context).)*?</\s*memory-context\s*>|\s*\[System note:.*)",
    re.IGNORECASE | re.DOTALL,
)
_REPLY = re.compile(r'\A\s*\[Replying to(?: your previous message)?: ".*?"\]\s*', re.DOTALL)
_SENDER = re.compile(r"\A\s*\[[^\[\]\n]{1,80}\] (?=\S)")
_ENVELOPE = re.compile(
    r"^[ \t]*(?:Conversation info|Sender|Replied message|Forwarded message context|Thread starter)"
    r" \(untrusted[^)\n]*\):\s*```(?:json)?\n.*?\n```[ \t]*$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_STAMP = re.compile(r"\A\s*\[[^\[\]\n]{0,80}\d{4}-\d{2}-\d{2}[T ]\d{1,2}:\d{2}[^\[\]\n]{0,40}\]\s*")
_METADATA = frozenset(
    """
    account channel chat_id chat_type client conversation_id conversation_label date from group_id group_subject
    headers id is_bot is_forum is_group_chat message_id message_ids message_type media mime name phone platform
    provider reply_to_id sender sender_id session session_id session_key surface thread_id timestamp to topic_id
    ts type update_id user user_id username
    """.split()
)
_ATTACHMENT = re.compile(r"\[(?:media|image|file|audio|video) attached[^\[\]\n]{0,1000}\]", re.IGNORECASE)


def strip_blocks(text: str) -> str:
    """Return a text without the blocks of memories that a host injected into it."""
    return _BLOCK.sub("", text)


def without_envelopes(text: str) -> str:
    """Return a text without injected blocks and transport envelopes; empty when nothing is left but metadata."""
    bare = _STAMP.sub("", _ATTACHMENT.sub("", _ENVELOPE.sub("", strip_blocks(text)))).strip()
    return "" if _is_metadata(bare) else bare


def _is_metadata(text: str) -> bool:
    """Tell whether a text is a JSON object of which most names are those of a message's envelope."""
    body = text.removeprefix("```json").removesuffix("```").strip()
    if not (body.startswith("{") and body.endswith("}")):
        return False
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return len(found) > 1 and 2 * sum(name.lower() in _METADATA for name in found) > len(found)


def spoken(prompt: str) -> str:
    """Return a prompt without injected blocks, transport envelopes and the marks of a gateway.

    Of a prompt longer than ``MAX_PROMPT`` characters its beginning and its end are kept.
    """
    if len(prompt) > MAX_PROMPT:
        prompt = f"{prompt[: MAX_PROMPT // 2]} {prompt[-MAX_PROMPT // 2 :]}"
    return _SENDER.sub("", _REPLY.sub("", without_envelopes(prompt))).strip()
