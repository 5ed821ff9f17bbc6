"""The command that brings notes and memories into the store: import."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from runtime_memory.cli.frame import Category, Cli, Project, Tags, command
from runtime_memory.cli.memories import chosen_project
from runtime_memory.errors import StoreError
from runtime_memory.models import MemoryScope

if TYPE_CHECKING:
    from runtime_memory.importers import Item, Summary
    from runtime_memory.importers.formats import Format, Options, Source
    from runtime_memory.importers.intake import Intake
    from runtime_memory.store import MemoryStore

__all__ = ["register"]

_MOST_LISTED = 40
_SHOWN_SECONDS = 0.1
_ALLOCATIONS = 100_000
"""Between two collections: a batch is many small objects, hardly any of them in a cycle."""


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    examples = (
        "mem import ~/notes",
        "mem import ~/.hermes",
        "mem import ~/notes --prune --dry-run",
        "mem import old.db chat.jsonl -p shop --map content=text,created_at=ts",
    )
    command(app, "import", examples=examples)(import_)


def import_(
    cli: Cli,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Folders or files, in any of the formats.", show_default=False),
    ],
    *,
    as_: Annotated[
        str | None, typer.Option("--as", metavar="FORMAT", help="The format, where it is not to be looked for.")
    ] = None,
    project: Project = None,
    category: Category = None,
    tags: Tags = None,
    map_: Annotated[
        str | None,
        typer.Option("--map", metavar="FIELDS", help="Which field is what, as in content=text,created_at=ts."),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", metavar="", help="Archive what is no longer in the imported paths.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Tell what would happen, and store nothing.")
    ] = False,
    defer_embedding: Annotated[
        bool,
        typer.Option("--defer-embedding", metavar="", help="Find by words at once; mem reindex makes the vectors."),
    ] = False,
    extract: Annotated[
        bool,
        typer.Option("--extract", metavar="", help="Let RUNTIME_MEMORY_EXTRACT_MODEL read session logs as well."),
    ] = False,
    allow_secrets: Annotated[
        bool, typer.Option("--allow-secrets", metavar="", help="Keep passwords and keys as they are.")
    ] = False,
) -> None:
    """Remember what notes and other memories hold: Markdown, agents' notes, other stores, JSONL, CSV, plain text.

    Again and again: what is there already is not stored twice, what changed is updated in place, what moved is
    followed. The exit code is 1 when something could not be read.
    """
    from runtime_memory.importers.fields import parse_mapping
    from runtime_memory.importers.formats import Options, by_name, refuse_unused
    from runtime_memory.importers.intake import Intake
    from runtime_memory.importers.reading_sessions import extractor
    from runtime_memory.importers.undivided import undivided
    from runtime_memory.llm import endpoint
    from runtime_memory.settings import Settings

    settings = Settings.load(db=cli.db, profile=cli.profile)
    chosen = by_name(as_) if as_ else None
    placing = _Placing(project, chosen_project(None, settings), category, tags or (), settings.profile, allow_secrets)
    options = Options(
        parse_mapping(map_) if map_ else None,
        extractor(endpoint(settings.extract_model)) if extract else None,
        frozenset(settings.owners),
    )
    refuse_unused(chosen, options)
    gc.freeze()  # else every collection of what is read looks at all modules again
    with _target(cli, dry_run=dry_run) as store:
        intake = Intake(store, profile=settings.profile, dry_run=dry_run, embed=not defer_embedding)
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends an import in good order, too
        thresholds = gc.get_threshold()
        gc.set_threshold(_ALLOCATIONS, *thresholds[1:])
        try:
            intake.take(placing.placed(item) for item in _items(paths, chosen, options, intake))
            intake.finish(paths, prune=prune)
        except (KeyboardInterrupt, StoreError):
            if not cli.as_json:
                with undivided():
                    _report(cli, intake.summary, paths, dry_run=dry_run, prune=prune)
                    cli.note("It was stopped here. What is counted is stored; the same command again does the rest.")
            raise
        else:
            with undivided():
                _report(cli, intake.summary, paths, dry_run=dry_run, prune=prune)
        finally:
            gc.set_threshold(*thresholds)
            signal.signal(signal.SIGTERM, before)
    if intake.summary.faults:
        raise typer.Exit(1)


@contextmanager
def _target(cli: Cli, *, dry_run: bool) -> Iterator[MemoryStore]:
    """Open the store; for a dry run where there is none yet, an empty one that goes away again."""
    from runtime_memory.settings import Settings

    place = Settings.load(db=cli.db).place
    if not dry_run or place.is_remote or place.folder.exists():
        with cli.store() as store:
            yield store
        return
    with TemporaryDirectory() as folder, replace(cli, db=folder).store() as store:
        yield store


def _items(paths: Iterable[Path], chosen: Format | None, options: Options, intake: Intake) -> Iterator[Item]:
    """Read the files, with a bar of progress on a terminal's standard error."""
    from runtime_memory.importers.formats import read, sources

    with _progress(intake) as (begin, done):
        found: list[Source | Item] = [each for path in paths for each in sources(path, chosen)]
        begin(len(found))
        for number, each in enumerate(found, start=1):
            yield from read(each, options)
            done(number)


