"""The command that checks everything: doctor."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runtime_memory.cli.frame import Cli, command

if TYPE_CHECKING:
    from rich.text import Text

    from runtime_memory.doctor import Finding

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    command(app, examples=("mem doctor", "mem doctor --fix", "mem doctor --json"))(doctor)


def doctor(
    cli: Cli,
    *,
    fix: Annotated[bool, typer.Option("--fix", metavar="", help="Mend what is safe to mend.")] = False,
    home: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The home of Hermes; HERMES_HOME or ~/.hermes.")
    ] = None,
) -> None:
    """Check the store and all that it depends on, one line each, with what to do.

    The exit code is 1 when something is wrong that was not mended.
    """
    from runtime_memory.doctor import State, diagnose

    findings: list[Finding] = []
    for finding in diagnose(db=cli.db, fix=fix, home=home):
        findings.append(finding)
        if not cli.as_json:
            cli.print(_line(finding))
    ok = all(finding.state is not State.PROBLEM for finding in findings)
    if cli.as_json:
        cli.print_json({"ok": ok, "findings": [asdict(finding) for finding in findings]})
    if not ok:
        raise typer.Exit(1)


def _line(finding: Finding) -> Text:
    from rich.text import Text

    from runtime_memory.cli import tables
    from runtime_memory.doctor import State

    colours = {State.OK: "green", State.FIXED: "green", State.NOTE: "yellow", State.PROBLEM: "red"}
    line = Text.assemble(
        (f"{finding.state.value:8}", colours[finding.state]),
        f" {finding.name}: {tables.plain(finding.message)}",
    )
    if finding.advice and finding.state is not State.OK:
        line.append(f"\n         → {tables.plain(finding.advice)}", "bold" if finding.state is State.PROBLEM else "dim")
    return line
