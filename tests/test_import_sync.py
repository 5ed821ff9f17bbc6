"""Importing again and again: nothing twice, changes in place, moves followed, what vanished reported."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from runtime_memory import MemorySource, MemoryStore, NewMemory, Outcome
from runtime_memory.importers import Item, Summary
from runtime_memory.importers.intake import Intake, as_new
from runtime_memory.importers.sync import closest, file_of
from tests.conftest import OpenStore, contents


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Return a folder with three notes; what is in them is up to the items."""
    for name in ("a.md", "b.md", "c.md"):
        tmp_path.joinpath("vault").mkdir(exist_ok=True)
        tmp_path.joinpath("vault", name).touch()
    return tmp_path / "vault"


def item(file: Path, anchor: str, text: str, **fields: Any) -> Item:
    origin = f"{file}#{anchor}"
    hashed = sha256(repr((text, fields)).encode()).hexdigest()[:16]
    memory = NewMemory(text, source=MemorySource.IMPORTED, origin=origin, origin_hash=hashed, **fields)
    return Item(origin, memory)


def run(store: MemoryStore, items: Iterable[Item], root: Path, *, prune: bool = False, **options: Any) -> Summary:
    intake = Intake(store, **options)
    intake.take(items)
    return intake.finish([root], prune=prune)


def three(vault: Path, second: str = "blue") -> list[Item]:
    texts = {"first": "the sky is grey", "second": f"the sea is {second}", "third": "the sand is warm"}
    return [item(vault / "a.md", anchor, text) for anchor, text in texts.items()]


def counts(summary: Summary) -> dict[str, int]:
    names = ("added", "updated", "moved", "unchanged", "archived")
    return {name: getattr(summary, name) for name in names if getattr(summary, name)}


def test_the_same_notes_again_change_nothing(store: MemoryStore, vault: Path) -> None:
    assert counts(run(store, three(vault), vault)) == {"added": 3}
    before = store.list()
    assert counts(run(store, three(vault), vault)) == {"unchanged": 3}
    assert store.list() == before


def test_a_changed_section_is_updated_in_place_and_keeps_its_outcomes(store: MemoryStore, vault: Path) -> None:
    run(store, three(vault), vault)
    old = next(memory for memory in store.list() if "sea" in memory.content)
    store.record_outcome([old.id], Outcome.WORKED)
    assert counts(run(store, three(vault, "green"), vault)) == {"updated": 1, "unchanged": 2}
    new = store.get(old.id)
    assert (new.content, new.outcome_score) == ("the sea is green", pytest.approx(0.2))
    assert contents(store.search("green sea", limit=1)) == ["the sea is green"]
    assert len(store.list()) == 3


def test_what_its_owner_edited_or_archived_stays_so_until_the_note_changes(store: MemoryStore, vault: Path) -> None:
    run(store, three(vault), vault)
    sky, sea = (next(m for m in store.list() if word in m.content) for word in ("sky", "sea"))
    store.edit(sky.id, content="the sky is pink at night")
    store.archive(sea.id)
    assert counts(run(store, three(vault), vault)) == {"unchanged": 3}
    assert store.get(sky.id).content == "the sky is pink at night"
    assert store.get(sea.id).archived
    run(store, three(vault, "green"), vault)
    assert not store.get(sea.id).archived


def test_a_moved_file_is_followed(store: MemoryStore, vault: Path) -> None:
    run(store, three(vault), vault)
    before = {memory.id: memory.content for memory in store.list()}
    (vault / "deeper").mkdir()
    moved = (vault / "a.md").rename(vault / "deeper" / "z.md")
    items = [each._replace(origin=each.origin.replace(str(vault / "a.md"), str(moved))) for each in three(vault)]
    items = [
        each._replace(memory=NewMemory(**{**fields(each), "origin": each.origin})) for each in items if each.memory
    ]
    summary = run(store, items, vault)
    assert counts(summary) == {"moved": 3}
    assert not summary.vanished
    assert {memory.id: memory.content for memory in store.list()} == before
    assert {file_of(memory.origin or "") for memory in store.list()} == {str(moved)}


def fields(each: Item) -> dict[str, Any]:
    assert each.memory is not None
    return {name: getattr(each.memory, name) for name in NewMemory.__dataclass_fields__ if name != "_"}


def test_what_vanished_is_reported_and_archived_only_on_request(store: MemoryStore, vault: Path) -> None:
    run(store, three(vault), vault)
    summary = run(store, three(vault)[:2], vault)
    assert [origin.rpartition("#")[2] for origin in summary.vanished] == ["third"]
    assert len(store.list()) == 3
    assert counts(run(store, three(vault)[:2], vault, prune=True)) == {"unchanged": 2, "archived": 1}
    assert len(store.list()) == 2
    assert not run(store, three(vault)[:2], vault).vanished


def test_what_was_pruned_and_comes_back_is_the_same_memory_again(store: MemoryStore, vault: Path) -> None:
    run(store, three(vault), vault)
    ids = {memory.id for memory in store.list()}
    run(store, three(vault)[:2], vault, prune=True)
    assert counts(run(store, three(vault), vault)) == {"updated": 1, "unchanged": 2}
    assert {memory.id for memory in store.list()} == ids


def test_what_could_not_be_read_today_has_not_vanished(store: MemoryStore, vault: Path) -> None:
    run(store, three(vault), vault)
    unread = [Item(str(vault / "a.md"), skipped="Permission denied", fault=True)]
    summary = run(store, unread, vault, prune=True)
    assert not summary.vanished
    assert summary.faults == 1
    assert len(store.list()) == 3


