"""What depends on what the model really makes of a text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from runtime_memory import MemoryStore, NewMemory, Settings

TOPICS = "garden bicycle piano holiday budget printer kitchen football passport weather".split()
MINUTES = (
    "The quarterly report was reviewed by the team in the office on Monday.",
    "We then discussed the travel budget and the plan for next spring at length.",
    "Nobody objected to the roadmap, and the coffee was fine.",
)
FACT = "The spare key of the archive is taped under the third drawer."


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    with MemoryStore(Settings(db=str(tmp_path_factory.mktemp("store")))) as opened:
        opened.add_many([NewMemory(f"A note about the {topic} of last year") for topic in TOPICS])
        yield opened


def contents(store: MemoryStore, question: str) -> list[str]:
    return [hit.memory.content for hit in store.recall(question)]


def test_the_last_sentence_of_3000_words_is_found_by_vectors_alone(store: MemoryStore) -> None:  # D1
    long = store.add(" ".join([*itertools.islice(itertools.cycle(MINUTES), 250), FACT]))
    assert len(long.content.split()) > 3000
    found = store.candidates("where is the extra key to the archive hidden?")
    assert found.vectors[0][0] == long.id
    hit = store.search("where is the extra key to the archive hidden?", limit=1)[0]
    assert hit.passage is not None
    assert FACT in hit.passage
    assert store.get(long.id).content == long.content
    assert long.content.endswith(FACT)


@pytest.mark.parametrize(
    ("stored", "question"),
    [
        ("微信数据目录在 D 盘", "我们的微信数据放在哪里？"),
        ("ステージングのデータベースのポートは 5433 です", "ステージングのデータベースのポートは何番？"),
        ("스테이징 데이터베이스 포트는 5433번이다", "스테이징 데이터베이스 포트가 몇 번이야?"),
        ("พอร์ตของฐานข้อมูล staging คือ 5433", "ฐานข้อมูล staging ใช้พอร์ตอะไร"),
        ("Das Passwort für den Tresor kennt nur Ines", "Wer kennt das Passwort für den Tresor?"),
    ],
    ids="chinese japanese korean thai german".split(),
)
def test_a_question_is_answered_in_its_own_language(store: MemoryStore, stored: str, question: str) -> None:  # B1
    store.add(stored)
    assert contents(store, question)[0] == stored


@pytest.mark.parametrize(
    "question", ["who won the chess olympiad?", "PHRASE_THAT_DOES_NOT_APPEAR_QQQQ", "ok cool", "🎉"]
)
def test_what_no_memory_answers_recalls_nothing(store: MemoryStore, question: str) -> None:  # A7, A8
    assert contents(store, question) == []


def test_a_paraphrase_is_recalled_without_a_word_in_common(store: MemoryStore) -> None:
    memory = store.add("Emily cannot eat peanuts, she is allergic")
    assert contents(store, "which nuts must our daughter avoid in her lunch?") == [memory.content]


def test_another_projects_memories_do_not_come_up(store: MemoryStore) -> None:  # A11
    store.add_many(
        [NewMemory(f"CocoIndex tool {n}: test the model access with probe {n}", project="a") for n in range(9)]
    )
    assert contents(store, "测试模型访问") == []
    assert [hit for hit in store.recall("test model access", project="b") if hit.memory.project == "a"] == []


def test_of_two_names_the_newer_comes_first(store: MemoryStore) -> None:  # E3
    for name in ("Anna", "Berta"):
        store.add(f"my name is {name}")
    assert contents(store, "what is my name")[:2] == ["my name is Berta", "my name is Anna"]
