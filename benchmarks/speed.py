"""Short made notes and questions, for benchmarks that time what a store does with them."""

from __future__ import annotations

import random
from collections.abc import Iterator

__all__ = ["questions", "sentences"]

_SUBJECTS = "login checkout search invoice sensor irrigation backup deploy cache webhook queue report".split()
_VERBS = "needs avoids logs retries caches rejects rotates exports imports throttles".split()
_OBJECTS = "tokens floats secrets batches images valves sessions cookies migrations timestamps backoff quotas".split()
_PLACES = "staging production Berlin the-greenhouse CI the-laptop room-12 node-7 the-archive eu-west".split()


def sentences(count: int, seed: int = 7) -> Iterator[str]:
    """Yield distinct short notes of 15 to 40 words."""
    rng = random.Random(seed)
    for number in range(count):
        words = [rng.choice(pool) for _ in range(rng.randint(3, 8)) for pool in (_SUBJECTS, _VERBS, _OBJECTS, _PLACES)]
        yield f"Note {number}: the {' '.join(words)}."


def questions(count: int, seed: int = 11) -> list[str]:
    """Return questions of about ten words."""
    rng = random.Random(seed)
    pick = rng.choice
    return [
        f"why does the {pick(_SUBJECTS)} in {pick(_PLACES)} {pick(_VERBS)} {pick(_OBJECTS)} again, case {number}?"
        for number in range(count)
    ]
