"""A store of an earlier version opens, with all that is in it."""

from __future__ import annotations

import json
from pathlib import Path

import lancedb

from tests.conftest import OpenStore, contents


def as_format_1(folder: Path) -> None:
    """Turn a store's folder into what the first format was."""
    lancedb.connect(str(folder / "lance")).open_table("memories").drop_columns(["origin_hash", "imported_at"])
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    kept = ("epoch", "table", "dimension", "embedding")
    path.write_text(json.dumps({"format": 1} | {name: manifest[name] for name in kept}))


def test_a_store_of_the_first_format_is_brought_up_to_date(open_store: OpenStore, folder: Path) -> None:
    store = open_store()
    old = store.add("the port is 5433", category="environment", tags=["db"])
    store.record_outcome([old.id], "worked")
    expected = store.get(old.id)
    store.close()
    as_format_1(folder)
    again = open_store()
    assert again.get(old.id) == expected
    new = again.add("the moon is far", origin="/notes#x", origin_hash="abc", source="imported")
    assert again.get(new.id).origin_hash == "abc"
    assert contents(again.search("port", limit=1)) == ["the port is 5433"]
    assert again.edit(old.id, content="the port is 5434").outcome_score == expected.outcome_score
    assert again.check() == []
    assert json.loads((folder / "manifest.json").read_text())["format"] == 2


def test_an_upgrade_that_was_cut_short_goes_on(open_store: OpenStore, folder: Path) -> None:
    store = open_store()
    store.add("the port is 5433")
    store.close()
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1}))  # the columns are there already
    assert contents(open_store().list()) == ["the port is 5433"]
