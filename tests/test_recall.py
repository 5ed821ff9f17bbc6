"""What surfaces by itself for a message, what is left out, and how each decision is explained."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_memory import MemoryStore, NewMemory, Outcome, SearchMode, SearchResult
from runtime_memory.recall import near_duplicates
from tests.conftest import Clock, FragileEmbedder, OpenStore, WideEmbedder, contents, ranking

TOPICS = "database kitchen garden invoice compiler telescope violin harbour glacier pottery".split()


def fail(store: MemoryStore, memory_id: str, times: int = 3) -> None:
    for _ in range(times):
        store.record_outcome([memory_id], Outcome.FAILED)


def reasons(store: MemoryStore, query: str, **seen: str | int) -> dict[str, str | None]:
    """Return by content why each memory is left out of a recall, None where it is not."""
    explained = store.explain(query, **seen)  # type: ignore[arg-type]
    return {result.memory.content: result.dropped for result in explained.results}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# What is found


def test_a_question_recalls_what_answers_it(wide_store: MemoryStore) -> None:  # A2
    wide_store.add_many([NewMemory(f"note about {topic}") for topic in TOPICS])
    wide_store.add("db port is 5433")
    assert contents(wide_store.recall("which port?")) == ["db port is 5433"]


def test_a_memory_is_recalled_right_after_it_was_stored_by_a_store_that_was_just_opened(open_store: OpenStore) -> None:
    open_store().add("db port is 5433")  # A1, A3
    assert contents(open_store().recall("which port?")) == ["db port is 5433"]


def test_a_question_in_many_words_finds_what_shares_few_of_them(wide_store: MemoryStore) -> None:  # C8
    wide_store.add_many([NewMemory(f"what we did for the {topic}") for topic in TOPICS if topic != "database"])
    wide_store.add("staging db port 5433")
    found = wide_store.search("what did we decide about the database port for staging last week")
    assert next(hit for hit in found if hit.text_rank == 1).memory.content == "staging db port 5433"


@pytest.mark.parametrize(
    ("stored", "question"),
    [
        ("微信数据目录在 D 盘", "我们的微信数据放在哪里？"),
        ("データベースのポートは5433です", "データベースのポートは何番ですか"),
        ("데이터베이스 포트는 5433번이다", "데이터베이스 포트가 뭐였지?"),
        ("รหัสผ่านฐานข้อมูลอยู่ในตู้นิรภัย", "รหัสผ่านฐานข้อมูลอยู่ที่ไหน"),
        ("पासवर्ड तिजोरी में रखा है", "पासवर्ड कहाँ रखा है"),
        ("كلمة المرور محفوظة في الخزنة", "أين كلمة المرور محفوظة"),
        ("Пароль хранится в сейфе", "Где хранится пароль"),
        ("Das Passwort liegt im Tresor", "Wo liegt das Passwort"),
    ],
    ids="chinese japanese korean thai hindi arabic russian german".split(),
)
def test_a_question_is_answered_in_its_own_language_by_words_alone(
    open_store: OpenStore, stored: str, question: str
) -> None:  # B1, B6
    embedder = FragileEmbedder()
    embedder.broken = True
    store = open_store(embedder=embedder)
    store.add_many([NewMemory(f"note about {topic}") for topic in TOPICS])
    store.add(stored)
    assert contents(store.recall(question)) == [stored]


def test_nonsense_recalls_nothing_among_many_memories(wide_store: MemoryStore) -> None:  # A7
    wide_store.add_many([NewMemory(f"note {number} about {TOPICS[number % 10]} matters") for number in range(200)])
    assert wide_store.recall("PHRASE_THAT_DOES_NOT_APPEAR_QQQQ") == []
    assert wide_store.recall("zanzibar quixotic brouhaha") == []


def test_search_answers_whatever_the_relevance(wide_store: MemoryStore) -> None:
    wide_store.add("the violin needs new strings")
    question = "is the harbour of the glacier frozen in winter"
    assert wide_store.recall(question) == []
    assert contents(wide_store.search(question)) == ["the violin needs new strings"]


def test_an_empty_store_recalls_nothing(store: MemoryStore) -> None:
    assert store.recall("which port?") == [] == store.search("which port?")
    assert store.explain("which port?").results == ()


def test_the_limit_is_kept_and_the_best_come_first(wide_store: MemoryStore) -> None:
    wide_store.add_many([NewMemory(f"port {7000 + at} of service {topic}") for at, topic in enumerate(TOPICS)])
    found = wide_store.recall("service port violin", limit=3)
    assert len(found) == 3
    assert found[0].memory.content == "port 7006 of service violin"
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_a_result_carries_the_reasons_for_its_place(wide_store: MemoryStore) -> None:
    wide_store.add("the staging port is 5433")
    (hit,) = wide_store.search("the staging port is 5433")
    assert (hit.text_rank, hit.vector_rank, hit.outcome_term) == (1, 1, 0)
    assert hit.cosine == pytest.approx(1)
    assert [hit.coverage, hit.relevance, hit.fused, hit.score] == pytest.approx([1, 1, 1, 1])
    assert hit.bm25 is not None
    assert hit.bm25 > 0


def test_a_floor_on_the_score_is_kept_in_search(wide_store: MemoryStore) -> None:
    wide_store.add_many([NewMemory("the staging port is 5433"), NewMemory("a port has cranes and other things too")])
    assert len(wide_store.search("the staging port is 5433")) == 2
    assert contents(wide_store.search("the staging port is 5433", min_score=0.9)) == ["the staging port is 5433"]


def test_an_outcome_does_not_lift_a_result_over_the_floor(wide_store: MemoryStore) -> None:
    wide_store.add("the staging port is 5433")
    other = wide_store.add("a port has cranes and other things too")
    for _ in range(20):
        wide_store.record_outcome([other.id], Outcome.WORKED)
    assert contents(wide_store.search("the staging port is 5433", min_score=0.9)) == ["the staging port is 5433"]


def test_search_narrows_by_category_and_tag(wide_store: MemoryStore) -> None:
    wide_store.add_many(
        [
            NewMemory("the port is 1", category="environment", tags=["db"]),
            NewMemory("the port is 2", category="environment"),
            NewMemory("the port is 3", category="gotcha", tags=["db", "prod"]),
        ]
    )
    assert set(contents(wide_store.search("port", category="environment"))) == {"the port is 1", "the port is 2"}
    assert set(contents(wide_store.search("port", tags=["db"]))) == {"the port is 1", "the port is 3"}
    assert contents(wide_store.search("port", category="gotcha", tags=["db", "prod"])) == ["the port is 3"]
    assert wide_store.search("port", tags=["d"]) == []


def test_many_unrelated_turns_later_an_early_fact_is_still_recalled(wide_store: MemoryStore) -> None:  # A23
    wide_store.add("the harbour master is called Ingrid")
    wide_store.add_many([NewMemory(f"turn {number} was about {TOPICS[number % 10]}") for number in range(400)])
    assert "the harbour master is called Ingrid" in contents(wide_store.recall("how is the harbour master called"))


# Long memories


def test_the_last_sentence_of_a_long_note_is_found_by_vectors_alone(wide_store: MemoryStore) -> None:  # D1, D7
    wide_store.add_many([NewMemory(f"note about {topic}") for topic in TOPICS])
    long = " ".join(["lorem ipsum dolor"] * 1000) + " the vault code is heliotrope"
    memory = wide_store.add(long)
    (hit,) = (hit for hit in wide_store.search("vault code heliotrope") if hit.memory.id == memory.id)
    assert hit.vector_rank == 1
    assert hit.memory.content == long


def test_a_long_memory_is_one_result_and_leaves_room_for_others(wide_store: MemoryStore) -> None:
    wide_store.add(" ".join(["alpha beta gamma"] * 6000))
    shorter = wide_store.add_many([NewMemory(f"alpha beta gamma {topic}") for topic in TOPICS])
    found = {hit.memory.id: hit for hit in wide_store.search("alpha beta gamma", limit=20)}
    assert len(found) == 11
    assert [memory.content for memory in shorter if found[memory.id].vector_rank is None] == []


# Outcomes


def test_a_memory_that_keeps_failing_is_left_out_of_recall_and_marked_in_search(wide_store: MemoryStore) -> None:
    memory = wide_store.add("restart the worker to clear the queue")
    fail(wide_store, memory.id, 2)
    assert contents(wide_store.recall("how to clear the queue")) == [memory.content]
    fail(wide_store, memory.id, 1)
    assert wide_store.recall("how to clear the queue") == []
    (hit,) = wide_store.search("how to clear the queue")
    assert hit.memory.outcome_score <= -0.5


def test_a_failing_memory_is_recalled_again_when_its_failures_have_faded(wide_store: MemoryStore, clock: Clock) -> None:
    memory = wide_store.add("restart the worker to clear the queue")
    fail(wide_store, memory.id)
    clock.advance(days=90)
    assert contents(wide_store.recall("how to clear the queue")) == [memory.content]


def test_failing_memories_take_no_place_from_others(wide_store: MemoryStore) -> None:
    failing = wide_store.add_many([NewMemory(f"clear the queue like {topic} does") for topic in TOPICS])
    for _ in range(3):
        wide_store.record_outcome([memory.id for memory in failing], Outcome.FAILED)
    wide_store.add("you clear a queue with purge, that is how it works in all the queues we have had here")
    assert len(wide_store.recall("clear the queue", limit=1)) == 1


def test_what_worked_comes_before_its_equal_that_did_not(wide_store: MemoryStore) -> None:  # A17
    wide_store.add_many([NewMemory("deploy by the script"), NewMemory("deploy by the button")])
    first, second = (hit.memory for hit in wide_store.recall("how to deploy"))
    wide_store.record_outcome([second.id], Outcome.WORKED)
    assert [hit.memory.id for hit in wide_store.recall("how to deploy")] == [second.id, first.id]
    wide_store.record_outcome([second.id], Outcome.FAILED)
    assert [hit.memory.id for hit in wide_store.recall("how to deploy")] == [first.id, second.id]


# Near duplicates


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use pytest for all tests.", "use PYTEST for all tests"),
        ("The server retries three times.", "the server retries three times!"),
        ("we deploy the shop on fridays after the standup", "we deploy the shop on fridays, after standup"),
        ("数据库的端口在配置文件里", "数据库的端口在配置文件里。"),
    ],
)
def test_texts_that_say_the_same_are_near_duplicates(one: str, other: str) -> None:
    assert near_duplicates(one, other)
    assert near_duplicates(other, one)


LONG = "when the staging database of the shop is being migrated on a friday evening the worker"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{LONG} listens on port 5432", f"{LONG} listens on port 5433"),
        (f"{LONG} must stop", f"{LONG} must not stop"),
        (f"{LONG} must stop", f"{LONG} must never stop"),
        (f"{LONG} uses version v2.5", f"{LONG} uses version v2.6"),
        (f"{LONG} does retry", f"{LONG} doesn't retry"),
        (f"{LONG} is safe to restart", f"{LONG} isn't safe to restart"),
        (f"{LONG} will be stopped", f"{LONG} won't be stopped"),
        (f"{LONG} can be restarted", f"{LONG} can't be restarted"),
        (f"{LONG} is called anna", f"{LONG} is called berta"),
        (f"{LONG} copies from staging to production", f"{LONG} copies from production to staging"),
        ("生产环境的数据库每天凌晨都会自动备份到对象存储", "生产环境的数据库每天凌晨都不会自动备份到对象存储"),
        (
            "После миграции базы данных магазина сервер надо сразу перезапускать в пятницу вечером",
            "После миграции базы данных магазина сервер не надо сразу перезапускать в пятницу вечером",
        ),
        ("the cat sleeps", "the dog sleeps"),
    ],
    ids="number not never version doesnt isnt wont cant name direction chinese-negation russian-negation short".split(),
)
def test_texts_that_say_something_else_are_not(one: str, other: str) -> None:
    assert not near_duplicates(one, other)
    assert not near_duplicates(other, one)


@given(st.text(), st.text())
def test_being_near_duplicates_is_mutual(one: str, other: str) -> None:
    assert near_duplicates(one, other) == near_duplicates(other, one)


def test_near_duplicates_are_recalled_once_and_searched_both(wide_store: MemoryStore) -> None:
    wide_store.add_many([NewMemory("use pytest for all tests"), NewMemory("Use pytest, for all tests!")])
    assert len(wide_store.recall("which tool for tests, pytest?")) == 1
    assert len(wide_store.search("which tool for tests, pytest?")) == 2


# Contradictions and the archive


def test_a_corrected_fact_is_recalled_in_its_new_form_only(wide_store: MemoryStore) -> None:  # A19, A20
    old = wide_store.add("SSH 端口是 22")
    new = wide_store.add("SSH 改到了 49222 端口", supersedes=old.id)
    assert [hit.memory.id for hit in wide_store.recall("SSH 端口是多少")] == [new.id]
    assert [hit.memory.id for hit in wide_store.search("SSH 端口是多少")] == [new.id]
    everything = wide_store.search("SSH 端口是多少", include_archived=True)
    assert {hit.memory.id: hit.memory.archived for hit in everything} == {old.id: True, new.id: False}


def test_of_two_facts_that_contradict_each_other_the_newer_comes_first(
    wide_store: MemoryStore, clock: Clock
) -> None:  # E3
    wide_store.add("my name is Anna")
    clock.advance(days=30)
    wide_store.add("my name is Berta")
    found = wide_store.recall("what is my name")
    assert contents(found) == ["my name is Berta", "my name is Anna"]
    assert found[0].memory.created_at > found[1].memory.created_at


def test_the_newer_of_two_near_duplicates_is_the_one_that_is_recalled(wide_store: MemoryStore, clock: Clock) -> None:
    wide_store.add("we deploy the shop on fridays after the standup")
    clock.advance(days=30)
    wide_store.add("we deploy the shop on fridays, after standup")
    assert contents(wide_store.recall("when do we deploy the shop")) == ["we deploy the shop on fridays, after standup"]


def test_an_archived_memory_is_not_recalled_until_it_is_brought_back(wide_store: MemoryStore) -> None:
    memory = wide_store.add("the staging port is 5433")
    wide_store.archive(memory.id)
    assert wide_store.recall("which staging port") == [] == wide_store.search("which staging port")
    assert len(wide_store.search("which staging port", include_archived=True)) == 1
    wide_store.archive(memory.id, archived=False)
    assert contents(wide_store.recall("which staging port")) == [memory.content]


# Explanations: every way to be left out has its reason


def test_nothing_here_answers_the_question(wide_store: MemoryStore) -> None:  # O2
    wide_store.add("the violin needs new strings")
    reason = reasons(wide_store, "is the harbour frozen in winter")["the violin needs new strings"]
    assert reason is not None
    assert reason.startswith("nothing here answers the question: relevance 0.")


def test_one_memory_answers_and_another_is_not_relevant_enough(wide_store: MemoryStore) -> None:
    wide_store.add_many([NewMemory("the harbour is frozen in winter"), NewMemory("the violin needs new strings")])
    found = reasons(wide_store, "is the harbour frozen in winter")
    assert found["the harbour is frozen in winter"] is None
    assert str(found["the violin needs new strings"]).startswith("relevance 0.")


def test_it_kept_failing(wide_store: MemoryStore) -> None:
    memory = wide_store.add("the harbour is frozen in winter")
    fail(wide_store, memory.id)
    reason = reasons(wide_store, "is the harbour frozen in winter")[memory.content]
    assert reason == "it kept failing: outcome score -0.56"


def test_it_says_the_same_as_a_better_one(wide_store: MemoryStore) -> None:
    first, second = wide_store.add_many([NewMemory("use pytest for tests"), NewMemory("use pytest, for tests!")])
    found = reasons(wide_store, "pytest for tests")
    assert set(found.values()) in ({None, f"says the same as {first.id}"}, {None, f"says the same as {second.id}"})


def test_it_is_beyond_the_limit(wide_store: MemoryStore) -> None:
    wide_store.add_many([NewMemory("the port of violin is 1"), NewMemory("the port of harbour is 2")])
    found = reasons(wide_store, "which port", limit=1)
    assert sorted(map(str, found.values())) == ["None", "beyond the limit of 1"]


def test_it_is_archived(wide_store: MemoryStore) -> None:
    memory = wide_store.add("the staging port is 5433")
    wide_store.archive(memory.id)
    assert reasons(wide_store, "staging port") == {memory.content: "archived"}


def test_it_is_superseded(wide_store: MemoryStore) -> None:
    old = wide_store.add("the staging port is 5432")
    new = wide_store.add("the staging port is 5433", supersedes=old.id)
    assert reasons(wide_store, "staging port") == {new.content: None, old.content: f"superseded by {new.id}"}


def test_it_is_superseded_by_what_had_been_there_before(wide_store: MemoryStore) -> None:
    old, new = wide_store.add("the staging port is 5432"), wide_store.add("the staging port is 5433")
    wide_store.add(new.content, supersedes=old.id)
    assert reasons(wide_store, "staging port")[old.content] == f"superseded by {new.id}"


def test_it_belongs_to_another_project(wide_store: MemoryStore) -> None:
    wide_store.add("the staging port is 5433", project="shop")
    found = reasons(wide_store, "staging port", project="blog")
    assert found == {"the staging port is 5433": "in another project: shop"}


@pytest.mark.parametrize("project", [None, "shop"])
def test_it_belongs_to_another_session(wide_store: MemoryStore, project: str | None) -> None:
    wide_store.add("the staging port is 5433", scope="session", session="s1", project=project)
    found = reasons(wide_store, "staging port", project="shop", session="s2")
    assert found == {"the staging port is 5433": "of another session: s1"}


def test_it_is_below_the_floor_on_scores(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_MEMORY_MIN_SCORE", "0.9")
    store = open_store(embedder=WideEmbedder())
    store.add_many([NewMemory("staging port 5433"), NewMemory("the port on which staging listens is in the wiki")])
    found = reasons(store, "staging port 5433", project="shop")
    assert found["staging port 5433"] is None
    assert "0.9" in str(found["the port on which staging listens is in the wiki"])


def test_small_talk_is_explained_by_an_empty_search(wide_store: MemoryStore) -> None:
    wide_store.add("ok thanks, sounds good")
    explained = wide_store.explain("ok thanks!")
    assert (explained.mode, explained.results) == (SearchMode.NONE, ())


def test_an_explanation_recalls_what_recall_recalls(wide_store: MemoryStore) -> None:
    wide_store.add_many([NewMemory(f"the port of {topic} is {at}") for at, topic in enumerate(TOPICS)])
    explained = wide_store.explain("which port has the violin", limit=3)
    assert ranking(explained.recalled) == ranking(wide_store.recall("which port has the violin", limit=3))
    assert explained.mode is SearchMode.HYBRID
    assert {"port", "violin"} <= set(explained.terms)
    assert len(explained.results) == len(explained.recalled) + len(explained.dropped)


def test_reading_and_explaining_write_nothing(wide_store: MemoryStore, folder: Path) -> None:  # A16
    memory = wide_store.add("the staging port is 5433")
    wide_store.record_outcome([memory.id], Outcome.WORKED)
    before, known = files(folder), wide_store.get(memory.id)
    wide_store.explain("which staging port")
    wide_store.recall("which staging port")
    wide_store.search("which staging port")
    wide_store.stats()
    assert files(folder) == before
    assert wide_store.get(memory.id) == known


# When the model fails


def test_a_model_that_fails_once_costs_one_turn_its_vectors_and_no_more(open_store: OpenStore) -> None:  # A4
    embedder = FragileEmbedder()
    store = open_store(embedder=embedder)
    store.add("the staging port is 5433")
    embedder.broken = True
    assert contents(store.recall("which port has staging")) == ["the staging port is 5433"]
    assert store.explain("which port has staging").mode is SearchMode.TEXT
    assert "out of memory in the model" in str(store.stats().message)
    embedder.broken = False
    assert store.explain("which port has staging").mode is SearchMode.HYBRID
    assert store.stats().message is None


def test_another_model_of_the_same_size_does_not_compare_its_vectors(open_store: OpenStore) -> None:  # J1
    open_store(embedder=WideEmbedder("model-a@1")).add("the staging port is 5433")
    other = open_store(embedder=WideEmbedder("model-b@1"))
    (hit,) = other.recall("which staging port")
    assert (hit.vector_rank, hit.text_rank) == (None, 1)
    assert "model-a@1" in str(other.stats().message)
    assert "model-b@1" in str(other.stats().message)
    assert other.stats().search_mode is SearchMode.TEXT


def test_a_write_with_another_model_is_found_by_text_and_breaks_nothing(open_store: OpenStore) -> None:  # J1
    open_store(embedder=WideEmbedder("model-a@1")).add("the staging port is 5433")
    other = open_store(embedder=FragileEmbedder("model-b@1"))
    other.add("the production port is 6000")
    first = open_store(embedder=WideEmbedder("model-a@1"))
    ranks = {hit.memory.content: rank_pair(hit) for hit in first.search("the production port is 6000")}
    assert ranks == {"the production port is 6000": (None, 1), "the staging port is 5433": (1, 2)}
    assert other.stats().pending_embeddings == 1
    assert first.check() == []


def rank_pair(hit: SearchResult) -> tuple[int | None, int | None]:
    return hit.vector_rank, hit.text_rank
