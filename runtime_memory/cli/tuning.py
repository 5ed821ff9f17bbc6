"""The command that fits the fusion weights to one's own questions: tune."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runtime_memory.cli.frame import Cli, command

if TYPE_CHECKING:
    from runtime_memory.judgements import Judged
    from runtime_memory.tuning import Proposal

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    examples = ("mem tune ~/trace.jsonl", "mem tune --questions mine.jsonl --apply", "mem tune --reset")
    command(app, examples=examples)(tune)


def tune(
    cli: Cli,
    trace: Annotated[
        Path | None,
        typer.Argument(metavar="TRACE", help="A trace; by default RUNTIME_MEMORY_HERMES_TRACE.", show_default=False),
    ] = None,
    *,
    questions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='JSON Lines of your own: {"query": "…", "ids": ["…"]}.'),
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", metavar="", help="Write what is proposed to the store.")] = False,
    reset: Annotated[bool, typer.Option("--reset", metavar="", help="Go back to the default weights.")] = False,
) -> None:
    """Propose fusion weights that suit your own questions better, if the evidence is enough.

    The evidence is the verdicts of a trace that name memories, and the questions of a file. Nothing is changed
    without --apply.
    """
    with cli.store() as store:
        if reset:
            store.tune_to(None)
            return cli.print_json({"reset": True}) if cli.as_json else print("The default weights are in use.")
        file = trace or (Path(store.settings.hermes_trace) if store.settings.hermes_trace else None)
        if file is None and questions is None:
            raise typer.BadParameter("give a trace or --questions; a trace is written to RUNTIME_MEMORY_HERMES_TRACE")
        proposal = store.tune(_judged(file, questions))
        if apply and proposal.fusion:
            store.tune_to(proposal.fusion)
    if cli.as_json:
        return cli.print_json(asdict(proposal) | {"applied": bool(apply and proposal.fusion)})
    _print(cli, proposal, applied=apply)
    return None


def _judged(trace: Path | None, questions: Path | None) -> list[Judged]:
    from runtime_memory.judgements import from_questions, from_trace

    judged: list[Judged] = []
    if trace:
        with trace.expanduser().open("rb") as lines:
            judged += from_trace(lines)
    if questions:
        with questions.expanduser().open("rb") as lines:
            judged += from_questions(lines)
    return judged


def _print(cli: Cli, proposal: Proposal, *, applied: bool) -> None:
    from runtime_memory.cli import tables

    shown = {"Questions": str(proposal.questions)}
    if proposal.current is not None:
        shown["nDCG@10 now"] = f"{proposal.current:.3f}"
        shown["nDCG@10 tuned"] = f"{proposal.tuned:.3f} on questions that the weights were not chosen on"
        shown["Difference"] = f"{proposal.low:+.3f} to {proposal.high:+.3f} (95 %)"
    if proposal.fusion:
        shown |= {name: f"{value:g}" for name, value in asdict(proposal.fusion).items()}
    cli.print(tables.pairs(shown))
    cli.note(proposal.reason[0].upper() + proposal.reason[1:] + ".")
    if proposal.fusion:
        cli.note("The store uses it from now on; to undo: mem tune --reset" if applied else "To use it: --apply")
