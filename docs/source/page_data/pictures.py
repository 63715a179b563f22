"""The pictures of the pages of prose that records hold: studies, sweeps of a tuning, gains over first stages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from page_data.before_and_after import FAINT, INK, bare, before_and_after
from page_data.first_stages import ALONE, BEFORE, DEFAULT, GRAPH, LAYOUTS, MIXTURE, PUBLIC, StageTable, stage_table
from page_data.rivals import gains_and_times, rivals
from page_data.study_table import picture
from rnnreranker.base.pages import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rnnreranker.regress.records import Figures

CURVES = {"nDCG@10": "nDCG@10 of validation", "loss": "validation loss"}
SWEPT = ("cranfield", "rnn")  # spec and name of the tuning whose sweeps docs/tune.md shows


def write_pictures(figures: Figures, docs: Path, shown: Collection[str]) -> list[Path]:
    """Draw records of studies, of one tuning and of first stages as SVG files below docs; none without matplotlib.

    shown: the names of the files that pages show; of studies no others are drawn.
    """
    if find_spec("matplotlib") is None:
        return []
    written = []
    for study in figures.records("study"):
        for name, draw in _of_study(study.outcome).items():
            path = docs / picture(study, name)
            if path.name in shown:
                path.parent.mkdir(parents=True, exist_ok=True)
                written.append(save_figure(draw(), path))
    for tuning in figures.records("tuning"):
        if (tuning.spec, tuning.name) == SWEPT:
            (docs / "tune" / "pictures").mkdir(parents=True, exist_ok=True)
            for name, rows in tuning.outcome["sweeps"].items():
                drawn = _sweep(name, rows, tuning.outcome["measure"])
                written.append(save_figure(drawn, docs / "tune" / "pictures" / f"{name}.svg"))
    for name, layout in LAYOUTS.items():
        table = stage_table(figures, name)
        if set(layout.shown) <= set(MARKS) and table.with_methods(layout.shown):
            (docs / "first-stages").mkdir(exist_ok=True)
            larger = stage_table(figures, "mpnet")
            if name == PUBLIC and not (table.complete and larger.complete):
                continue
            drawn = before_and_after({"MiniLM": table, "mpnet": larger}) if name == PUBLIC else _forest(table)
            written.append(save_figure(drawn, docs / "first-stages" / f"{name.replace(' ', '-')}.svg"))
    if tables := rivals(figures):
        written.append(save_figure(gains_and_times(tables), docs / "first-stages" / "rivals.svg"))
    return written


def _of_study(outcome: Mapping[str, Any]) -> dict[str, Callable[[], Figure]]:
    """What can be drawn of a study: the end of the file's name → what draws it."""
    if outcome["arms"] == "candidates":
        return {"": lambda: _counts(outcome["rows"])}
    drawn: dict[str, Callable[[], Figure]] = {}
    if outcome["arms"] == "labels" or "model" in outcome:
        drawn = {name: partial(_curves, outcome["curves"], name, label) for name, label in CURVES.items()}
    if outcome["arms"] == "labels":
        drawn["positives"] = lambda: _positives(outcome["positives"])
    elif "distances" in outcome:
        drawn["distances"] = lambda: _distances(outcome["distances"])
    return drawn


MARKS = {  # method → colour, shape and name of its mark
    MIXTURE: ("#7d8590", "D", "two probes, not smoothed"),
    BEFORE: ("#c9730f", "s", "the default before: two probes"),
    DEFAULT: ("#2f81f7", "o", "the default"),
    GRAPH: ("#1a9c86", "^", "from the graph"),
    ALONE: ("#b65fcf", "v", "from the graph, no query encoded"),
}
APART = {2: 0.34, 3: 0.27}  # rows between the marks of so many methods


