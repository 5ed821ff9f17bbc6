"""Tables and plain text: a row or a paragraph a memory, whatever quotes, separators and lengths they have."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_memory import MemoryCategory
from runtime_memory.importers import Item, delimited, plain_text
from runtime_memory.importers.fields import parse_mapping

NAMED = datetime(2024, 5, 1, 12, tzinfo=UTC)


def rows(folder: Path, text: str, mapping: str | None = None, name: str = "2024-05-01.csv") -> list[Item]:
    file = folder / name
    file.write_bytes(text.encode())
    return list(delimited.read(file, file, mapping=parse_mapping(mapping) if mapping else None))


def paragraphs(folder: Path, text: str) -> list[Item]:
    file = folder / "2024-05-01.txt"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    return list(plain_text.read(file, file))


def contents(items: list[Item]) -> list[str | None]:
    return [item.memory.content if item.memory else None for item in items]


# Tables


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
def test_a_row_is_a_memory_by_the_names_in_the_first_row(separator: str, tmp_path: Path) -> None:
    header, row = ["id", "Text", "category", "tags", "date"], ["7", "a fact", "Gotcha", "db net", "2024-09-17"]
    items = rows(tmp_path, "\r\n".join(separator.join(cells) for cells in (header, row)))
    (memory,) = [item.memory for item in items if item.memory]
    assert (memory.content, memory.category, memory.tags) == ("a fact", MemoryCategory.GOTCHA, ["db", "net"])
    assert memory.created_at == datetime(2024, 9, 17, 12, tzinfo=UTC)
    assert memory.origin == f"{(tmp_path / '2024-05-01.csv').resolve()}#L2"


def test_quoted_cells_hold_separators_quotes_and_line_ends(tmp_path: Path) -> None:
    items = rows(tmp_path, 'text,who\n"one, ""two""\nthree",me\n\nfour,\n')
    assert contents(items) == ['one, "two"\nthree', "four"]
    assert [item.origin.rpartition("#")[2] for item in items] == ["L2", "L5"]
    assert [item.memory.metadata for item in items if item.memory] == [{"who": "me"}, {}]
    assert {item.memory.created_at for item in items if item.memory} == {NAMED}


def test_a_table_of_one_column_may_have_commas_in_its_text(tmp_path: Path) -> None:
    assert contents(rows(tmp_path, "note\none, two\n")) == ["one, two"]


def test_a_mapping_names_the_columns(tmp_path: Path) -> None:
    items = rows(tmp_path, "Fact,When,text\na fact,1714555800,no\n", "content=Fact,created_at=When")
    assert contents(items) == ["a fact"]
    assert items[0].memory is not None
    assert items[0].memory.created_at == datetime(2024, 5, 1, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize("mapping", [None, "content=fact"])
def test_a_table_without_the_column_says_which_there_are(mapping: str | None, tmp_path: Path) -> None:
    (item,) = rows(tmp_path, "a,b\n1,2\n", mapping)
    assert item.fault
    assert "a, b" in (item.skipped or "")
    assert "--map content=FIELD" in (item.skipped or "")


def test_broken_rows_are_faults_with_their_lines_and_the_others_are_read(tmp_path: Path) -> None:
    items = rows(tmp_path, 'n,text\n1,one\n2,cut, here\n3,\n4,"a" b\n5,five\n6,"no end\n7,x\n')
    assert contents(items) == ["one", None, None, None, "five", None]
    assert [item.fault for item in items] == [False, True, True, True, False, True]
    assert [item.origin.rpartition("#")[2] for item in items] == ["L2", "L3", "L4", "L5", "L6", "L7"]
    assert "the lines 7 to 8" in (items[-1].skipped or "")


def test_a_long_cell_is_read(tmp_path: Path) -> None:
    assert [len(text or "") for text in contents(rows(tmp_path, f"text\n{'x' * 1_000_000}\n"))] == [1_000_000]


def test_tables_are_told_by_their_columns(tmp_path: Path) -> None:
    for text, expected in (("n,memory\n", True), ("", True), ("n,value\n", False), ("\x7fELF\0\0\1", True)):
        file = tmp_path / "table.csv"
        file.write_text(text)
        assert delimited.detects(file) == expected
    assert [item.skipped for item in delimited.read(tmp_path / "table.csv", tmp_path)] == ["not a text file"]
    assert contents(rows(tmp_path, "")) == [None]


@given(text=st.text(max_size=200))
def test_any_table_is_read_without_an_error(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "any.csv"
    file.write_bytes(b"text,who\n" + text.encode("utf-8", "surrogatepass"))
    list(delimited.read(file, file))
    delimited.detects(file)


# Plain text


def test_a_paragraph_is_a_memory_dated_by_the_files_name(tmp_path: Path) -> None:
    items = paragraphs(tmp_path, "\ufeffone\r\ntwo\r\n \r\n\r\n-----\r\n\r\n  three\r\n")
    assert contents(items) == ["one\ntwo", "  three"]
    assert [item.origin.rpartition("#")[2] for item in items] == ["p1", "p2"]
    assert {item.memory.created_at for item in items if item.memory} == {NAMED}
    assert len({item.memory.origin_hash for item in items if item.memory}) == 2


@pytest.mark.parametrize("text", ["", "\n\n", "-----\n"])
def test_a_text_without_a_word_is_empty(text: str, tmp_path: Path) -> None:
    assert [(item.skipped, item.fault) for item in paragraphs(tmp_path, text)] == [("empty", False)]


@given(st.lists(st.sampled_from(["word", "x" * 30_001, "日本語。" * 7_000, "two words\n"]), min_size=1, max_size=12))
def test_long_paragraphs_are_cut_and_lose_nothing(pieces: list[str]) -> None:
    import io

    text = " ".join(pieces)
    parts = list(plain_text._paragraphs(io.StringIO(text)))
    assert max(map(len, parts)) <= 2 * plain_text.LONGEST
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_a_long_paragraph_is_cut_between_words(tmp_path: Path) -> None:
    parts = contents(paragraphs(tmp_path, "word " * 10_000))
    assert len(parts) > 1
    assert {word for part in parts for word in (part or "").split()} == {"word"}


def test_a_large_file_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime_memory.importers.text_files.MAX_BYTES", 10)
    assert contents(paragraphs(tmp_path, "Café\r\n\r\nnaïve\r\n")) == ["Café", "naïve"]


def test_what_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    (item,) = plain_text.read(tmp_path / "gone.txt", tmp_path)
    assert item.fault
    (tmp_path / "binary.txt").write_bytes(b"\x7fELF\x00\x01\xff")
    (item,) = plain_text.read(tmp_path / "binary.txt", tmp_path)
    assert (item.skipped, item.fault) == ("not a text file", True)
