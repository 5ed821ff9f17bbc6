"""Read the session logs of Hermes Agent for what its user told it to keep; the turns themselves are never stored.

Read are transcripts (``sessions/*.jsonl``: a message a line with ``role``, ``content`` and ``timestamp``, after a line
with the role ``session_meta``), ``hermes sessions export`` (a session a line with its ``messages``, or with ``--only
user-prompts`` a prompt a line), and ``state.db``, where Hermes keeps its sessions since it stopped to write the first.
What is found goes by explicit rules (``statements``), and also by a model where ``extract`` asks one.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from runtime_memory.importers import Item, frontmatter
from runtime_memory.importers.fields import fingerprint
from runtime_memory.importers.files import below, origin
from runtime_memory.importers.jsonl import SUFFIXES, json_value, objects
from runtime_memory.importers.sqlite_files import has_columns, opened, why
from runtime_memory.importers.statements import statements
from runtime_memory.importers.text_files import fault, guarded, head, lines, noticed, open_text
from runtime_memory.importers.timestamps import file_date, moment
from runtime_memory.models import MemorySource, NewMemory

__all__ = ["NAME", "Extract", "Message", "detects", "find", "read"]

NAME = "hermes-sessions"

_ROLES = frozenset({"session_meta", "system", "user", "assistant", "tool"})
_NOBODY = frozenset({"cron", "subagent", "batch", "webhook"})
"""Sources of sessions in which no person speaks."""

_MESSAGES = frozenset({"session_id", "role", "content", "timestamp", "active"})
_ENCODED = "\0json:"  # how Hermes keeps a content of several parts in a column


class Message(NamedTuple):
    """A message of a session: who said what, and when, where the log says so."""

    role: str
    text: str
    at: datetime | None


Extract = Callable[[Sequence[Message]], Sequence[NewMemory]]
"""Ask a model for the memories of one session; what goes wrong is raised as a RuntimeMemoryError."""


def detects(path: Path) -> bool:
    """Tell whether a file is a log or an export of sessions, or the database that holds them."""
    if path.suffix.lower() not in SUFFIXES:
        return path.suffix.lower() == ".db" and has_columns(path, "messages", _MESSAGES)
    first = next(objects(head(path)), {}) if path.is_file() else {}
    if first.get("role") in _ROLES:
        return first["role"] == "session_meta" or not {"timestamp", "session_id"}.isdisjoint(first)
    if first:
        return isinstance(first.get("messages"), list) and "started_at" in first
    begin = head(path)  # a session in one line may be longer than what is looked at
    return begin.startswith("{") and '"messages":' in begin and '"started_at":' in begin


def find(path: Path) -> Iterator[Path | Item]:
    """Yield the logs of a folder, and what is passed over; a file yields itself."""
    return below(path, lambda file: file.suffix.lower() in SUFFIXES | {".db"} and detects(file))


@guarded
def read(
    file: Path,
    root: Path,  # noqa: ARG001
    *,
    extract: Extract | None = None,
    owners: frozenset[str] = frozenset(),
) -> Iterator[Item]:
    """Yield what users told to keep, each once a file; a session at a time is in memory.

    What a gateway's user told belongs to that user, unless ``owners`` (``*`` for everyone) counts them as the owner.
    """
    if file.suffix.lower() not in SUFFIXES and has_columns(file, "messages", _MESSAGES):
        yield from _Telling(file, owners, extract).database()
        return
    text = open_text(file)
    if isinstance(text, Item):
        yield text
        return
    with text.stream as stream:
        numbered = ((number, line) for number, line in lines(stream) if line is None or line.strip())
        yield from noticed(_Telling(file, owners, extract).log(numbered), text.notice, origin(file))


@dataclass
class _Session:
    """What is known of a session while it is read."""

    id: str
    user: str | None = None
    silent: bool = False
    messages: list[Message] = field(default_factory=list)


@dataclass
class _Telling:
    """One file on its way: whose it is, and what was told in it already."""

    file: Path
    owners: frozenset[str]
    extract: Extract | None
    told: set[str] = field(default_factory=set)

    @property
    def profile(self) -> str | None:
        """The profile whose home the file lies in, None for the default one."""
        home = self.file.resolve().parent
        home = home.parent if home.name == "sessions" else home
        return home.name if home.parent.name == "profiles" else None

    def log(self, numbered: Iterator[tuple[int, str | None]]) -> Iterator[Item]:
        """Yield the items of a transcript or an export."""
        session = _Session(self.file.stem, self._owner(_user_in_index(self.file)))
        found = False
        for number, line in numbered:
            record = _record(line, number, origin(self.file, f"L{number}"))
            if isinstance(record, Item):
                found = True
                yield record
                continue
            for item in self._line(record, number, session):
                found = True
                yield item
        for item in self._extracted(session):
            found = True
            yield item
        if not found:
            yield Item(origin(self.file), skipped="nobody told it to keep anything")

    def database(self) -> Iterator[Item]:
        """Yield the items of Hermes' database, as of one moment; it may be in use."""
        found = False
        try:
            with opened(self.file) as connection:
                for row in connection.execute("SELECT * FROM sessions ORDER BY started_at, id"):
                    session = self._session(dict(row))
                    messages = connection.execute(
                        "SELECT * FROM messages WHERE session_id = ? AND active = 1 ORDER BY id", (row["id"],)
                    )
                    for message in [] if session.silent else messages:
                        for item in self._message(dict(message), f"m:{message['id']}", session):
                            found = True
                            yield item
                    for item in self._extracted(session):
                        found = True
                        yield item
        except sqlite3.Error as error:
            yield fault(origin(self.file), why(error))
            return
        if not found:
            yield Item(origin(self.file), skipped="nobody told it to keep anything")

    def _line(self, record: Mapping[str, Any], number: int, session: _Session) -> Iterator[Item]:
        if record.get("role") == "session_meta":
            session.silent = record.get("platform") in _NOBODY
        elif isinstance(record.get("messages"), list):
            whole = self._session(record)
            for place, message in enumerate(record["messages"], start=1):
                if isinstance(message, Mapping):
                    yield from self._message(message, f"{whole.id}:{message.get('id') or place}", whole)
            yield from self._extracted(whole)
        else:
            yield from self._message(record, f"L{number}", session)

    def _message(self, record: Mapping[str, Any], anchor: str, session: _Session) -> Iterator[Item]:
        message = Message(str(record.get("role")), _text(record), _at(record))
        if self.extract:
            session.messages.append(message)
        if message.role != "user" or session.silent or record.get("observed"):
            return
        of_session = replace(session, id=str(record.get("session_id") or session.id))
        for number, statement in enumerate(statements(message.text), start=1):
            key = " ".join(re.findall(r"\w+", statement.content.casefold()))
            if key in self.told:
                continue
            self.told.add(key)
            place = origin(self.file, anchor if number == 1 else f"{anchor}~{number}")
            memory = NewMemory(
                statement.content,
                category=statement.category,
                user=of_session.user,
                profile=self.profile,
                session=of_session.id,
                source=MemorySource.IMPORTED,
                created_at=message.at or file_date(self.file),
                origin=place,
                origin_hash=fingerprint(statement.content, statement.category, (), {}, message.at),
            )
            yield Item(place, memory)

    def _extracted(self, session: _Session) -> Iterator[Item]:
        if self.extract is None or session.silent or not session.messages:
            return
        from runtime_memory.errors import RuntimeMemoryError

        latest = next((message.at for message in reversed(session.messages) if message.at), None)
        try:
            proposed = self.extract(session.messages)
        except RuntimeMemoryError as error:
            yield fault(origin(self.file, session.id), f"no memories were extracted: {error}")
            return
        for number, memory in enumerate(proposed, start=1):
            place = origin(self.file, f"{session.id}:x{number}")
            told = fingerprint(memory.content, memory.category, memory.tags, memory.metadata, latest)
            made = memory.created_at or latest or file_date(self.file)
            owned = replace(memory, user=session.user, profile=self.profile, session=session.id, created_at=made)
            yield Item(place, replace(owned, source=MemorySource.EXTRACTED, origin=place, origin_hash=told))

    def _session(self, record: Mapping[str, Any]) -> _Session:
        user = record.get("user_id")
        return _Session(
            str(record.get("id") or record.get("session_id") or self.file.stem),
            self._owner(str(user) if user else None),
            silent=record.get("source") in _NOBODY,
        )

    def _owner(self, user: str | None) -> str | None:
        return None if user is None or "*" in self.owners or user in self.owners else user


