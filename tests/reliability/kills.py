"""Kill writers at random moments, again and again, and compare the store with what they were told was done.

``python -m tests.reliability.kills --kills 200`` is the long run; ``--seed`` repeats the moments, not the interleaving.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from indexes.filters import All
from runtime_memory import Memory, MemoryStore
from tests.reliability import writing
from tests.tiny_embedder import TinyEmbedder

ROOT = Path(__file__).parent.parent.parent
WRITERS = 4
LIVES_IN_A_ROUND = 3
NOTES = 30
_LINES_IN_A_LIFE = 20
_MOST_SECONDS = 60.0
_NOTE_WORDS = "lantern"


@dataclass
class Figures:
    """What a run did, and what it found wrong."""

    kills: int = 0
    rounds: int = 0
    acknowledged: int = 0
    unacknowledged: int = 0
    memories: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return it in words."""
        return (
            f"{self.kills} kills in {self.rounds} rounds, {self.acknowledged} acknowledged writes, "
            f"{self.unacknowledged} cut short, {self.memories} memories, {len(self.wrong)} faults"
        )


class Writer:
    """A process that is started again after each kill, until the round is over."""

    def __init__(self, command: Sequence[str], ready: Path | None, lives: int, moments: random.Random) -> None:
        self._command = command
        self._ready = ready
        self._moments = moments
        self._process: subprocess.Popen[bytes] | None = None
        self._kill_at: float | None = None
        self._since = 0.0
        self._wanted = 0
        self.left = lives
        self.kills = 0
        self.ended = 0
        self.wrong: list[str] = []
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the writer

    def step(self, life: int) -> bool:
        """Start, kill or leave alone, as the time has come; False when its lives are over."""
        if self._process is None:
            if not self.left:
                return False
            self._start(life)
        elif self._process.poll() is not None:
            self._end(self._process.returncode)
        elif time.monotonic() > self._moment():
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self.kills += 1
            self._process, self.left = None, self.left - 1
        return True

    def _end(self, code: int) -> None:
        self._process, self.left = None, self.left - 1
        self.ended += code == 0
        if code:
            self._errors.seek(0)
            self.wrong.append(f"{' '.join(self._command)} ended with {code}: {self._errors.read()[-2000:].decode()}")

    def _start(self, life: int) -> None:
        command = [part.format(life=life) for part in self._command]
        self._wanted = self._lines() + 1 + int(self._moments.expovariate(1 / _LINES_IN_A_LIFE))
        environment = {**os.environ, "RUNTIME_MEMORY_EMBEDDING": "null", "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=environment, stdout=self._errors, stderr=self._errors
        )
        self._since, self._kill_at = time.monotonic(), None
        if self._ready is None or self._moments.random() < 0.1:  # while it starts, or opens the store
            self._kill_at = self._since + self._moments.uniform(0.5, 4.0)

    def _moment(self) -> float:
        if self._kill_at is None and self._ready and self._lines() > self._wanted:
            self._kill_at = time.monotonic() + self._moments.uniform(0, 0.2)
        return self._since + _MOST_SECONDS if self._kill_at is None else self._kill_at

    def _lines(self) -> int:
        return self._ready.read_bytes().count(b"\n") if self._ready and self._ready.exists() else 0


def run(folder: Path, logs: Path, *, kills: int, seed: int) -> Figures:
    """Kill writers in a new store until that many were killed; every round ends with a look at the whole store."""
    moments, figures = random.Random(seed), Figures()
    notes = _notes(logs / "notes")
    names = [logs / f"writer{number}" for number in range(WRITERS)]
    for number in range(1_000):
        if figures.kills >= kills:
            break
        writers = [
            Writer(
                ["-m", "tests.reliability.writing", str(folder), str(log), "{life}", str(moments.randrange(10**6))],
                log,
                LIVES_IN_A_ROUND,
                moments,
            )
            for log in names
        ]
        command = ["-m", "runtime_memory", "import", str(notes), "--db", str(folder)]
        importer = Writer(command, None, 1, moments)
        everyone = live = [*writers, importer]
        while live := [writer for writer in live if writer.step(number * 100 + writer.left)]:
            time.sleep(0.005)
        figures.kills += sum(writer.kills for writer in everyone)
        figures.wrong += [wrong for writer in everyone for wrong in writer.wrong]
        figures.rounds += 1
        compare(folder, names, notes, figures, imported=bool(importer.ended))
        if figures.wrong:
            break
    return figures


