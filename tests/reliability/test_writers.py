"""Processes that write at once, and processes that are killed while they do, lose nothing that was acknowledged."""

from __future__ import annotations

from pathlib import Path

from tests.reliability import kills, mixed


def test_writers_killed_at_random_lose_no_acknowledged_write(tmp_path: Path) -> None:
    figures = kills.run(tmp_path / "store", tmp_path / "logs", kills=20, seed=7)
    print(figures)
    assert figures.wrong == []
    assert figures.kills >= 20
    assert figures.acknowledged >= 20


def test_four_processes_with_fifty_mixed_writes_each_lose_nothing(tmp_path: Path) -> None:
    figures, longest = mixed.run(tmp_path / "store", tmp_path / "logs", writes=50)
    print(f"{figures}, the longest write took {longest * 1000:.0f} ms")
    assert figures.wrong == []
    assert figures.acknowledged >= 100
