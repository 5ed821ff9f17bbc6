"""Commands of the MCP server: serve, and mcp install, uninstall, status."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime_memory.cli.frame import Cli, command
from runtime_memory.errors import ClientConfigError, DependencyError, ServerError

if TYPE_CHECKING:
    from runtime_memory.mcp.clients import Client, Launch
    from runtime_memory.mcp.http import Address
    from runtime_memory.settings import Settings

__all__ = ["register"]

_ALL = "claude-code, claude-desktop, codex, cursor, gemini, vscode, windsurf"
_INSTALL = "pip install 'runtime-memory[mcp]'"

ClientName = Annotated[str, typer.Argument(metavar="CLIENT", help=f"One of: {_ALL}.", show_default=False)]
File = Annotated[
    Path | None, typer.Option(metavar="PATH", help="Another configuration file than the user's, such as a project's.")
]
Name = Annotated[str, typer.Option(metavar="NAME", help="The name of the server in the client.")]
Project = Annotated[
    str | None,
    typer.Option(
        "--project",
        "-p",
        metavar="NAME",
        help="Serve this project only; 'auto' is the git repository around the server, '' is none.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    command(app, examples=("mem serve --mcp", "mem serve --mcp --http --port 8765"))(serve)
    group = typer.Typer(no_args_is_help=True, help="Connect MCP clients: install, uninstall, status.")
    command(group, examples=("mem mcp install claude-code", "mem mcp install codex --project auto --print"))(install)
    command(group, store=False, examples=("mem mcp uninstall claude-code",))(uninstall)
    command(group, store=False, examples=("mem mcp status",))(status)
    app.add_typer(group, name="mcp")


def serve(
    cli: Cli,
    *,
    mcp: Annotated[bool, typer.Option("--mcp", metavar="", help="Speak the Model Context Protocol.")] = False,
    http: Annotated[bool, typer.Option("--http", metavar="", help="Over HTTP instead of standard input.")] = False,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; other than this machine needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 takes a free one.")] = 8765,
    token_file: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A file with the token; else RUNTIME_MEMORY_MCP_TOKEN.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A further name of this server; may be repeated.")
    ] = None,
    project: Project = None,
) -> None:
    """Serve the memories to MCP clients, until they leave or Ctrl-C.

    A client starts the server itself and speaks to it over standard input and output; with --http, any number of
    clients share one at http://127.0.0.1:8765/mcp.
    """
    if not mcp:
        raise typer.BadParameter("say what to serve: mem serve --mcp")
    _need_sdk()
    from runtime_memory.project import session_project
    from runtime_memory.settings import Settings

    settings = Settings.load(db=cli.db, profile=cli.profile)
    named = session_project(settings.project if project is None else project, None)
    if not http:
        raise typer.Exit(_serve_stdio(settings, named))
    from runtime_memory.mcp.http import serve_http
    from runtime_memory.store import MemoryStore

    address = _address(settings, host, port, allow_host or (), token_file)
    store = MemoryStore(settings, background_model=True)
    serve_http(store, named, address, lambda url: cli.note(f"Serving {settings.place} at {url}"))


def install(
    cli: Cli,
    client: ClientName,
    *,
    project: Project = None,
    name: Name = "runtime-memory",
    file: File = None,
    print_: Annotated[bool, typer.Option("--print", metavar="", help="Write nothing; show what to put there.")] = False,
) -> None:
    """Write the server into a client's configuration.

    Other entries stay as they are, and a backup is left beside the file. The RUNTIME_MEMORY_ variables that are set now
    are written along, as a client does not pass them on.
    """
    from runtime_memory.mcp.clients import find_client
    from runtime_memory.mcp.install import install as write
    from runtime_memory.mcp.install import snippet

    _need_sdk()
    known, start = find_client(client), _launch(cli, project)
    place = _file(known, file)
    if print_:
        if cli.as_json:
            return cli.print_json({"file": str(place), "name": name, "entry": known.entry(start)})
        cli.note(f"For {known.title}, in {place}:")
        return print(snippet(known, name, start), end="")
    try:
        change = write(known, place, name, start)
    except ClientConfigError:
        if not cli.as_json:
            cli.note("What to put there by hand:", snippet(known, name, start))
        raise
    backup = None if change.backup is None else str(change.backup)
    if cli.as_json:
        return cli.print_json({"file": str(place), "name": name, "changed": change.changed, "backup": backup})
    print(f"{'Installed' if change.changed else 'Already installed'}: {name} in {place}")
    if backup:
        cli.note(f"What was there before: {backup}")
    if change.changed:
        cli.note(f"Start {known.title} anew to use it.")
    return None


def uninstall(cli: Cli, client: ClientName, *, name: Name = "runtime-memory", file: File = None) -> None:
    """Remove the server from a client's configuration; memories stay."""
    from runtime_memory.mcp.clients import find_client
    from runtime_memory.mcp.install import uninstall as remove

    known = find_client(client)
    place = _file(known, file)
    change = remove(known, place, name)
    backup = None if change.backup is None else str(change.backup)
    if cli.as_json:
        return cli.print_json({"file": str(place), "name": name, "removed": change.changed, "backup": backup})
    print(f"{'Removed' if change.changed else 'Nothing to remove'}: {name} in {place}")
    return cli.note(f"What was there before: {backup}") if backup else None


