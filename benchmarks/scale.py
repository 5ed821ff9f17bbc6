"""Make stores of any size to measure: notes with the word frequencies of prose, written in big batches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from benchmarks.console import progress
from indexes.layout import Change, Entry, Record
from runtime_memory.content import content_hash
from runtime_memory.database import Database, open_database
from runtime_memory.embedding import Embedder
from runtime_memory.lazy_embedder import LazyEmbedder
from runtime_memory.models import NewMemory
from runtime_memory.records import new_id, new_record
from runtime_memory.weights import default_folder

__all__ = ["PROJECT", "REAL", "Floats", "asked", "embedded", "fill", "notes", "write_notes"]

Floats = NDArray[np.float32]

PROJECT = "p"
REAL = 10_000
"""So many notes have vectors of the model; those of further ones are these with noise: see ``vectors``."""

_NOISE = 0.6
_BATCH = 20_000
_LONGEST, _SHORTEST = 40, 12
_ASKED_WORDS = 8
_SEEN, _ARCHIVED = range(8), 49


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    """Return English words and their cumulative frequencies, by Zipf's law.

    They are the default model's own, which it lists by their frequency.
    """
    tokens = Tokenizer.from_file(str(default_folder() / "tokenizer.json")).get_vocab()
    words = [word for word in sorted(tokens, key=tokens.__getitem__) if word.isalpha() and len(word) > 1]
    words = [word for word in words if word.isascii()]
    return words, list(accumulate(1 / rank for rank in range(1, len(words) + 1)))


def notes(count: int, start: int = 0, seed: int = 7) -> Iterator[str]:
    """Yield distinct notes of 12 to 40 words; the same number gives the same note."""
    words, frequencies = _vocabulary()
    for number in range(start, start + count):
        rng = random.Random(seed * 1_000_003 + number)
        drawn = rng.choices(words, cum_weights=frequencies, k=rng.randint(_SHORTEST, _LONGEST))
        yield f"Note {number}: {' '.join(drawn)}."


def asked(count: int, among: int, seed: int = 11) -> list[str]:
    """Return questions of about ten words, each with words of one of the first notes of the project or of none."""
    rng = random.Random(seed)
    questions = []
    for _ in range(count):
        seen = [number for number in rng.sample(range(among), 20) if number % 10 in _SEEN and number % 50 != _ARCHIVED]
        words = next(notes(1, seen[0])).rstrip(".").split()[2:]
        questions.append(f"what about {' '.join(rng.sample(words, _ASKED_WORDS))}?")
    return questions


def embedded(embedder: Embedder, count: int) -> Floats:
    """Return the model's vectors of the first notes, a row each."""
    return embedder.embed_passages(list(notes(count)))


def vectors(real: Floats, start: int, count: int, seed: int = 5) -> Floats:
    """Return unit vectors for the notes from a number on: the real ones, then these over again with noise.

    A copy has a cosine of about 0.86 to what it was made from, so that vectors lie in clusters as those of texts do.
    """
    numbers = np.arange(start, start + count)
    rows = real[numbers % len(real)]
    noise = np.random.default_rng((seed, start)).standard_normal(rows.shape, np.float32)
    noise *= (numbers >= len(real))[:, None] * np.float32(_NOISE / np.sqrt(rows.shape[1]))
    rows = rows + noise
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def fill(folder: Path, count: int, embedder: Embedder, real: Floats) -> None:
    """Make a store with so many notes over the last two years, with both indexes built and compacted.

    It goes past the store's checks, which a million notes would take minutes for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = LazyEmbedder(lambda: embedder, loaded=embedder)
    database = open_database(folder, model, lock_timeout=600.0)
    write_notes(database, count, embedder, real)
    with database.index.writing() as writer:  # builds the text index
        writer.optimize()
    database.index.close()


def write_notes(database: Database, count: int, embedder: Embedder, real: Floats, *, batch: int = _BATCH) -> None:
    """Write so many notes to the table of an open store, past its checks, and leave the text index to its next use."""
    now = datetime.now(UTC)
    template = new_record(NewMemory("made", project=PROJECT), now)
    made = enumerate(notes(count))
    with database.index.lock.held():
        for start in range(0, count, batch):
            texts = list(islice(made, batch))
            rows = vectors(real, start, len(texts))
            entries = [
                Entry(_record(template, number, text, now - timedelta(minutes=count - number)), row[None])
                for (number, text), row in zip(texts, rows, strict=True)
            ]
            database.index.table.write(Change(new=entries))
            progress.print(f"{start + len(texts):,} of {count:,} notes")
        database.claim_model(embedder)


def _record(template: Record, number: int, text: str, at: datetime) -> dict[str, object]:
    """Return a record: 7 in 10 are of the project asked about, 1 of none, 2 of another; 1 in 50 is archived."""
    last = number % 10
    project = "other" if last not in _SEEN else PROJECT if last else ""
    return {
        **template,
        "project": project,
        "scope": "project" if project else "global",
        "archived": number % 50 == _ARCHIVED,
        "id": new_id(at),
        "content": text,
        "content_hash": content_hash(text),
        "created_at": at,
        "updated_at": at,
    }
