"""Pictures of what was measured: small PNG files, drawn without a display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

__all__ = ["Heat", "Lines", "curves", "heat_maps"]

Floats = NDArray[np.float64]
_DPI = 80


@dataclass(frozen=True)
class Heat:
    """A measure over two settings: ``values`` has a row for each of ``rows``; ``marked`` is the default's place.

    ``real`` tells which cells differ from the default by more than noise.
    """

    title: str
    rows: Sequence[object]
    columns: Sequence[object]
    row_name: str
    column_name: str
    values: Floats
    marked: tuple[int, int] | None
    real: NDArray[np.bool_]


@dataclass(frozen=True)
class Lines:
    """Curves by name, each of points (x, y), with marked points of theirs."""

    title: str
    x_name: str
    y_name: str
    curves: Mapping[str, Sequence[tuple[float, float]]]
    marked: Mapping[str, tuple[float, float]]
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None


def heat_maps(title: str, maps: Sequence[Heat], path: Path) -> None:
    """Draw heat maps side by side in one file; the default is framed, and a dot marks what differs from it for real."""
    figure, axes = _figure(len(maps))
    low = min(float(each.values.min()) for each in maps)
    high = max(float(each.values.max()) for each in maps)
    for each, axis in zip(maps, axes, strict=True):
        shown = axis.imshow(each.values, cmap="viridis", vmin=low, vmax=high, aspect="auto")
        axis.set_xticks(range(len(each.columns)), [str(name) for name in each.columns])
        axis.set_yticks(range(len(each.rows)), [str(name) for name in each.rows])
        axis.set(title=each.title, xlabel=each.column_name, ylabel=each.row_name)
        for (row, column), value in np.ndenumerate(each.values):
            text = f"{value:.3f}".removeprefix("0") + ("•" if each.real[row, column] else "")
            dark = value < (low + high) / 2
            axis.text(column, row, text, ha="center", va="center", fontsize=8, color="white" if dark else "black")
        if each.marked:
            row, column = each.marked
            axis.add_patch(_frame(row, column))
        figure.colorbar(shown, ax=axis, fraction=0.05)
    figure.suptitle(title)
    _save(figure, path)


def curves(title: str, panels: Sequence[Lines], path: Path) -> None:
    """Draw curves side by side in one file."""
    figure, axes = _figure(len(panels))
    for each, axis in zip(panels, axes, strict=True):
        for number, (name, points) in enumerate(each.curves.items()):
            x, y = zip(*points, strict=True)
            axis.plot(x, y, label=name, color=f"C{number}", linewidth=1.5)
            if name in each.marked:
                axis.plot(*each.marked[name], "o", color=f"C{number}")
        axis.set(title=each.title, xlabel=each.x_name, ylabel=each.y_name)
        axis.set_xlim(each.x_limits)
        axis.set_ylim(each.y_limits)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.suptitle(title)
    _save(figure, path)


def _figure(panels: int) -> tuple[Figure, Sequence[Axes]]:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, panels, figsize=(5.4 * panels, 4.2), squeeze=False, layout="constrained")
    return figure, list(axes[0])


def _frame(row: int, column: int) -> Rectangle:
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="red", linewidth=2)


def _save(figure: Figure, path: Path) -> None:
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=_DPI, metadata={"Software": None})
    pyplot.close(figure)
