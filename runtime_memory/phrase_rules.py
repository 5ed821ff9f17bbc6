"""What a rule for instruction-like text is, and how it is written down.

A rule reads a text in lower case, decomposed (NFKD), without accents. In a pattern, ``_`` is what may stand between two
words (nothing, too), ``~`` a character within a sentence, and white space is nothing.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

__all__ = ["Rule", "rule", "without_marks"]

_MARKS = re.compile("[\u0300-\u036f\u064b-\u0652]+")


class Rule(NamedTuple):
    """``pattern`` is looked for in texts that hold one of the hints, and one of the others."""

    reason: str
    hints: tuple[str, ...]
    others: tuple[str, ...]
    pattern: str


def without_marks(text: str) -> str:
    """Return a decomposed text without the accents of Latin, Greek and Cyrillic, and the vowel signs of Arabic."""
    return _MARKS.sub("", text)


_REASONS = {
    "override": "tells a reader to ignore its instructions",
    "role": "gives a reader another role",
    "markup": "holds the markup of another speaker",
    "secret": "asks to keep something from the user",
    "send": "asks to send private data away",
    "reveal": "asks for hidden instructions",
}


def rule(reason: str, hints: str, pattern: str) -> Rule:
    """Return a rule; an & parts the hints from the others, and white space in the pattern is nothing."""
    first, *others = (tuple(group.split()) for group in _foldedrule(hints).split(" & "))
    source = "".join(_foldedrule(pattern).split()).replace("_", r"[\W_]{0,4}").replace("~", r"[^,.。、!?\n]")
    return Rule(_REASONS[reason], first, others[0] if others else ("",), source)


def _foldedrule(text: str) -> str:
    return without_marks(unicodedata.normalize("NFKD", text).casefold())