@contextmanager
def _progress(intake: Intake) -> Iterator[tuple[Callable[[int], object], Callable[[int], object]]]:
    """Yield what to call with the number of files, and then after each file with how many are done."""
    if not sys.stderr.isatty():
        yield int, int
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Looking for files", total=None, rate="")
        shown = 0.0

        def done(files: int) -> None:
            nonlocal shown
            elapsed = progress.tasks[0].elapsed or 0.0
            if elapsed - shown >= _SHOWN_SECONDS:  # it is drawn ten times a second, and a note takes less than 1 ms
                shown = elapsed
                progress.update(task, completed=files, rate=f"{intake.summary.memories / elapsed:.0f} memories/s")

        yield lambda files: progress.update(task, description="Importing", total=files), done


@dataclass(frozen=True)
class _Placing:
    """What the command line says about every memory."""

    project: str | None
    default_project: str | None
    category: str | None
    tags: Iterable[str]
    profile: str | None
    allow_secrets: bool

    def placed(self, item: Item) -> Item:
        """Return an item with it: a project of its own is stronger than a default one.

        What an earlier store knew of a memory, and what its own program sees everywhere, only goes into a project that
        was asked for by name.
        """
        memory = item.memory
        if memory is None:
            return item
        settled = memory.id or memory.scope
        project = self.project or memory.project or (None if settled else self.default_project)
        said = {
            "project": project,
            "category": self.category or memory.category,
            "tags": list(dict.fromkeys([*memory.tags, *self.tags])),
            "profile": memory.profile or self.profile,
            "allow_secrets": self.allow_secrets,
        }
        if project and not memory.project and settled:
            said["scope"] = MemoryScope.PROJECT
        if memory.origin_hash and not memory.id:  # said otherwise the next time, it is a change
            own = (self.project, self.default_project, self.category, *sorted(self.tags), self.allow_secrets)
            said["origin_hash"] = sha256(repr((memory.origin_hash, own)).encode()).hexdigest()[:16]
        return item._replace(memory=replace(memory, **said))  # type: ignore[arg-type]


def _report(cli: Cli, summary: Summary, paths: Iterable[Path], *, dry_run: bool, prune: bool) -> None:
    if cli.as_json:
        cli.print_json(summary.to_json() | {"dry_run": dry_run})
        return
    from runtime_memory.cli import tables

    for origin, notice in summary.notices[:_MOST_LISTED]:
        cli.note(f"{tables.plain(origin)}: {notice}")
    if len(summary.notices) > _MOST_LISTED:
        cli.note(f"… and {len(summary.notices) - _MOST_LISTED} more notices; with --json all of them")
    would = "Would be " if dry_run else ""
    counts = {
        "Files read": summary.read,
        f"{would}Added".capitalize(): summary.added,
        f"{would}Updated".capitalize(): summary.updated,
        f"{would}Moved".capitalize(): summary.moved,
        "Unchanged": summary.unchanged,
        "Outcomes": summary.outcomes,
        f"{would}Archived".capitalize(): summary.archived,
        "Vanished": len(summary.vanished),
        "Skipped": len(summary.skipped),
    }
    always = {"Files read", f"{would}Added".capitalize()}
    cli.print(tables.pairs({name: str(count) for name, count in counts.items() if count or name in always}))
    skipped = sorted(summary.skipped, key=lambda each: not each.fault)[:_MOST_LISTED]
    if skipped:
        cli.print(tables.pairs({f"  {tables.plain(each.origin)}": each.reason for each in skipped}))
    if len(summary.skipped) > _MOST_LISTED:
        cli.note(f"… and {len(summary.skipped) - _MOST_LISTED} more; with --json all of them")
    if summary.vanished and not prune:
        cli.note("What vanished is still remembered. To archive it: the same command with --prune")
    if not summary.read and not summary.skipped:
        cli.note(f"There is nothing to import in {', '.join(map(str, paths))}.")