def status(cli: Cli, *, name: Name = "runtime-memory") -> None:
    """Tell which clients have the server in their configuration."""
    from runtime_memory.mcp.clients import CLIENTS

    found = [{"client": client.name, "file": str(client.file()), **_state(client, name)} for client in CLIENTS]
    sdk = _has_sdk()
    if cli.as_json:
        return cli.print_json({"sdk": sdk, "clients": found})
    from runtime_memory.cli import tables

    cli.print(tables.pairs({each["client"]: f"{each['state']} ({each['file']})" for each in found}))
    return None if sdk else cli.note(f"The server cannot run here: {_INSTALL}")


def _serve_stdio(settings: Settings, project: str | None) -> int:
    from runtime_memory.mcp.streams import protocol_streams

    with protocol_streams() as streams:  # before the imports, as what they bring may print
        from runtime_memory.mcp.stdio import serve_stdio
        from runtime_memory.store import MemoryStore

        return serve_stdio(MemoryStore(settings, background_model=True), project, streams)


def _state(client: Client, name: str) -> dict[str, Any]:
    from runtime_memory.mcp.install import installed

    try:
        entry = installed(client, client.file(), name)
    except (ClientConfigError, DependencyError, OSError) as error:
        return {"state": f"unknown: {error}", "installed": None}
    if entry is None:
        return {"state": "not installed", "installed": False}
    interpreter = str(entry.get("command"))
    works = Path(interpreter).exists()
    return {"state": f"installed, with {interpreter}{'' if works else ', which is gone'}", "installed": works}


def _launch(cli: Cli, project: str | None) -> Launch:
    from runtime_memory.mcp.install import launch
    from runtime_memory.settings import Settings

    settings = Settings.load(db=cli.db, profile=cli.profile)
    place = settings.place.uri or str(settings.folder.absolute())
    db = place if "db" in settings.model_fields_set else None
    return launch({"db": db, "profile": cli.profile, "project": project}, _environment())


def _environment() -> Mapping[str, str]:
    """Return the settings of this environment, without the folder, which an option names, and without secrets."""
    from runtime_memory.place import without_secrets
    from runtime_memory.settings import ENV_PREFIX, Settings

    left = {"db", "mcp_token", "storage_options"}
    names = [ENV_PREFIX + name.upper() for name in Settings.model_fields if name not in left]
    kept = {name: os.environ[name] for name in names if os.environ.get(name)}
    options = without_secrets(Settings.load().storage_options)
    return kept | ({f"{ENV_PREFIX}STORAGE_OPTIONS": json.dumps(options)} if options else {})


def _address(
    settings: Settings, host: str, port: int, names: list[str] | tuple[str, ...], token_file: Path | None
) -> Address:
    from runtime_memory.mcp.http import Address

    token = settings.mcp_token.get_secret_value() if settings.mcp_token else None
    if token_file is not None:
        try:
            token = token_file.expanduser().read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise ServerError(f"the token cannot be read from {token_file}: {reason}") from error
    return Address(host, port, tuple(names), token)


def _file(client: Client, given: Path | None) -> Path:
    return (given or client.file()).expanduser().absolute()


def _has_sdk() -> bool:
    return all(importlib.util.find_spec(name) for name in ("mcp", "mcp_types"))


def _need_sdk() -> None:
    """Raise DependencyError where the SDK is not there, or too old to have its types in a package of their own."""
    if not _has_sdk():
        raise DependencyError(f"the MCP server needs the official SDK, mcp 2.3 or newer: {_INSTALL}")