def compare(store: Path, logs: Sequence[Path], notes: Path, figures: Figures, *, imported: bool) -> None:
    """Open the store once and note what differs from what the logs say."""
    known: dict[str, writing.Known] = {}
    figures.acknowledged = figures.unacknowledged = 0
    for log in logs:
        each, wrong, done = writing.read(log)
        known |= each
        figures.wrong += wrong
        figures.acknowledged += done
        figures.unacknowledged += sum(len(k.values) > 1 or k.most > k.least for k in each.values())
    with MemoryStore.open(store, embedder=TinyEmbedder()) as opened:
        figures.wrong += opened.check()
        figures.wrong += _indexes_differ(opened)
        memories = list(opened.memories(include_archived=True))
        figures.memories = len(memories)
        events = Counter(event.memory_id for event in opened.outcomes([memory.id for memory in memories]))
    noted = [memory for memory in memories if memory.origin and memory.origin.startswith(str(notes))]
    figures.wrong += _notes_differ(noted, imported=imported)
    figures.wrong += _differences([memory for memory in memories if memory not in noted], known, events)


def _differences(memories: Sequence[Memory], known: dict[str, writing.Known], events: Counter[str]) -> list[str]:
    wrong = [f"the id {id_} is there {n} times" for id_, n in Counter(m.id for m in memories).items() if n > 1]
    stored: dict[str, Memory] = {}
    for memory in memories:
        key, value = writing.key_and_value(memory.content)
        if key in stored:
            wrong.append(f"{key} is there twice: {stored[key].id}, {memory.id}")
        stored[key] = memory
        each = known.get(key)
        if each is None:
            wrong.append(f"{key} was never written")
        elif value not in each.values:
            wrong.append(f"{key} has the value {value}, of {each.values}")
        elif each.id not in (None, memory.id):
            wrong.append(f"{key} has the id {memory.id}, not {each.id}")
        elif not each.least <= events[memory.id] <= each.most:
            wrong.append(f"{key} has {events[memory.id]} reports, not {each.least} to {each.most}")
    missing = [key for key, each in known.items() if key not in stored and None not in each.values]
    return wrong + [f"{key} is lost" for key in missing]


def _indexes_differ(store: MemoryStore) -> list[str]:
    """Tell where the two indexes do not hold the same of a memory, and which memories lack vectors."""
    with store._open() as parts:
        index = parts.database.index
        copies = {record["id"]: record for record in index.read_text(lambda text: text.find(All())) or []}
        rows = {record["id"]: record for record in index.table.scan(All())}
        bare = [record["id"] for record in index.table.without_vectors() if "/notes" not in record["origin"]]
    pairs = {id_: (row, copies.get(id_, {})) for id_, row in rows.items()}
    differing = [
        f"{id_} has {name} {row[name]!r} in the table, {copy.get(name)!r} in the text index"
        for id_, (row, copy) in pairs.items()
        for name in row
        if row[name] != copy.get(name)
    ]
    return differing + [f"{id_} has no vector" for id_ in bare]


def _notes(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for number in range(NOTES):
        (folder / f"note{number}.md").write_text(
            f"# Note {number}\n\nThe {_NOTE_WORDS} of pier {number} is lit at dusk.\n"
        )
    return folder


def _notes_differ(noted: Sequence[Memory], *, imported: bool) -> list[str]:
    counts = Counter(memory.content for memory in noted)
    wrong = [f"a note is there {n} times: {content!r}" for content, n in counts.items() if n > 1]
    return wrong + ([f"{len(counts)} notes of {NOTES} are there"] if imported and len(counts) != NOTES else [])


def main() -> int:
    """Run until so many were killed, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    started = time.monotonic()
    place = Path(tempfile.mkdtemp())
    figures = run(place / "store", place / "logs", kills=options.kills, seed=options.seed)
    if figures.wrong:
        print(f"the store and the logs are in {place}")
    else:
        shutil.rmtree(place)
    print(f"seed {options.seed}: {figures}, {time.monotonic() - started:.0f} s", *figures.wrong, sep="\n")
    return bool(figures.wrong)


if __name__ == "__main__":
    sys.exit(main())
