"""The benchmarks' one entry: ``python -m benchmarks``."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from benchmarks import churn, evaluate, fusion, gate, importing, latency, object_store, quality
from benchmarks.learning import experiment
from benchmarks.peers import compare
from runtime_memory.errors import RuntimeMemoryError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False, rich_markup_mode=None)


@app.callback()
def _main() -> None:
    """Measure Runtime Memory; results go to benchmarks/results as JSON, Markdown and plots."""


app.command("quality")(quality.run)
app.command("fusion")(fusion.run)
app.command("gate")(gate.run)
app.command("calibrate")(gate.calibration)
app.command("evaluate")(evaluate.run)
app.command("latency")(latency.run)
app.command("import")(importing.run)
app.command("churn")(churn.run)
app.command("object-store")(object_store.run)
app.command("learning")(experiment.run)
app.command("peers")(compare.run)


def main() -> None:
    """Run a command; what is wrong with its input is said in a line."""
    try:
        app()
    except RuntimeMemoryError as error:
        Console(stderr=True).print(f"Error: {error}", style="red", markup=False)
        sys.exit(1)


if __name__ == "__main__":
    main()