def test_another_folder_has_not_vanished(store: MemoryStore, vault: Path, tmp_path: Path) -> None:
    run(store, three(vault), vault)
    other = tmp_path / "vault-2"
    other.mkdir()
    assert not run(store, [item(other / "x.md", "x", "the moon is far")], other, prune=True).vanished


def entries(vault: Path, *texts: str) -> list[Item]:
    return [item(vault / "b.md", f"list:{number}", text) for number, text in enumerate(texts)]


def test_an_entry_put_first_in_a_list_leaves_the_others_their_outcomes(store: MemoryStore, vault: Path) -> None:
    run(store, entries(vault, "run make check before a push", "the port of the database is 5433"), vault)
    port = next(memory for memory in store.list() if "port" in memory.content)
    store.record_outcome([port.id], Outcome.WORKED)
    texts = ("wants short answers", "run make check before a push", "the port of the database is 5544")
    assert counts(run(store, entries(vault, *texts), vault)) == {"added": 1, "moved": 1, "updated": 1}
    assert store.get(port.id).content == "the port of the database is 5544"
    assert store.get(port.id).outcome_score > 0


def test_an_entry_replaced_by_quite_another_one_does_not_inherit_its_outcomes(store: MemoryStore, vault: Path) -> None:
    run(store, entries(vault, "run make check before a push"), vault)
    old = store.list()[0]
    summary = run(store, entries(vault, "lives in Lisbon"), vault)
    assert counts(summary) == {"added": 1}
    assert len(summary.vanished) == 1
    assert store.get(old.id).content == "run make check before a push"


def test_one_text_in_two_places_is_one_memory(store: MemoryStore, vault: Path) -> None:
    both = [item(vault / name, "x", "the sky is grey") for name in ("a.md", "b.md")]
    assert counts(run(store, both, vault)) == {"added": 1, "unchanged": 1}
    assert counts(run(store, both, vault)) == {"unchanged": 2}


def test_what_one_place_lost_and_another_still_says_is_not_archived(store: MemoryStore, vault: Path) -> None:
    both = [item(vault / name, "x", "the sky is grey") for name in ("a.md", "b.md")]
    run(store, both, vault)
    assert counts(run(store, both[1:], vault, prune=True)) == {"moved": 1}
    [memory] = store.list()
    assert memory.origin == both[1].origin
    assert counts(run(store, both[1:], vault, prune=True)) == {"unchanged": 1}


def test_a_dry_run_tells_the_same_and_writes_nothing(store: MemoryStore, vault: Path) -> None:
    again = [*three(vault), item(vault / "b.md", "x", "the sky is grey")]
    assert counts(run(store, again, vault, dry_run=True)) == {"added": 3, "unchanged": 1}
    assert store.list() == []
    run(store, three(vault), vault)
    before = store.list(include_archived=True)
    summary = run(store, three(vault, "green")[:2], vault, dry_run=True, prune=True)
    assert counts(summary) == {"updated": 1, "unchanged": 1, "archived": 1}
    assert store.list(include_archived=True) == before


def test_a_refused_memory_costs_none_of_the_others(store: MemoryStore, vault: Path) -> None:
    bad = item(vault / "b.md", "x", "a text", tags=["x" * 1000])
    summary = run(store, [*three(vault), bad], vault)
    assert counts(summary) == {"added": 3}
    assert summary.faults == 1
    assert "at most" in summary.skipped[0][1]


def test_without_embedding_the_words_find_what_was_imported_at_once(open_store: OpenStore, vault: Path) -> None:
    store = open_store()
    run(store, three(vault), vault, embed=False)
    assert store.stats().pending_embeddings == 3
    assert contents(store.search("sand", limit=1)) == ["the sand is warm"]
    store.optimize()
    assert store.stats().pending_embeddings == 0


def test_a_text_that_the_store_has_is_not_embedded_again(open_store: OpenStore, vault: Path) -> None:
    store = open_store()
    run(store, three(vault), vault)
    embedder = store._model.get()  # type: ignore[union-attr]
    embedded: list[str] = []
    embedder.embed_passages, original = (  # type: ignore[union-attr,method-assign]
        lambda passages: embedded.extend(passages) or original(passages),  # type: ignore[func-returns-value]
        embedder.embed_passages,  # type: ignore[union-attr]
    )
    run(store, [item(vault / "c.md", "x", "the sky is grey", project="elsewhere")], vault)
    assert embedded == []
    assert store.stats().pending_embeddings == 0


def test_an_older_version_of_a_memory_does_not_replace_a_newer_one(store: MemoryStore, clock: Any) -> None:
    exported = as_new(store.add("the port is 5432"))
    clock.advance(days=1)
    store.edit(exported.id or "", content="the port is 5433")
    written = store.write([exported])[0]
    assert (written.duplicate, written.memory.content) == (True, "the port is 5433")


def test_closest_pairs_each_text_once_and_nothing_that_differs_more_than_it_shares() -> None:
    texts = {0: "the port is 5433 now", 1: "the port is 5433", 2: "lives in Lisbon"}
    assert closest(texts, {"a": "the port is 5432", "b": "wants short answers"}) == {1: "a"}


def test_a_hash_sign_in_a_folder_begins_no_anchor() -> None:
    assert file_of("/home/me/C#/notes.md#intro") == "/home/me/C#/notes.md"
    assert file_of("/home/me/C#/notes.md") == "/home/me/C#/notes.md"
    assert file_of("/home/me/notes.md") == "/home/me/notes.md"
