"""Commands that connect Hermes Agent: hermes install, uninstall, status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runtime_memory.cli.frame import Cli, command

if TYPE_CHECKING:
    from runtime_memory.hermes_shim import Status

__all__ = ["register"]

Home = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="The home of Hermes; HERMES_HOME or ~/.hermes. A profile has its own."),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(no_args_is_help=True, help="Connect Hermes Agent: install, uninstall, status.")
    command(group, store=False, examples=_INSTALL)(install)
    command(group, store=False, examples=("mem hermes uninstall",))(uninstall)
    command(group, store=False, examples=("mem hermes status", "mem hermes status --json"))(status)
    app.add_typer(group, name="hermes")


_INSTALL = ("mem hermes install", "mem hermes install --home ~/.hermes/profiles/work")


def install(cli: Cli, home: Home = None) -> None:
    """Let Hermes find the memory provider: write its plugin folder."""
    from runtime_memory import hermes_shim as shim

    place = _home(home)
    changed = shim.install(place)
    found = shim.status(place)
    if cli.as_json:
        return cli.print_json({**found.to_json(), "changed": changed, "next_command": shim.NEXT_COMMAND})
    print(f"{'Installed' if changed else 'Already installed'}: {shim.plugin_folder(place)}")
    _warn(cli, found)
    if found.configured != shim.NAME:
        print(f"Next: {shim.NEXT_COMMAND}")
    return None


def uninstall(cli: Cli, home: Home = None) -> None:
    """Remove the plugin folder; memories stay."""
    from runtime_memory import hermes_shim as shim

    place = _home(home)
    removed = shim.uninstall(place)
    if cli.as_json:
        return cli.print_json({"removed": removed, "home": str(place)})
    print(f"{'Removed' if removed else 'Nothing to remove'}: {shim.plugin_folder(place)}")
    if shim.status(place).configured == shim.NAME:
        cli.note("Hermes is still told to use it; to stop that: hermes config set memory.provider ''")
    return None


def status(cli: Cli, home: Home = None) -> None:
    """Tell whether Hermes will use the memory provider; the exit code is 1 when it will not."""
    from runtime_memory import hermes_shim as shim

    found = shim.status(_home(home))
    if cli.as_json:
        cli.print_json(found.to_json())
    else:
        from runtime_memory.cli import tables

        cli.print(tables.pairs(_rows(found)))
    if not found.ok:
        raise typer.Exit(1)


def _home(given: Path | None) -> Path:
    from runtime_memory.hermes_shim import default_home

    return (given or default_home()).expanduser().absolute()


def _rows(found: Status) -> dict[str, str]:
    from runtime_memory import hermes_shim as shim

    plugin = "yes" if found.current else "of another version; run: mem hermes install"
    python = str(found.interpreter) if found.interpreter else "not found: there is no hermes command on the PATH"
    active = found.configured == shim.NAME
    return {
        "Hermes home": f"{found.home}{'' if found.home.is_dir() else ' (not there yet)'}",
        "Plugin": plugin if found.installed else "not installed; run: mem hermes install",
        "Provider": "active" if active else f"{found.configured or 'none'}; run: {shim.NEXT_COMMAND}",
        "Interpreter": python,
        "Dependencies": _dependencies(found),
    }


def _dependencies(found: Status) -> str:
    from runtime_memory import hermes_shim as shim

    if found.missing is None or found.interpreter is None:
        return "unknown"
    if not found.missing:
        return "all there"
    absent = "runtime_memory" in found.missing
    what = "runtime-memory is not installed there" if absent else f"missing: {', '.join(found.missing)}"
    return f"{what}; run: {shim.install_command(found.interpreter)}"


def _warn(cli: Cli, found: Status) -> None:
    if not (found.home / "config.yaml").exists():
        cli.note(f"{found.home} has no config.yaml: Hermes has not run with this home yet.")
    if found.interpreter is None:
        cli.note("There is no hermes command on the PATH, so it was not checked that it can import runtime-memory.")
    elif found.missing or found.missing is None:
        cli.note(f"hermes runs {found.interpreter}, which cannot load the provider: {_dependencies(found)}")
