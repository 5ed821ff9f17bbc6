"""Write the server into a client's configuration: merged, with a backup beside, and only where something changes."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runtime_memory.errors import ClientConfigError
from runtime_memory.mcp.clients import Client, Launch
from runtime_memory.mcp.documents import entry_in, render, with_entry, without_entry

__all__ = ["Change", "install", "installed", "launch", "snippet", "uninstall"]

_MODULE = "runtime_memory"
# -P keeps the folder in which a client starts the server off the module path: it is the user's project.
_START = ("-P", "-m", _MODULE, "serve", "--mcp")


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to a file: nothing where ``changed`` is False; ``backup`` is None where there was no file."""

    file: Path
    changed: bool
    backup: Path | None = None


def launch(options: Mapping[str, str | None], env: Mapping[str, str]) -> Launch:
    """Return how to start the server with the interpreter that runs now, whatever the client's PATH is.

    ``options`` are those of the command, by their names without dashes; None leaves one out.
    """
    given = (part for name, value in options.items() if value is not None for part in (f"--{name}", value))
    return Launch(sys.executable, (*_START, *given), env)


def snippet(client: Client, name: str, start: Launch) -> str:
    """Return the entry as a person would put it into an empty configuration."""
    return render(client.format, client.key, name, client.entry(start))


def install(client: Client, file: Path, name: str, start: Launch) -> Change:
    """Set the server's entry in a file, made where there is none.

    Raises ClientConfigError, before anything is written, where the file cannot be read or merged without loss, or
    where another server has the name.
    """
    text = _read(file) or ""
    with _naming(file):
        older = entry_in(text, client.format, client.key, name)
        if older is not None and not _is_ours(older):
            raise ClientConfigError(f"another server has the name {name!r} there; give --name")
        wanted = client.entry(start)
        if older is not None and _holds(older, wanted):
            return Change(file, changed=False)
        return _replace(file, with_entry(text, client.format, client.key, name, wanted))


def uninstall(client: Client, file: Path, name: str) -> Change:
    """Remove the server's entry from a file. Raises ClientConfigError like ``install``."""
    text = _read(file)
    if text is None:
        return Change(file, changed=False)
    with _naming(file):
        older = entry_in(text, client.format, client.key, name)
        if older is None:
            return Change(file, changed=False)
        if not _is_ours(older):
            raise ClientConfigError(f"the server {name!r} there is another one; remove it by hand")
        return _replace(file, without_entry(text, client.format, client.key, name))


def installed(client: Client, file: Path, name: str) -> dict[str, Any] | None:
    """Return the server's entry in a file, None where there is none. Raises ClientConfigError like ``install``."""
    text = _read(file)
    with _naming(file):
        older = None if text is None else entry_in(text, client.format, client.key, name)
    return older if older is not None and _is_ours(older) else None


class _naming:  # noqa: N801 - used like a function, as those of contextlib
    """Say which file an error is about."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, ClientConfigError):
            raise ClientConfigError(f"{self._file} was left as it is: {error}") from error


def _is_ours(entry: Mapping[str, Any]) -> bool:
    args = entry.get("args")
    return isinstance(args, list) and "serve" in args and "--mcp" in args


def _holds(older: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(older, Mapping) and all(_holds(older.get(name), value) for name, value in wanted.items())
    return bool(older == wanted)


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ClientConfigError(f"{file} was left as it is: it is not UTF-8 text") from error


def _replace(file: Path, text: str) -> Change:
    target = file.resolve()  # a link into a folder of dotfiles stays one
    target.parent.mkdir(parents=True, exist_ok=True)
    backup = _back_up(target) if target.exists() else None
    number, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        if backup is not None:
            shutil.copymode(backup, name)
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    return Change(file, changed=True, backup=backup)


def _back_up(target: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    backup = target.with_name(f"{target.name}.{stamp}.bak")
    shutil.copy2(target, backup)
    return backup
