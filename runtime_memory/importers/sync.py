"""Settle what was read against what was imported before: nothing twice, changes in place, moves followed.

A memory remembers where it came from (``origin``: file and anchor) and what was there (``origin_hash``). The same hash
at the same place is nothing new, also when its owner has edited or archived the memory since. Another hash there is a
new version: the memory gets the text and keeps its id and its outcomes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from runtime_memory.importers import Item

__all__ = ["Imported", "Known", "Match", "closest", "file_of"]

_COUNTING = re.compile(r"[#:]\w?\d+$")
_SIMILAR = 0.6
_MOST_COMPARED = 400


@dataclass(frozen=True, slots=True)
class Imported:
    """A memory that an earlier import brought: where from, and what was there."""

    id: str
    origin: str
    origin_hash: str
    archived: bool


class Match(NamedTuple):
    """An item, and the memory that it is a version of; None for what is new."""

    item: Item
    known: Imported | None


class Known:
    """What earlier imports brought and this one has not met yet, by file.

    ``exists`` tells whether a file is still there: the memories of one that is not may have moved.
    """

    def __init__(self, imported: Iterable[Imported], exists: Callable[[str], bool]) -> None:
        self._files: dict[str, dict[str, Imported]] = {}
        for each in imported:
            self._files.setdefault(file_of(each.origin), {})[each.origin] = each
        self._homeless = {
            each.origin_hash: each
            for file, places in self._files.items()
            if not exists(file)
            for each in places.values()
            if each.origin_hash
        }

    def match(self, items: Sequence[Item]) -> list[Match]:
        """Return for each item of one file which memory it is a version of.

        What is unchanged comes first, at its place, then wherever in the file it went, then wherever it went from a
        file that is gone; of the rest, a section by its anchor. An anchor that only counts (the third entry of a list)
        tells nothing once an entry was put before it: for these see ``closest``.
        """
        places = self._files.get(file_of(items[0].origin), {}) if items else {}
        if not places and not self._homeless:  # nothing that these could be a version of
            return [Match(item, None) for item in items]
        found: dict[int, Imported] = {}
        for key in (_place_and_hash, _hash, _place):
            there = {key(each.origin, each.origin_hash): each for each in places.values()}
            there.pop(None, None)
            for number, item in enumerate(items):
                if number not in found and (each := there.pop(key(item.origin, _hash_of(item)), None)):
                    found[number] = places.pop(each.origin)
        for number, item in enumerate(items):
            each = None if number in found else self._homeless.pop(_hash_of(item), None)
            if each and self._files[file_of(each.origin)].pop(each.origin, None):
                found[number] = each
        return [Match(item, found.get(number)) for number, item in enumerate(items)]

    def meet(self, known: Imported) -> None:
        """Take a memory that ``closest`` found out of what was not met."""
        self._files[file_of(known.origin)].pop(known.origin, None)

    def unmet(self, file: str) -> list[Imported]:
        """Return what an earlier import brought from a file and this one has not met."""
        return list(self._files.get(file, {}).values())

    def vanished(self, roots: Sequence[str], unread: Sequence[str]) -> list[Imported]:
        """Return what is no longer there under the imported paths; not what could not be read."""
        gone = [file for file in self._files if _is_under(file, roots) and not _is_under(file, unread)]
        return [each for file in gone for each in self._files[file].values() if each.origin_hash]


def file_of(origin: str) -> str:
    """Return the file of an origin; an anchor holds no slash, the folders before it may hold a ``#``."""
    file, _, anchor = origin.rpartition("#")
    return file if file and "/" not in anchor else origin


def closest(texts: Mapping[int, str], candidates: Mapping[str, str]) -> dict[int, str]:
    """Return for texts, by number, which candidate, by id, each is most like; each at most once.

    Nothing is matched that differs in more than it shares.
    """
    if len(texts) * len(candidates) > _MOST_COMPARED:
        return {}
    pairs = [
        (_likeness(text, other), number, id_) for number, text in texts.items() for id_, other in candidates.items()
    ]
    found: dict[int, str] = {}
    for likeness, number, id_ in sorted(pairs, reverse=True):
        if likeness >= _SIMILAR and number not in found and id_ not in found.values():
            found[number] = id_
    return found


def _likeness(text: str, other: str) -> float:
    matcher = SequenceMatcher(None, text, other, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= _SIMILAR else 0.0


def _place_and_hash(origin: str, hash_: str) -> tuple[str, str] | None:
    return origin, hash_


def _hash(_: str, hash_: str) -> str | None:
    return hash_ or None


def _place(origin: str, _: str) -> str | None:
    return None if _COUNTING.search(origin) else origin


def _hash_of(item: Item) -> str:
    return (item.memory.origin_hash if item.memory else None) or ""


def _is_under(file: str, paths: Sequence[str]) -> bool:
    return any(file == path or file.startswith(path.rstrip("/") + "/") for path in paths)
