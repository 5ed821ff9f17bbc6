"""The command that brings notes into the store: import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runtime_memory.cli.frame import Cli, Project, Tags, command
from runtime_memory.cli.memories import chosen_project

if TYPE_CHECKING:
    from runtime_memory.importers import Item, Summary

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    command(app, "import", examples=("mem import ~/notes", "mem import docs README.md -p shop --dry-run"))(import_)


def import_(
    cli: Cli,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", exists=True, help="Folders or files of Markdown.", show_default=False),
    ],
    *,
    project: Project = None,
    tags: Tags = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", metavar="", help="Read the files, and store nothing.")] = False,
) -> None:
    """Remember notes: one memory a Markdown file.

    Its frontmatter gives title, date, category, tags and project. What is there already is not stored twice. The exit
    code is 1 when a file could not be read.
    """
    from runtime_memory.importers import store_items
    from runtime_memory.settings import Settings

    with nullcontext() if dry_run else cli.store() as store:
        settings = store.settings if store else Settings.load(db=cli.db, profile=cli.profile)
        default = chosen_project(None, settings)
        summary = store_items(
            store, (_placed(item, project, default, tags or (), settings.profile) for item in _items(paths))
        )
    if cli.as_json:
        cli.print_json(summary.to_json() | {"dry_run": dry_run})
    else:
        _print_summary(cli, summary, dry_run=dry_run)
    if summary.faults:
        raise typer.Exit(1)


def _items(paths: Iterable[Path]) -> Iterator[Item]:
    """Read the files, with a bar of progress on a terminal's standard error."""
    from rich.console import Console
    from rich.progress import track

    from runtime_memory.importers import Item, markdown

    console = Console(stderr=True)
    found = [(path, each) for path in paths for each in markdown.find(path)]
    shown = track(found, "Importing", console=console, disable=not console.is_terminal, transient=True)
    for path, each in shown:
        yield each if isinstance(each, Item) else markdown.read(each, path)


def _placed(item: Item, project: str | None, default: str | None, tags: Iterable[str], profile: str | None) -> Item:
    """Return an item with what the command line says: a project of its own is stronger than a default one."""
    if item.memory is None:
        return item
    memory = replace(
        item.memory,
        project=project or item.memory.project or default,
        tags=list(dict.fromkeys([*item.memory.tags, *tags])),
        profile=profile,
    )
    return item._replace(memory=memory)


def _print_summary(cli: Cli, summary: Summary, *, dry_run: bool) -> None:
    from runtime_memory.cli import tables

    for origin, notice in summary.notices:
        cli.note(f"{tables.plain(origin)}: {notice}")
    counts = {
        "Files read": str(summary.read),
        "Added": f"none, this was a dry run; {summary.read} would be tried" if dry_run else str(summary.added),
        "Unchanged": f"{summary.unchanged}, they were there before" if summary.unchanged else "",
        "Skipped": str(len(summary.skipped)) if summary.skipped else "",
    }
    cli.print(tables.pairs(counts))
    if summary.skipped:
        cli.print(tables.pairs({f"  {tables.plain(origin)}": reason for origin, reason in summary.skipped}))
    if not summary.read and not summary.skipped:
        cli.note("There are no Markdown files here (.md, .markdown).")
