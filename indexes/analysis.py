"""Turn text into the terms that are indexed and searched: one analysis for documents and queries.

Prose becomes English stems; identifiers, paths and versions are kept whole and in parts (``retry_backoff_ms`` also
gives ``retry``, ``backoff``, ``ms``); accents and widths are folded; scripts written without spaces become character
bigrams. Whatever the text holds, it is data: nothing in it is an operator.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from itertools import chain

import regex
import tantivy

__all__ = ["ANALYZER_VERSION", "FUNCTION_WORD_WEIGHT", "MAX_TERM_LENGTH", "analyze", "analyze_query", "fold"]

ANALYZER_VERSION = 1
"""Raised with every change of the terms, so that an index written by an older analysis is rebuilt."""

MAX_TERM_LENGTH = 128
"""Characters of a term that count; a longer run (base64, a minified file) is cut, in documents and queries alike."""

FUNCTION_WORD_WEIGHT = 0.4

# Combining marks that are dropped: Latin, Greek and Cyrillic accents, Hebrew points, Arabic vowel signs. The marks of
# other scripts (Devanagari, Thai, kana) carry the word itself.
_ACCENTS = regex.compile(r"[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]")
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u3005\u30fc"
_WORD_CHAR = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]"
_RUN = regex.compile(
    rf"(?P<unspaced>[{_UNSPACED}][{_UNSPACED}\p{{M}}]*)"
    rf"|(?P<compound>\p{{L}}(?:\+\+|\#)(?!{_WORD_CHAR})|{_WORD_CHAR}+(?:[-_./:@\#+\\]+{_WORD_CHAR}+)*)",
    regex.V1,
)
# The same of ASCII alone, which needs no folding: most texts are, and it takes a third of the time.
_ASCII_RUN = re.compile(r"[A-Za-z](?:\+\+|#)(?![A-Za-z0-9])|[A-Za-z0-9]+(?:[-_./:@#+\\]+[A-Za-z0-9]+)*")
_CONTRACTION = regex.compile(r"(?i)(?<=\p{L})'(?:s(?!\p{L})|(?=t(?!\p{L})))")
_SEGMENT = regex.compile(r"[/\\:@]+")
_PART = regex.compile(r"[-_.+\#]+")
_CAMEL = regex.compile(r"(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})", regex.V1)
_PLAIN = regex.compile(r"\p{L}?\p{Ll}*|\p{Lu}+|\p{N}+")
_VERSION = regex.compile(r"v(?=\d)")

_STEMMER = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).filter(tantivy.Filter.stemmer("english")).build()
_ENGLISH_FUNCTION_WORDS = frozenset(
    """
    a about after all also am an and any are as at be because been before being but by can could did do does doing
    done for from get got had has have having he her here hers him his how i if in into is it its just like may me
    might mine more most must my no not now of on or our ours out over own please s shall she should so some such t
    than that the their theirs them then there these they this those to too up us very was we were what when where
    which while who whom whose why will with would yes you your yours
    """.split()
)


_FUNCTION_CHARACTERS = frozenset(
    "我你您他她它们們的地得在是了吗嗎呢吧啊么麼什甚怎哪里裡那这這个個和与與或就都也很有会會能可以请請把被让讓从從到对對为為因所如果但而且"
)
_KANA_PAIR = regex.compile(r"\p{Hiragana}{2}")


def fold(text: str) -> str:
    """Return the text with compatibility forms, widths and accents folded; case is kept."""
    decomposed = unicodedata.normalize("NFKD", text).replace("\u2019", "'")
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


def analyze(text: str) -> list[str]:
    """Return the terms of a document, in order and with repetitions; no term holds white space."""
    return _terms(text, characters=True)


def analyze_query(query: str) -> dict[str, float]:
    """Return the distinct terms to search for, with their weights.

    They are a document's, but single characters only where a run is one long. Function words (English; in Chinese and
    Japanese the bigrams of their characters) weigh ``FUNCTION_WORD_WEIGHT`` times what their rarity says:
    questions are full of them, and in a small collection even they are rare.
    """
    return {
        term: FUNCTION_WORD_WEIGHT if _is_function_word(term) else 1.0
        for term in dict.fromkeys(_terms(query, characters=False))
    }


def _terms(text: str, *, characters: bool) -> list[str]:
    if text.isascii():
        bare = _CONTRACTION.sub("", text) if "'" in text else text
        return list(chain.from_iterable(map(_stemmed, _ASCII_RUN.findall(bare))))
    terms: list[str] = []
    for run in _RUN.finditer(_CONTRACTION.sub("", fold(text))):
        if word := run["compound"]:
            terms += _compound_terms(word)
        else:
            terms += _ngrams(run["unspaced"], characters=characters)
    return _stem(terms)


def _is_function_word(term: str) -> bool:
    if term.isascii():
        return term in _function_words()
    return len(term) == 2 and (any(c in _FUNCTION_CHARACTERS for c in term) or _KANA_PAIR.fullmatch(term) is not None)


@cache
def _function_words() -> frozenset[str]:
    return frozenset(_stem(sorted(_ENGLISH_FUNCTION_WORDS)))


def _ngrams(run: str, *, characters: bool) -> list[str]:
    bigrams = [run[i : i + 2] for i in range(len(run) - 1)]
    return bigrams + list(run) if characters or not bigrams else bigrams


@lru_cache(maxsize=1 << 15)
def _compound_terms(run: str) -> tuple[str, ...]:
    whole = run.casefold()
    if _PLAIN.fullmatch(run):
        return (whole,)
    terms = [whole]
    for segment in _SEGMENT.split(run):
        terms.append(segment.casefold())
        for part in _PART.split(segment):
            terms.append(part.casefold())
            terms += [piece.casefold() for piece in _CAMEL.split(part)]
    terms += [_VERSION.sub("", term, count=1) for term in terms if _VERSION.match(term)]
    return tuple(dict.fromkeys(terms))


@lru_cache(maxsize=1 << 15)
def _stemmed(run: str) -> tuple[str, ...]:
    return tuple(_stem(list(_compound_terms(run))))


def _stem(terms: list[str]) -> list[str]:
    if terms and len(max(terms, key=len)) > MAX_TERM_LENGTH:
        terms = [term[:MAX_TERM_LENGTH] for term in terms]
    return _STEMMER.analyze(" ".join(terms))
