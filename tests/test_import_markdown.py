"""Markdown notes become memories: what a note says about itself, how it is encoded, and which files are read."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_memory import MemoryCategory, MemorySource, NewMemory
from runtime_memory.importers import Item, markdown, store_items
from tests.conftest import OpenStore

CHANGED = datetime(2020, 2, 2, tzinfo=UTC)
SAMPLE = Path(__file__).parent.parent / "benchmarks" / "sample" / "notes"


def parsed(text: str, origin: str = "note.md") -> NewMemory:
    memory, problem = markdown.parse(text, origin, CHANGED)
    assert memory is not None
    assert problem is None
    return memory


def read_folder(folder: Path) -> dict[str, Item]:
    """Return what is found in a folder and read, by origin."""
    items = [each if isinstance(each, Item) else markdown.read(each, folder) for each in markdown.find(folder)]
    assert len({item.origin for item in items}) == len(items)
    return {item.origin: item for item in items}


# What a note says


def test_the_frontmatter_gives_title_date_category_tags_and_project() -> None:
    memory = parsed(
        "---\ntitle: The port\ndate: 2024-09-17\ncategory: gotcha\ntags: [net, db]\n"
        "project: shop\n---\n\nIt is 6432.\n",
        "a/b.md",
    )
    assert memory.content == "The port\n\nIt is 6432."
    assert memory.created_at is not None
    assert memory.created_at.date() == date(2024, 9, 17)
    assert (memory.category, memory.tags, memory.project) == (MemoryCategory.GOTCHA, ["net", "db"], "shop")
    assert (memory.source, memory.origin) == (MemorySource.IMPORTED, "a/b.md")


@pytest.mark.parametrize(
    "body", ["# The port\n\nIt is 6432.", "The port\n========\n\nIt is 6432.", "## the PORT ##\nIt is 6432."]
)
def test_a_title_that_is_the_first_heading_is_not_repeated(body: str) -> None:
    assert parsed(f"---\ntitle: The port\n---\n{body}\n").content == body


def test_a_title_comes_before_another_heading() -> None:
    assert parsed("---\ntitle: The port\n---\n# Details\n6432").content == "The port\n\n# Details\n6432"


def test_a_title_alone_is_a_note_and_nothing_at_all_is_none() -> None:
    assert parsed("---\ntitle: Call the plumber\n---\n").content == "Call the plumber"
    for text in ("", " \n\t\n", "---\ntags: [x]\n---\n\n"):
        assert markdown.parse(text, "n.md", CHANGED) == (None, None)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings_do_not_matter(ending: str) -> None:
    assert parsed(ending.join(["---", "title: T", "---", "one", "", "two", ""])).content == "T\n\none\n\ntwo"


@pytest.mark.parametrize(
    ("given", "category", "tags"),
    [
        ("Coding Style", MemoryCategory.CODING_STYLE, []),
        ("tool-preference", MemoryCategory.TOOL_PREFERENCE, []),
        ("recipes", MemoryCategory.GENERAL, ["recipes"]),
        ("", MemoryCategory.GENERAL, []),
    ],
)
def test_an_unknown_category_is_kept_as_a_tag(given: str, category: MemoryCategory, tags: list[str]) -> None:
    memory = parsed(f"---\ncategory: {given}\n---\ntext")
    assert (memory.category, memory.tags) == (category, tags)


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        ("tags: [a, 'b c', no, 007]", ["a", "b c", "no", "007"]),
        ("tags:\n  - '#a'\n  - b/c\n  - {x: y}", ["a", "b/c"]),
        ("tags: a, b c", ["a", "b c"]),
        ("tags: '#a #b'", ["a", "b"]),
        ("tag: a", ["a"]),
        ("Tags: [a, a]", ["a"]),
        ("tags:", []),
        ("tags: {a: b}", []),
    ],
)
def test_tags_come_as_lists_and_as_text(given: str, tags: list[str]) -> None:
    assert parsed(f"---\n{given}\n---\ntext").tags == tags


@pytest.mark.parametrize(
    ("given", "created"),
    [
        ("date: 2024-09-17T10:30:00Z", datetime(2024, 9, 17, 10, 30, tzinfo=UTC)),
        ("date: 2024-09-17 10:30:00 +0200", datetime(2024, 9, 17, 8, 30, tzinfo=UTC)),
        ("created: 2024-09-17T10:30:00.5+02:00", datetime(2024, 9, 17, 8, 30, 0, 500_000, tzinfo=UTC)),
        ("date: 2024-09-17 10:30", datetime(2024, 9, 17, 10, 30).astimezone(UTC)),
        ("date: 2024/09/17", datetime(2024, 9, 17, 12, tzinfo=UTC)),
        ("created: 20240917", datetime(2024, 9, 17, 12, tzinfo=UTC)),
        ("date: 2024-09-17\ncreated: 2020-01-01", datetime(2024, 9, 17, 12, tzinfo=UTC)),
    ],
)
def test_dates_of_the_frontmatter(given: str, created: datetime) -> None:
    assert parsed(f"---\n{given}\n---\ntext", "2001-01-01.md").created_at == created


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("2024-05-01.md", date(2024, 5, 1)),
        ("journal/2024_05_01 notes.md", date(2024, 5, 1)),
        ("x-20240501-y.md", date(2024, 5, 1)),
        ("2024-13-45 then 2024-05-01.md", date(2024, 5, 1)),
        ("2019-01-01/plain.md", CHANGED.date()),
        ("120240501.md", CHANGED.date()),
        ("2024-0501.md", CHANGED.date()),
    ],
)
def test_else_the_date_in_the_files_name_else_that_of_its_last_change(name: str, day: date) -> None:
    created = parsed("text", name).created_at
    assert created is not None
    assert created.date() == day


@pytest.mark.parametrize("given", ["last Tuesday", "2024-13-45", "0001-01-01T00:00:00+23:59", "[2024]"])
def test_a_date_that_is_not_understood_is_said_and_the_next_best_taken(given: str) -> None:
    memory, problem = markdown.parse(f"---\ndate: '{given}'\n---\ntext", "2024-05-01.md", CHANGED)
    assert memory is not None
    assert memory.created_at == datetime(2024, 5, 1, 12, tzinfo=UTC)
    assert problem is not None
    assert given in problem


def test_broken_frontmatter_is_said_and_no_word_of_it_is_lost() -> None:
    text = "---\ntitle: [unclosed\n---\nbody"
    memory, problem = markdown.parse(text, "n.md", CHANGED)
    assert memory is not None
    assert memory.content == text
    assert problem is not None
    assert "not YAML" in problem


@pytest.mark.parametrize(
    "text", ["---\njust a rule\n---\ntext", "---\nno end", "text\n---\ntitle: x\n---", "----\na: b\n---"]
)
def test_rules_are_no_frontmatter(text: str) -> None:
    assert parsed(text).content == text


def test_yaml_tags_and_anchors_build_nothing() -> None:
    bomb = "a: &a [x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{f'*{chr(97 + i)},' * 9}]\n" for i in range(20))
    assert parsed(f"---\n{bomb}title: T\n---\ntext").content == "T\n\ntext"
    assert parsed("---\ntitle: !!python/object/apply:os.getcwd []\n---\ntext").content == "text"


@given(st.text())
def test_any_text_is_parsed_and_its_last_line_kept(text: str) -> None:
    memory, _ = markdown.parse(text + "\nlast line", "n.md", CHANGED)
    assert memory is not None
    assert memory.content.endswith("last line")


@given(st.binary())
def test_any_bytes_are_decoded(data: bytes) -> None:
    text, _ = markdown.decode(data)
    assert isinstance(text, str)


# Encodings


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings_are_told_apart(encoding: str, tmp_path: Path) -> None:
    text = "---\ntitle: Café\n---\nnaïve"
    file = tmp_path / "n.md"
    file.write_bytes(text.encode(encoding))
    item = markdown.read(file, file)
    assert item.memory is not None
    assert item.memory.content == "Café\n\nnaïve"
    assert item.notice == ("not UTF-8, read as Latin-1" if encoding == "latin-1" else None)


# Files


def test_a_folder_is_read_in_order_and_what_is_passed_over_has_a_reason(tmp_path: Path) -> None:
    for name in ("b.md", "a.MARKDOWN", "sub/c.md", ".obsidian/x.md", ".git/y.md", "sub/.trash/z.md", ".hidden.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"in {name}")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "empty.md").write_text("\n")
    (tmp_path / "binary.md").write_bytes(b"\x7fELF\x00\x01")
    found = read_folder(tmp_path)
    assert [origin for origin, item in found.items() if item.memory] == ["a.MARKDOWN", "b.md", "sub/c.md"]
    skipped = {origin: (item.skipped, item.fault) for origin, item in found.items() if not item.memory}
    assert skipped == {
        ".git/": ("hidden", False),
        ".hidden.md": ("hidden", False),
        ".obsidian/": ("hidden", False),
        "sub/.trash/": ("hidden", False),
        "empty.md": ("empty", False),
        "binary.md": ("not a text file", True),
    }


def test_symbolic_links_are_not_followed_out_of_the_folder_nor_round_in_it(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("secret")
    (notes / "a.md").write_text("a")
    (notes / "file.md").symlink_to(tmp_path / "outside" / "secret.md")
    (notes / "folder").symlink_to(tmp_path / "outside")
    (notes / "loop").symlink_to(notes)
    (notes / "dangling.md").symlink_to(notes / "nowhere.md")
    found = read_folder(notes)
    assert [origin for origin, item in found.items() if item.memory] == ["a.md"]
    assert {item.skipped for item in found.values() if not item.memory} == {"a symbolic link"}


def test_a_folder_that_is_itself_given_by_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text("a")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert list(read_folder(tmp_path / "link")) == ["a.md"]


def test_a_file_given_by_itself_is_read_whatever_its_name(tmp_path: Path) -> None:
    file = tmp_path / "NOTES.txt"
    file.write_text("text")
    item = markdown.read(file, file)
    assert (item.origin, item.memory is not None) == ("NOTES.txt", True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert read_folder(tmp_path)["pipe.md"].fault


def test_what_cannot_be_read_is_a_fault_and_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.md", "b.md", "c.md"):
        (tmp_path / name).write_text(name)
    whole = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "b.md":
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    found = read_folder(tmp_path)
    assert (found["b.md"].skipped, found["b.md"].fault) == ("Permission denied", True)
    assert [origin for origin, item in found.items() if item.memory] == ["a.md", "c.md"]


def test_a_huge_file_is_not_loaded(tmp_path: Path) -> None:
    with (tmp_path / "huge.md").open("wb") as file:
        file.truncate(markdown.MAX_BYTES + 1)
    item = read_folder(tmp_path)["huge.md"]
    assert item.fault
    assert item.skipped is not None
    assert "larger" in item.skipped


# Storing


def test_the_sample_notes_are_stored_once(open_store: OpenStore) -> None:
    store = open_store()
    items = [item for item in read_folder(SAMPLE).values() if item.memory]
    assert len(items) == 64
    assert not [item for item in items if item.notice]
    first, second = store_items(store, items), store_items(store, items)
    assert (first.read, first.added, first.unchanged, first.skipped) == (64, 64, 0, [])
    assert (second.read, second.added, second.unchanged) == (64, 0, 64)
    memory = store.search("staging port changed", limit=1)[0].memory
    assert memory.origin == "shop/staging-db-port-changed.md"
    assert memory.created_at.date() == date(2024, 9, 17)
    assert store.check() == []


def test_one_memory_that_the_store_refuses_does_not_stop_the_others(open_store: OpenStore) -> None:
    store = open_store()
    good = [Item(f"{n}.md", NewMemory(f"fact {n}")) for n in range(3)]
    bad = Item("bad.md", NewMemory("fact", project="two\nlines"))
    summary = store_items(store, [good[0], bad, *good[1:]])
    assert (summary.read, summary.added, summary.faults) == (4, 3, 1)
    assert summary.skipped[0][0] == "bad.md"
    assert "project" in summary.skipped[0][1]
