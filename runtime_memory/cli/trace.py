"""Commands on the trace: trace report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runtime_memory.cli.frame import Cli, command

if TYPE_CHECKING:
    from rich.console import RenderableType

    from runtime_memory.trace_report import TraceReport

__all__ = ["register"]

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A trace: what RUNTIME_MEMORY_HERMES_TRACE names.", show_default=False),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(no_args_is_help=True, help="Look at a trace: report.")
    command(group, store=False, examples=("mem trace report ~/trace.jsonl", "mem trace report trace.jsonl --json"))(
        report
    )
    app.add_typer(group, name="trace")


def report(cli: Cli, file: File) -> None:
    """Sum up a trace: what was recalled, whether it helped, and what it cost.

    The hit rate is the share of the verdicts that say it worked, a partial one counted as half. Named verdicts name
    the memory; the others fall on all that a turn recalled.
    """
    from runtime_memory.trace_report import summarize

    with file.expanduser().open("rb") as lines:
        found = summarize(lines)
    if cli.as_json:
        return cli.print_json(found.to_json())
    if found.unreadable:
        cli.note(f"Lines that are no record, and were left out: {found.unreadable}")
    if found.first is None:
        return cli.note(f"{file} holds no record.")
    return cli.print(*_shown(found))


def _shown(found: TraceReport) -> Iterator[RenderableType]:
    from runtime_memory.cli import tables

    yield tables.pairs(_sums(found))
    categories = [
        (name, each.recalled, each.worked, each.failed, each.partial, each.named, each.unattributed, each.hit_rate)
        for name, each in found.categories.items()
    ]
    if categories:
        yield ""
        yield _table("Category Recalled Worked Failed Partial Named Unattributed Hit-rate", categories)
    if found.most_used:
        yield ""
        yield _table(
            "Most-used Category Recalled Worked Failed Partial",
            [
                (id_, use.category, use.recalled, *(use.outcomes[each] for each in ("worked", "failed", "partial")))
                for id_, use in found.most_used
            ],
        )


def _sums(found: TraceReport) -> dict[str, str]:
    from runtime_memory.cli import tables

    period = f"{tables.local(found.first)} to {tables.local(found.last)}" if found.first and found.last else ""
    per_recall = f", {found.retrieved / found.answered:.1f} memories each" if found.answered else ""
    share = f"{found.answered / found.recalls:.0%}" if found.recalls else ""
    times = [f"p{percent} {time:.0f} ms" for percent in (50, 95) if (time := found.latency(percent)) is not None]
    return {
        "From": f"{period}, sessions: {len(found.sessions)}",
        "Recalls": f"{found.recalls}, of which {found.answered} answered ({share}{per_recall})"
        if found.recalls
        else "",
        "Search": _counts(found.modes),
        "Latency": ", ".join(times),
        "Injected": f"{found.characters:,} characters" if found.characters is not None else "",
        "Written": _counts(found.writes),
        "Errors": _counts(found.errors),
    }


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _table(titles: str, rows: Sequence[Sequence[str | float | None]]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    from runtime_memory.cli import tables

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for title, value in zip(titles.split(), rows[0], strict=True):
        table.add_column(title.replace("-", " "), justify="left" if isinstance(value, str) else "right")
    for row in rows:
        table.add_row(*(Text(tables.plain(_cell(value))) for value in row))
    return table


def _cell(value: str | float | None) -> str:
    return "-" if value is None else f"{value:.0%}" if isinstance(value, float) else str(value)
