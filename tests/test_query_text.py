"""A query is data, never syntax: nothing in it raises, and what it names is found."""

from __future__ import annotations

import string
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexes.analysis import analyze_query
from runtime_memory import MemoryStore, NewMemory
from tests.conftest import contents
from tests.tiny_embedder import TinyEmbedder

SOME = settings(max_examples=150)
FEW = settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=200)
PART = st.text(string.ascii_letters + string.digits, min_size=1, max_size=8)
IDENTIFIER = st.lists(st.tuples(PART, st.sampled_from("-_./:")), min_size=1, max_size=4).map(
    lambda pairs: "".join(part + mark for part, mark in pairs)[:-1]
)

DOCUMENTS = {  # what is stored, and the queries that must find it first
    "the cluster node is pve-01": ["pve-01", "PVE-01", "pve 01"],
    "the incident began at 2026-04-22T10:00 sharp": ["2026-04-22T10:00", "2026-04-22"],
    "metrics are served on host:8080": ["host:8080", "8080"],
    "run id 9f1c2d3e-4b5a-4c6d-8e7f-0a1b2c3d4e5f was lost": ["9f1c2d3e-4b5a-4c6d-8e7f-0a1b2c3d4e5f", "9f1c2d3e"],
    "the app is called vibe-trading": ["vibe-trading", "vibe_trading", "vibe trading"],
    "switch between Claude/Codex with a flag": ["Claude/Codex", "codex"],
    "notes for the v2.5 release": ["v2.5 release", "2.5"],
    "the pattern a*b is literal in globs": ["a*b"],
    'say "quoted" when you mean it': ['"quoted"', "'quoted'"],
    "TODO: fix the flaky importer": ["TODO: fix", "todo"],
    "the comment links to https://x for details": ["comment:https://x", "https://x"],
    "buy a usb-c adapter for the projector": ['usb-c adapter""', "-usb-c", ">>> usb-c"],
    "simplify y+(y+25) before solving": ["y+(y+25)"],
    "the placeholder cat is waldo": ['who is "waldo"?', "waldo"],
    "log lines look like Message: {0}, StackTrace: {1}": ["Message: {0}, StackTrace: {1}", "stacktrace"],
    "web_server的桌面watchdog单层ppid": ["watchdog", "ppid", "桌面", "web_server的...watchdog单层ppid"],
    "张伟喜欢火锅": ["张伟", "火锅"],
    "retry_backoff_ms defaults to 250": ["retry_backoff_ms", "backoff", "retryBackoffMs"],
    "the build passes --no-cache to docker": ["--no-cache", "no-cache"],
    "error E0277 means a missing trait": ["E0277", "e0277"],
    "look into src/app/main.py first": ["src/app/main.py", "main.py"],
}
SYNTAX = """
-x | it's | a:b | * | ? | ~ | ^2 | "unbalanced | AND | OR NOT | a AND (b | [a TO z] | {a TO *} | field:[1 TO
\\ | \\" | /re/ | +a -b | !a | (((((( | )))) | a^b | a~2 | _exists_:a | id:__state__ | __state__ | `x` | $(x)
%s | %00 | ${a} | <b>x</b> | >>> | -leading | - | -- | && || | a/b/c | 1=1; DROP TABLE memories; -- | ' OR 1=1 --
NEAR(a b) | a* OR b* | "a b"~5
"""
QUERIES = [query.strip() for line in SYNTAX.strip().splitlines() for query in line.split(" | ")]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    with MemoryStore.open(tmp_path_factory.mktemp("library"), embedder=TinyEmbedder()) as store:
        store.add_many([NewMemory(content) for content in DOCUMENTS])
        yield store
        assert store.check() == []
        assert len(store.list()) == len(DOCUMENTS)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    """Return a store that the examples of the properties below fill."""
    with MemoryStore.open(tmp_path_factory.mktemp("shelf"), embedder=TinyEmbedder()) as store:
        yield store
        assert store.check() == []


@pytest.mark.parametrize(
    ("query", "document"), [(query, document) for document, queries in DOCUMENTS.items() for query in queries]
)
def test_what_a_query_names_is_found_first_by_its_words(
    library: MemoryStore, query: str, document: str
) -> None:  # B2, B3, C1, C2, C3, C4, C5
    first = next(hit for hit in library.search(query) if hit.text_rank == 1)
    assert first.memory.content == document