def _record(line: str | None, number: int, place: str) -> Mapping[str, Any] | Item:
    try:
        value = json_value(line or "null")
    except ValueError as error:
        return fault(place, f"line {number} is not JSON ({error})")
    return value if isinstance(value, dict) else fault(place, f"line {number} holds no message")


def _user_in_index(file: Path) -> str | None:
    """Return whom a transcript belongs to by the ``sessions.json`` beside it, where it is still listed there."""
    try:
        listed = json_value((file.parent / "sessions.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    entries = listed.values() if isinstance(listed, dict) else ()
    entry = next((each for each in entries if isinstance(each, dict) and each.get("session_id") == file.stem), {})
    user = entry["origin"].get("user_id") if isinstance(entry.get("origin"), dict) else None
    return str(user) if user else None


def _text(record: Mapping[str, Any]) -> str:
    """Return the text of a message, which is a text or a list of parts."""
    content = record.get("content", record.get("text"))
    if isinstance(content, str) and content.startswith(_ENCODED):
        try:
            content = json.loads(content.removeprefix(_ENCODED))
        except ValueError:
            return ""
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _at(record: Mapping[str, Any]) -> datetime | None:
    """Return when a message was sent; transcripts give local time without a zone."""
    given = record.get("timestamp", record.get("created_at"))
    try:
        return frontmatter.moment(given) if isinstance(given, str) else moment(given)
    except (ValueError, OverflowError):
        return None
