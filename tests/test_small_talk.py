"""Prompts that ask for nothing recall nothing; prompts that ask for something are never taken for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_memory import MemoryStore, NewMemory
from runtime_memory.small_talk import is_small_talk

CHIT_CHAT = """
ok|OK!|okay|thanks|thanks!|Thank you so much|thx|ty|lol|haha|hahaha|hi|Hello!|hey there|good morning
Good night!|bye|yes|yep|yeah|no|nope|sure|of course|go ahead|please continue|continue|next|stop|never mind
great|perfect!|awesome|sounds good|looks good|looks good to me|got it|makes sense|no worries|you're welcome
lgtm|k|cool|nice|wow|wonderful!|👍|🎉🎉🎉|:)|...|!!!|?|-|🙏 thanks|ok 👍|谢谢|好的|好的！|哈哈哈
ありがとうございます|はい|了解です。|감사합니다|네|ㅋㅋㅋ|ขอบคุณครับ|สวัสดี|merci|merci beaucoup|danke
vielen dank|gracias|muchas gracias|obrigado|grazie|спасибо|да|привет|شكرا|धन्यवाद|תודה
"""
PROMPTS = [prompt for line in CHIT_CHAT.strip().splitlines() for prompt in line.split("|")]
QUESTIONS = [
    "which port?",
    "what is my name",
    "Thanks! Which database do we use for staging?",
    "ok, now deploy it to production",
    "yes, use port 5433",
    "no, the other branch",
    "hi, can you run the tests?",
    "what next for the release?",
    "db?",
    "E0277",
    "2",
    "继续部署到生产环境",
    "好的，数据库端口是多少？",
    "我们的微信数据放在哪里？",
    "はい、ポートは何番ですか",
    "네, 데이터베이스 포트는?",
    "ขอบคุณครับ พอร์ตอะไร",
    "Danke, und welcher Port ist es?",
    "merci, quel est le port ?",
    "да, какой порт?",
]


@pytest.mark.parametrize("prompt", PROMPTS, ids=ascii)
def test_chit_chat_is_small_talk(prompt: str) -> None:  # A8
    assert is_small_talk(prompt)


@pytest.mark.parametrize("prompt", QUESTIONS)
def test_a_prompt_that_asks_for_something_is_not(prompt: str) -> None:
    assert not is_small_talk(prompt)


@pytest.mark.parametrize("prompt", ["", " \n", "\0", "\u200b", "\ud83d"])
def test_a_prompt_without_words_is_small_talk(prompt: str) -> None:
    assert is_small_talk(prompt)


@pytest.mark.parametrize(
    "opening",
    ["-" * 300 + "\n", "\n" * 300, "ok\n" + "=" * 250 + "\n", "Hi!" + " " * 250],
    ids=["a line", "empty lines", "an answer and a line", "a greeting and spaces"],
)
def test_a_question_far_into_a_prompt_is_seen(opening: str) -> None:
    assert not is_small_talk(f"{opening}Which port does the staging database use?")


@given(st.text(st.characters(exclude_categories=[])))
def test_any_prompt_can_be_judged(prompt: str) -> None:
    assert is_small_talk(prompt) in {True, False}


@given(
    st.sampled_from(["ok", "thanks", "good morning", "yes please", "谢谢", "merci", "vielen dank", "да", "네", ":)"]),
    st.sampled_from(["", " ", "\n", "!", " 👍", "…", "\0"]),
)
def test_case_and_punctuation_do_not_make_a_question_of_it(prompt: str, end: str) -> None:
    assert is_small_talk(prompt.upper() + end)


def test_small_talk_recalls_nothing_even_when_the_words_are_stored(wide_store: MemoryStore) -> None:
    wide_store.add("ok thanks")
    assert wide_store.recall("ok thanks!") == []
    assert wide_store.search("ok thanks!")


def test_fifty_turns_of_chit_chat_recall_something_once_at_most(wide_store: MemoryStore) -> None:  # A8
    topics = ["a good night for the backup", "the great wall of text parser", "no cache", "next week is the release"]
    wide_store.add_many([NewMemory(f"{topic} number {number}") for number in range(10) for topic in topics])
    assert len([prompt for prompt in PROMPTS[:50] if wide_store.recall(prompt)]) <= 1
