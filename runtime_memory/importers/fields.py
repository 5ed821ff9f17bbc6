"""Turn records of other programs, field by field, into memories: which field is what, and what is kept of the rest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from runtime_memory.errors import InvalidInputError
from runtime_memory.importers.timestamps import noticed_moment
from runtime_memory.models import MemoryCategory, MemorySource, NewMemory

__all__ = ["TARGETS", "Fields", "category", "fingerprint", "parse_mapping", "tag_list", "without_text"]

TARGETS: Mapping[str, tuple[str, ...]] = {
    "content": ("content", "text", "memory", "body", "message", "note"),
    "created_at": ("created_at", "timestamp", "ts", "date", "time", "created"),
    "updated_at": ("updated_at", "modified", "updated"),
    "category": ("category",),
    "tags": ("tags", "labels", "keywords"),
    "project": ("project",),
    "id": ("id", "uuid", "key"),
}
"""What a field may stand for, and the fields that are taken for it where no mapping says otherwise, first one first."""

_TAKEN = frozenset(name for names in TARGETS.values() for name in names)
_NOTHING: tuple[Any, ...] = (None, "", [], {})
_MOST_METADATA = 2_000
_MAX_LABEL = 500


class Fields:
    """The fields of one record, by what they stand for; their names in any case.

    ``mapping`` says for targets which field they are in.
    """

    def __init__(self, record: Mapping[str, Any], mapping: Mapping[str, str]) -> None:
        self._record = record
        self._mapping = mapping
        self._by_name = {key.casefold(): value for key, value in reversed(list(record.items()))}
        found = self._find("content")
        self.text = found if isinstance(found, str) else ""
        """The text, "" where there is none."""

    @property
    def name(self) -> str | None:
        """What the record is called within its file, None where it has no name."""
        given = self._find("id")
        told = str(given).strip() if isinstance(given, str | int) and not isinstance(given, bool) else ""
        return told[:_MAX_LABEL] or None

    def memory(self, origin: str, written: datetime) -> tuple[NewMemory, str | None]:
        """Return the memory, and what of it is not understood; ``written`` is the date of one that gives none.

        Fields that stand for nothing are kept as metadata, short ones only: vectors are no knowledge.
        """
        notices: list[str] = []
        created, updated = self._date("created_at", notices), self._date("updated_at", notices)
        kind, leftover = category(self._find("category"))
        tags = list(dict.fromkeys([*tag_list(self._find("tags")), *leftover]))
        metadata = self._rest()
        memory = NewMemory(
            self.text,
            category=kind,
            project=_label(self._find("project")),
            source=MemorySource.IMPORTED,
            tags=tags,
            metadata=metadata,
            created_at=created or written,
            updated_at=updated,
            origin=origin,
            origin_hash=fingerprint(self.text, kind, tags, metadata, created),
        )
        return memory, "; ".join(notices) or None

    def _find(self, target: str) -> Any:
        if target in self._mapping:
            return _at(self._record, self._mapping[target])
        for name in TARGETS[target]:
            value = self._by_name.get(name)
            if value not in _NOTHING and (target != "content" or (isinstance(value, str) and value.strip())):
                return value
        return None

    def _date(self, target: str, notices: list[str]) -> datetime | None:
        return noticed_moment(self._find(target), target, notices)

    def _rest(self) -> dict[str, Any]:
        """Return what no target stands for; what ``metadata`` holds stays as it is."""
        unmapped = [names for target, names in TARGETS.items() if target not in self._mapping]
        mapped = {field.casefold() for field in self._mapping.values()}
        taken = mapped.union(*unmapped) if self._mapping else _TAKEN
        own = self._record.get("metadata")
        kept = dict(own) if isinstance(own, Mapping) else {}
        for key, value in self._record.items():
            if key.casefold() in taken or (key == "metadata" and kept) or value in _NOTHING:
                continue
            if isinstance(value, bool | int | float) or len(json.dumps(value, default=str)) <= _MOST_METADATA:
                kept.setdefault(key, value)
        return kept


def parse_mapping(text: str) -> dict[str, str]:
    """Return ``content=text,created_at=meta.ts`` as the field for each target; raises InvalidInputError.

    A field within another one is written with a dot.
    """
    mapping: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        target, equals, field = (side.strip() for side in part.partition("="))
        if not equals or not field:
            raise InvalidInputError(f"a mapping is written TARGET=FIELD, as in content=text, not {part!r}")
        if target not in TARGETS:
            raise InvalidInputError(f"unknown target {target!r} in the mapping; valid are: {', '.join(TARGETS)}")
        if target in mapping:
            raise InvalidInputError(f"the mapping gives {target!r} twice; name one field for it")
        mapping[target] = field
    if not mapping:
        raise InvalidInputError(f"the mapping is empty; write TARGET=FIELD, where TARGET is of: {', '.join(TARGETS)}")
    return mapping


def without_text(mapping: Mapping[str, str]) -> str:
    """Return why a record gives no memory that has no text where it should be."""
    looked = repr(mapping["content"]) if "content" in mapping else ", ".join(TARGETS["content"])
    return f"there is no text in {looked}; name its field with --map content=FIELD"


def category(given: Any) -> tuple[MemoryCategory, list[str]]:
    """Return the category, and what was given as a tag when it is none of ours."""
    text = " ".join(given.split()) if isinstance(given, str) else ""
    if not text:
        return MemoryCategory.GENERAL, []
    try:
        return MemoryCategory(text.lower().replace(" ", "_").replace("-", "_")), []
    except ValueError:
        return MemoryCategory.GENERAL, [text[:_MAX_LABEL]]


def tag_list(given: Any) -> list[str]:
    """Return tags given as a list, or as a text with commas or semicolons between them, else spaces."""
    if isinstance(given, str):
        separator = next((each for each in (",", ";") if each in given), None)
        given = given.split(separator)
    texts = (each for each in given if isinstance(each, str)) if isinstance(given, list | tuple) else ()
    folded = (" ".join(each.split()).lstrip("#")[:_MAX_LABEL] for each in texts)
    return list(dict.fromkeys(filter(None, folded)))


def fingerprint(content: str, kind: str, tags: Iterable[str], metadata: Mapping[str, Any], dated: object) -> str:
    """Return what tells a changed memory from an unchanged one; ``dated`` is the date that the source itself gives."""
    told = json.dumps([content, kind, list(tags), metadata, str(dated or "")], sort_keys=True, default=str)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _at(record: Mapping[str, Any], path: str) -> Any:
    if path in record:
        return record[path]
    value: Any = record
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _label(value: Any) -> str | None:
    return " ".join(value.split())[:_MAX_LABEL] or None if isinstance(value, str) else None
