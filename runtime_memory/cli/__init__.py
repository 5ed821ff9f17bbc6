"""The command line ``mem``: everything a person does with the memories of their agent."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from runtime_memory.cli import doctor, exporting, finding, hermes, importing, mcp, memories, trace, tuning, upkeep

__all__ = ["app", "main"]

app = typer.Typer(
    name="mem",
    help="Long-term memory for AI agents that learns from what worked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
memories.register(app)
finding.register(app)
importing.register(app)
exporting.register(app)
doctor.register(app)
hermes.register(app)
mcp.register(app)
trace.register(app)
tuning.register(app)
upkeep.register(app)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it by position
    if asked:
        from importlib.metadata import version

        print(f"mem {version('runtime-memory')}")
        raise typer.Exit


@app.callback()
def _common(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Long-term memory for AI agents that learns from what worked.

    Examples:
      mem add "Use decimal.Decimal for money, floats lost a cent" -c gotcha
      mem search money
      mem import ~/notes
      mem hermes install
    """


def main() -> None:
    """Run the command line; Ctrl-C and a reader that goes away end it without a word."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            app(prog_name="mem")
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            print(f"mem: {error.strerror or error}", file=sys.stderr)
        # The interpreter flushes once more at exit, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
