"""What agents keep about their work: notes of Hermes and Claude Code, and instructions such as AGENTS.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from runtime_memory.importers import Item, agent_rules, claude_memory, hermes_memory
from runtime_memory.importers.files import Document, load, walk

__all__ = ["NAME", "detects", "find", "hidden_place", "is_rules", "items", "read", "recognises"]

NAME = "agent-notes"
Reader = Callable[[Path, Document], Iterator[Item]]

_RULE_FILES = frozenset(
    "agents.md agents.override.md agent.md claude.md claude.local.md gemini.md hermes.md .hermes.md .cursorrules "
    ".windsurfrules .clinerules .roorules .goosehints .rules copilot-instructions.md".split()
)
_HIDDEN_PLACES = (
    ".claude/rules", ".claude/CLAUDE.md", ".clinerules", ".cursor/rules", ".github/copilot-instructions.md",
    ".github/instructions", ".junie/guidelines.md", ".kiro/steering", ".roo/rules", ".windsurf/rules",
)  # fmt: skip


def detects(path: Path) -> bool:
    """Tell whether a path is a file that agents read or keep, or a folder that such files are kept in.

    A folder that merely holds an AGENTS.md among other Markdown is a folder of Markdown, whose reader knows the file.
    """
    if os.path.isdir(path):  # noqa: PTH112 - it does not raise for a name that is too long
        return bool(hermes_memory.folders(path) or claude_memory.folders(path))
    if is_rules(path):
        return True
    if path.suffix.lower() != ".md":
        return False
    document = load(path)
    return isinstance(document, Document) and recognises(path, document.text)


def find(path: Path) -> Iterator[Path | Item]:
    """Yield the notes in a home or a notes folder of Hermes or Claude Code; in others, those known by their names."""
    if not os.path.isdir(path):  # noqa: PTH112
        yield path
        return
    homes = [*hermes_memory.folders(path), *claude_memory.folders(path)]
    if not homes:
        root = os.path.realpath(path)
        yield from walk(Path(root), _is_known, lambda each: hidden_place(each, root))
    for home in homes:
        yield from walk(home.folder, home.holds, lambda _: False)
        # What else is below is not its owner's notes: skills, sessions, caches.


def read(file: Path, root: Path) -> Iterator[Item]:  # noqa: ARG001 - other formats name things by their place below it
    """Yield what one file holds; whatever is wrong with it is said, and never raised."""
    document = load(file)
    if isinstance(document, Item):
        yield document
    else:
        yield from items(file, document)


def recognises(file: Path, text: str) -> bool:
    """Tell whether a file is for this module to read rather than a note like any other."""
    return _reader(file, text) is not None


def items(file: Path, document: Document) -> Iterator[Item]:
    """Yield what a file holds that was loaded already; one that is not recognised is read as instructions."""
    reader = _reader(file, document.text) or agent_rules.items
    return reader(file, document)


def is_rules(file: Path) -> bool:
    """Tell whether a file holds instructions for agents, by its name and its place."""
    name = file.name.lower()
    return name in _RULE_FILES or name.endswith((".mdc", ".instructions.md")) or _in_hidden_place(str(file))


def hidden_place(path: Path, root: str) -> bool:
    """Tell whether something hidden below a folder holds instructions for agents, or is on the way to some."""
    tail = _hidden_part(path, root)
    return _hidden_rules(path, tail) or any(place.startswith(f"{tail}/") for place in _HIDDEN_PLACES)


def _hidden_rules(file: Path, tail: str) -> bool:
    if tail.lower() in _RULE_FILES:
        return True
    inside = any(tail == place or tail.startswith(f"{place}/") for place in _HIDDEN_PLACES)
    return inside and file.suffix.lower() in {"", ".md", ".mdc", ".txt"}


def _reader(file: Path, text: str) -> Reader | None:
    if hermes_memory.recognises(file, text):
        return hermes_memory.items
    if claude_memory.recognises(file, text):
        return claude_memory.items
    return agent_rules.items if is_rules(file) else None


def _is_known(file: Path) -> bool:
    return is_rules(file) or file.name in {"MEMORY.md", "USER.md"}


def _hidden_part(path: Path, root: str) -> str:
    """Return the path from its first hidden part below a folder on, nothing for what is not hidden."""
    below = str(path).removeprefix(root)
    start = below.find("/.")
    return below[start + 1 :] if start >= 0 else ""


def _in_hidden_place(path: str) -> bool:
    if "/." not in path:
        return False
    return any(f"/{place}/" in path or path.endswith(f"/{place}") for place in _HIDDEN_PLACES)
