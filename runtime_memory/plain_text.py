"""Take from a text what a reader does not see, but a terminal or a language model obeys: control and hidden characters.

Taken out are escape sequences of terminals, controls of the direction of writing, characters without a width and
without a use in any script (tag characters among them), and variation selectors where there is nothing to vary.
Joiners within words of other scripts and within emoji stay, as they are part of them.
"""

from __future__ import annotations

import json
import re
from typing import Any

import regex

from runtime_memory.secrets import mask

__all__ = ["as_data", "json_text", "neutral", "without_hidden"]

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC and other strings
    r"|\x1b[ -/]*[0-~]?"
)
_HIDDEN = regex.compile(
    r"[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\ufff9-\ufffb"
    r"--[\u200c\u200d\ufe00-\ufe0f\u180b-\u180d\u180f\U000e0100-\U000e01ef]]+"
    r"|(?<![\p{L}\p{M}\p{So}\p{Sk}\ufe0f--\p{ASCII}])[\u200c\u200d]+|(?<=[\u200c\u200d])[\u200c\u200d]+"
    r"|(?<![0-9#*]|[^\x00-\x7f])[\ufe00-\ufe0f]+"  # keycaps are a digit with one
    r"|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]+"
    r"|(?<!\p{Han})[\U000e0100-\U000e01ef]+|(?<=\p{Han}[\U000e0100-\U000e01ef])[\U000e0100-\U000e01ef]+",
    regex.V1,
)
_MAYBE_HIDDEN = re.compile(  # most texts hold none of these, and this is quick to tell
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# The fence and the note that a host puts around memories. What is left of a tag inside a tag must not become one when a
# host strips the inner one.
_TAG = re.compile(r"<(?=[\s/]*memory)", re.IGNORECASE)
_NOTE = re.compile(r"\[(?=\s*system\s+note)", re.IGNORECASE)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNSAFE_IN_JSON = regex.compile(
    r"[\x7f-\x9f\u2028\u2029\p{Default_Ignorable_Code_Point}\p{Bidi_Control}--[\u200c\u200d\ufe00-\ufe0f]]", regex.V1
)


def without_hidden(text: str) -> str:
    """Return a text without the characters that are not seen."""
    return _HIDDEN.sub("", text) if _MAYBE_HIDDEN.search(text) else text


def neutral(text: str, control: str = "�") -> str:
    """Return a text that can be printed and quoted: without what is hidden, and ``control`` for a control character.

    Line feeds and tabs stay.
    """
    if text.isprintable() and text.isascii():
        return text
    return _CONTROLS.sub(control, without_hidden(_ESCAPES.sub("", text)))


def as_data(text: str) -> str:
    """Return a text as a model may be shown it: neutral, without secrets, and without what a host gives a meaning.

    A secret may stand in a store that an older version wrote, or where it was kept on purpose.
    """
    return mask(_NOTE.sub("(", _TAG.sub("\u2039", neutral(text)))).text


def json_text(value: Any, **options: Any) -> str:
    """Return a value as JSON in which hidden and control characters are escaped, so that none is lost or obeyed."""
    return str(_UNSAFE_IN_JSON.sub(_escaped, json.dumps(value, **options)))


def _escaped(found: regex.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
