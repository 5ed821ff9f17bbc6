"""The YAML fields before a Markdown text, and the dates in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

import yaml

__all__ = ["Frontmatter", "moment", "noon", "scalar", "split_frontmatter", "texts"]

MAX_CHARACTERS = 100_000
"""Longest frontmatter that is read; what is longer is text between two rules."""

# In C where PyYAML was built with it, which is ten times as fast. Every scalar stays text: no is no boolean,
# 2024-13-45 no error, and 007 no number.
_BASE_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_END = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_OPENING = re.compile(r"---[ \t]*\n")
_BEFORE_ZONE = re.compile(r"\s+(?=[+-]\d|Z$)")
_FIELD = re.compile(r"([A-Za-z][\w -]*):(?:[ \t]+([^\s\[{].*)?)?")


class _Loader(_BASE_LOADER):  # type: ignore[misc]  # which class it is depends on how PyYAML was built
    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:  # noqa: ARG002
        """Return no type: none is looked at here."""
        return ""


class Frontmatter(NamedTuple):
    """The fields before a text, as text, lists and mappings; ``problem`` when they could not be read as they should."""

    fields: Mapping[str, Any]
    body: str
    problem: str | None = None


def split_frontmatter(text: str) -> Frontmatter:
    """Return the YAML frontmatter of a text and the text after it; all is text where there is none.

    Fields that are not YAML are taken line by line where every line is one (``globs: *.ts`` is common), else as text.
    """
    opening = _OPENING.match(text)
    if not opening:
        return Frontmatter({}, text)
    end = _END.search(text, opening.end())
    if not end or end.start() - opening.end() > MAX_CHARACTERS:
        unfinished = _FIELD.fullmatch(text[opening.end() :].partition("\n")[0]) and not end
        return Frontmatter({}, text, "its frontmatter has no end and was taken as text" if unfinished else None)
    source, body = text[opening.end() : end.start()], text[end.end() :]
    try:
        fields = _loaded(source) or {}
    except (yaml.YAMLError, RecursionError) as error:
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        given = [_FIELD.fullmatch(line) for line in source.splitlines() if line.strip()]
        if not all(given):
            return Frontmatter(
                {}, _as_code(source, body), f"its frontmatter is not YAML ({problem}) and was taken as text"
            )
        fields = {field[1]: _unquoted((field[2] or "").rstrip()) for field in given if field}
        return Frontmatter(_lowered(fields), body, f"its frontmatter is not YAML ({problem}) and was read line by line")
    if not isinstance(fields, dict):
        return Frontmatter({}, text)
    return Frontmatter(_lowered(fields), body)


def _loaded(source: str) -> Any:
    """Return what some YAML says: text, lists and mappings. Raises YAMLError and RecursionError."""
    loader = _Loader(source)
    try:
        node = loader.get_single_node()
        return None if node is None else _flat(node) or loader.construct_document(node)
    finally:
        loader.dispose()


def _flat(node: yaml.Node) -> dict[str, Any] | None:
    """Return a mapping to texts and lists of texts, which nearly all are, in a third of the time; None for another."""
    fields: dict[str, Any] = {}
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode):
            fields[key.value] = value.value
        elif isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.SequenceNode):
            if not all(isinstance(each, yaml.ScalarNode) for each in value.value):
                return None
            fields[key.value] = [each.value for each in value.value]
        else:
            return None
    return fields or None


def scalar(fields: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that is text, in one line."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and (folded := " ".join(value.split())):
            return folded
    return ""


def texts(fields: Mapping[str, Any], *names: str, separator: str = ",") -> list[str]:
    """Return the first of these fields that says something as distinct texts: a list, or text with separators."""
    given: Any = next((value for name in names if (value := fields.get(name))), [])
    if isinstance(given, str):
        given = given.split(separator)
    each = (" ".join(value.split()) for value in given if isinstance(value, str)) if isinstance(given, list) else ()
    return list(dict.fromkeys(value for value in each if value))


def moment(given: str) -> datetime:
    """Return a date and time as text; without a zone it is local, as its author meant it.

    Raises ValueError or OverflowError for what is none.
    """
    normal = _BEFORE_ZONE.sub("", given.strip().replace("/", "-"))
    if len(normal) <= len("2024-01-01"):
        return noon(date.fromisoformat(normal))
    return datetime.fromisoformat(normal).astimezone(UTC)


def noon(day: date) -> datetime:
    """Return noon, UTC: the same date nearly everywhere on earth."""
    return datetime.combine(day, time(12), UTC)


def _as_code(source: str, body: str) -> str:
    """Return a text with its frontmatter as a block of code: its lines are neither headings nor rules."""
    fence = "~~~~" if "```" in source else "```"
    return f"{fence}\n{source}{fence}\n\n{body}"


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def _lowered(fields: Mapping[Any, Any]) -> dict[str, Any]:
    return {key.strip().lower(): value for key, value in fields.items() if isinstance(key, str)}
