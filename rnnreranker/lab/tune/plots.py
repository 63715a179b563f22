"""Pictures of sweeps and studies, one SVG file each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import require
from rnnreranker.base.figures import new_axes, save_figure
from rnnreranker.lab.tune.sweeps import WHOLE, Rows
from rnnreranker.lab.tune.trials import Search

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INCHES = (6.4, 4.0)
LINE, BAND, SECOND = "#1f5fa8", "#1f5fa833", "#b4552d"


def write_plots(
    folder: str | Path,
    sweeps: dict[str, Rows],
    measure: str,
    study: Search[Any] | None = None,
    searched: str | None = None,
) -> list[Path]:
    """Draw every sweep, and the course of a study as trials.svg, into a folder that is made; the files written.

    searched: what the study maximised; None = the measure on the topics searched.

    Raises:
        InputError: the folder cannot be written; MissingDependencyError: without matplotlib.
    """
    require("matplotlib", "plots", "'rnnreranker[plots]'")
    drawn = {"context": _context, "lambda": _lambda, "grid": _grid, "ablations": _ablations}
    Path(folder).mkdir(parents=True, exist_ok=True)
    written = []
    for name, rows in sweeps.items():
        figure, axes = new_axes(*INCHES)
        drawn[name](axes, rows, measure)
        written.append(save_figure(figure, Path(folder) / f"{name}.svg"))
    if study is not None:
        figure, axes = new_axes(*INCHES)
        _history(axes, study, searched or f"{measure} on the topics searched")
        written.append(save_figure(figure, Path(folder) / "trials.svg"))
    return written


def _context(axes: Axes, rows: Rows, measure: str) -> None:
    sizes = [row["context"] for row in rows]
    _banded(axes, sizes, rows)
    axes.plot([], [], color=SECOND, linestyle="--", marker="s", markersize=4, label="processor time (right)")
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    axes.set(xscale="log", xlabel="context N", ylabel=measure)
    axes.set_xticks(sizes, [str(size) for size in sizes], rotation=45)
    axes.minorticks_off()
    cost = axes.twinx()
    cost.plot(sizes, [row["milliseconds"] for row in rows], color=SECOND, linestyle="--", marker="s", markersize=4)
    cost.set_ylim(bottom=0)
    cost.set_ylabel("processor time (ms a query)", color=SECOND)
    cost.spines[["top"]].set_visible(False)


def _lambda(axes: Axes, rows: Rows, measure: str) -> None:
    values = [row["lam"] for row in rows]
    low, high = ([row[f"fold_{end}"] for row in rows] for end in ("low", "high"))
    axes.fill_between(values, low, high, color="#00000014", linewidth=0, label="means of five parts of the topics")
    _banded(axes, values, rows)
    best = max(rows, key=lambda row: row["value"])
    axes.annotate(f"{best['lam']:g}", (best["lam"], best["value"]), (0, 7), textcoords="offset points", ha="center")
    axes.legend(frameon=False, loc="lower center", fontsize=9)
    axes.set(xlabel="lambda (0 = Jaccard alone, 1 = no Jaccard)", ylabel=measure)


def _grid(axes: Axes, rows: Rows, measure: str) -> None:
    sizes, ks = sorted({row["context"] for row in rows}), sorted({row["k"] for row in rows})
    table = np.full((len(ks), len(sizes)), np.nan)
    for row in rows:
        table[ks.index(row["k"]), sizes.index(row["context"])] = row["value"]
    for i, j in zip(*np.nonzero(~np.isnan(table)), strict=True):  # figures, so that nothing hangs on the colours
        dark = table[i, j] < (np.nanmin(table) + np.nanmax(table)) / 2
        weight = "bold" if table[i, j] == np.nanmax(table) else "normal"
        text = f"{table[i, j]:.3f}".removeprefix("0")
        axes.text(j, i, text, ha="center", va="center", fontsize=8, color="w" if dark else "k", weight=weight)
    image = axes.imshow(table, origin="lower", aspect="auto", cmap="viridis")
    axes.set(xlabel="context N", ylabel="neighbours k (empty: k not below N)")
    axes.set(xticks=range(len(sizes)), yticks=range(len(ks)))
    axes.set_xticklabels([str(size) for size in sizes], rotation=45)
    axes.set_yticklabels([str(k) for k in ks])
    axes.figure.colorbar(image, ax=axes, label=measure)


def _ablations(axes: Axes, rows: Rows, measure: str) -> None:
    rows = [row for row in rows if row["what"] != WHOLE][::-1]
    heights = np.arange(len(rows))
    middle = np.array([row["difference"] for row in rows])
    low, high = (np.array([row[f"difference_{end}"] for row in rows]) for end in ("low", "high"))
    axes.errorbar(middle, heights, xerr=np.maximum([middle - low, high - middle], 0), fmt="o", color=LINE, capsize=3)
    axes.axvline(0, color="#888888", linewidth=0.8)
    axes.set(yticks=heights, xlabel=f"{measure}: difference from all parts, 95% interval")
    axes.set_yticklabels([row["what"] for row in rows])


def _history(axes: Axes, study: Search[Any], searched: str) -> None:
    done = [(number, value) for number, value in enumerate(study.history) if value is not None]
    numbers, values = [number for number, _ in done], [value for _, value in done]
    axes.plot(numbers, values, ".", color=LINE, label="a trial")
    axes.plot(numbers, np.maximum.accumulate(values), color=SECOND, label="best so far")
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    axes.set(xlabel="trial (those ended early left out)", ylabel=searched)


def _banded(axes: Axes, xs: list[Any], rows: Rows) -> None:
    low, high = ([row[end] for row in rows] for end in ("low", "high"))
    axes.fill_between(xs, low, high, color=BAND, linewidth=0, label="95% interval over topics")
    axes.plot(xs, [row["value"] for row in rows], color=LINE, marker=".", label="mean")
