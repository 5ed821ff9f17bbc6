"""Commands that find memories and explain why: search, why."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime_memory import serialize
from runtime_memory.cli.frame import Category, Cli, Project, Tags, command
from runtime_memory.cli.memories import chosen_project, shown_ids
from runtime_memory.models import SearchMode

__all__ = ["register"]

Query = Annotated[list[str], typer.Argument(metavar="QUERY", help="A question, or some words.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    command(app, examples=("mem search rounding money", "mem search 'deploy to staging' -p shop -l 3 --json"))(search)
    command(app, examples=("mem why 'how do I deploy to staging?' -p shop",))(why)


def search(
    cli: Cli,
    query: Query,
    *,
    project: Project = None,
    category: Category = None,
    tags: Tags = None,
    limit: Annotated[int, typer.Option("--limit", "-l", min=1, metavar="N", help="How many at most.")] = 10,
    every: Annotated[bool, typer.Option("--all", "-a", metavar="", help="Also archived and superseded ones.")] = False,
) -> None:
    """Find memories by words and by meaning, best first."""
    with cli.store() as store:
        results = store.search(
            " ".join(query),
            limit=limit,
            project=chosen_project(project, store.settings),
            category=category,
            tags=tags or (),
            include_archived=every,
        )
        if cli.as_json:
            return cli.print_json(serialize.results_json(results))
        if not results:
            return cli.note("Nothing was found. To see what there is: mem list")
        from runtime_memory.cli import tables

        memories = [result.memory for result in results]
        scores = {result.memory.id: result.score for result in results}
        return cli.print(tables.listing(memories, shown_ids(store, memories), cli.console, scores=scores))


def why(
    cli: Cli,
    query: Query,
    *,
    project: Project = None,
    limit: Annotated[int | None, typer.Option("--limit", "-l", min=1, metavar="N", help="How many at most.")] = None,
) -> None:
    """Show what an agent would be told for a message, what is left out, and why.

    It changes nothing: text and vector are the ranks in each index, cover the share of the query's telling words that
    a memory holds, relev the evidence that is held against the threshold, fused both ranks in one.
    """
    with cli.store() as store:
        explanation = store.explain(
            " ".join(query),
            limit=limit or store.settings.recall_limit,
            project=chosen_project(project, store.settings),
        )
        ids = {} if cli.as_json else shown_ids(store, [result.memory for result in explanation.results])
    if cli.as_json:
        return cli.print_json(serialize.explanation_json(explanation))
    from runtime_memory.cli import tables

    if explanation.mode is SearchMode.NONE:
        return cli.note("Nothing is recalled for small talk.")
    hint = "" if explanation.mode is SearchMode.HYBRID else "; mem stats tells why"
    cli.print(
        tables.pairs(
            {
                "Terms": ", ".join(explanation.terms) or "none but common words",
                "Search": tables.MODES[explanation.mode] + hint,
                "Threshold": f"{explanation.threshold:.2f}, for the relevance of the best memory",
            }
        )
    )
    if explanation.results:
        return cli.print(*tables.reasons(explanation, ids, cli.console))
    return cli.note("Nothing was found. To see what there is: mem list")
