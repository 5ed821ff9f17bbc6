"""An import that is stopped, or that fails in the middle: what is stored is counted, and what is counted is stored."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runtime_memory import MemorySource, MemoryStore, NewMemory
from runtime_memory.errors import StoreUnavailableError
from runtime_memory.importers import Item
from runtime_memory.importers.intake import Intake
from runtime_memory.importers.undivided import undivided

STOPS = (signal.SIGINT, signal.SIGTERM)
Write = Callable[..., Any]


@pytest.fixture(autouse=True)
def sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does, as the command line has it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGTERM, before)


def notes(folder: Path, count: int, word: str = "fact") -> list[Item]:
    items = []
    for number in range(count):
        origin = str(folder / f"{number}.md")
        Path(origin).touch()
        memory = NewMemory(
            f"{word} {number}", source=MemorySource.IMPORTED, origin=origin, origin_hash=f"{word} {number}"
        )
        items.append(Item(origin, memory))
    return items


def after_write(monkeypatch: pytest.MonkeyPatch, then: Callable[[], None], *, writes: int = 1) -> None:
    """Let something happen between the commit of a store's write, the last of so many, and its return."""
    real, done = MemoryStore.write, [0]

    def write(self: MemoryStore, *args: Any, **options: Any) -> Any:
        written = real(self, *args, **options)
        done[0] += 1
        if done[0] == writes:
            then()
        return written

    monkeypatch.setattr(MemoryStore, "write", write)


def stop(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def in_one_step(*parts: Callable[[], None]) -> None:
    with undivided():
        for part in parts:
            part()


@pytest.mark.parametrize("number", STOPS)
def test_a_batch_that_is_written_when_the_signal_comes_is_counted(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    intake = Intake(store)
    after_write(monkeypatch, stop(number), writes=2)
    with pytest.raises(KeyboardInterrupt):
        intake.take(notes(tmp_path, 300))
    assert 0 < intake.summary.added == len(store.list()) < 300
    monkeypatch.undo()
    again = Intake(store)
    again.take(notes(tmp_path, 300))
    assert again.finish([tmp_path]).added == 300 - intake.summary.added


def test_a_prune_that_is_stopped_is_counted(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Intake(store)
    first.take(notes(tmp_path, 3))
    first.finish([tmp_path])
    after_write(monkeypatch, stop(signal.SIGINT))
    intake = Intake(store)
    with pytest.raises(KeyboardInterrupt):
        intake.finish([tmp_path], prune=True)
    assert intake.summary.archived == 3
    assert store.list() == []


def test_a_text_that_moves_to_its_other_place_when_the_signal_comes_is_counted(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [one] = notes(tmp_path, 1)
    first = Intake(store)
    first.take([one])
    first.finish([tmp_path])
    place = str(tmp_path / "other.md")
    assert one.memory
    intake = Intake(store)
    intake.take([Item(place, replace(one.memory, origin=place, origin_hash="elsewhere"))])
    after_write(monkeypatch, stop(signal.SIGINT), writes=2)
    with pytest.raises(KeyboardInterrupt):
        intake.finish([tmp_path])
    assert (intake.summary.moved, intake.summary.unchanged) == (1, 0)
    assert [memory.origin for memory in store.list()] == [place]


@pytest.mark.parametrize("known", [False, True])
def test_a_batch_that_fails_after_its_commit_is_counted_and_the_error_told(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    if known:
        earlier = Intake(store)
        earlier.take(notes(tmp_path, 5, word="earlier"))
        earlier.finish([tmp_path])

    def fail() -> None:
        raise StoreUnavailableError("the disk is full")

    after_write(monkeypatch, fail)
    intake = Intake(store)
    with pytest.raises(StoreUnavailableError):
        intake.take(notes(tmp_path, 70))
    counted = intake.summary.added + intake.summary.updated
    assert intake.summary.updated == (5 if known else 0)
    assert counted == sum(memory.content.startswith("fact") for memory in store.list()) > 0


def test_a_batch_that_fails_before_its_commit_is_not_counted(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: Any, **__: Any) -> None:
        raise StoreUnavailableError("the disk is full")

    monkeypatch.setattr(MemoryStore, "write", write)
    intake = Intake(store)
    with pytest.raises(StoreUnavailableError):
        intake.take(notes(tmp_path, 70))
    assert intake.summary.memories == len(store.list()) == 0


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_waits_for_the_end_of_a_step_and_a_second_one_does_not(number: signal.Signals) -> None:
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        in_one_step(stop(number), lambda: reached.append("the end"))
    with pytest.raises(KeyboardInterrupt):
        in_one_step(stop(number), stop(signal.SIGINT), lambda: reached.append("too far"))
    assert reached == ["the end"]


def test_a_step_within_a_step_waits_for_the_outer_one() -> None:
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        in_one_step(lambda: in_one_step(stop(signal.SIGINT)), lambda: reached.append("the end"))
    assert reached == ["the end"]


def test_a_steps_own_error_is_told_when_no_signal_came() -> None:
    with pytest.raises(LookupError), undivided():
        raise LookupError


def test_what_ignores_a_signal_goes_on_ignoring_it_and_another_thread_is_left_alone() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with undivided():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        stop(signal.SIGTERM)()
    signal.signal(signal.SIGTERM, before)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with undivided():
                assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        except BaseException as error:  # noqa: BLE001 - told below
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == []
