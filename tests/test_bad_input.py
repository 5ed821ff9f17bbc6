"""Whatever is handed over or lies on disk: it is stored as it is, or refused with what to do, and nothing breaks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime_memory import MemoryStore, NewMemory, Outcome
from runtime_memory.errors import (
    InvalidInputError,
    MemoryNotFoundError,
    RuntimeMemoryError,
    StoreBusyError,
    StoreDamagedError,
    StoreFormatError,
    StoreUnavailableError,
)
from tests.conftest import OpenStore, contents
from tests.tiny_embedder import TinyEmbedder

FEW = settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=80)
VALID_TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | VALID_TEXT, st.lists, max_leaves=8
)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    """Return one store for the many examples of a module."""
    with MemoryStore.open(tmp_path_factory.mktemp("lasting"), embedder=TinyEmbedder()) as store:
        yield store
        assert store.check() == []


BEFORE_TIME = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"deeper": value}
    return value


# Content


WHITE_SPACE = ["", " ", "\n\t\r ", "\0", "\u00a0", "\u3000", "\u200b\ufeff", "\u2003", "\u2028\u2029", "\x85", "\u1680"]


@pytest.mark.parametrize("content", WHITE_SPACE, ids=ascii)
def test_empty_content_is_refused(store: MemoryStore, content: str) -> None:
    with pytest.raises(InvalidInputError, match="content is empty; give the fact"):
        store.add(content)
    assert store.list() == []


def test_an_edit_to_empty_content_is_refused(store: MemoryStore) -> None:
    memory = store.add("a fact")
    with pytest.raises(InvalidInputError, match="content is empty"):
        store.edit(memory.id, content=" ")
    assert store.get(memory.id) == memory


@pytest.mark.parametrize("content", [None, 5, b"bytes", ["a"], {"a": 1}])
def test_content_that_is_no_text_is_refused(store: MemoryStore, content: Any) -> None:
    with pytest.raises(InvalidInputError, match="content must be text"):
        store.add(content)


def test_two_megabytes_are_stored_whole(store: MemoryStore) -> None:  # D2, D5
    content = "\n".join(f"line {number} of a long log, as it was" for number in range(60_000)) + " the end heliotrope"
    memory = store.add(content)
    assert len(content) > 2_000_000
    assert store.get(memory.id).content == content
    assert store.search("heliotrope")[0].memory.id == memory.id
    assert store.check() == []


def test_more_than_a_memory_holds_is_refused_with_the_way_out(store: MemoryStore) -> None:
    with pytest.raises(InvalidInputError, match="mem import"):
        store.add("x" * 4_000_001)


@pytest.mark.parametrize(
    "content",
    [
        "before\0after",
        "\x01\x02\x1b[31mred\x1b[0m\x7f",
        "line\r\nline\rline\n",
        "tab\tand form\ffeed",
        "\ufeffBOM first",
        "e\u0301 is not é",
        "👩‍👩‍👧‍👦 🏳️‍🌈 😀",
        "right \u202eto left",
        "' OR 1=1 --",
        '{"json": "looks"}',
        "__state__",
    ],
)
def test_content_comes_back_byte_for_byte(store: MemoryStore, open_store: OpenStore, content: str) -> None:
    memory = store.add(content)
    assert memory.content == store.get(memory.id).content == store.list()[0].content == content
    assert open_store().get(memory.id).content == content
    assert store.check() == []


@pytest.mark.parametrize(
    ("given_", "stored"),
    [
        ("lone \ud83d high", "lone \ufffd high"),
        ("lone \ude00 low", "lone \ufffd low"),
        ("split \ud83d\ude00 pair", "split 😀 pair"),
        ("at the end \ud83d", "at the end \ufffd"),
        ("\ude00\ud83d reversed", "\ufffd\ufffd reversed"),
    ],
)
def test_invalid_unicode_is_mended(store: MemoryStore, given_: str, stored: str) -> None:
    memory = store.add(given_)
    assert memory.content == store.get(memory.id).content == stored
    assert store.add(given_).id == memory.id


@FEW
@given(st.lists(ANY_TEXT, min_size=20, max_size=30))
def test_any_text_is_stored_as_it_is(lasting: MemoryStore, texts: list[str]) -> None:
    texts = [f"{uuid.uuid4()} {text}" for text in texts]
    expected = [text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") for text in texts]
    stored = lasting.add_many([NewMemory(text) for text in texts])
    assert contents(stored) == expected
    assert [lasting.get(memory.id) for memory in stored] == stored
    assert {memory.id: memory.content for memory in lasting.list()}.items() >= {m.id: m.content for m in stored}.items()


@FEW
@given(st.lists(st.dictionaries(VALID_TEXT, JSON, max_size=3), min_size=5, max_size=20))
def test_any_json_is_kept_as_metadata(lasting: MemoryStore, values: list[dict[str, Any]]) -> None:
    stored = lasting.add_many([NewMemory(str(uuid.uuid4()), metadata=value) for value in values])
    assert [memory.metadata for memory in stored] == values
    assert [lasting.get(memory.id).metadata for memory in stored] == values


# Fields


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"category": "nonsense"}, "valid are: architecture, convention"),
        ({"category": None}, "valid are: architecture"),
        ({"category": ["gotcha"]}, "valid are: architecture"),
        ({"scope": "galaxy"}, "valid are: global, project, session"),
        ({"source": "rumour"}, "valid are: explicit, extracted, imported"),
        ({"scope": "project"}, "needs a project; name one"),
        ({"scope": "session"}, "needs a session; name one"),
        ({"tags": "a,b"}, "tags must be a list"),
        ({"tags": None}, "tags must be a list"),
        ({"tags": [1]}, "a tag must be text"),
        ({"tags": ["a\nb"]}, "printable"),
        ({"project": 5}, "project must be text"),
        ({"project": "x" * 501}, "at most 500"),
        ({"project": "a\0b"}, "printable"),
        ({"user": ["u"]}, "user must be text"),
        ({"metadata": [1]}, "metadata must be an object"),
        ({"metadata": {"a": object()}}, "metadata cannot be written as JSON"),
        ({"metadata": {"a": float("nan")}}, "metadata cannot be written as JSON"),
        ({"created_at": "2024-05-01"}, "created_at must be a datetime"),
        ({"created_at": BEFORE_TIME}, "created_at"),
        ({"supersedes": "no-such-memory"}, "look it up"),
        ({"colour": "red"}, "the fields of a memory are: content, category"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_field_is_refused_with_what_is_valid(store: MemoryStore, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeMemoryError, match=message) as caught:
        store.add("a fact", **fields)
    assert isinstance(caught.value, InvalidInputError | MemoryNotFoundError)
    assert store.list() == []
    assert store.check() == []


def test_metadata_without_end_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidInputError, match="metadata cannot be written as JSON"):
        store.add("a fact", metadata=nested(100_000))


def test_an_edit_to_metadata_without_end_is_refused(store: MemoryStore) -> None:
    memory = store.add("a fact")
    with pytest.raises(InvalidInputError, match="metadata cannot be written as JSON"):
        store.edit(memory.id, metadata=nested(100_000))


@pytest.mark.parametrize(
    "tag",
    ["می\u200cخواهم", "👩\u200d💻", "प्रो\u200dजेक्ट", "我的\u3000项目", "नमस्ते", "c++", "a b"],
    ids="persian emoji hindi-joiner chinese-space hindi symbols space".split(),
)
def test_labels_of_every_script_are_accepted(store: MemoryStore, tag: str) -> None:
    memory = store.add("a fact", tags=[tag], project=tag)
    assert (memory.tags, memory.project) == ((tag,), tag)
    assert contents(store.search("fact", project=tag, tags=[tag])) == ["a fact"]


def test_tags_are_distinct_trimmed_and_not_empty(store: MemoryStore) -> None:
    assert store.add("a fact", tags=[" a ", "b", "a", "", "  "]).tags == ("a", "b")


# Arguments of every operation


Use = Callable[[MemoryStore, str], object]
BAD_USES: dict[str, Use] = {
    "list of texts instead of memories": lambda store, id_: store.add_many(["text"]),  # type: ignore[list-item]
    "no memories": lambda store, id_: store.add_many(None),  # type: ignore[arg-type]
    "id that is a number": lambda store, id_: store.get(5),  # type: ignore[arg-type]
    "id that is none": lambda store, id_: store.forget(None),  # type: ignore[arg-type]
    "id that is empty": lambda store, id_: store.get(""),
    "unknown id": lambda store, id_: store.get("no-such-memory"),
    "id with a quote": lambda store, id_: store.get("' OR '1'='1"),
    "id with a NUL": lambda store, id_: store.get("0192\0f3c4"),
    "id with a lone surrogate": lambda store, id_: store.get("0192\ud800"),
    "id of 1 MB": lambda store, id_: store.get("0" * 1_000_000),
    "id of the index's own document": lambda store, id_: store.get("__state__"),
    "beginning of the index's own document": lambda store, id_: store.forget("__st"),
    "outcome of the index's own document": lambda store, id_: store.record_outcome(["__state__"], "worked"),
    "unknown outcome": lambda store, id_: store.record_outcome([id_], "maybe"),
    "outcome that is none": lambda store, id_: store.record_outcome([id_], None),  # type: ignore[arg-type]
    "outcome for no list": lambda store, id_: store.record_outcome(None, "worked"),  # type: ignore[arg-type]
    "outcome for one id instead of a list": lambda store, id_: store.record_outcome(id_, "worked"),
    "weight that is text": lambda store, id_: store.record_outcome([id_], "worked", weight="1"),  # type: ignore[arg-type]
    "session that is a number": lambda store, id_: store.record_outcome([id_], "worked", session=5),  # type: ignore[arg-type]
    "session with a lone surrogate": lambda store, id_: store.record_outcome([id_], "worked", session="\ud800\0"),
    "query that is none": lambda store, id_: store.search(None),  # type: ignore[arg-type]
    "query that is a number": lambda store, id_: store.recall(5),  # type: ignore[arg-type]
    "limit of zero": lambda store, id_: store.search("fact", limit=0),
    "limit below zero": lambda store, id_: store.recall("fact", limit=-1),
    "limit that is text": lambda store, id_: store.search("fact", limit="5"),  # type: ignore[arg-type]
    "limit that is true": lambda store, id_: store.search("fact", limit=True),
    "limit beyond all measure": lambda store, id_: store.explain("fact", limit=10**9),
    "list with a limit below zero": lambda store, id_: store.list(limit=-1),
    "list with a limit of zero": lambda store, id_: store.list(limit=0),
    "list with a limit that is text": lambda store, id_: store.list(limit="5"),  # type: ignore[arg-type]
    "floor that is text": lambda store, id_: store.search("fact", min_score="high"),  # type: ignore[arg-type]
    "category that is unknown": lambda store, id_: store.search("fact", category="nonsense"),
    "tags that are one text": lambda store, id_: store.list(tags="money"),
    "project that is a number": lambda store, id_: store.recall("fact", project=5),  # type: ignore[arg-type]
    "user that is a list": lambda store, id_: store.get(id_, user=["u"]),  # type: ignore[arg-type]
    "edit to an unknown category": lambda store, id_: store.edit(id_, category="nonsense"),
    "edit to tags that are one text": lambda store, id_: store.edit(id_, tags="money"),
    "edit to metadata that is a list": lambda store, id_: store.edit(id_, metadata=[1]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("use", BAD_USES.values(), ids=BAD_USES)
def test_a_bad_argument_is_refused_and_changes_nothing(store: MemoryStore, use: Use) -> None:
    memory = store.add("a fact about the violin")
    with pytest.raises(RuntimeMemoryError) as caught:
        use(store, memory.id)
    assert isinstance(caught.value, InvalidInputError | MemoryNotFoundError)
    assert len(str(caught.value)) > 15
    assert store.list(include_archived=True) == [memory]
    assert store.check() == []


@settings(max_examples=100)
@given(ANY_TEXT)
def test_any_text_as_an_id_is_unknown(lasting: MemoryStore, text: str) -> None:
    with pytest.raises((InvalidInputError, MemoryNotFoundError)):
        lasting.get(text)


# What lies on disk


def test_a_file_in_place_of_the_folder(open_store: OpenStore, folder: Path) -> None:
    folder.write_text("not a folder")
    with pytest.raises(StoreUnavailableError, match=r"is a file.*RUNTIME_MEMORY_DB"):
        open_store().add("a fact")
    assert folder.read_text() == "not a folder"


def test_a_file_in_the_way_to_the_folder(open_store: OpenStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailableError, match="RUNTIME_MEMORY_DB"):
        open_store(tmp_path / "file" / "store").add("a fact")


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "{",
        "null",
        "[]",
        "7",
        '{"format": null}',
        '{"format": "new"}',
        '{"format": 1}',
        '{"format": 1e999}',
        '{"format": 1, "epoch": "e", "table": "memories", "dimension": 16, "embedding": null, "extra": 1}',
        "\xff\xfe",
        "[" * 100_000,
    ],
    ids=lambda text: text[:25],
)
def test_a_damaged_manifest(store: MemoryStore, open_store: OpenStore, folder: Path, manifest: str) -> None:
    memory = store.add("a fact")
    path = folder / "manifest.json"
    good = path.read_bytes()
    path.write_bytes(manifest.encode("latin-1"))
    with pytest.raises(StoreDamagedError, match=r"(?s)manifest\.json.*backup|Keep a copy"):
        open_store().list()
    path.write_bytes(good)
    assert open_store().list() == [memory]


def test_a_manifest_that_is_gone_does_not_make_a_new_store_over_the_old(
    store: MemoryStore, open_store: OpenStore, folder: Path
) -> None:
    memory = store.add("a fact")
    (folder / "manifest.json").rename(folder / "away")
    with pytest.raises(StoreDamagedError, match=r"manifest\.json.*backup"):
        open_store().list()
    (folder / "away").rename(folder / "manifest.json")
    assert open_store().list() == [memory]


def test_a_store_of_a_newer_version(store: MemoryStore, open_store: OpenStore, folder: Path) -> None:
    store.add("a fact")
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    with pytest.raises(StoreFormatError, match="pip install --upgrade runtime-memory"):
        open_store().list()


@pytest.mark.parametrize("table", ["memories", "outcomes"])
def test_a_table_that_is_gone(store: MemoryStore, open_store: OpenStore, folder: Path, table: str) -> None:
    store.add("a fact")
    shutil.rmtree(folder / "lance" / f"{table}.lance")
    with pytest.raises(StoreDamagedError, match=f"{table}.*backup"):
        open_store().list()


def test_a_store_that_another_holds_for_too_long(
    store: MemoryStore, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add("a fact")
    monkeypatch.setenv("RUNTIME_MEMORY_LOCK_TIMEOUT", "0.2")
    waiting = open_store()
    with store._opening._current().database.index.writing():
        with pytest.raises(StoreBusyError, match="try again"):
            waiting.add("another fact")
        assert contents(waiting.search("fact")) == ["a fact"]
    waiting.add("another fact")
    assert waiting.check() == []


NOBODY = """
import sys
sys.path[:0] = {path!r}
from runtime_memory import MemoryStore
from runtime_memory.errors import StoreUnavailableError
from tests.tiny_embedder import TinyEmbedder
for folder in {folders!r}:
    store = MemoryStore.open(folder, embedder=TinyEmbedder())
    try:
        store.add("a fact")
    except StoreUnavailableError as error:
        print(error)
"""


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may write everywhere")
def test_a_folder_without_permission_to_write(store: MemoryStore, folder: Path, tmp_path: Path) -> None:
    store.add("a fact")
    closed = tmp_path / "closed"
    closed.mkdir()
    for path in [closed, folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    for parent in tmp_path.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o055 if parent.stat().st_uid == os.geteuid() else parent.stat().st_mode)
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    code = NOBODY.format(path=sys.path, folders=[str(closed / "new"), str(folder)])
    done = subprocess.run(
        [*as_nobody, sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    if "Permission denied" in done.stderr and "runtime_memory" not in done.stderr:
        pytest.skip("another user cannot run this interpreter")
    assert done.stdout.count("RUNTIME_MEMORY_DB") == 2, done.stderr


# Results survive all that


def test_a_refused_write_among_good_ones_leaves_the_store_sound(store: MemoryStore) -> None:
    store.add("one")
    for bad in ("", None, 5):
        with pytest.raises(InvalidInputError):
            store.add_many([NewMemory("two"), NewMemory(bad)])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError):
        store.record_outcome([store.list()[0].id], Outcome.WORKED, weight=2)
    store.add("three")
    assert set(contents(store.list())) == {"one", "three"}
    assert store.check() == []