@pytest.mark.parametrize("query", QUERIES)
def test_query_syntax_is_only_text(library: MemoryStore, query: str) -> None:
    hits = library.search(query, limit=50)
    assert {hit.memory.content for hit in hits} <= DOCUMENTS.keys()
    if not analyze_query(query):
        assert [hit for hit in hits if hit.text_rank] == []
    library.recall(query)
    library.explain(query)


@SOME
@given(ANY_TEXT)
def test_any_text_can_be_asked(library: MemoryStore, query: str) -> None:  # C3
    assert len(library.search(query, limit=3)) <= 3
    assert len(library.recall(query, limit=3, project=None)) <= 3
    library.explain(query)


@pytest.mark.parametrize(
    "query",
    [
        "x" * 2_000_000,
        "word " * 400_000,
        "张" * 500_000,
        "\0" * 100_000,
        "a.b" * 300_000,
        " ".join(map(str, range(100_000))),
    ],
    ids=lambda query: query[:6],
)
def test_a_query_of_megabytes_is_answered(library: MemoryStore, query: str) -> None:
    assert len(library.search(query)) <= 10
    library.recall(query)


def test_the_question_at_the_end_of_a_long_paste_counts(library: MemoryStore) -> None:
    paste = "\n".join(f"frame {number}" for number in range(20_000))
    found = library.search(f"{paste}\nwho is waldo, the placeholder cat?")
    assert next(hit for hit in found if hit.text_rank == 1).memory.content == "the placeholder cat is waldo"


@FEW
@given(st.lists(IDENTIFIER, min_size=20, max_size=30, unique=True))
def test_any_identifier_is_found_where_it_stands(shelf: MemoryStore, identifiers: list[str]) -> None:  # C2
    texts = [f"The value ({identifier}) is kept; see the manual." for identifier in identifiers]
    stored = shelf.add_many([NewMemory(text) for text in texts])
    for identifier, memory in zip(identifiers, stored, strict=True):
        assert memory.id in {hit.memory.id for hit in shelf.search(identifier, limit=1000) if hit.text_rank}


@FEW
@given(st.lists(ANY_TEXT.filter(analyze_query), min_size=20, max_size=30))
def test_a_memory_is_found_by_its_own_text(shelf: MemoryStore, texts: list[str]) -> None:
    stored = shelf.add_many([NewMemory(f"unique {text} unique") for text in texts])
    for text, memory in zip(texts, stored, strict=True):
        assert memory.id in {hit.memory.id for hit in shelf.search(text, limit=1000) if hit.text_rank}


PROJECTS = [
    "ap-erp",
    str(uuid.UUID(int=2**100)),
    "O'Brien",
    "我的项目",
    'a" OR 1=1 --',
    "a' OR '1'='1",
    "%",
    "*",
    "a\\",
    "true",
    "null",
    "проект",
    "a b",
    "😀",
    "../up",
]


@pytest.mark.parametrize("project", PROJECTS)
def test_a_project_may_have_any_name(store: MemoryStore, project: str) -> None:  # C7
    store.add("the secret of another", project="other")
    memory = store.add("the fact of this project", project=project, tags=[project], origin=project)
    assert contents(store.list(project=project)) == [memory.content]
    assert contents(store.search("fact secret", project=project)) == [memory.content]
    assert contents(store.search("fact secret", tags=[project])) == [memory.content]
    assert contents(store.recall("what is the fact or the secret", project=project)) == [memory.content]
    assert store.stats().by_project == {"other": 1, project: 1}


@pytest.mark.parametrize("name", PROJECTS)
def test_a_user_or_profile_may_have_any_name_and_sees_no_more_than_its_own(store: MemoryStore, name: str) -> None:
    store.add("the secret of the owner")
    store.add("the secret of another", user="other")
    mine = store.add("the fact of this user", user=name)
    work = store.add("the fact of this profile", profile=name)
    assert store.list(user=name) == [mine]
    assert contents(store.search("secret fact", user=name)) == [mine.content]
    assert set(contents(store.list(profile=name))) == {work.content, "the secret of the owner"}


@FEW
@given(st.lists(st.text(min_size=1, max_size=20).filter(str.isprintable).map(str.strip), min_size=10, unique=True))
def test_any_printable_name_of_a_project_narrows_to_it(shelf: MemoryStore, names: list[str]) -> None:
    shelf.add_many([NewMemory("the only fact of the project", project=name) for name in names])
    for name in filter(None, names):
        assert [hit.memory.project for hit in shelf.search("only fact", project=name) if hit.memory.project] == [name]
