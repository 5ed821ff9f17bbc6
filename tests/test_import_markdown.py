"""Markdown notes become memories: what a note says about itself, where it is cut, and which files are read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from runtime_memory import MemoryCategory, MemorySource, NewMemory
from runtime_memory.importers import Item, dates, files, frontmatter, markdown
from runtime_memory.importers.sections import anchors, cut, sections
from runtime_memory.importers.wikilinks import readable

CHANGED = datetime(2020, 2, 2, tzinfo=UTC)


def items(text: str, name: str = "/notes/index.md") -> list[Item]:
    return list(markdown.parse(text, name, lambda: CHANGED))


def memories(text: str, name: str = "/notes/index.md") -> list[NewMemory]:
    return [item.memory for item in items(text, name) if item.memory]


def parsed(text: str, name: str = "/notes/index.md") -> NewMemory:
    (item,) = items(text, name)
    assert item.memory is not None
    assert item.notice is None
    return item.memory


def by_anchor(text: str) -> dict[str, str]:
    return {str(memory.origin).partition("#")[2]: memory.content for memory in memories(text)}


def read_folder(folder: Path) -> dict[str, Item]:
    """Return what is found in a folder and read, by its place below the folder."""
    found: list[Item] = []
    for each in markdown.find(folder):
        found.extend([each] if isinstance(each, Item) else markdown.read(each, folder))
    root = os.path.realpath(folder) + "/"
    assert all(item.origin.startswith(root) for item in found)
    named = {item.origin.removeprefix(root): item for item in found}
    assert len(named) == len(found)
    return named


def imported(found: dict[str, Item]) -> list[str]:
    return [origin for origin, item in found.items() if item.memory]


# What a note says


def test_the_frontmatter_gives_title_date_category_tags_and_project() -> None:
    memory = parsed(
        "---\ntitle: The port\ndate: 2024-09-17\ncategory: gotcha\ntags: [net, db]\n"
        "project: shop\nurl: http://a.b\n---\n\nIt is 6432.\n"
    )
    assert memory.content == "The port\n\nIt is 6432."
    assert memory.created_at is not None
    assert memory.created_at.date() == date(2024, 9, 17)
    assert (memory.category, memory.tags, memory.project) == (MemoryCategory.GOTCHA, ("net", "db"), "shop")
    assert (memory.source, memory.origin) == (MemorySource.IMPORTED, "/notes/index.md")
    assert memory.metadata == {"url": "http://a.b"}


@pytest.mark.parametrize(
    "body", ["# The port\n\nIt is 6432.", "The port\n========\n\nIt is 6432.", "## the PORT ##\nIt is 6432."]
)
def test_a_title_that_is_the_first_heading_is_not_repeated(body: str) -> None:
    assert parsed(f"---\ntitle: The port\n---\n{body}\n").content == "The port\n\nIt is 6432."


def test_a_first_heading_is_the_title_else_the_files_name_where_it_says_something() -> None:
    assert parsed("# The port\n\n6432", "/n/ports.md").content == "The port\n\n6432"
    assert parsed("6432", "/n/Staging port.md").content == "Staging port\n\n6432"
    assert parsed("6432", "/n/README.md").content == "6432"
    assert parsed("6432", "/n/Untitled 3.md").content == "6432"


def test_a_renamed_note_without_a_title_is_known_by_its_hash() -> None:
    before, after = parsed("6432", "/n/port.md"), parsed("6432", "/n/Staging port.md")
    assert before.content != after.content
    assert before.origin_hash == after.origin_hash != parsed("6433", "/n/port.md").origin_hash


def test_other_names_of_a_note_stand_in_every_section() -> None:
    found = by_anchor("---\naliases: [k8s, kube]\n---\n# Kubernetes\nIntro\n## Pods\nSmall\n")
    assert found == {"": "Kubernetes (k8s, kube)\n\nIntro", "pods": "Kubernetes (k8s, kube) › Pods\n\nSmall"}


def test_a_title_alone_is_a_note_and_nothing_at_all_is_none() -> None:
    assert parsed("---\ntitle: Call the plumber\n---\n").content == "Call the plumber"
    assert parsed("# Call the plumber").content == "Call the plumber"
    for text in ("", " \n\t\n", "---\ntags: [x]\n---\n\n"):
        (item,) = items(text, "/n/some name.md")
        assert (item.memory, item.skipped, item.fault) == (None, "empty", False)


@pytest.mark.parametrize(
    ("given", "category", "tags"),
    [
        ("Coding Style", MemoryCategory.CODING_STYLE, ()),
        ("tool-preference", MemoryCategory.TOOL_PREFERENCE, ()),
        ("recipes", MemoryCategory.GENERAL, ("recipes",)),
        ("", MemoryCategory.GENERAL, ()),
    ],
)
def test_an_unknown_category_is_kept_as_a_tag(given: str, category: MemoryCategory, tags: tuple[str, ...]) -> None:
    memory = parsed(f"---\ncategory: {given}\n---\ntext")
    assert (memory.category, memory.tags) == (category, tags)


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        ("tags: [a, 'b c', no, 007]", ("a", "b c", "no", "007")),
        ("tags:\n  - '#a'\n  - b/c\n  - {x: y}", ("a", "b/c")),
        ("tags: a, b c", ("a", "b c")),
        ("tags: '#a #b'", ("a", "b")),
        ("tag: a", ("a",)),
        ("Tags: [a, a]", ("a",)),
        ("tags:", ()),
        ("tags: {a: b}", ()),
        (f"tags: [{'x' * 600}, a]", ("a",)),
    ],
)
def test_tags_come_as_lists_and_as_text(given: str, tags: tuple[str, ...]) -> None:
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
        ("updated: 2024-09-17", datetime(2024, 9, 17, 12, tzinfo=UTC)),
        ("updated: 2024-09-17\ncreated: 2020-01-01", datetime(2020, 1, 1, 12, tzinfo=UTC)),
    ],
)
def test_dates_of_the_frontmatter(given: str, created: datetime) -> None:
    assert parsed(f"---\n{given}\n---\ntext", "/2001-01-01.md").created_at == created


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
    created = parsed("text", f"/notes/{name}").created_at
    assert created is not None
    assert created.date() == day


@pytest.mark.parametrize("given", ["last Tuesday", "2024-13-45", "0001-01-01T00:00:00+23:59"])
def test_a_date_that_is_not_understood_is_said_and_the_next_best_taken(given: str) -> None:
    (item,) = items(f"---\ndate: '{given}'\n---\ntext", "/2024-05-01.md")
    assert item.memory is not None
    assert item.memory.created_at == datetime(2024, 5, 1, 12, tzinfo=UTC)
    assert given in str(item.notice)


def test_broken_frontmatter_is_said_and_no_word_of_it_is_lost() -> None:
    found = items("---\ntitle: [unclosed\n---\nbody")
    assert "not YAML" in str(found[0].notice)
    assert found[0].memory is not None
    assert found[0].memory.content == "```\ntitle: [unclosed\n```\n\nbody"


def test_frontmatter_that_is_nearly_yaml_is_read_line_by_line() -> None:
    (item,) = items("---\ntitle: Ports: all of them\ntags: a, b\n---\n6432")
    assert item.memory is not None
    assert (item.memory.content, item.memory.tags) == ("Ports: all of them\n\n6432", ("a", "b"))
    assert "line by line" in str(item.notice)


def test_frontmatter_without_an_end_is_said_and_kept_as_text() -> None:
    (item,) = items("---\ntitle: The port\nIt is 6432.")
    assert item.memory is not None
    assert "title: The port" in item.memory.content
    assert "has no end" in str(item.notice)


@pytest.mark.parametrize("text", ["---\njust a rule\n\n---\ntext", "---\nno end", "text\n\n---\n\nmore"])
def test_rules_are_no_frontmatter(text: str) -> None:
    assert parsed(text).content == text


def test_yaml_tags_and_anchors_build_nothing() -> None:
    bomb = "a: &a [x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{f'*{chr(97 + i)},' * 9}]\n" for i in range(20))
    assert parsed(f"---\n{bomb}title: T\n---\ntext").content == "T\n\ntext"
    assert parsed("---\ntitle: !!python/object/apply:os.getcwd []\n---\ntext").content == "text"


# Where a note is cut


def test_a_note_is_cut_at_its_headings_and_each_section_carries_the_ones_above() -> None:
    text = "# Shop\nIntro.\n## Ports\nStaging 6432.\n### Old\nWas 5433.\n## Ports\nAgain.\n"
    assert by_anchor(text) == {
        "": "Shop\n\nIntro.",
        "ports": "Shop › Ports\n\nStaging 6432.",
        "old": "Shop › Ports › Old\n\nWas 5433.",
        "ports-1": "Shop › Ports\n\nAgain.",
    }


def test_only_headings_are_headings() -> None:
    text = "# T\n\n```sh\n# no heading\n```\n\n~~~\n## nor this\n~~~\n\n    # nor that\n\n> # quoted\n\n- # in a list\n"
    assert list(by_anchor(text)) == [""]
    assert by_anchor(text)[""] == text.replace("# T", "T", 1).rstrip()


def test_underlined_headings_are_headings() -> None:
    assert by_anchor("Shop\n====\nIntro\n\nPorts\n-----\n6432") == {
        "": "Shop\n\nIntro",
        "ports": "Shop › Ports\n\n6432",
    }


def test_a_section_that_only_holds_others_is_no_memory_and_an_empty_one_stays_with_the_one_before() -> None:
    assert by_anchor("# T\n## A\n### B\ntext\n### Buy milk\n") == {"b": "T › A › B\n\ntext\n\n### Buy milk"}


def test_headings_are_shown_without_their_markup() -> None:
    assert by_anchor("# T\n## The `db` [port](x.md) of *[[staging|stage]]*\n6432") == {
        "the-db-port-of-stage": "T › The db port of stage\n\n6432"
    }


def test_an_edited_section_changes_one_memory_and_a_new_one_changes_none() -> None:
    def hashes(text: str) -> dict[str, str | None]:
        return {str(memory.origin): memory.origin_hash for memory in memories(text)}

    before = hashes("# T\nIntro\n## A\none\n## B\ntwo\n")
    edited = hashes("# T\nIntro\n## A\none and more\n## B\ntwo\n")
    assert [place for place in before if before[place] != edited[place]] == ["/notes/index.md#a"]
    assert before.items() <= hashes("# T\nIntro\n## A\none\n## New\nx\n## B\ntwo\n").items()
    assert hashes("Intro") == {"/notes/index.md": memories("Intro\n## A\none")[0].origin_hash}


def test_the_hash_does_not_depend_on_when_a_file_was_changed_or_saved() -> None:
    one, other = (
        next(markdown.parse(f"---\nupdated: {day}\n---\ntext", "/n/a.md", lambda: CHANGED)).memory
        for day in ("2024-01-01", "2024-01-02")
    )
    assert one is not None
    assert other is not None
    assert one.origin_hash == other.origin_hash != parsed("---\ndate: 2024-01-01\n---\ntext", "/n/a.md").origin_hash


def test_long_sections_are_cut_at_natural_borders_and_code_stays_whole() -> None:
    code = "```python\n" + "\n".join(f"x{number} = {number}\n" for number in range(60)) + "```"
    text = "# T\n\n" + "\n\n".join(["word " * 150] * 4) + f"\n\n{code}\n\n" + "- item of the list\n" * 150
    found = by_anchor(text)
    assert list(found)[:3] == ["", "~2", "~3"]
    assert all(content.startswith("T\n\n") and len(content) < 2_300 for content in found.values())
    assert sum(code in content for content in found.values()) == 1
    assert sum(content.count("- item of the list") for content in found.values()) == 150


def test_code_that_is_too_long_is_fenced_in_each_part_and_loses_no_line() -> None:
    lines = [f"    value_{number} = {number}" for number in range(300)]
    parts = cut("~~~py\n" + "\n".join(lines) + "\n~~~", 2_000)
    assert len(parts) > 2
    assert all(part.startswith("~~~py\n") and part.endswith("\n~~~") for part in parts)
    assert [line for part in parts for line in part.split("\n")[1:-1]] == lines


@given(st.text(alphabet="ab#*`~[]|- \n\t>=1.é", max_size=400), st.integers(5, 60))
def test_no_word_is_lost_in_cutting(text: str, longest: int) -> None:
    parts = cut(text, longest)
    assert [c for c in "".join(parts) if c in "abé"] == [c for c in text if c in "abé"] or "`" in text or "~" in text
    assert all(len(part) <= longest for part in parts) or "`" in text or "~" in text


@given(st.text(alphabet="ab#*`~[]!|- \n\t>=1.é", max_size=400))
def test_anchors_are_distinct_and_reading_again_gives_the_same(text: str) -> None:
    found = items(text)
    assert found
    assert len({item.origin for item in found}) == len(found)
    assert items(text) == found


def test_an_anchor_that_looks_like_a_repeated_one_is_no_clash() -> None:
    assert list(anchors(["A", "A", "A-1", "a", "🎉"])) == ["a", "a-1", "a-1-1", "a-2", "section"]


@given(st.text())
def test_any_text_is_parsed_and_its_last_line_kept(text: str) -> None:
    found = memories(text + "\nlast line")
    assert "last line" in found[-1].content


def test_a_long_line_of_anything_is_read_in_one_pass() -> None:
    for text in ("# a" + " " * 300_000 + "b", "[" * 300_000, "---\na: x" + " " * 90_000 + "y [\n---\nb", "`" * 300_000):
        assert memories(text)


# Links


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("[[note]]", "note"),
        ("[[note|the text]]", "the text"),
        (r"[[note\|the text]]", "the text"),
        ("[[folder/note.md#Heading]]", "note › Heading"),
        ("[[#Heading]]", "Heading"),
        ("[[note#^block]]", "note"),
        ("![[picture.png]]", "picture.png"),
        ("![[picture.png|300]]", "picture.png"),
        ("![[picture.png|300|Sales of May]]", "Sales of May (picture.png)"),
        ("[plain](note.md)", "[plain](note.md)"),
        ("`[[code]]` and [[note]]", "`[[code]]` and note"),
        ("``a ` [[code]]`` [[note]]", "``a ` [[code]]`` note"),
        ("[[]]", "[[]]"),
        ("[[open", "[[open"),
    ],
)
def test_wikilinks_are_readable(link: str, shown: str) -> None:
    assert readable(link) == shown


def test_code_keeps_its_brackets() -> None:
    text = "See [[note|it]].\n\n```sh\nif [[ -f x ]]; then [[a|b]]\n```\n\n    [[indented]]\n\n- a\n\n"
    text += "  ```\n  [[x]]\n  ```"
    assert parsed(text).content == text.replace("[[note|it]]", "it")
    assert [each.text for each in sections("# [[a]]\n`x` [[b]]")] == ["`x` b"]


# Encodings


@pytest.mark.parametrize(
    ("data", "text", "notice"),
    [
        ("Café".encode(), "Café", None),
        ("Café".encode("utf-8-sig"), "Café", None),
        ("Café".encode("utf-16"), "Café", None),
        ("\ufeffCafé".encode("utf-16-be"), "Café", None),
        ("Café".encode("utf-16-le"), "Café", None),
        ("Café".encode("utf-32"), "Café", None),
        ("Café".encode("latin-1"), "Café", "not UTF-8, read as Latin-1"),
        ("“Café”".encode("cp1252"), "“Café”", "not UTF-8, read as Windows-1252"),
        ("Привет".encode() + b"\xd1", "Привет\ufffd", "1 bytes are not UTF-8 and were replaced"),
        (b"one\0two", "one two", "NUL characters were left out"),
        (b"\x7fELF\x00\x01", None, None),
        (b"\x89PNG\r\n\x1a\n\x00\x00", None, None),
        (b"\xff\x01\x02", None, None),
        (b"", "", None),
    ],
)
def test_encodings_are_told_apart(data: bytes, text: str | None, notice: str | None) -> None:
    assert files.decode(data) == (text, notice)


@given(st.binary())
def test_any_bytes_are_text_or_not(data: bytes) -> None:
    text, _ = files.decode(data)
    assert text is None or "\0" not in text


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings_do_not_matter(ending: str, tmp_path: Path) -> None:
    file = tmp_path / "index.md"
    file.write_bytes(ending.join(["---", "title: T", "---", "one", "", "two", ""]).encode())
    (item,) = markdown.read(file, tmp_path)
    assert item.memory is not None
    assert item.memory.content == "T\n\none\n\ntwo"


# Files


def test_a_folder_is_read_in_order_and_what_is_passed_over_has_a_reason(tmp_path: Path) -> None:
    for name in ("b.md", "a.MARKDOWN", "sub/c.md", ".obsidian/x.md", ".git/y.md", "sub/.trash/z.md", ".hidden.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"in {name}")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "empty.md").write_text("\n")
    (tmp_path / "binary.md").write_bytes(b"\x7fELF\x00\x01")
    found = read_folder(tmp_path)
    assert imported(found) == ["a.MARKDOWN", "b.md", "sub/c.md"]
    assert {origin: (item.skipped, item.fault) for origin, item in found.items() if not item.memory} == {
        ".git/": ("hidden", False),
        ".hidden.md": ("hidden", False),
        ".obsidian/": ("hidden", False),
        "node_modules/": ("not its owner's notes", False),
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
    (notes / "self.md").symlink_to(notes / "self.md")
    found = read_folder(notes)
    assert imported(found) == ["a.md"]
    assert {item.skipped for item in found.values() if not item.memory} == {"a symbolic link"}


def test_a_folder_that_is_itself_given_by_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text("a")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert list(read_folder(tmp_path / "link")) == ["a.md"]


def test_names_may_hold_anything(tmp_path: Path) -> None:
    names = ["заметка.md", "🎉 party.md", "C#.md", "two\nlines.md", "x" * 252 + ".md"]
    for name in names:
        (tmp_path / name).write_text("text\n\n## Part\n\nmore")
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md"))).write_text("text")
    found = read_folder(tmp_path)
    assert {"заметка.md#part", "C#.md#", "C#.md#part", "\\xff.md"} <= set(imported(found))
    assert len(found) == 2 * len(names) + 1
    assert found["🎉 party.md"].memory.content.startswith("🎉 party\n\n")  # type: ignore[union-attr]


def unreadable(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / ("x" * 300 + ".md")
    yield tmp_path / "gone.md"
    yield tmp_path / "nul\0.md"
    with (tmp_path / "huge.md").open("wb") as file:
        file.truncate(50_000_000)
    yield tmp_path / "huge.md"
    os.mkfifo(tmp_path / "pipe.md")
    yield tmp_path / "pipe.md"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_what_cannot_be_read_is_a_fault_with_a_reason(tmp_path: Path) -> None:
    for file in unreadable(tmp_path):
        assert list(markdown.find(file)) == [file]
        (item,) = markdown.read(file, tmp_path)
        assert (item.memory, item.fault) == (None, True)
        assert item.skipped


def test_a_file_that_may_not_be_read_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.md", "b.md", "c.md"):
        (tmp_path / name).write_text(name)

    def refuse(path: Path, mode: str, buffering: int) -> IO[bytes]:
        if path.name == "b.md":
            raise PermissionError(13, "Permission denied", str(path))
        return path.open("rb", buffering)

    monkeypatch.setattr(files, "open", refuse, raising=False)
    found = read_folder(tmp_path)
    assert (found["b.md"].skipped, found["b.md"].fault) == ("Permission denied", True)
    assert imported(found) == ["a.md", "c.md"]


def test_a_vault_is_told_from_other_things(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("x")
    assert not markdown.detects(tmp_path)
    (tmp_path / "sub" / "a.md").write_text("x")
    assert markdown.detects(tmp_path)
    assert markdown.detects(tmp_path / "sub" / "a.md")
    assert not markdown.detects(tmp_path / "sub" / "a.txt")
    assert not markdown.detects(tmp_path / ("x" * 300))


# Git


def test_the_first_commit_dates_a_note_through_renames(tmp_path: Path) -> None:
    def git(*arguments: str, day: str = "2021-01-01") -> None:
        moment = {"GIT_AUTHOR_DATE": f"{day}T12:00:00Z", "GIT_COMMITTER_DATE": f"{day}T12:00:00Z"}
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(tmp_path), *who, *arguments]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | moment)

    git("init", "-q")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "ü.md").write_text("one")
    git("add", ".")
    git("commit", "-qm", "1", day="2021-01-01")
    git("mv", "sub/ü.md", "moved.md")
    git("commit", "-qm", "2", day="2022-01-01")
    (tmp_path / "moved.md").write_text("two")
    (tmp_path / "other.md").write_text("three")
    git("add", ".")
    git("commit", "-qm", "3", day="2023-01-01")
    (tmp_path / "new.md").write_text("not committed")
    created = {name: item.memory.created_at for name, item in read_folder(tmp_path).items() if item.memory}
    assert created["moved.md"] == datetime(2021, 1, 1, 12, tzinfo=UTC)
    assert created["other.md"] == datetime(2023, 1, 1, 12, tzinfo=UTC)
    assert created["new.md"] == datetime.fromtimestamp((tmp_path / "new.md").stat().st_mtime, UTC)


def test_without_git_the_last_change_dates_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.md").write_text("text")
    os.utime(tmp_path / "a.md", (1_600_000_000, 1_600_000_000))
    monkeypatch.setenv("PATH", str(tmp_path))
    (item,) = markdown.read(tmp_path / "a.md", tmp_path)
    assert item.memory is not None
    assert item.memory.created_at == datetime.fromtimestamp(1_600_000_000, UTC)


def test_a_note_that_was_deleted_and_made_again_is_as_old_as_its_second_life() -> None:
    log = b"\x01300\0\nM\0a\0\x01200\0\nA\0a\0\x01150\0\nD\0a\0\x01100\0\nA\0a\0"
    assert dates.read_log(log) == {"a": datetime.fromtimestamp(200, UTC)}


_WORDS = st.text("ab: #-&*![]{}'\",\n1", max_size=12)
_YAML = st.lists(st.tuples(st.sampled_from(["a", "b", "? x", "&n a", "<<"]), _WORDS), max_size=4).map(
    lambda lines: "".join(f"{name}: {value}\n" for name, value in lines)
)


@given(_YAML)
@example("a: [x, [y]]\n")
@example("a: &n [x]\nb: *n\n")
@example("a: &n [*n]\n")
@example("? [x]\n: y\n")
@example("a: !!int 3\nb: {c: d}\n")
@example("a: 1\na: 2\n")
def test_the_fields_are_what_the_yaml_library_makes_of_them(source: str) -> None:
    def loaded(load: Callable[[str], object]) -> object:
        try:
            return load(source) or {}
        except yaml.YAMLError:
            return "not YAML"

    assert loaded(frontmatter._loaded) == loaded(lambda text: yaml.load(text, yaml.BaseLoader))


@pytest.mark.parametrize("name", ["a.md", "a.b.md", ".hidden", "a.", "a", "..md", ".a.md", "a..", "\u00e9.md"])
def test_the_stem_of_a_name_is_that_of_pathlib(name: str) -> None:
    assert files.stem(name) == Path(name).stem


def test_a_file_is_found_where_it_really_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").touch()
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "real" / "b.md").symlink_to("a.md")
    for path in ("linked/a.md", "linked/b.md", "real/../linked/a.md", "linked/none.md", "linked/.", "linked/.."):
        files.forget_folders()
        assert files.real(tmp_path / path) == files.real(f"{tmp_path}/{path}") == os.path.realpath(f"{tmp_path}/{path}")
