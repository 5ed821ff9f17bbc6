"""The MCP clients whose configuration can be written: where each keeps it, and how an entry looks there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runtime_memory.errors import InvalidInputError

__all__ = ["CLIENTS", "Client", "Launch", "find_client"]


@dataclass(frozen=True, slots=True)
class Launch:
    """How a client starts the server."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Client:
    """One client: its names, the user's configuration file, and the key that its servers stand under."""

    name: str
    title: str
    file: Callable[[], Path]
    key: str = "mcpServers"
    format: Literal["json", "toml"] = "json"
    names_type: bool = False
    """Whether an entry says that it is a stdio server."""

    def entry(self, launch: Launch) -> dict[str, Any]:
        """Return the entry of the server."""
        kind = {"type": "stdio"} if self.names_type else {}
        env = {"env": dict(launch.env)} if launch.env else {}
        return {**kind, "command": launch.command, "args": list(launch.args), **env}


def find_client(name: str) -> Client:
    """Return a client by its name; raises InvalidInputError that lists them."""
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    for client in CLIENTS:
        if client.name == wanted:
            return client
    raise InvalidInputError(f"unknown client {name!r}; known are: {', '.join(client.name for client in CLIENTS)}")


def _home(*parts: str) -> Path:
    return Path.home().joinpath(*parts)


def _from(variable: str, *default: str) -> Path:
    given = os.environ.get(variable)
    return Path(given).expanduser() if given else _home(*default)


def _application_folder() -> Path:
    """Return where desktop applications keep the settings of this user."""
    if sys.platform == "darwin":
        return _home("Library", "Application Support")
    if sys.platform == "win32":
        return _from("APPDATA", "AppData", "Roaming")
    return _from("XDG_CONFIG_HOME", ".config")


def _claude_code() -> Path:
    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(folder).expanduser() if folder else Path.home()) / ".claude.json"


CLIENTS = (
    Client("claude-code", "Claude Code", _claude_code, names_type=True),
    Client("claude-desktop", "Claude Desktop", lambda: _application_folder() / "Claude" / "claude_desktop_config.json"),
    Client("codex", "Codex", lambda: _from("CODEX_HOME", ".codex") / "config.toml", key="mcp_servers", format="toml"),
    Client("cursor", "Cursor", lambda: _home(".cursor", "mcp.json")),
    Client("gemini", "Gemini CLI", lambda: _home(".gemini", "settings.json")),
    Client(
        "vscode",
        "Visual Studio Code",
        lambda: _application_folder() / "Code" / "User" / "mcp.json",
        key="servers",
        names_type=True,
    ),
    Client("windsurf", "Windsurf", lambda: _home(".codeium", "windsurf", "mcp_config.json")),
)
