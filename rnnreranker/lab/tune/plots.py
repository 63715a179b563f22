"""SVG figures of sweeps and of the course of a search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import require
from rnnreranker.base.figures import new_axes, save_figure
from rnnreranker.lab.tune.sweeps import WHOLE, Rows
from rnnreranker.lab.tune.trials import Search

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INCHES = (6.4, 4.0)
LINE, BAND, SECOND = "#1f5fa8", "#1f5fa833", "#b4552d"
LABELS = {"context": "context N", "lam": "lambda (0 = Jaccard alone, 1 = no Jaccard)"}


def write_plots(
    folder: str | Path,
    sweeps: dict[str, Rows],
    measure: str,
    study: Search | None = None,
    searched: str | None = None,
) -> list[Path]:
    """Draw each sweep, and the course of a study as trials.svg, into a folder; returns the files.

    Raises:
        InputError: the folder is not writable; MissingDependencyError: matplotlib is missing.
    """
    require("matplotlib", "plots", "'rnnreranker[plots]'")
    import pandas

    drawn = {"context": _line, "lambda": _line, "grid": _grid, "ablations": _ablations}
    Path(folder).mkdir(parents=True, exist_ok=True)
    tables = {name: pandas.DataFrame(rows) for name, rows in sweeps.items()}
    if study is not None:
        tables["trials"] = pandas.DataFrame(
            {"trial": range(len(study.history)), "value": study.history}, dtype=float
        ).dropna()
    written = []
    for name, table in tables.items():
        figure, axes = new_axes(*INCHES)
        if name == "trials":
            axes.plot(table["trial"], table["value"], ".", color=LINE, label="a trial")
            axes.plot(table["trial"], table["value"].cummax(), color=SECOND, label="best so far")
            axes.legend(frameon=False, loc="lower right", fontsize=9)
            label = searched or f"{measure} on the topics searched"
            axes.set(xlabel="trial (those ended early left out)", ylabel=label)
        else:
            drawn[name](axes, table, measure)
        written.append(save_figure(figure, Path(folder) / f"{name}.svg"))
    return written


def _line(axes: Axes, table: Any, measure: str) -> None:
    """Means with intervals by the first column, with the band of folds or the processor time."""
    swept, xs = table.columns[0], table.iloc[:, 0]
    if "fold_low" in table:
        about: dict[str, Any] = {"color": "#00000014", "linewidth": 0, "label": "means of five parts of the topics"}
        axes.fill_between(xs, table["fold_low"], table["fold_high"], **about)
    axes.fill_between(xs, table["low"], table["high"], color=BAND, linewidth=0, label="95% interval over topics")
    axes.plot(xs, table["value"], color=LINE, marker=".", label="mean")
    axes.set(xlabel=LABELS[swept], ylabel=measure)
    if "milliseconds" in table:
        dashed: dict[str, Any] = {"color": SECOND, "linestyle": "--", "marker": "s", "markersize": 4}
        axes.plot([], [], label="processor time (right)", **dashed)
        axes.set_xscale("log")
        axes.set_xticks(xs, [str(size) for size in xs], rotation=45)
        axes.minorticks_off()
        cost = axes.twinx()
        cost.plot(xs, table["milliseconds"], **dashed)
        cost.set_ylim(bottom=0)
        cost.set_ylabel("processor time (ms a query)", color=SECOND)
    axes.legend(frameon=False, loc="lower center", fontsize=9)


def _grid(axes: Axes, table: Any, measure: str) -> None:
    values = table.pivot(index="k", columns="context", values="value")
    middle, best = (values.min().min() + values.max().max()) / 2, values.max().max()
    for row, column in zip(*values.notna().to_numpy().nonzero(), strict=True):  # not by colours alone
        value = values.iloc[row, column]
        weight, color = "bold" if value == best else "normal", "w" if value < middle else "k"
        text = f"{value:.3f}".removeprefix("0")
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color=color, weight=weight)
    image = axes.imshow(values.to_numpy(), origin="lower", aspect="auto", cmap="viridis")
    axes.set(xlabel="context N", ylabel="neighbours k (empty: k not below N)")
    axes.set_xticks(range(values.shape[1]), [str(size) for size in values.columns], rotation=45)
    axes.set_yticks(range(values.shape[0]), [str(k) for k in values.index])
    axes.figure.colorbar(image, ax=axes, label=measure)


def _ablations(axes: Axes, table: Any, measure: str) -> None:
    rows = table[table["what"] != WHOLE].iloc[::-1]
    reach = [rows["difference"] - rows["difference_low"], rows["difference_high"] - rows["difference"]]
    ends: Any = [end.clip(lower=0) for end in reach]
    axes.errorbar(rows["difference"], range(len(rows)), xerr=ends, fmt="o", color=LINE, capsize=3)
    axes.axvline(0, color="#888888", linewidth=0.8)
    axes.set_yticks(range(len(rows)), rows["what"].tolist())
    axes.set_xlabel(f"{measure}: difference from all parts, 95% interval")
