"""Tell whether a memory reads like an instruction to the model that it will be shown to, rather than like a fact.

A stored text comes back in later prompts, so that one sentence of a web page could command an agent for months. What
looks like that is not dropped, as notes on security quote such sentences too: it is marked, and trusted less. The
judgement is made on reading, so that it also covers what was stored before there was one.

The rules are our own: the libraries for this either ask a model of hundreds of megabytes, or are lists of English
phrases for what a user types, take milliseconds a text, and refuse plain notes of engineers.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import islice

import regex

from runtime_memory import foreign_phrases, instruction_phrases
from runtime_memory.phrase_rules import Rule, without_marks
from runtime_memory.plain_text import without_hidden

__all__ = ["suspicion"]

_HEAD, _TAIL = 16_000, 4_000
_REMEMBERED = 4_000


def suspicion(content: str) -> str | None:
    """Return in words why a text reads like an instruction, or None; of a very long one, both its ends are read."""
    if len(content) <= _REMEMBERED:
        return _remembered(content)
    ends = content if len(content) <= _HEAD + _TAIL else f"{content[:_HEAD]}\n{content[-_TAIL:]}"
    return _judge(ends)


@lru_cache(maxsize=2048)
def _remembered(content: str) -> str | None:
    return _judge(content)


def _judge(text: str) -> str | None:
    if not text.isascii() and (reason := _hiding(text)):
        return reason
    return _matched(text) or ("encodes an instruction in base64" if _encodes(text) else None)


def _matched(text: str) -> str | None:
    by_hint = _LATIN if text.isascii() else _ALL
    for form in _forms(text):
        holds = form.__contains__
        for hint in filter(holds, by_hint):
            for rule in by_hint[hint]:
                if any(map(holds, rule.others)) and _compiled(rule.pattern).search(form):
                    return rule.reason
    return None


_compiled = cache(re.compile)  # most rules are never tried in a process


# How a text may be written so that a model reads it and a list of phrases does not.

# Cyrillic and Greek letters that look like Latin ones.
_LOOKALIKES = str.maketrans("аеорсухіјѕԁһԛԝьвнкмтгαοερντικυχηωβγ", "aeopcyxijsdhqwbbhkmtraoepvtikuxnwby")
_DIGITS = str.maketrans("013457@$!", "oieastasi")
_DISGUISED = ("1gn", "gn0", "!gn", "f0rg", "d1sr", "pr3v", "v10u", "1nst", "pr0m")
_SPACED = re.compile(r"[\W_](?:[a-z][\W_]{1,3}){7,}[a-z](?![a-z])")
_OTHER_LETTERS = re.compile("[\u0370-\u052f]")
_MIXED = regex.compile(r"(?=\w*[a-z])(?=\w*[\p{Cyrillic}\p{Greek}])\w+")
_TAGS = re.compile("[\U000e0020-\U000e007e]{2,}\U000e007f?")
_SUBDIVISION_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,6}\U000e007f")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,}")
_INVISIBLE = regex.compile(r"[\u200b\u2060-\u2064\u180e\ufeff\u200c\u200d\u115f\u3164\uffa0]{6,}")
_OVERRIDES = re.compile("[\u202d\u202e]")
_WITHIN_WORDS = re.compile("(?<=[A-Za-z])[\u200b\u200c\u200d\u2060\ufeff](?=[A-Za-z])")


def _forms(text: str) -> Iterator[str]:
    """Yield the text as the rules read it, and what it may have been before it was disguised."""
    plain = text.lower() if text.isascii() else _folded(text)
    yield plain
    if any(map(plain.__contains__, _DISGUISED)):
        yield plain.translate(_DIGITS)
    for spaced in _SPACED.finditer(f" {plain}"):
        yield re.sub(r"[\W_]+", "", spaced[0])


def _folded(text: str) -> str:
    """Return a text in compatible, lower-case characters, without accents and without other scripts' lookalikes."""
    seen = unicodedata.normalize("NFKD", without_hidden(text)).casefold()
    bare = without_marks(seen)
    return _MIXED.sub(lambda word: word[0].translate(_LOOKALIKES), bare) if _OTHER_LETTERS.search(bare) else bare


def _hiding(text: str) -> str | None:
    """Return why a text seems to hide a part of itself."""
    tagged = _TAGS.search(_SUBDIVISION_FLAG.sub("", text))
    if tagged or _SELECTORS.search(text) or _INVISIBLE.search(text):
        return "hides text in invisible characters"
    if _OVERRIDES.search(text):
        return "shows its characters in another order than they are read"
    return "splits words by invisible characters" if len(_WITHIN_WORDS.findall(text)) > 2 else None


_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,8000}={0,2}(?![A-Za-z0-9+/_=-])")
_SHORTEST_BLOB, _MOST_BLOBS = 24, 20


def _encodes(text: str) -> bool:
    """Tell whether a base64 text within the text reads like an instruction."""
    if max(map(len, text.split()), default=0) < _SHORTEST_BLOB:
        return False
    return any(_matched(_decoded(blob[0])) for blob in islice(_BASE64.finditer(text), _MOST_BLOBS))


def _decoded(blob: str) -> str:
    body = blob.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _by_hint(rules: Iterable[Rule]) -> dict[str, tuple[Rule, ...]]:
    found: dict[str, tuple[Rule, ...]] = {}
    for rule in rules:
        for hint in rule.hints:
            found[hint] = (*found.get(hint, ()), rule)
    return found


_RULES = (*instruction_phrases.RULES, *foreign_phrases.RULES)
_ALL = _by_hint(_RULES)
_LATIN = _by_hint(rule for rule in _RULES if rule.pattern.isascii())
