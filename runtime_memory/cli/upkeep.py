"""Commands that look after the store as a whole: reindex, purge, backup, restore."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runtime_memory.cli.frame import Cli, Yes, command, confirmed
from runtime_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from runtime_memory.reindex import Progress, Reindexed
    from runtime_memory.settings import Settings

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    command(app, examples=_REINDEX)(reindex)
    command(app, examples=("mem purge", "mem purge --json"))(purge)
    command(app, examples=("mem backup ~/backups", "mem backup memories.tar.gz"))(backup)
    command(app, examples=("mem restore memories.tar.gz", "mem restore memories.tar.gz --yes"))(restore)


_REINDEX = (
    "mem reindex",
    "mem reindex --embeddings",
    "mem reindex --embeddings --model BAAI/bge-small-en-v1.5",
)


def reindex(
    cli: Cli,
    *,
    embeddings: Annotated[
        bool,
        typer.Option("--embeddings", metavar="", help="Embed every memory anew; may be broken off and gone on with."),
    ] = False,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --embeddings: the model to go over to, a name or a folder.")
    ] = None,
) -> None:
    """Build the text index anew, and embed what has no vector yet.

    With --embeddings every memory is embedded anew, which is needed after a change of the model. The store stays in
    use meanwhile, and goes over to the new vectors at the end.
    """
    if model and not embeddings:
        raise typer.BadParameter("--model is for --embeddings", param_hint="--model")
    with cli.store() as store:
        settings = store.settings
        if not embeddings:
            done = store.reindex()
        else:
            with _progress("Embedding") as progress, _resumable(cli):
                done = store.reindex(embeddings=True, model=model, progress=progress)
    if cli.as_json:
        return cli.print_json(asdict(done))
    if embeddings:
        kept = f", {done.resumed} of them in an earlier run" if done.resumed else ""
        print(f"{done.memories} memories are embedded with {done.embedding}{kept}.")
    else:
        print(f"The text index holds {done.memories} memories; {done.embedded} were embedded that had no vector.")
    return cli.note(*_advice(done, settings, embeddings=embeddings))


def purge(cli: Cli) -> None:
    """Remove every trace of what was forgotten from the store's folder.

    That is: old versions of the tables, parts of the text index, damaged and replaced parts that were kept, and the
    questions of the trace that had to do with a forgotten memory. Backups are not touched.
    """
    with cli.store() as store:
        done = store.purge()
    if cli.as_json:
        return cli.print_json(asdict(done))
    print(f"{done.memories} memories are kept; nothing is left of {done.forgotten} forgotten ones.")
    if done.trace_records:
        cli.note(f"The questions of {done.trace_records} records of the trace were blanked.")
    return cli.note("Backups made earlier may still hold forgotten texts.")


def backup(
    cli: Cli,
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A file that ends in .tar.gz, or a folder.", show_default=False),
    ],
) -> None:
    """Write all memories and their outcomes to one file, and check it.

    Others may write meanwhile. A backup that is there is replaced once the new one is whole.
    """
    with cli.store() as store:
        done = store.backup(path)
    if cli.as_json:
        return cli.print_json(asdict(done) | {"path": str(done.path)})
    print(done.path)
    return cli.note(
        f"{done.memories} memories, {done.bytes / 1e6:.1f} MB, checked. Back again: mem restore {done.path}"
    )


def restore(
    cli: Cli,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A file that mem backup made.", show_default=False)],
    *,
    yes: Yes = False,
) -> None:
    """Put a backup in the place of the store, after asking when there are memories in it.

    What was there is kept in a folder beside, and named.
    """
    from runtime_memory import restore as restoring
    from runtime_memory.settings import Settings

    settings = Settings.load(db=cli.db, profile=cli.profile)
    settings.place.refuse_remote("restoring", "restore into a folder (--db), export there, and import into the bucket")
    if not path.is_file():
        raise InvalidInputError(f"there is no backup {path}; give the file that mem backup wrote")
    there = restoring.memories_in(settings.folder)
    if there != 0 and not yes:
        what = "a store that cannot be read" if there is None else f"the {there} memories"
        if not confirmed(f"Replace {what} in {settings.folder} by {path}?"):
            cli.fail("nothing was changed; answer y, or give --yes")
    done = restoring.restore(settings.folder, path, lock_timeout=settings.lock_timeout)
    if cli.as_json:
        return cli.print_json(asdict(done) | {"kept": done.kept and str(done.kept)})
    print(f"{done.memories} memories are back, as they were at {done.created_at}.")
    if done.kept:
        cli.note(f"What was there is kept in {done.kept}; delete that folder when you no longer need it.")
    return None


def _advice(done: Reindexed, settings: Settings, *, embeddings: bool) -> Iterator[str]:
    from runtime_memory.relevance import is_calibrated

    if embeddings and done.embedding and not is_calibrated(done.embedding):
        model = f" --model {done.model}" if done.model else ""
        yield (
            "How relevant a memory must be to be recalled was measured for all-MiniLM-L6-v2, and is taken for this "
            f"model too. To measure it: python -m benchmarks calibrate{model}"
        )
    if embeddings and settings.embedding_model not in (None, done.model) and not _same(settings, done.model):
        yield (
            f"RUNTIME_MEMORY_EMBEDDING_MODEL is still {settings.embedding_model!r}: unset it (the store knows its "
            f"model) or set it to {done.model!r}; until then memories are found by their words only."
        )


def _same(settings: Settings, model: str | None) -> bool:
    from runtime_memory.manifest import model_name

    return model_name(settings.embedding_model) == model


@contextmanager
def _progress(what: str) -> Iterator[Progress | None]:
    """Show a bar on standard error; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def _resumable(cli: Cli) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        cli.note(f"{os.linesep}Nothing has changed yet; what is done is kept. Go on with the same command.")
        raise
