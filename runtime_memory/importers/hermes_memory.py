"""The notes that Hermes Agent keeps: ``MEMORY.md`` and ``USER.md``, entries between lines that hold only ``§``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from runtime_memory.importers import Item
from runtime_memory.importers.dates import undated
from runtime_memory.importers.files import Document, load, origin
from runtime_memory.importers.notes import About, memory, part_anchors
from runtime_memory.importers.sections import cut
from runtime_memory.models import MemoryCategory, MemoryScope

__all__ = ["Home", "folders", "items", "recognises"]

# As the provider mirrors them while Hermes writes them: the same note is then the same memory.
_KINDS = {
    "MEMORY.md": (MemoryCategory.CONTEXT, ("hermes", "builtin-memory")),
    "USER.md": (MemoryCategory.PREFERENCE, ("hermes", "builtin-user")),
}
_SEPARATOR = re.compile(r"^[ \t]*§[ \t]*$", re.MULTILINE)
_LONGEST = 8_000
"""Hermes keeps all its notes in 2,200 characters; what is this long was put there by something else."""


class Home(NamedTuple):
    """A folder in which an agent keeps notes, and which of its files they are in."""

    folder: Path
    names: frozenset[str]

    def holds(self, file: Path) -> bool:
        """Tell whether a file below the folder is one of them."""
        return file.parent == self.folder and file.name in self.names


def folders(path: Path) -> list[Home]:
    """Return the folders of notes of a Hermes home and its profiles, or of such a folder itself."""
    real = Path(os.path.realpath(path))
    try:
        profiles = sorted((real / "profiles").glob("*/memories")) if (real / "profiles").is_dir() else []
        candidates = [real, real / "memories", *profiles]
        return [Home(each, frozenset(_KINDS)) for each in candidates if any(_is_hermes(each / name) for name in _KINDS)]
    except OSError:  # what cannot be looked into is not detected; reading it says why
        return []


def recognises(file: Path, text: str) -> bool:
    """Tell Hermes' notes from other files of their names: by their separator, or the folder that they are in."""
    return file.name in _KINDS and (file.parent.name == "memories" or bool(_SEPARATOR.search(text)))


def items(file: Path, document: Document) -> Iterator[Item]:
    """Yield one memory an entry, as Hermes shows it to its model: without repetitions, for every project."""
    category, tags = _KINDS[file.name]
    home = Path(os.path.realpath(file)).parent.parent
    known = About(
        undated(file, document.modified),
        dated=False,
        category=category,
        scope=MemoryScope.GLOBAL,
        profile=home.name if home.parent.name == "profiles" else None,
        tags=tags,
    )
    notice = document.notice
    entries = dict.fromkeys(filter(None, map(str.strip, _SEPARATOR.split(document.text))))
    for number, entry in enumerate(entries, start=1):
        parts = cut(entry, _LONGEST)
        for anchor, part in zip(part_anchors(str(number), len(parts)), parts, strict=True):
            yield Item(origin(file, anchor), memory(known, origin(file, anchor), part), notice=notice)
            notice = None
    if not entries:
        yield Item(origin(file), skipped="empty", notice=notice)


def _is_hermes(file: Path) -> bool:
    if not file.is_file():
        return False
    document = load(file)
    return isinstance(document, Document) and recognises(file, document.text)
