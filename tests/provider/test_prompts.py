"""What a person said, apart from what hosts and gateways wrap around it."""

from __future__ import annotations

import time

import pytest

from runtime_memory.spoken import MAX_PROMPT, spoken, without_envelopes
from tests.provider.conftest import PORT, PORT_QUESTION, Begin, Stored, call, remember

BLOCK = (
    "<memory-context>\n[System note: The following is recalled memory context, NOT new user input. Treat as "
    "authoritative reference data — this is the agent's persistent memory and should inform all responses.]\n\n"
    "## Relevant memories\n\n- [gotcha] an old fact `0192f3c4`\n</memory-context>"
)
ENVELOPE = 'Conversation info (untrusted metadata):\n```json\n{"message_id": "1", "sender": "+49"}\n```\n'
SENDER = 'Sender (untrusted metadata):\n```json\n{"name": "Anna"}\n```\n'


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        (PORT_QUESTION, PORT_QUESTION),
        (f"{PORT_QUESTION}\n\n{BLOCK}", PORT_QUESTION),
        (f"{ENVELOPE}\n{SENDER}\n{PORT_QUESTION}", PORT_QUESTION),
        (f"[Anna Schmidt] {PORT_QUESTION}", PORT_QUESTION),
        (f'[Replying to: "an [odd] quote\nof two lines"]\n\n{PORT_QUESTION}', PORT_QUESTION),
        (f'[Replying to your previous message: "done"]\n\n[Anna] {PORT_QUESTION}', PORT_QUESTION),
        (f"[media attached: /tmp/a.png (image/png)]\n{PORT_QUESTION}", PORT_QUESTION),
        ("what does [1, 2][0] give?", "what does [1, 2][0] give?"),
        ("[x for x in y]", "[x for x in y]"),
        (ENVELOPE, ""),
        (BLOCK, ""),
        ("", ""),
    ],
)
def test_what_is_spoken(prompt: str, said: str) -> None:  # E4, E7
    assert spoken(prompt) == said


def test_of_a_long_prompt_both_ends_count() -> None:
    said = spoken(f"first {'x ' * MAX_PROMPT} last")
    assert said.startswith("first")
    assert said.endswith("last")
    assert len(said) <= MAX_PROMPT + 1


@pytest.mark.parametrize(
    "part", ["\n", "a\n", "<memory-context>", "</memory-context>", "< ", "[", "[media attached", ENVELOPE[:40], "```\n"]
)
def test_no_text_takes_long(part: str) -> None:
    started = time.perf_counter()
    without_envelopes(f"a{part * (100_000 // len(part))}b")
    spoken(part * (100_000 // len(part)))
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("content", ["[gotcha] floats lose cents", "x" * 50_000, "see [1] and [2]"])
def test_content_to_keep_is_left_as_it_is(content: str) -> None:
    assert without_envelopes(content) == content


def test_a_wrapped_question_is_answered_like_the_bare_one(begin: Begin) -> None:
    one = begin()
    remember(one)
    bare = one.prefetch(PORT_QUESTION)
    assert PORT in bare
    assert one.prefetch(f"{ENVELOPE}\n[Anna] {PORT_QUESTION}\n\n{BLOCK}") == bare
    assert one.prefetch(f"{ENVELOPE}\nthanks!\n\n{BLOCK}") == ""


def test_what_was_recalled_is_not_saved_again(begin: Begin, stored: Stored) -> None:  # E4, E7
    one = begin()
    one.sync_turn(f"hi {BLOCK}", "hello", session_id="s1", messages=[])
    assert "nothing else to save" in call(one, "remember", {"content": BLOCK, "category": "gotcha"})["error"]
    assert "nothing else to save" in call(one, "remember", {"content": ENVELOPE, "category": "gotcha"})["error"]
    one.on_memory_write("add", "memory", BLOCK, {})
    remember(one, f"{ENVELOPE}{PORT}\n{BLOCK}")
    assert [memory.content for memory in stored()] == [PORT]


METADATA = '{"message_id": "17", "sender_id": "+49", "timestamp": "2026-03-01T12:00:00Z", "chat_type": "group"}'


@pytest.mark.parametrize(
    ("content", "left"),
    [
        (METADATA, ""),
        (f"```json\n{METADATA}\n```", ""),
        (f"{ENVELOPE}{METADATA}", ""),
        ('{"port": 5433, "host": "db"}', '{"port": 5433, "host": "db"}'),
        ('{"name": "Anna", "role": "owner", "team": "shop"}', '{"name": "Anna", "role": "owner", "team": "shop"}'),
        ("{not json}", "{not json}"),
        (f"[Telegram Anna id:17 2026-03-01 12:00 UTC] {PORT}", PORT),
        (f"[Sun 2026-03-01T12:00+01:00] {PORT}", PORT),
        (f"[2026-03-01] {PORT}", f"[2026-03-01] {PORT}"),
    ],
)
def test_the_envelope_of_a_message_is_no_content(content: str, left: str) -> None:  # E7
    assert without_envelopes(content) == left


def test_a_mirrored_note_is_stored_without_its_envelope(begin: Begin, stored: Stored) -> None:  # E4, E7
    one = begin()
    one.on_memory_write("add", "memory", f"{ENVELOPE}{PORT}\n{BLOCK}", {})
    one.on_memory_write("add", "memory", METADATA, {})
    assert [memory.content for memory in stored()] == [PORT]


def test_the_remember_tool_says_what_it_masked(begin: Begin) -> None:  # N1
    token = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4aB3dE6gH9jK2"
    answer = call(begin(), "remember", {"content": f"deploys use {token}", "category": "command", "tags": ["deploy"]})
    assert answer["masked"] == ["github token"]
    assert "masked" not in call(begin(), "remember", {"content": "The port is 5433", "category": "environment"})
