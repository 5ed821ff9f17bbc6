"""Cut a Markdown text at its headings, and what is too long between two of them at natural borders.

Everything here depends on the text alone, so that the same text is always cut in the same places.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from runtime_memory.importers.wikilinks import readable

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["Block", "Section", "anchors", "blocks", "cut", "plain", "sections", "shortened", "slug", "unlinked"]

LONGEST_HEADING = 200
_LONGEST_PARSED = 2_000

_ATX = re.compile(r"^ {0,3}#{1,6}(?:[ \t]|$)", re.MULTILINE)
_FIRST = re.compile(r" {0,3}(#{1,6})(?=[ \t]|\n|\Z)")
_SETEXT = re.compile(r"^ {0,3}(?:=+|-+)[ \t]*$", re.MULTILINE)
_BEFORE_HEADINGS = ("\n#", "\n=", "\n-", "\n ")
_MAY_HOLD_CODE = re.compile(r"`|~~~|^(?: {4}|\t)|[ \t]{5}", re.MULTILINE)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
# Strongest first. Each match ends where a part may end.
_BORDERS = tuple(map(re.compile, (r"\n\s*\n", r"\n", r"[.!?…][\"')\]]*\s+|[。！？｡]", r"\s+")))  # noqa: RUF001
_MARKUP = re.compile(r"[\\`*_\[\]<>&]")
_NOT_IN_SLUGS = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list item, a fenced or indented block of code, or another part of a text, and its first line.

    ``kind`` is the name that CommonMark's reference implementations give it.
    """

    kind: str
    start: int
    end: int
    info: str = ""


class Section(NamedTuple):
    """A heading and the text up to the next one.

    ``level`` is 0 for the text before the first heading; ``path`` are the headings above it and its own; ``anchor`` is
    what links to it on GitHub. Wikilinks are readable already.
    """

    level: int
    path: tuple[str, ...]
    anchor: str
    text: str


def sections(text: str) -> list[Section]:
    """Return the sections of a Markdown text in order; text before the first heading is one when there is some.

    Headings are what CommonMark calls so, outside of lists and quotations: underlined ones too, and none in code.
    """
    text = text.strip("\n")
    if not _may_hold_more(text) and not ("[[" in text and _MAY_HOLD_CODE.search(text)):
        return _simple(readable(text))
    lines, tokens = _parsed(text)
    found = list(_headings(tokens))
    starts = [(0, 0, "")] + [(level, last, heading) for level, _, last, heading in found]
    ends = [first for _, first, _, _ in found] + [len(lines)]
    result: list[Section] = []
    above: list[tuple[int, str]] = []
    for (level, start, heading), end, anchor in zip(
        starts, ends, ["", *anchors(heading for _, _, _, heading in found)], strict=True
    ):
        above = [*((each, name) for each, name in above if each < level), (level, heading)] if level else []
        body = "\n".join(lines[start:end]).strip("\n").rstrip()
        if level or body:
            result.append(Section(level, tuple(name for _, name in above), anchor, body))
    return result


def cut(text: str, longest: int) -> list[str]:
    """Return a text in parts of at most about ``longest`` characters, in order; only blank lines are lost.

    Borders are those of paragraphs, list items and code blocks. What is longer alone is cut between lines, sentences or
    words; a block of code is then fenced in each of its parts.
    """
    if len(text) <= longest:
        return [text]
    lines = text.split("\n")
    parts: list[str] = []
    start = stop = size = 0
    for block in blocks(text):
        length = sum(len(line) + 1 for line in lines[block.start : block.end])
        if start < stop and size + length > longest:
            parts.append("\n".join(lines[start:stop]))
            start, size = block.start, 0
        if length > longest:
            parts.extend(_pieces(lines[block.start : block.end], block, longest))
            start, size = block.end, 0
        else:
            size += length
        stop = block.end
    parts.append("\n".join(lines[start:stop]))
    return [kept for part in parts if (kept := part.strip("\n").rstrip())]


def blocks(text: str) -> list[Block]:
    """Return the blocks of a text, which cover all its lines; the items of a list are blocks of their own."""
    tokens = _parser().parse(text)
    found: list[tuple[str, int, str]] = []
    depth = 0
    for token in tokens:
        if token.type in ("bullet_list_open", "ordered_list_open"):
            depth += 1
            continue
        if token.type in ("bullet_list_close", "ordered_list_close"):
            depth -= 1
            continue
        item = token.type == "list_item_open" and depth == 1 and token.level == 1
        if token.map and token.nesting >= 0 and (token.level == 0 or item) and token.type != "inline":
            kind = token.type.removesuffix("_open")
            ordered = item and token.markup in (".", ")")
            found.append(("ordered_item" if ordered else kind, token.map[0], token.info))
    if not found or found[0][1]:
        found.insert(0, ("paragraph", 0, ""))  # link definitions are no tokens
    ends = [start for _, start, _ in found[1:]] + [text.count("\n") + 1]
    return [Block(kind, start, end, info) for (kind, start, info), end in zip(found, ends, strict=True)]


