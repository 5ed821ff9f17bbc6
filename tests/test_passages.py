"""Passages fit the model, end at natural borders, and lose nothing but white space."""

from __future__ import annotations

import base64
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from runtime_memory.passages import replace_surrogates, split_passages
from runtime_memory.weights import default_folder


def _load() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(default_folder() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


_TOKENIZER = _load()


def _count(text: str) -> int:
    return len(_TOKENIZER.encode(text).ids)


def _solid(text: str) -> str:
    return "".join(text.split())


def _check(text: str, max_tokens: int) -> list[str]:
    passages = split_passages(text, _TOKENIZER, max_tokens)
    assert _solid("".join(passages)) == _solid(replace_surrogates(text))
    assert all(_count(passage) <= max_tokens for passage in passages)
    assert len(passages) == 1 or all(passage and passage == passage.strip() for passage in passages)
    return passages


_pieces = st.one_of(
    st.text(max_size=60),
    st.text(alphabet=st.characters(categories=["Lo", "Mn", "So", "Po"]), max_size=60),
    st.sampled_from(
        [" ", "\n", "\n\n", ". ", "。", "word ", "漢字", "a" * 120, "\0", "\ud800", "👩‍👩‍👧‍👦", "\u0301", " " * 80]
    ),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(_pieces, max_size=60).map("".join), st.integers(16, 64))
def test_every_passage_fits_and_only_white_space_is_lost(text: str, max_tokens: int) -> None:
    _check(text, max_tokens)


@pytest.mark.parametrize("text", ["", "  \n", "  one line\n\n with an end \n", "\n" * 100_000], ids=len)
def test_a_text_that_fits_is_returned_whole(text: str) -> None:
    assert split_passages(text, _TOKENIZER, 256) == [text]


def test_the_last_sentence_of_a_long_text_is_in_a_passage() -> None:
    words = random.Random(3).choices("alpha beta gamma delta epsilon zeta eta theta".split(), k=3_000)
    filler = "".join(word + (". " if number % 15 == 14 else " ") for number, word in enumerate(words))
    fact = "The deploy key of the shop lies in the blue vault."
    passages = _check(filler + fact, 256)
    assert fact in passages[-1]
    assert 12 <= len(passages) <= 40


def _sentences(count: int) -> str:
    return " ".join(f"Sentence number {number} tells one small thing about the shop." for number in range(count))


def test_blank_lines_are_preferred_to_sentences() -> None:
    paragraphs = [_sentences(12), _sentences(12), _sentences(12)]
    assert _check("\n\n".join(paragraphs), 256) == paragraphs


def test_sentences_are_preferred_to_words() -> None:
    assert all(passage.endswith(".") for passage in _check(_sentences(100), 256))


def test_words_are_not_cut_where_white_space_is() -> None:
    words = [f"word{number}" for number in range(900)]
    assert " ".join(_check(" ".join(words), 64)).split() == words


def test_code_is_cut_between_lines() -> None:
    lines = [f"    total_{number} = compute(values[{number}], scale={number})" for number in range(200)]
    for passage in _check("\n".join(lines), 256):
        assert all(line.strip() in {original.strip() for original in lines} for line in passage.splitlines())


def test_chinese_is_cut_after_full_stops() -> None:
    assert all(passage.endswith("。") for passage in _check("这是一个关于支付重试的句子。" * 100, 256))


def test_a_limit_without_room_for_text_is_refused() -> None:
    with pytest.raises(ValueError, match="max_tokens=2"):
        split_passages("text", _TOKENIZER, 2)


def _two_megabytes(kind: str) -> str:
    rng = random.Random(5)
    return {
        "prose": lambda: _sentences(33_000),
        "base64": lambda: base64.b64encode(rng.randbytes(1_500_000)).decode(),
        "chinese": lambda: "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(666_666)),
        "thai": lambda: "ภาษาไทยไม่มีช่องว่าง" * 33_000,
        "one letter": lambda: "a" * 2_000_000,
        "line ends": lambda: "\n" * 1_999_000 + _sentences(20),
        "punctuation": lambda: ".,;" * 666_666,
    }[kind]()


@pytest.mark.parametrize("kind", ["prose", "base64", "chinese", "thai", "one letter", "line ends", "punctuation"])
def test_two_megabytes_take_seconds(kind: str) -> None:
    text = _two_megabytes(kind)
    started = time.perf_counter()
    passages = split_passages(text, _TOKENIZER, 256)
    took = time.perf_counter() - started
    print(f"{kind}: {len(passages)} passages in {took:.1f} s")
    assert took < 60
    assert _solid("".join(passages)) == _solid(text)
