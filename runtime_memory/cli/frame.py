"""What the commands share: their common options, where they print, and how an error ends them."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from runtime_memory.errors import RuntimeMemoryError
from runtime_memory.models import MemoryCategory
from runtime_memory.plain_text import json_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from runtime_memory.store import MemoryStore

__all__ = ["AllowSecrets", "Category", "Cli", "Id", "Ids", "Limit", "Project", "Tags", "Yes", "command", "confirmed"]

Project = Annotated[
    str | None,
    typer.Option(
        "--project",
        "-p",
        metavar="NAME",
        help="The project; by default that of RUNTIME_MEMORY_PROJECT, '' for none.",
    ),
]
Category = Annotated[
    MemoryCategory | None,
    typer.Option("--category", "-c", metavar="CATEGORY", help=f"One of: {', '.join(MemoryCategory)}."),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="A tag; may be repeated.")]
Limit = Annotated[int, typer.Option("--limit", "-l", min=0, metavar="N", help="How many at most.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask.")]
AllowSecrets = Annotated[
    bool, typer.Option("--allow-secrets", metavar="", help="Keep passwords, tokens and keys as they are.")
]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a memory, or its beginning.", show_default=False)]
Ids = Annotated[
    list[str], typer.Argument(metavar="ID", help="Ids of memories, or their beginnings.", show_default=False)
]

_JSON = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON.")]
_DB = Annotated[str | None, typer.Option("--db", metavar="PATH", help="The store's folder or URI; RUNTIME_MEMORY_DB.")]
_PROFILE = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="Act in this Hermes profile.")]
_PIPED_WIDTH = 160


@dataclass(frozen=True)
class Cli:
    """One run of one command: results go to standard output, everything else to standard error."""

    as_json: bool
    db: str | None = None
    profile: str | None = None

    @contextmanager
    def store(self) -> Iterator[MemoryStore]:
        """Open the store that the options and the settings name."""
        from runtime_memory.settings import Settings
        from runtime_memory.store import MemoryStore

        with MemoryStore(Settings.load(db=self.db, profile=self.profile)) as store:
            yield store

    @property
    def console(self) -> Console:
        """Where results go."""
        return _console(stderr=False)

    def print(self, *shown: RenderableType) -> None:
        """Print results for a person."""
        for each in shown:
            self.console.print(each)

    def print_json(self, value: Any) -> None:
        """Print a result for a program."""
        encoding = (sys.stdout.encoding or "").lower()
        print(json_text(value, indent=2, ensure_ascii=not encoding.startswith("utf")))

    def note(self, *shown: RenderableType) -> None:
        """Tell a person something that is no result."""
        for each in shown:
            _console(stderr=True).print(each, markup=False, highlight=False)

    def fail(self, message: str) -> NoReturn:
        """Say in one line what went wrong, and end the run with exit code 1."""
        line = " ".join(message.split())
        print(f"mem: {line}", file=sys.stderr)
        if self.as_json:
            self.print_json({"error": line})
        raise typer.Exit(1)


def command(
    app: typer.Typer, name: str | None = None, *, store: bool = True, examples: Iterable[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command that takes a Cli first, and give it the common options; ``store`` for one that opens it."""
    shared: Mapping[str, Any] = {"as_json": _JSON, **({"db": _DB, "profile": _PROFILE} if store else {})}

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def run(**given: Any) -> None:
            cli = Cli(**{key: given.pop(key) for key in shared})
            with _failures(cli):
                function(cli, **given)

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        common = [
            inspect.Parameter(
                key, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=False if key == "as_json" else None
            )
            for key, kind in shared.items()
        ]
        vars(run)["__signature__"] = inspect.Signature([*own, *common])
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *common)}
        return app.command(name, help=_help(function, examples))(run)

    return register


def confirmed(question: str) -> bool:
    """Ask a person; only a clear yes counts as one."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        print(file=sys.stderr)
    return answer.strip().lower() in {"y", "yes"}


def _help(function: Callable[..., None], examples: Iterable[str]) -> str:
    paragraphs = [" ".join(each.split()) for each in (inspect.getdoc(function) or "").split("\n\n")]
    return "\n\n".join([*paragraphs, "\n".join(["Examples:", *(f"  $ {each}" for each in examples)])])


@contextmanager
def _failures(cli: Cli) -> Iterator[None]:
    try:
        yield
    except RuntimeMemoryError as error:
        cli.fail(str(error))
    except OSError as error:
        if error.filename is None:  # standard output itself: main() deals with that
            raise
        cli.fail(f"{error.strerror}: {error.filename}")


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr, soft_wrap=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPED_WIDTH
    return console
