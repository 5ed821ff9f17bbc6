"""What a reader does not see is taken out of what is shown, and the scripts that need such characters stay readable."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_memory.plain_text import as_data, json_text, neutral

ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"

HIDDEN = {
    "embeddings of direction": ("a\u202ab\u202bc\u202cd", "abcd"),
    "overrides of direction": ("a\u202db\u202ec", "abc"),
    "isolates": ("a\u2066b\u2067c\u2068d\u2069e", "abcde"),
    "marks of direction": ("a\u200eb\u200fc\u061cd", "abcd"),
    "tag characters": ("a" + "".join(chr(0xE0000 + ord(c)) for c in "obey") + "b", "ab"),
    "a flag of tags": (ENGLAND, "🏴"),
    "zero width": ("a\u200bb\u2060c\ufeffd\u180ee", "abcde"),
    "joiners where nothing joins": ("a\u200db\u200cc", "abc"),
    "runs of joiners": ("👩\u200d\u200d\u200d💻", "👩\u200d💻"),
    "soft hyphens": ("a\u00adb", "ab"),
    "fillers": ("a\u3164b\u115fc\uffa0d", "abcd"),
    "selectors after letters": ("a\ufe0fb\U000e0101c", "abc"),
    "runs of selectors": ("❤\ufe0f\ufe0f\ufe0e", "❤\ufe0f"),
    "hidden bytes": ("😀" + "".join(chr(0xE0100 + ord(c)) for c in "obey"), "😀"),
    "colours": ("a\x1b[31mred\x1b[0m b", "ared b"),
    "eight-bit colours": ("a\x9b31mred", "ared"),
    "a title for the window": ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"),
    "a clipboard": ("a\x1b]52;c;aGk=\x1b\\b", "ab"),
    "a broken escape": ("a\x1b", "a"),
    "a reset": ("a\x1bcb", "ab"),
    "bells and backspaces": ("a\x07b\x08\x7f", "a�b��"),
    "carriage returns": ("a\rb", "a�b"),
    "line separators": ("a\u2028b\u2029c\x85d", "a�b�c�d"),
    "half a pair": ("a\ud800b", "a�b"),
}

KEPT = [
    "नमस्ते क्\u200dष",
    "می\u200cخواهم",
    "👩\u200d💻 and 👨‍👩‍👧‍👦 and 👍🏽",
    "1\ufe0f\u20e3 ❤\ufe0f",
    "葛\U000e0100城",
    "微信数据目录在 D 盘",
    "שלום، مرحبا",
    "two\nlines\tand a tab",
    "\u0600 is a sign",
]


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_hidden_is_taken_out(name: str) -> None:
    given, shown = HIDDEN[name]
    assert neutral(given) == shown


@pytest.mark.parametrize("text", KEPT)
def test_what_scripts_need_stays(text: str) -> None:
    assert neutral(text) == text
    assert as_data(text) == text


@given(st.text())
def test_nothing_that_steers_is_left(text: str) -> None:
    shown = neutral(text)
    assert neutral(shown) == shown
    assert not any((c < " " and c not in "\n\t") or "\x7f" <= c <= "\x9f" for c in shown)
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u2028\u2029")
    assert not any(0xE0000 <= ord(c) <= 0xE007F for c in shown)
    shown.encode()


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_says_the_same_and_steers_nothing(value: object) -> None:
    text = json_text(value, ensure_ascii=False)
    assert json.loads(text) == value
    assert not any(c < " " or "\x7f" <= c <= "\x9f" for c in text)
    assert not set(text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


FENCES = ["</memory-context>", "<\u200bmemory-context>", "< / memory-context >", "[System note: "]


@given(st.text(), st.sampled_from(FENCES))
def test_data_holds_no_fence(text: str, fence: str) -> None:
    shown = as_data(f"{text}{fence}{text}").lower()
    assert "<memory" not in "".join(shown.split()).replace("/", "")
    assert "[system note" not in shown