def unlinked(text: str) -> str:
    """Return a text with readable wikilinks, its code as it is."""
    return "\n".join(_parsed(text)[0]) if "[[" in text else text


def anchors(headings: Iterable[str]) -> Iterator[str]:
    """Yield the anchors of headings as GitHub makes them: ``usage``, and ``usage-1`` for the next of the same name."""
    taken: dict[str, int] = {}
    for heading in headings:
        base = anchor = slug(heading) or "section"
        while anchor in taken:
            taken[base] += 1
            anchor = f"{base}-{taken[base]}"
        taken[anchor] = 0
        yield anchor


def slug(heading: str) -> str:
    """Return a heading in lower case, without punctuation, its spaces as hyphens."""
    return _NOT_IN_SLUGS.sub("", heading.lower()).strip().replace(" ", "-")


def plain(markdown: str) -> str:
    """Return a heading as a reader sees it, without marks of emphasis, code and links, and shortened."""
    markdown = readable(markdown[:_LONGEST_PARSED])
    if _MARKUP.search(markdown):
        markdown = "".join(_texts(_inline_parser().parseInline(markdown)))
    return shortened(" ".join(markdown.split()))


def shortened(heading: str) -> str:
    """Return a heading that can stand before every part of its text."""
    return heading if len(heading) <= LONGEST_HEADING else heading[: LONGEST_HEADING - 1].rstrip() + "…"


def _may_hold_more(text: str) -> bool:
    """Tell whether there may be a heading besides one in the first line: a parser costs more than all the rest."""
    first = text.find("\n")
    if first < 0 or not any(begin in text for begin in _BEFORE_HEADINGS):
        return False
    return bool(_ATX.search(text, first) or _SETEXT.search(text, first))


def _simple(text: str) -> list[Section]:
    heading = _FIRST.match(text)
    if not heading:
        return [Section(0, (), "", text.rstrip())] if text.strip() else []
    line, _, body = text[heading.end() :].partition("\n")
    line = line.strip()
    without = line.rstrip("#")
    name = plain(line if without and without[-1] not in " \t" else without)
    return [Section(len(heading[1]), (name,), slug(name) or "section", body.strip("\n").rstrip())]


def _parsed(text: str) -> tuple[list[str], list[Token]]:
    """Return the lines of a text, with readable wikilinks, and its blocks as tokens that point at lines."""
    lines, tokens = text.split("\n"), _parser().parse(text)
    if "[[" in text:
        for token in tokens:
            if token.type == "inline" and token.map and "[[" in token.content:
                first, end = token.map
                lines[first:end] = readable("\n".join(lines[first:end])).split("\n")
    return lines, tokens


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[int, int, int, str]]:
    """Yield level, first line, line after the last one and text of the headings outside of lists and quotations."""
    for token, content in itertools.pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            yield int(token.tag[1:]), token.map[0], token.map[1], plain(content.content)


def _pieces(lines: Sequence[str], block: Block, longest: int) -> Iterator[str]:
    """Yield the parts of one block that is too long to stay whole."""
    fence = _FENCE.match(lines[0]) if block.kind == "fence" else None
    if not fence or len(lines[0]) > LONGEST_HEADING:
        yield from _broken("\n".join(lines), longest, _BORDERS)
        return
    code = list(lines[1:])
    while code and not code[-1].strip():
        code.pop()
    if code and code[-1].strip().startswith(fence[1]):
        code.pop()
    for piece in _broken("\n".join(code), longest, _BORDERS[1:2]):
        yield "\n".join((lines[0], piece.removesuffix("\n"), fence[0]))


def _broken(text: str, longest: int, borders: Sequence[re.Pattern[str]]) -> Iterator[str]:
    """Yield a text in pieces, each cut at the last border of the strongest kind in its second half."""
    start = 0
    while len(text) - start > longest:
        low, high = start + longest // 2, start + longest
        ends = (ends[-1] for border in borders if (ends := [each.end() for each in border.finditer(text, low, high)]))
        stop = next(ends, high)
        yield text[start:stop]
        start = stop
    yield text[start:]


def _texts(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.children:
            yield from _texts(token.children)
        elif token.type in ("text", "code_inline"):
            yield token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield " "


@functools.cache
def _parser() -> MarkdownIt:
    """Return a CommonMark parser that leaves the inside of blocks alone, which nothing here needs."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["inline", "text_join"])


@functools.cache
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")
