"""Look a thing up once: a dict of what was made, emptied when it is full."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

__all__ = ["remembered"]

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


def remembered(known: dict[_K, _V], key: _K, make: Callable[[], _V], *, most: int) -> _V:
    """Return what is known for a key, or make it and keep it among ``most`` at most."""
    if key in known:
        return known[key]
    made = make()
    if len(known) >= most:
        known.clear()
    known[key] = made
    return made
