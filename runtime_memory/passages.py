"""Cut a text into passages that an encoder reads whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Strongest border first. Each match ends where a passage may end.
_BORDERS = (
    re.compile(r"\n[^\S\n]*\n\s*"),
    re.compile(r"\n\s*"),
    re.compile(r"[.!?…][\"')\]»”’]*\s+|[。！？｡][」』”’）]*\s*"),  # noqa: RUF001
    re.compile(r"\s+"),
)
PASSAGE_TOKENS = 128
"""Most tokens of a passage, though a model may read more: the vector of a longer text washes out its details.

MiniLM was trained on texts of this length, and finds as much or more with it as with its full 256 (docs/benchmarks.md).
"""

_SURROGATES = re.compile("[\ud800-\udfff]")
_FIRST_WINDOW = 2_048


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD, as no tokenizer takes them; the length stays the same."""
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def split_passages(text: str, tokenizer: Tokenizer, max_tokens: int) -> list[str]:
    """Cut a text at natural borders into passages of at most max_tokens tokens, special tokens included.

    Borders in order of preference: blank line, line, sentence, white space, any token. Only white space between
    passages is lost; lone surrogates come back as U+FFFD. A text that fits is returned whole, also when it is empty.
    The tokenizer must neither truncate nor pad. Time is linear: a window of about one passage is tokenized at a time.
    """
    text = replace_surrogates(text)
    budget = max_tokens - tokenizer.num_special_tokens_to_add(is_pair=False)
    if budget < 1:
        raise ValueError(f"max_tokens={max_tokens} leaves no room for text beside the special tokens")
    passages: list[str] = []
    start, width = 0, _FIRST_WINDOW
    while True:
        cut = _passage_length(text, start, width, tokenizer, budget)
        if start + cut == len(text):
            return [text] if start == 0 else passages + [rest for rest in [text[start:].strip()] if rest]
        passages.append(text[start : start + cut].strip())
        start += cut
        # White space is free of tokens; skipping it here keeps every passage non-empty.
        start += len(text[start : start + width]) - len(text[start : start + width].lstrip())
        width = cut + cut // 4 + 64


def _passage_length(text: str, start: int, width: int, tokenizer: Tokenizer, budget: int) -> int:
    """Return how many characters from start on make the next passage; at least one, unless the text is at its end."""
    window = text[start : start + width]
    offsets = _token_offsets(window, tokenizer)
    while len(offsets) <= budget and start + len(window) < len(text):
        width *= 2
        window = text[start : start + width]
        offsets = _token_offsets(window, tokenizer)
    # A cut inside a word can change how that word is tokenized, so the piece is counted again.
    while len(offsets) > budget:
        cut = _last_border(window, offsets[budget // 2][0], offsets[budget][0]) or 1
        if cut == len(window):
            break
        window = window[:cut]
        offsets = _token_offsets(window, tokenizer)
    return len(window)


def _token_offsets(text: str, tokenizer: Tokenizer) -> list[tuple[int, int]]:
    offsets: list[tuple[int, int]] = tokenizer.encode(text, add_special_tokens=False).offsets
    return offsets


def _last_border(text: str, low: int, high: int) -> int:
    """Return the end of the last match of the strongest border in text[low:high], or high when there is none."""
    for border in _BORDERS:
        ends = [match.end() for match in border.finditer(text, low, high)]
        if ends:
            return ends[-1]
    return high
