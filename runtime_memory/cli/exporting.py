"""The command that writes memories out: export."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from runtime_memory.cli.frame import Cli, Project, command
from runtime_memory.cli.memories import chosen_project
from runtime_memory.errors import InvalidInputError

__all__ = ["register"]


class ExportFormat(StrEnum):
    """What an export is written as."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    examples = (
        "mem export -o memories.jsonl --include-archived",
        "mem export -p shop | wc -l",
        "mem export --format markdown -o ~/notes/memories",
    )
    command(app, examples=examples)(export)


def export(
    cli: Cli,
    *,
    format_: Annotated[
        ExportFormat,
        typer.Option("--format", metavar="FORMAT", help="jsonl, which loses nothing, or markdown, one note a memory."),
    ] = ExportFormat.JSONL,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="A file, or a folder for notes; - or nothing prints."),
    ] = None,
    project: Project = None,
    include_archived: Annotated[
        bool, typer.Option("--include-archived", metavar="", help="Also archived and superseded ones.")
    ] = False,
) -> None:
    """Write memories with all that is known of them, outcomes included.

    What jsonl holds comes back with mem import, equal in every field. --include-archived makes it everything.
    """
    from runtime_memory import export as exports

    target = None if output is None or str(output) == "-" else output
    with cli.store() as store:
        named = chosen_project(project, store.settings)
        if format_ is ExportFormat.JSONL:
            lines = exports.jsonl_lines(store, project=named, include_archived=include_archived)
            count = _write_lines(lines, target) if target else _print(lines)
        else:
            notes = exports.markdown_notes(store, project=named, include_archived=include_archived)
            count = _write_notes(notes, target) if target else _print(note for _, note in notes)
    where = "" if target is None else f" to {target}"
    if cli.as_json and target is not None:
        cli.print_json({"exported": count, "path": str(target)})
    else:
        cli.note(f"{count} {'memory' if count == 1 else 'memories'} exported{where}.")


def _write_lines(lines: Iterator[str], target: Path) -> int:
    if not target.parent.is_dir():
        raise InvalidInputError(f"there is no folder {target.parent} to write the export to; make it first")
    beside = target.with_name(target.name + ".part")
    with beside.open("w", encoding="utf-8") as file:  # an export that was cut short must not pass for a whole one
        count = sum(1 for line in lines if file.write(line))
    beside.replace(target)
    return count


def _write_notes(notes: Iterator[tuple[str, str]], folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    return sum(1 for name, note in notes if folder.joinpath(name).write_text(note, "utf-8"))


def _print(texts: Iterator[str]) -> int:
    return sum(1 for text in texts if sys.stdout.write(text))
