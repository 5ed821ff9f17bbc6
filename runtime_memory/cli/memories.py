"""Commands that write, show and judge memories: add, show, list, edit, archive, forget, outcome, stats."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime_memory import serialize
from runtime_memory.cli.frame import AllowSecrets, Category, Cli, Id, Ids, Limit, Project, Tags, Yes, command, confirmed
from runtime_memory.errors import AmbiguousIdError, InvalidInputError, MemoryNotFoundError
from runtime_memory.models import Memory, MemoryCategory, MemorySource, NewMemory, Outcome
from runtime_memory.secrets import masked_since
from runtime_memory.suspicion import suspicion

if TYPE_CHECKING:
    from runtime_memory.settings import Settings
    from runtime_memory.store import MemoryStore

__all__ = ["chosen_project", "note_masked", "register", "shown_ids", "typed"]

_MANY = 50


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    command(app, examples=_ADD)(add)
    command(app, examples=("mem show 0192f3c4",))(show)
    command(
        app,
        "list",
        examples=("mem list", "mem list -p shop -c gotcha -l 50", "mem list --all --json", "mem list --suspect"),
    )(list_)
    command(app, examples=_EDIT)(edit)
    command(app, examples=("mem archive 0192f3c4", "mem archive 0192f3c4 --undo"))(archive)
    command(app, examples=_FORGET)(forget)
    command(app, examples=("mem outcome worked 0192f3c4", "mem outcome failed 0192f3c4 0192f3d7"))(outcome)
    command(app, examples=("mem stats", "mem stats --json"))(stats)


_ADD = (
    'mem add "Use decimal.Decimal for money, floats lost a cent" -c gotcha -p shop',
    "git log -1 --format=%B | mem add -c decision",
    'mem add "The SSH port is 49222" --supersedes 0192f3c4',
)
_FORGET = (
    "mem forget 0192f3c4",
    "mem forget 0192f3c4 --purge --yes",
    "mem forget -p shop --source imported",
    "mem forget --all",
)
_EDIT = (
    'mem edit 0192f3c4 "The SSH port is 49222"',
    "mem edit 0192f3c4 -c environment -t ssh -t server",
    "mem edit 0192f3c4   (opens your editor)",
)


def add(
    cli: Cli,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="What to remember; - or nothing reads it from a pipe.", show_default=False),
    ] = None,
    *,
    category: Category = None,
    project: Project = None,
    tags: Tags = None,
    supersedes: Annotated[
        str | None, typer.Option(metavar="ID", help="The memory that this one corrects; it is archived.")
    ] = None,
    allow_secrets: AllowSecrets = False,
) -> None:
    """Remember a text, and print its id.

    A text that is there already is not stored twice.
    """
    content = typed(words)
    with cli.store() as store:
        new = NewMemory(
            content,
            category=category or MemoryCategory.GENERAL,
            project=chosen_project(project, store.settings),
            profile=store.settings.profile,
            tags=tags or (),
            supersedes=store.get(supersedes).id if supersedes else None,
            allow_secrets=allow_secrets,
        )
        memory, duplicate, _, masked = store.write([new])[0]
    note_masked(cli, masked)
    if cli.as_json:
        return cli.print_json(serialize.memory_json(memory) | {"duplicate": duplicate})
    if duplicate:
        cli.note("This was remembered before; its id is:")
    print(memory.id)
    return None


def show(cli: Cli, memory_id: Id) -> None:
    """Show everything about one memory."""
    with cli.store() as store:
        memory = store.get(memory_id)
    if cli.as_json:
        return cli.print_json(serialize.memory_json(memory))
    from rich.text import Text

    from runtime_memory.cli import tables

    return cli.print(tables.memory_details(memory), "", Text(tables.plain(memory.content)))


def list_(
    cli: Cli,
    *,
    project: Project = None,
    category: Category = None,
    tags: Tags = None,
    limit: Limit = 20,
    every: Annotated[bool, typer.Option("--all", "-a", metavar="", help="Also archived and superseded ones.")] = False,
    suspect: Annotated[
        bool, typer.Option("--suspect", metavar="", help="Only those that read like an instruction to a model.")
    ] = False,
) -> None:
    """List memories, newest first.

    With --limit 0 all of them.
    """
    with cli.store() as store:
        named = chosen_project(project, store.settings)
        found = store.list(
            limit=limit + 1 if limit and not suspect else None,
            project=named,
            category=category,
            tags=tags or (),
            include_archived=every,
        )
        found = [memory for memory in found if suspicion(memory.content)] if suspect else found
        memories = found[:limit] if limit else found
        if cli.as_json:
            cli.print_json(serialize.memories_json(memories))
        elif memories:
            _print_listing(cli, store, memories)
    if len(found) > len(memories):
        cli.note(f"These are the newest {limit}; for all: mem list --limit 0")
    if not found and suspect:
        cli.note("No memory reads like an instruction.")
    elif not found and (named or category or tags):
        cli.note("No memory fits. Without the filters: mem list -p ''")
    elif not found:
        cli.note('There are no memories yet. Begin with: mem add "…"   or: mem import FOLDER')


def edit(
    cli: Cli,
    memory_id: Id,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="The new text; - reads it from a pipe.", show_default=False),
    ] = None,
    *,
    category: Category = None,
    tags: Annotated[
        list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="Replaces all tags; '' for none.")
    ] = None,
    allow_secrets: AllowSecrets = False,
) -> None:
    """Change a memory; its id and its outcomes stay.

    Without a change on the command line, the text is opened in your editor.
    """
    with cli.store() as store:
        changes: dict[str, Any] = {}
        if words:
            changes["content"] = typed(words)
        if category:
            changes["category"] = category
        if tags is not None:
            changes["tags"] = tags
        if not changes:
            changes["content"] = _edited(store.get(memory_id).content)
        memory = store.edit(memory_id, **changes, allow_secrets=allow_secrets)
    note_masked(cli, masked_since(lambda: str(changes), "\n".join((memory.content, *memory.tags))))
    if cli.as_json:
        return cli.print_json(serialize.memory_json(memory))
    return print(memory.id)


def archive(
    cli: Cli,
    memory_ids: Ids,
    *,
    undo: Annotated[bool, typer.Option("--undo", metavar="", help="Bring them back into recall.")] = False,
) -> None:
    """Take memories out of recall without losing them."""
    with cli.store() as store:
        full = [store.get(each).id for each in memory_ids]
        _print_changed(cli, store, [store.archive(each, archived=not undo) for each in full])


def forget(
    cli: Cli,
    memory_ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Ids of memories, or their beginnings.", show_default=False)
    ] = None,
    *,
    project: Annotated[
        str | None, typer.Option("--project", "-p", metavar="NAME", help="Those of this project, global ones not.")
    ] = None,
    category: Category = None,
    source: Annotated[
        MemorySource | None, typer.Option(metavar="SOURCE", help=f"Those {', '.join(MemorySource)}.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", "-a", metavar="", help="All that the other options leave.")] = False,
    purge: Annotated[bool, typer.Option("--purge", metavar="", help="And leave no trace of them: mem purge.")] = False,
    yes: Yes = False,
) -> None:
    """Wipe memories for good, after asking: those with these ids, or all that fit the options.

    Archived ones are among them.
    """
    chosen = {"project": project or None, "category": category, "source": source}
    by_options = every or any(chosen.values())
    if bool(memory_ids) == by_options:
        raise typer.BadParameter("give either ids, or --project, --category, --source or --all")
    with cli.store() as store:
        memories = _fitting(store, chosen) if by_options else [store.get(each) for each in memory_ids or ()]
        memories = list({memory.id: memory for memory in memories}.values())
        if memories and not yes:
            _show_few(cli, store, memories)
            if not confirmed(f"Forget {'this' if len(memories) == 1 else f'these {len(memories)}'} for good?"):
                cli.fail("nothing was forgotten; answer y, or give --yes")
        forgotten = store.forget_many([memory.id for memory in memories]) if memories else []
        if purge:
            store.purge()
    if cli.as_json:
        return cli.print_json(serialize.memories_json(forgotten))
    if not forgotten:
        return cli.note("No memory fits; nothing was forgotten.")
    return print(*(memory.id for memory in forgotten), sep="\n")


def _fitting(store: MemoryStore, chosen: Mapping[str, Any]) -> list[Memory]:
    """Return the memories of exactly this project, category and source, those that are given."""
    wanted = {name: value for name, value in chosen.items() if value is not None}
    everything = store.list(include_archived=True)
    return [m for m in everything if all(getattr(m, name) == value for name, value in wanted.items())]


def _show_few(cli: Cli, store: MemoryStore, memories: Sequence[Memory]) -> None:
    from runtime_memory.cli import tables

    few = memories[:_MANY]
    cli.note(tables.listing(few, shown_ids(store, few), cli.console))
    if len(memories) > len(few):
        cli.note(f"… and {len(memories) - len(few)} more")


def outcome(
    cli: Cli,
    outcome: Annotated[
        Outcome, typer.Argument(metavar="OUTCOME", help="How it went: worked, failed or partial.", show_default=False)
    ],
    memory_ids: Ids,
) -> None:
    """Report whether memories helped; that decides what is recalled first."""
    with cli.store() as store:
        updated = store.record_outcome(memory_ids, outcome, origin="cli")
        if not cli.as_json:
            return _print_listing(cli, store, updated)
    recorded = {"recorded": True, "outcome": outcome.value, "updated": serialize.outcomes_json(updated)}
    return cli.print_json(recorded)


def stats(cli: Cli) -> None:
    """Show what is in the store, and its health."""
    with cli.store() as store:
        found = store.stats()
    if cli.as_json:
        return cli.print_json(serialize.stats_json(found))
    from runtime_memory.cli import tables

    cli.print(tables.stats_details(found))
    if not found.total_memories:
        cli.note('There are no memories yet. Begin with: mem add "…"   or: mem import FOLDER')
    return None


def chosen_project(given: str | None, settings: Settings) -> str | None:
    """Return the project of the option, else that of the settings; their 'auto' is for agents."""
    if given is not None:
        return given or None
    return None if settings.project == "auto" else settings.project


def shown_ids(store: MemoryStore, memories: Sequence[Memory]) -> dict[str, str]:
    """Return how to show the ids of memories: short, but so that each can be given to another command."""
    from runtime_memory.cli import tables

    def is_unique(beginning: str) -> bool:
        try:
            store.get(beginning)
        except (AmbiguousIdError, MemoryNotFoundError):  # not found: forgotten meanwhile, or not in the text index yet
            return False
        return True

    few = len(memories) <= _MANY  # a look-up takes milliseconds
    return tables.short_ids([memory.id for memory in memories], is_unique if few else lambda _: True)


def note_masked(cli: Cli, kinds: Sequence[str]) -> None:
    """Tell a person what kinds of secret were masked in what was stored."""
    if kinds:
        cli.note(f"Masked before it was stored: {', '.join(kinds)}. To keep it as it is: --allow-secrets")


def typed(words: Sequence[str] | None) -> str:
    """Return the text of the arguments, or that of standard input for - or when it is piped."""
    if words and list(words) != ["-"]:
        return " ".join(words)
    if not words and sys.stdin.isatty():
        raise typer.BadParameter("give the text to remember, or - to type it and end with Ctrl-D")
    return sys.stdin.buffer.read().decode("utf-8-sig", "replace").rstrip("\r\n")


def _edited(content: str) -> str:
    if not sys.stdin.isatty():
        raise typer.BadParameter("say what to change: the text, --category or --tag")
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with TemporaryDirectory() as folder:
        file = Path(folder, "memory.md")
        file.write_text(content, "utf-8")
        if subprocess.run([*editor, str(file)], check=False).returncode:  # noqa: S603 - the editor of the user's choice
            raise InvalidInputError(f"the editor {editor[0]} failed; nothing was changed")
        return file.read_text("utf-8").rstrip("\n")


def _print_listing(cli: Cli, store: MemoryStore, memories: Sequence[Memory]) -> None:
    from runtime_memory.cli import tables

    cli.print(tables.listing(memories, shown_ids(store, memories), cli.console))


def _print_changed(cli: Cli, store: MemoryStore, memories: Sequence[Memory]) -> None:
    if cli.as_json:
        cli.print_json(serialize.memories_json(memories))
    else:
        _print_listing(cli, store, memories)
