"""Make, of a true memory, one that looks like it and is wrong: another name, number, date or word, or a negation."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence

__all__ = ["Vocabulary", "contradicted", "cue"]

_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_COUNTS = "two three four five six seven eight nine ten twelve".split()
_RELATIVE = "yesterday today tomorrow tonight morning evening afternoon spring summer autumn winter".split()
_LISTS = (_MONTHS, _DAYS, _COUNTS, _RELATIVE)
_HEADER = re.compile(r"^\[[^\]]*\] (?:[A-Z]\w+: )?")
"""The date and the speaker before a conversation's turn: a question finds them in the rival as in the truth."""
_NUMBER = re.compile(r"(?<![\w.])\d{1,6}(?![\w])")
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|must)\b(?! not\b)", re.IGNORECASE
)
_NOT = re.compile(r" not\b|n't\b")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
_WORD = re.compile(r"\b[a-z]{5,}\b")
_CUE = re.compile(r"\b[A-Za-z][\w-]{3,}\b")
_FUNCTION = frozenset(
    """
    about above after again against also although always another because been before being below between both could
    does doing down during each even ever every from further have having here hers herself himself into itself just
    know like made make many more most much must myself need never only other ourselves over really same shall should
    since some still such than that their theirs them then there these they thing things this those through under until
    very want well were what when where which while whom will with would your yours yourself image shares
    """.split()
)


class Vocabulary:
    """The names and words of a collection of texts, from which a rival takes its wrong ones."""

    def __init__(self, texts: Iterable[str]) -> None:
        bodies = [text[_begin(text) :] for text in texts]
        self.names = sorted({name for body in bodies for name in _NAME.findall(body)} - {*_MONTHS, *_DAYS})
        self.words = sorted({word for body in bodies for word in _WORD.findall(body)} - _FUNCTION)


def contradicted(text: str, vocabulary: Vocabulary, rng: random.Random) -> str:
    """Return the text with one fact changed, and one more for every 400 characters.

    The first kind of change that the text allows is taken, in a random order of the kinds; the last resort is a
    negation in front of it.
    """
    changed = text
    for _ in range(1 + len(text) // 400):
        changed = _change(changed, vocabulary, rng)
    return changed


def cue(text: str, rng: random.Random, words: int = 4) -> str:
    """Return a question made of a few words of a memory, in their order, for where nobody wrote a second one."""
    found = [word for word in dict.fromkeys(_CUE.findall(text[_begin(text) :])) if word.lower() not in _FUNCTION]
    chosen = sorted(rng.sample(range(len(found)), min(words, len(found))))
    return f"what do we know about {' '.join(found[place] for place in chosen)}?"


def _change(text: str, vocabulary: Vocabulary, rng: random.Random) -> str:
    kinds: list[Callable[[], str | None]] = [
        lambda: _number(text, rng),
        lambda: _listed(text, rng),
        lambda: _replace(text, _NAME, vocabulary.names, rng),
        lambda: _negate(text, rng),
        lambda: _replace(text, _WORD, vocabulary.words, rng),
    ]
    rng.shuffle(kinds)
    for kind in kinds:
        changed = kind()
        if changed is not None and changed != text:
            return changed
    begin = _begin(text)
    return f"{text[:begin]}It is not true that {text[begin:]}"


def _number(text: str, rng: random.Random) -> str | None:
    def another(old: str) -> str:
        low = 10 ** (len(old) - 1) if len(old) > 1 else 0
        number = rng.randrange(low, 10 ** len(old))
        return str(number if number != int(old) else low + (number - low + 1) % (10 ** len(old) - low))

    return _substitute(text, _NUMBER, another, rng)


def _listed(text: str, rng: random.Random) -> str | None:
    for names in rng.sample(_LISTS, len(_LISTS)):
        pattern = re.compile(rf"\b(?:{'|'.join(names)})\b")
        changed = _substitute(text, pattern, lambda old, names=names: _other(names, old, rng), rng)  # type: ignore[misc]
        if changed is not None:
            return changed
    return None


def _replace(text: str, pattern: re.Pattern[str], words: Sequence[str], rng: random.Random) -> str | None:
    if len(words) < 2:
        return None
    return _substitute(text, pattern, lambda old: _other(words, old, rng), rng, unless=_FUNCTION)


def _negate(text: str, rng: random.Random) -> str | None:
    if _NOT.search(text, _begin(text)):
        return _substitute(text, _NOT, lambda _: "", rng)
    return _substitute(text, _AUXILIARY, lambda old: f"{old} not", rng)


def _substitute(
    text: str,
    pattern: re.Pattern[str],
    new: Callable[[str], str],
    rng: random.Random,
    unless: frozenset[str] = frozenset(),
) -> str | None:
    places = [match for match in pattern.finditer(text, _begin(text)) if match[0] not in unless]
    if not places:
        return None
    match = rng.choice(places)
    return text[: match.start()] + new(match[0]) + text[match.end() :]


def _other(words: Sequence[str], old: str, rng: random.Random) -> str:
    return rng.choice([word for word in words if word != old])


def _begin(text: str) -> int:
    header = _HEADER.match(text)
    return header.end() if header else 0
