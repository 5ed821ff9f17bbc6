"""Two processes do whatever comes to their minds with one store, and it stays what a plain dict would be.

``RELIABILITY_EXAMPLES=200`` tries as many sequences, of 50 operations each, and shortens the one that fails.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from runtime_memory.errors import RuntimeMemoryError
from runtime_memory.export import jsonl_lines
from runtime_memory.importers import jsonl
from runtime_memory.importers.intake import Intake
from tests.reliability.line import Line, RefusedError, call, opened
from tests.reliability.model import Entry, Model, added, entries, imported, twin

_EXAMPLES = int(os.environ.get("RELIABILITY_EXAMPLES", "0"))
_WORDS = ("harbour", "violin", "copper")
CONTENTS = st.sampled_from([f"the {word} number {number}" for word in _WORDS for number in (1, 2)])
IDS = st.sampled_from([f"0192f3c4-0000-7000-8000-00000000000{number}" for number in range(3)])
HERE = st.booleans()
NUMBERS = st.integers(0, 1_000)
TAGS = st.lists(st.sampled_from(["red", "green"]), unique=True).map(tuple)
OUTCOMES = st.sampled_from(["worked", "failed", "partial"])


class TwoProcesses(RuleBasedStateMachine):
    """Operate on one store from this process and from another one."""

    line: Line
    done = 0

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.folder = self.place / "store"
        self.store = opened(self.folder)
        self.model: Model = {}
        self.gone: set[str] = set()
        self.kills = 0

    @initialize()
    def begin(self) -> None:
        self.line.move(self.folder)

    def teardown(self) -> None:
        try:
            assert self.store.check() == []
            assert self.line("check") == []
        finally:
            self.store.close()
            shutil.rmtree(self.place)

    def ask(self, here: bool, method: str, *args: Any, **options: Any) -> Any:
        type(self).done += 1
        return call(self.store, method, *args, **options) if here else self.line(method, *args, **options)

    def one(self, number: int) -> str | None:
        """Return an id; None where there is none. A precondition would make the sequence depend on the kills."""
        return sorted(self.model)[number % len(self.model)] if self.model else None

    # Writing

    @rule(here=HERE, content=CONTENTS, tags=TAGS)
    def add(self, here: bool, content: str, tags: tuple[str, ...]) -> None:
        known = twin(self.model, content)
        memory = self.ask(here, "add", content, tags=tags)
        assert known in (None, memory["id"])
        assert memory["id"] not in self.gone
        if known is None:
            self.model[memory["id"]] = Entry(content, tags=tags)
        self.model = added(self.model, content, memory["id"])

    @rule(here=HERE, content=CONTENTS, number=NUMBERS)
    def correct(self, here: bool, content: str, number: int) -> None:
        old = self.one(number)
        if old is None:
            return
        memory = self.ask(here, "add", content, supersedes=old)
        self.model = added(self.model, content, memory["id"], supersedes=old)

    @rule(here=HERE, content=CONTENTS, number=NUMBERS)
    def edit(self, here: bool, content: str, number: int) -> None:
        id_ = self.one(number)
        if id_ is None:
            return
        try:
            self.ask(here, "edit", id_, content=content)
        except (RuntimeMemoryError, RefusedError):
            assert twin(self.model, content) not in (None, id_)
        else:
            assert twin(self.model, content) in (None, id_)
            self.model[id_] = replace(self.model[id_], content=content)

    @rule(here=HERE, number=NUMBERS, tags=TAGS)
    def tag(self, here: bool, number: int, tags: tuple[str, ...]) -> None:
        id_ = self.one(number)
        if id_ is None:
            return
        self.ask(here, "edit", id_, tags=tags)
        self.model[id_] = replace(self.model[id_], tags=tags)

    @rule(here=HERE, number=NUMBERS, archived=st.booleans())
    def archive(self, here: bool, number: int, archived: bool) -> None:
        id_ = self.one(number)
        if id_ is None:
            return
        self.ask(here, "archive", id_, archived=archived)
        self.model[id_] = replace(self.model[id_], archived=archived)

    @rule(here=HERE, number=NUMBERS)
    def forget(self, here: bool, number: int) -> None:
        id_ = self.one(number)
        if id_ is None:
            return
        content = self.model.pop(id_).content
        self.ask(here, "forget", id_)
        self.gone.add(id_)
        assert id_ not in [hit["memory"]["id"] for hit in self.ask(not here, "recall", content)]

    @rule(here=HERE, number=NUMBERS, outcome=OUTCOMES)
    def report(self, here: bool, number: int, outcome: str) -> None:
        id_ = self.one(number)
        if id_ is None:
            return
        (memory,) = self.ask(here, "record_outcome", [id_], outcome)
        self.model[id_] = replace(self.model[id_], reports=(*self.model[id_].reports, outcome))
        assert entries([memory], self.model) == {id_: self.model[id_]}

    @rule(here=HERE, id_=IDS, content=CONTENTS, tags=TAGS, newer=st.booleans())
    def take_over(self, here: bool, id_: str, content: str, tags: tuple[str, ...], newer: bool) -> None:
        if id_ in self.gone:  # its outcomes are those of what was forgotten
            return
        when = datetime.now(UTC) + timedelta(0 if newer else -1)
        fields = {"content": content, "id": id_, "tags": tags, "updated_at": when.isoformat()}
        self.ask(here, "import", fields)
        self.model = imported(self.model, id_, content, tags, newer=newer)

    @rule()
    def export_and_import(self) -> None:
        file = self.place / "export.jsonl"
        file.write_text("".join(jsonl_lines(self.store, include_archived=True)))
        intake = Intake(self.store)
        intake.take(jsonl.read(file, file))
        assert intake.finish([file]).unchanged == len(self.model)

    # What happens to a store

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = opened(self.folder)

    @precondition(lambda self: self.kills < 1)
    @rule()
    def kill(self) -> None:
        self.line.kill()
        self.kills += 1

    @precondition(lambda self: self.kills < 1)
    @rule(content=CONTENTS, seconds=st.floats(0, 0.3))
    def kill_while_it_adds(self, content: str, seconds: float) -> None:
        self.line("now")
        self.line.kill("add", [content], {}, seconds)
        self.kills += 1
        known = twin(self.model, content)
        made = next((m["id"] for m in self.listed(here=True) if m["id"] not in self.model), known)
        after = added(self.model, content, made) if made else self.model
        if entries(self.listed(here=True), after) == after:
            self.model = after

    @rule()
    def lose_the_text_index(self) -> None:
        shutil.rmtree(self.folder / "text", ignore_errors=True)

    @rule(here=HERE)
    def optimize(self, here: bool) -> None:
        self.ask(here, "optimize")

    @rule(here=HERE, embeddings=st.booleans())
    def reindex(self, here: bool, embeddings: bool) -> None:
        self.ask(here, "reindex", embeddings=embeddings)

    @rule(here=HERE)
    def purge(self, here: bool) -> None:
        self.ask(here, "purge", wait=0)

    # Reading

    @rule(here=HERE, word=st.sampled_from(_WORDS))
    def search(self, here: bool, word: str) -> None:
        hits = {hit["memory"]["id"]: hit for hit in self.ask(here, "search", word, limit=50)}
        assert set(hits) == {id_ for id_, entry in self.model.items() if not entry.archived}
        by_text = {id_ for id_, hit in hits.items() if hit["text_rank"]}
        assert by_text == {id_ for id_ in hits if word in self.model[id_].content}
        assert all(hit["vector_rank"] for hit in hits.values())

    @rule(here=HERE, number=NUMBERS)
    def get(self, here: bool, number: int) -> None:
        id_ = self.one(number)
        if id_ is None:
            return
        assert entries([self.ask(here, "get", id_)], self.model) == {id_: self.model[id_]}

    @invariant()
    def both_list_the_same(self) -> None:
        listed, theirs = self.listed(here=True), self.listed(here=False)
        assert entries(listed, self.model) == self.model
        assert [each for each in listed if each not in theirs] == [each for each in theirs if each not in listed]
        assert listed == theirs
        assert listed == sorted(listed, key=lambda memory: (memory["created_at"], memory["id"]), reverse=True)

    def listed(self, *, here: bool) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask(here, "list", include_archived=True)
        assert len({memory["id"] for memory in found}) == len(found)
        return found


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    line = Line(tmp_path / "store")
    yield line
    line.kill()


def test_two_processes_and_a_dict_agree(line: Line) -> None:
    TwoProcesses.line, TwoProcesses.done = line, 0
    quick = {"max_examples": 6, "stateful_step_count": 25, "phases": [Phase.explicit, Phase.reuse, Phase.generate]}
    thorough = {"max_examples": _EXAMPLES, "stateful_step_count": 50}
    chosen = settings(**(thorough if _EXAMPLES else quick), deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(TwoProcesses, settings=chosen)
    print(f"{TwoProcesses.done} calls")
