"""The picture of the README: what reranking does to the mean of every first stage, with two encoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from page_data.first_stages import DEFAULT, StageTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT = "#7d8590", "#7d859055"  # a grey that is read on white and on black, as are the colours of the marks
COLOURS = ("#2f81f7", "#d9822b")  # of encoders


def bare(axes: Axes, size: float) -> None:
    """Leave the lower edge and labels of a size, on nothing."""
    axes.figure.patch.set_alpha(0)
    axes.patch.set_alpha(0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=size, length=0)


def before_and_after(tables: Mapping[str, StageTable]) -> Figure:
    """A row a first stage, the best last, with a line an encoder: mean nDCG@10 alone and reranked, 95% intervals.

    tables: encoder → its table; all have the same first stages in the same order, the first table orders the rows.
    """
    from matplotlib.figure import Figure

    (main, *_), sets = tables.values(), [cell.collection for cell in next(iter(tables.values())).over(DEFAULT).cells]
    stages = main.layout.stages
    order = sorted(range(len(stages)), key=lambda n: main.over(DEFAULT, stages[n].id).base)
    figure = Figure(figsize=(7.6, 0.9 + 0.5 * len(stages)), layout="constrained")
    axes = figure.subplots()
    for nth, (name, table) in enumerate(tables.items()):
        colour, shift = COLOURS[nth], 0.17 - 0.34 * nth / (len(tables) - 1)
        for row, n in enumerate(order):
            over, height = table.over(DEFAULT, table.layout.stages[n].id).on(sets), row + shift
            low, high = over.bounds
            after, sides = over.base + over.gain, [[over.gain - low], [high - over.gain]]
            label = f"+ rNN, {name}" if row == 0 else None
            axes.plot([over.base, after], [height, height], color=colour, linewidth=2)
            axes.errorbar(after, height, xerr=sides, color=colour, marker="o", markersize=6, capsize=2, label=label)
            axes.plot(over.base, height, color=INK, marker="o", markersize=6)
            text = f"{over.gain:+.3f} [{low:+.3f}, {high:+.3f}]".replace("0.", ".")
            axes.annotate(
                text, (1.02, height), xycoords=("axes fraction", "data"), va="center", color=colour, fontsize=8
            )
    axes.set_yticks(range(len(stages)), [stages[n].title for n in order])
    axes.set_ylim(-0.6, len(stages) - 0.4)
    bare(axes, 9)
    axes.grid(axis="x", color=FAINT, linewidth=0.6)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.2f}".replace("0.", "."))
    axes.legend(loc="lower right", frameon=False, labelcolor=INK, fontsize=9)
    text = (
        f"mean nDCG@10 over {len(set(sets))} public query sets: the first stage (grey), + rNN, gain with 95% interval"
    )
    figure.suptitle(text, color=INK, fontsize=9.5, x=0.01, ha="left")
    return figure
