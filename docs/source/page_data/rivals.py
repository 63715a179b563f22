"""Rerankers, feedback and expansion beside the fusion of BM25 and dense: means over query sets, and their picture."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from page_data.before_and_after import COLOURS, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rnnreranker.regress.records import Figures

MEASURE = "nDCG@10"


class Rival(NamedTuple):
    """A system with one encoder, in the mean over query sets.

    value: nDCG@10; gain: over the fusion, with its 95% interval low to high of independent sets; first: the gain in
    RR@10; ms: a query; below: on how many sets nDCG@10 is below the fusion's.
    """

    system: str
    value: float
    gain: float
    low: float
    high: float
    first: float
    ms: float
    below: int


def rivals(figures: Figures) -> dict[str, list[Rival]]:
    """Encoder → its systems, the fusion first; {} without records."""
    outcomes = [one.outcome for one in figures.records("benchmark") if one.name.startswith("rivals, ")]
    tables: dict[str, list[Rival]] = {}
    for encoder in sorted({one["encoder"] for one in outcomes}):
        rows = [row for one in outcomes if one["encoder"] == encoder for row in one["rows"]]
        systems = dict.fromkeys(row["system"] for row in rows)
        tables[encoder] = [_mean([row for row in rows if row["system"] == name]) for name in systems]
    return tables


def _mean(rows: list[dict]) -> Rival:
    none = dict.fromkeys(("difference", "low", "high"), 0.0)
    own = [row.get("against", {}).get(MEASURE, none) for row in rows]
    gain = fmean(one["difference"] for one in own)
    half = math.sqrt(sum((one["high"] - one["low"]) ** 2 for one in own)) / (2 * len(own))
    first = fmean(row.get("against", {}).get("RR@10", none)["difference"] for row in rows)
    value, ms = fmean(row[MEASURE] for row in rows), fmean(row["ms"] for row in rows)
    below = sum(one["difference"] < 0 for one in own)
    return Rival(rows[0]["system"], value, gain, gain - half, gain + half, first, ms, below)


def gains_and_times(tables: dict[str, list[Rival]]) -> Figure:
    """A point a system and encoder: milliseconds a query, and the gain in nDCG@10 with its interval."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.subplots()
    axes.patch.set_alpha(0)
    for (encoder, rows), colour, side in zip(tables.items(), COLOURS, (-1, 1), strict=False):
        for nth, one in enumerate(rows):
            sides = [[one.gain - one.low], [one.high - one.gain]]
            label = encoder if nth == 0 else None
            axes.errorbar(one.ms, one.gain, yerr=sides, color=colour, marker="o", markersize=5, capsize=2, label=label)
            style = {"xytext": (5 * side, 3), "textcoords": "offset points", "ha": "left" if side > 0 else "right"}
            axes.annotate(one.system, (one.ms, one.gain), color=colour, fontsize=7, **style)
    axes.axhline(0, color=FAINT)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds a query, retrieval included", color=INK, fontsize=9)
    axes.set_ylabel("gain in nDCG@10", color=INK, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8)
    axes.legend(frameon=False, labelcolor=INK, fontsize=9)
    return figure