def _forest(table: StageTable) -> Figure:
    """Differences in nDCG@10 to the first stage with their intervals: a panel a stage, a row a collection."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    titles = [one.title for one in table.layout.collections]
    shown = table.layout.shown
    stages = table.with_methods(shown)
    wide = min(3, len(stages))
    deep = -(-len(stages) // wide)
    row = 0.27 if len(shown) == 2 else 0.36
    figure = Figure(figsize=(1.6 + 2.9 * wide, 0.9 + deep * (0.9 + row * len(titles))), layout="constrained")
    panels = figure.subplots(deep, wide, sharey=True, squeeze=False).ravel()
    for panel, stage in zip(panels, stages, strict=False):
        for number, method in enumerate(shown):
            colour, shape, label = MARKS[method]
            off = APART.get(len(shown), 0) * (number - (len(shown) - 1) / 2)
            over = table.over(method, stage.id)
            rows = [titles.index(cell.collection) + off for cell in over.cells]
            middle = [cell.difference for cell in over.cells]
            spread = [
                [cell.difference - cell.low for cell in over.cells],
                [cell.high - cell.difference for cell in over.cells],
            ]
            style = {"color": colour, "marker": shape, "markersize": 5, "elinewidth": 1.6, "label": label}
            panel.errorbar(middle, rows, xerr=spread, linestyle="none", **style)
            panel.plot(over.gain, len(titles) + off, color=colour, marker="D", markersize=6, linestyle="none")
        panel.axvline(0, color=INK, linewidth=1)
        panel.axhline(len(titles) - 0.5, color=FAINT, linewidth=0.8)
        panel.grid(axis="x", color=FAINT, linewidth=0.6)
        panel.set_title(stage.title, color=INK, fontsize=10, loc="left", fontweight="bold")
        panel.set_yticks([*range(len(titles) + 1)], [*titles, "mean"])
        panel.set_ylim(len(titles) + 0.5, -0.5)
    for panel in panels:
        bare(panel, 8)
        panel.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:+.2f}".replace("0.", ".") if value else "0")
    for panel in panels[len(stages) :]:
        panel.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper left", ncols=len(shown), frameon=False, labelcolor=INK, fontsize=9
    )
    figure.supxlabel("difference in nDCG@10 to the first stage, 95% interval", color=INK, fontsize=9)
    return figure


def _curves(curves: Mapping[str, Mapping[str, Sequence[float]]], name: str, label: str) -> Figure:
    figure = new_figure()
    axes = figure.subplots()
    for number, (arm, curve) in enumerate(_own(curves).items()):
        axes.plot(curve["step"], curve[name], marker="osv^Dx"[number % 6], markersize=4, label=arm)
    axes.set(xlabel="step", ylabel=label)
    axes.legend(frameon=False, fontsize=8)
    return figure


def _positives(positives: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> Figure:
    figure = new_figure()
    axes = figure.subplots()
    own = _own(positives)
    ranks, _, shares = zip(*next(iter(own.values()))["before"], strict=True)
    axes.plot(ranks, shares, color="0.5", linestyle="--", label="before")
    for number, (arm, when) in enumerate(own.items()):
        ranks, _, shares = zip(*when["after"], strict=True)
        axes.plot(ranks, shares, marker="osv^Dx"[number % 6], markersize=4, label=arm)
    axes.set(xscale="log", yscale="log", xlabel="rank of the positive, from", ylabel="its mean probability")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _counts(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Differences from the base against the number of candidates, with their intervals (001, Figure 5)."""
    figure = new_figure()
    axes = figure.subplots()
    every = [row for row in rows if row["group"] == "all" and row["against"]]
    for number, measure in enumerate(dict.fromkeys(row["measure"] for row in every)):
        of = [row for row in every if row["measure"] == measure]
        counts = [int(row["arm"].removeprefix("N = ")) * 1.03**number for row in of]  # beside each other
        differences = [row["against"]["base"] for row in of]
        middle = [one["difference"] for one in differences]
        spread = [
            [one["difference"] - one["low"] for one in differences],
            [one["high"] - one["difference"] for one in differences],
        ]
        axes.errorbar(counts, middle, yerr=spread, marker="osv"[number % 3], markersize=4, capsize=2, label=measure)
    axes.axhline(0, color="0.5", linewidth=0.8)
    axes.set(xscale="log", xlabel="candidates a training query", ylabel="difference from the encoder as it was")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _distances(distances: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """The shares of pairs of question and sentence by their distance, an arm a line (004, Figure 5)."""
    figure = new_figure()
    panels = figure.subplots(1, 2, sharex=True)
    for panel, pairs, title in zip(panels, ("relevant", "others"), ("relevant pairs", "other pairs"), strict=True):
        for number, (arm, far) in enumerate(distances.items()):
            middles = [(start + 0.5) / len(far[pairs]) for start in range(len(far[pairs]))]
            panel.plot(middles, far[pairs], linestyle=("-", "--", ":", "-.")[number % 4], linewidth=1, label=arm)
        panel.set(xlabel="distance (1 - cosine) / 2", title=title)
    panels[0].set_ylabel("share of the pairs")
    panels[0].legend(frameon=False, fontsize=6)
    return figure


LABELS = {"context": "context N", "lam": "lambda (0 = Jaccard alone, 1 = no Jaccard)", "what": ""}
ENDS = (("value", "low", "high"), ("difference", "difference_low", "difference_high"))  # of a sweep, of ablations


def _sweep(name: str, rows: Sequence[Mapping[str, Any]], measure: str) -> Figure:
    """A sweep of a tuning: the measure, or its difference, against what varies, with intervals; a line each k."""
    import pandas
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes, table = figure.subplots(), pandas.DataFrame(rows)
    axes.spines[["top", "right"]].set_visible(False)
    first = table.columns[0]
    axes.set(xlabel=LABELS.get(first, first), ylabel=measure)
    if name == "grid":
        values = table.pivot(index=first, columns="k", values="value")
        axes.plot(values.index, values, marker=".", label=[f"k {k}" for k in values])
        axes.legend(frameon=False)
    else:
        middle, low, high = (table[end] for end in ENDS[name == "ablations"])
        axes.errorbar(table[first], middle, yerr=[middle - low, high - middle], marker=".", capsize=2)
        axes.tick_params(axis="x", rotation=90 if name == "ablations" else 0)
    return figure


def _own(by_arm: Mapping[str, Any]) -> dict[str, Any]:
    """The arms under their own hyperparameters."""
    return {arm: value for arm, value in by_arm.items() if not arm.endswith(", hparam")}
