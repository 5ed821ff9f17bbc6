"""Notes of Basic Memory: an observation a memory, relations in words, and the rest of the text by its sections."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime_memory import MemoryCategory, NewMemory
from runtime_memory.importers import Item, basic_memory

FIELDS = "title: Coffee\ntype: note\npermalink: drinks/coffee\ntags: [brewing]\ncreated: 2024-09-17\n"
NOTE = f"""---
{FIELDS}---
# Coffee

Beans go stale; see [[Storage|how to store]].

## Observations
- [method] Pour over gives more clarity than a French press
- [Decision] Water at 96 °C #temperature #water (measured twice)
- [x] buy filters
- [ ] clean the mill
- [00:12] where the talk begins
- [a link](https://example.org)
- plain item

## Relations
- relates_to [[Coffee Bean Origins]]
- "is part of" [[Drinks|All Drinks]] (since May)
- see also [[Tea]] and others
"""


def read(folder: Path, text: str, name: str = "coffee.md") -> list[Item]:
    file = folder / name
    file.write_text(text, "utf-8")
    return list(basic_memory.read(file, folder))


def by_anchor(items: list[Item]) -> dict[str, NewMemory]:
    return {item.origin.partition("#")[2]: item.memory for item in items if item.memory}


def test_observations_relations_and_text_are_memories_that_stand_alone(tmp_path: Path) -> None:
    found = by_anchor(read(tmp_path, NOTE))
    method, decision = found["o:1"], found["o:2"]
    assert method.content == "Coffee: Pour over gives more clarity than a French press"
    assert (method.category, method.tags) == (MemoryCategory.GENERAL, ("brewing", "method"))
    assert decision.content == "Coffee: Water at 96 °C (measured twice)"
    assert (decision.category, decision.tags) == (MemoryCategory.DECISION, ("brewing", "temperature", "water"))
    assert found["~relations"].content == ("Coffee: relates to Coffee Bean Origins; is part of All Drinks (since May)")
    assert "o:3" not in found
    text = "\n".join(memory.content for anchor, memory in found.items() if anchor not in {"o:1", "o:2", "~relations"})
    for kept in (
        "see how to store",
        "buy filters",
        "clean the mill",
        "[00:12]",
        "a link",
        "plain item",
        "Tea and others",
    ):
        assert kept in text
    assert "French press" not in text


def test_every_memory_has_the_notes_date_and_a_hash_of_its_own(tmp_path: Path) -> None:
    found = by_anchor(read(tmp_path, NOTE))
    assert {memory.created_at for memory in found.values()} == {datetime(2024, 9, 17, 12, tzinfo=UTC)}
    assert len({memory.origin_hash for memory in found.values()}) == len(found)
    changed = by_anchor(read(tmp_path, NOTE.replace("96 °C", "94 °C")))
    assert [anchor for anchor in found if found[anchor].origin_hash != changed[anchor].origin_hash] == ["o:2"]


def test_a_long_observation_of_several_lines_is_one_memory(tmp_path: Path) -> None:
    found = by_anchor(read(tmp_path, f"---\n{FIELDS}---\n* [tip] one\n  two [[Tea]]\n"))
    assert {anchor: memory.content for anchor, memory in found.items()} == {"o:1": "Coffee: one two Tea"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NOTE, True),
        (NOTE.replace("\n", "\r\n"), True),
        (NOTE.replace("permalink: drinks/coffee\n", ""), False),
        (NOTE.replace("type: note\n", ""), False),
        ("permalink: a\ntype: note\ntitle: b\n", False),
        ("", False),
    ],
)
def test_its_notes_are_told_by_their_frontmatter(text: str, expected: bool, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_bytes(text.encode())
    assert basic_memory.detects(tmp_path / "note.md") == expected
    assert basic_memory.detects(tmp_path) == expected


def test_an_empty_note_and_one_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    assert [(item.skipped, item.fault) for item in read(tmp_path, f"---\n{FIELDS}---\n")] == [("empty", False)]
    (item,) = basic_memory.read(tmp_path / "gone.md", tmp_path)
    assert item.fault


@given(text=st.text(st.sampled_from(list("-*[]()#ab \n|:x\"'_")), max_size=80))
def test_any_note_is_read_without_an_error(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    items = read(folder, f"---\n{FIELDS}---\n{text}\n\nlast words", "any.md")
    assert len({item.origin for item in items}) == len(items)
    assert any("last words" in item.memory.content for item in items if item.memory)
