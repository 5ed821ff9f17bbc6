"""Make the links of Obsidian and Foam readable: ``[[note#heading|shown]]`` and ``![[picture.png|300]]``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

__all__ = ["BELOW", "readable"]

BELOW = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
"""Stands between a note's name and a heading in it."""

# In a table the bar is escaped.
_LINK = re.compile(r"(!?)\[\[([^\[\]\n|]*?)(?:\\?\|([^\[\]\n]*))?\]\]")
_BACKTICKS = re.compile(r"\\`|`+")
_SIZE = re.compile(r"\d+(?:px|%|em|rem)?(?:x\d+)?|left|center|right")
_NOTE = re.compile(r"\.(?:md|markdown)$", re.IGNORECASE)


def readable(text: str) -> str:
    """Return a text with its wikilinks as what a reader sees; code spans stay as they are, and so do lines.

    A link becomes its shown text, else its note's name and heading; an embedded file becomes its name, after its
    description where it has one.
    """
    if "[[" not in text:
        return text
    pieces, after = [], 0
    for start, end in _code_spans(text):
        pieces += [_LINK.sub(_shown, text[after:start]), text[start:end]]
        after = end
    return "".join([*pieces, _LINK.sub(_shown, text[after:])])


def _shown(link: re.Match[str]) -> str:
    embedded, target, given = link[1], link[2].strip(), link[3] or ""
    shown = " ".join(part for part in map(str.strip, given.replace("\\|", "|").split("|")) if part)
    name, _, place = target.partition("#")
    name = _NOTE.sub("", name.rstrip("/").rpartition("/")[2]).strip()
    headings = [part.strip() for part in place.split("#") if part.strip() and not part.startswith("^")]
    full = BELOW.join(filter(None, [name, *headings]))
    if not embedded:
        return shown or full or link[0]
    described = " ".join(word for word in shown.split() if not _SIZE.fullmatch(word))
    if not full:
        return link[0]
    return f"{described} ({full})" if described and described != full else full


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the code spans of some inline text: a run of backticks up to the next of the same length."""
    runs = [match.span() for match in _BACKTICKS.finditer(text) if match[0][0] == "`"]
    closing = defaultdict(list)
    for start, end in reversed(runs):
        closing[end - start].append((start, end))
    after = 0
    for start, end in runs:
        if start < after:
            continue
        same = closing[end - start]
        while same and same[-1][0] <= start:
            same.pop()
        if same:
            after = same[-1][1]
            yield start, after
