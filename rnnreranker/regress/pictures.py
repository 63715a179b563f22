"""The pictures of the pages of prose that records hold: curves of studies, sweeps of a tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.labels.plots import save_figure
from rnnreranker.regress.study_table import picture
from rnnreranker.train.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rnnreranker.regress.records import Figures

CURVES = {"nDCG@10": "nDCG@10 of validation", "loss": "validation loss"}
SWEPT = ("cranfield", "rnn")  # spec and name of the tuning whose sweeps docs/tune.md shows


def write_pictures(figures: Figures, docs: Path) -> list[Path]:
    """Draw the records of studies and of one tuning as SVG files below docs; none where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        return []
    written = []
    for study in figures.records("study"):
        found = study.outcome
        (docs / picture(study)).parent.mkdir(parents=True, exist_ok=True)
        if found["arms"] == "labels":
            for name, label in CURVES.items():
                written.append(save_figure(_curves(found["curves"], name, label), docs / picture(study, name)))
            written.append(save_figure(_positives(found["positives"]), docs / picture(study, "positives")))
        elif found["arms"] == "candidates":
            written.append(save_figure(_counts(found["rows"]), docs / picture(study)))
    for tuning in figures.records("tuning"):
        if (tuning.spec, tuning.name) == SWEPT:
            from rnnreranker.tune.plots import write_plots

            written += write_plots(docs / "tune" / "pictures", tuning.outcome["sweeps"], tuning.outcome["measure"])
    return written


def _curves(found: Mapping[str, Mapping[str, Sequence[float]]], name: str, label: str) -> Figure:
    figure = new_figure()
    axes = figure.subplots()
    for place, (arm, curve) in enumerate(_own(found).items()):
        axes.plot(curve["step"], curve[name], marker="osv^Dx"[place % 6], markersize=4, label=arm)
    axes.set(xlabel="step", ylabel=label)
    axes.legend(frameon=False, fontsize=8)
    return figure


def _positives(found: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> Figure:
    figure = new_figure()
    axes = figure.subplots()
    own = _own(found)
    ranks, _, shares = zip(*next(iter(own.values()))["before"], strict=True)
    axes.plot(ranks, shares, color="0.5", linestyle="--", label="before")
    for place, (arm, when) in enumerate(own.items()):
        ranks, _, shares = zip(*when["after"], strict=True)
        axes.plot(ranks, shares, marker="osv^Dx"[place % 6], markersize=4, label=arm)
    axes.set(xscale="log", yscale="log", xlabel="rank of the positive, from", ylabel="its mean probability")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _counts(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Differences from the base against the number of candidates, with their intervals (001, Figure 5)."""
    figure = new_figure()
    axes = figure.subplots()
    every = [row for row in rows if row["group"] == "all" and row["against"]]
    for place, measure in enumerate(dict.fromkeys(row["measure"] for row in every)):
        of = [row for row in every if row["measure"] == measure]
        counts = [int(row["arm"].removeprefix("N = ")) * 1.03**place for row in of]  # beside each other
        found = [row["against"]["base"] for row in of]
        middle = [one["difference"] for one in found]
        spread = [[one["difference"] - one["low"] for one in found], [one["high"] - one["difference"] for one in found]]
        axes.errorbar(counts, middle, yerr=spread, marker="osv"[place % 3], markersize=4, capsize=2, label=measure)
    axes.axhline(0, color="0.5", linewidth=0.8)
    axes.set(xscale="log", xlabel="candidates a training query", ylabel="difference from the encoder as it was")
    axes.legend(frameon=False, fontsize=8)
    return figure


def _own(found: Mapping[str, Any]) -> dict[str, Any]:
    """The arms under their own hyperparameters."""
    return {arm: value for arm, value in found.items() if not arm.endswith(", hparam")}
