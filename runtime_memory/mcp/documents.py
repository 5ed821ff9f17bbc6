"""Change one server's entry in the text of a client's configuration, and leave everything else as it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Literal

from runtime_memory.errors import ClientConfigError, DependencyError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["entry_in", "render", "with_entry", "without_entry"]

Format = Literal["json", "toml"]
_COMMENT_OR_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|(//|/\*|,\s*[}\]])')


def entry_in(text: str, form: Format, key: str, name: str) -> dict[str, Any] | None:
    """Return the entry of a server, None where there is none.

    Raises ClientConfigError where the text cannot be read, or has another shape than the client's.
    """
    entry = _servers(_parse(text, form), key).get(name)
    if entry is None:
        return None
    if not isinstance(entry, Mapping):
        raise ClientConfigError(f"its {key}.{name} is no table of settings; mend it by hand")
    plain: dict[str, Any] = json.loads(json.dumps(entry, default=str))
    return plain


def with_entry(text: str, form: Format, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return the text with the entry of a server set; settings of an older entry that this one has not stay."""
    document = _parse(text, form)
    servers = _servers(document, key)
    if key not in document:
        document[key] = servers = _table(form)
    older = servers.get(name)
    if isinstance(older, MutableMapping):
        _update(older, entry, form)
    else:
        servers[name] = _filled(entry, form)
    return _write(document, text, form)


def without_entry(text: str, form: Format, key: str, name: str) -> str:
    """Return the text without the entry of a server."""
    document = _parse(text, form)
    _servers(document, key).pop(name, None)
    return _write(document, text, form)


def render(form: Format, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return what a person would put into an empty configuration."""
    return with_entry("", form, key, name, entry)


def _parse(text: str, form: Format) -> Any:
    document = _parse_toml(text) if form == "toml" else _parse_json(text)
    if not isinstance(document, MutableMapping):
        raise ClientConfigError("it holds no object at its top; mend it by hand")
    return document


def _parse_json(text: str) -> Any:
    if not text.strip():
        return {}
    try:
        return json.loads(text, object_pairs_hook=_distinct)
    except ValueError as error:
        if any(match[1] for match in _COMMENT_OR_COMMA.finditer(text)):
            raise ClientConfigError("it has comments or trailing commas, which would be lost") from error
        raise ClientConfigError(f"it is not valid JSON ({error})") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ClientConfigError("it names a key twice, and one of the two would be lost")
    return found


def _parse_toml(text: str) -> Any:
    tomlkit = _tomlkit()
    try:
        return tomlkit.parse(text)
    except ValueError as error:  # also the base of every error of tomlkit's parser
        raise ClientConfigError(f"it is not valid TOML ({error})") from error


def _servers(document: Any, key: str) -> Any:
    servers = document.get(key)
    if servers is None:
        return {}
    if not isinstance(servers, MutableMapping):
        raise ClientConfigError(f"its {key} is no table of servers; mend it by hand")
    return servers


def _update(older: Any, entry: Mapping[str, Any], form: Format) -> None:
    for setting, value in entry.items():
        if isinstance(value, Mapping) and isinstance(older.get(setting), MutableMapping):
            _update(older[setting], value, form)
        elif older.get(setting) != value:
            older[setting] = _filled(value, form) if isinstance(value, Mapping) else value


def _filled(entry: Mapping[str, Any], form: Format) -> Any:
    table = {} if form == "json" else _tomlkit().table()
    for setting, value in entry.items():
        table[setting] = _filled(value, form) if isinstance(value, Mapping) else value
    return table


def _table(form: Format) -> Any:
    return {} if form == "json" else _tomlkit().table(is_super_table=True)


def _write(document: Any, before: str, form: Format) -> str:
    if form == "toml":
        return str(_tomlkit().dumps(document))
    indent = re.search(r"^[\[{]\s*\n([ \t]+)", before)
    text = json.dumps(document, indent=indent[1] if indent else 2, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can write as an escape
        text = json.dumps(document, indent=indent[1] if indent else 2)
    return text + "\n"


def _tomlkit() -> ModuleType:
    try:
        import tomlkit
    except ImportError as error:
        raise DependencyError(
            "tomlkit is needed to change TOML without losing comments: pip install 'runtime-memory[mcp]'"
        ) from error
    return tomlkit
