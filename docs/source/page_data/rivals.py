"""Rerankers, feedback and expansion beside the fusion of BM25 and dense: means over query sets, and their picture."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from page_data.before_and_after import COLOURS, FAINT, INK, bare

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
    """A row a system, a mark an encoder: the gain in nDCG@10 with its interval, and milliseconds a query."""
    from matplotlib.figure import Figure

    first = next(iter(tables.values()))
    order = sorted((one.system for one in first), key=lambda name: _named(first, name).gain)
    figure = Figure(figsize=(7.6, 0.9 + 0.36 * len(order)), layout="constrained")
    axes = figure.subplots()
    for nth, ((encoder, rows), colour) in enumerate(zip(tables.items(), COLOURS, strict=False)):
        for row, name in enumerate(order):
            one, height = _named(rows, name), row + 0.15 - 0.3 * nth
            sides, label = [[one.gain - one.low], [one.high - one.gain]], encoder if row == 0 else None
            axes.errorbar(one.gain, height, xerr=sides, color=colour, marker="o", markersize=5, capsize=2, label=label)
            at, text = ("axes fraction", "data"), f"{one.ms:.1f} ms"
            axes.annotate(text, (1.02, height), xycoords=at, va="center", color=colour, fontsize=8)
    axes.axvline(0, color=FAINT)
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(-0.6, len(order) - 0.4)
    bare(axes, 8)
    axes.legend(loc="upper left", frameon=False, labelcolor=INK, fontsize=9)
    text = "gain in nDCG@10 over BM25 + dense (min-max) with 95% interval; milliseconds a query with retrieval"
    figure.suptitle(text, color=INK, fontsize=9.5, x=0.01, ha="left")
    return figure


def _named(rows: list[Rival], system: str) -> Rival:
    return next(one for one in rows if one.system == system)
