"""The picture of the README: what reranking does to the mean of every first stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from page_data.first_stages import DEFAULT, StageTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, FAINT = "#7d8590", "#7d859055"  # a grey that is read on white and on black, as are the colours of the marks
BLUE = "#2f81f7"


def before_and_after(table: StageTable) -> Figure:
    """A row a first stage, the best last: its mean nDCG@10 over the collections alone and reranked, and the gain with
    its 95% interval."""
    from matplotlib.figure import Figure

    stages = sorted(table.layout.stages, key=lambda stage: table.over(DEFAULT, stage.id).base)
    figure = Figure(figsize=(7.6, 0.75 + 0.4 * len(stages)), layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.subplots()
    axes.patch.set_alpha(0)
    for row, stage in enumerate(stages):
        over = table.over(DEFAULT, stage.id)
        after = over.base + over.gain
        low, high = over.bounds
        axes.annotate("", (after, row), (over.base, row), arrowprops={"arrowstyle": "-", "color": BLUE, "lw": 2})
        axes.errorbar(
            after, row, xerr=[[over.gain - low], [high - over.gain]], color=BLUE, marker="o", markersize=7, capsize=3
        )
        axes.plot(over.base, row, color=INK, marker="o", markersize=7)
        text = f"{over.gain:+.3f} [{low:+.3f}, {high:+.3f}]".replace("0.", ".")
        axes.annotate(text, (1.02, row), xycoords=("axes fraction", "data"), va="center", color=INK, fontsize=9)
    axes.set_yticks(range(len(stages)), [stage.title for stage in stages])
    axes.set_ylim(-0.6, len(stages) - 0.4)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    axes.grid(axis="x", color=FAINT, linewidth=0.6)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.2f}".replace("0.", "."))
    sets = f"{len(table.layout.collections)} public query sets"
    text = f"mean nDCG@10 over {sets}: the first stage (grey), + rNN (blue), gain with 95% interval"
    figure.suptitle(text, color=INK, fontsize=9.5, x=0.01, ha="left")
    return figure
