"""Pictures of labels: scores by rank for many queries and one, label mass by rank, before and after normalising.

What Figures 12 and 13 of paper 000 show, for one's own data.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import require
from rnnreranker.base.files import write_atomically
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.soft import SoftLabels
from rnnreranker.labels.targets import normalized

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUERIES = 200  # drawn as lines
BANDS = (5, 25, 50, 75, 95)  # percentiles


def write_plots(labels: SoftLabels, folder: str | Path) -> list[Path]:
    """The SVG files written into `folder`, which is made; MissingDependencyError: without matplotlib."""
    require("matplotlib", "--plots", "'rnnreranker[plots]'")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    scores, mass = by_rank(labels)
    pictures = {
        "scores-by-rank": _many(scores),
        "scores-of-one-query": _one(labels),
        "mass-by-rank": _mass(mass),
        "normalization": _normalization(scores, labels),
    }
    return [save_figure(figure, folder / f"{name}.svg", dpi=150) for name, figure in pictures.items()]


def save_figure(figure: Figure, path: Path, dpi: int = 100) -> Path:
    """Write a figure as SVG, equal figures with equal bytes; the path. `dpi` is of images in it.

    Texts stay texts and coordinates have two decimals, which makes the file a quarter as large.
    """
    import matplotlib

    content = io.StringIO()
    style: Any = {"svg.hashsalt": path.name, "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"]}
    with matplotlib.rc_context(style):
        figure.savefig(content, format="svg", dpi=dpi, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    with write_atomically(path) as stream:
        stream.write(_shortened(content.getvalue()).encode())
    return path


def _shortened(svg: str) -> str:
    """An SVG without indentation, its attributes with two decimals, marks of one style in a group of that style."""
    attribute, number = re.compile(r'="[^"]*"'), re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
    alike = re.compile(r'(<use [^>]* (style="[^"]*")/>\n)(?:<use [^>]* \2/>\n)+')

    def shorter(match: re.Match[str]) -> str:
        return number.sub(lambda one: f"{round(float(one[0]), 2):g}", " ".join(match[0].split()))

    def grouped(match: re.Match[str]) -> str:
        return f"<g {match[2]}>\n{match[0].replace(f' {match[2]}', '')}</g>\n"

    return alike.sub(grouped, re.sub(r"\n\s+", "\n", attribute.sub(shorter, svg)))


def by_rank(labels: SoftLabels) -> tuple[np.ndarray, np.ndarray]:
    """Scores and targets in descending order, (Q, N) float64 each; NaN where a query has no such rank.

    Only candidates that took part are counted; rank r stands in column r - 1.
    """
    ordered = []
    for one in labels:
        there = np.isfinite(one.scores)
        ordered.append((-np.sort(-one.scores[there]), -np.sort(-one.targets[there])))
    widest = max((len(scores) for scores, _ in ordered), default=0)
    out = np.full((2, len(ordered), widest), np.nan)
    for row, pair in enumerate(ordered):
        for which, values in enumerate(pair):
            out[which, row, : len(values)] = values
    return out[0], out[1]


def new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of that many inches with one pair of axes, without a frame above and to the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _axes(title: str, y: str, x: str = "rank by score") -> tuple[Figure, Axes]:
    figure, axes = new_axes(7, 4.2)
    axes.set(title=title, xlabel=x, ylabel=y)
    return figure, axes


def _bands(axes: Any, values: np.ndarray, colour: str, name: str, line: str = "-") -> None:
    """Median and percentile bands by rank."""
    ranks = np.arange(1, values.shape[1] + 1)
    low, lower, middle, upper, high = np.nanpercentile(values, BANDS, axis=0)
    axes.fill_between(ranks, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.fill_between(ranks, lower, upper, color=colour, alpha=0.3, linewidth=0)
    axes.plot(ranks, middle, line, color=colour, label=f"{name}: median; bands: half and nine tenths of queries")


def _many(scores: np.ndarray) -> Figure:
    figure, axes = _axes(f"Scores by rank, {len(scores)} queries", "score")
    ranks = np.arange(1, scores.shape[1] + 1)
    for row in scores[:QUERIES]:
        axes.plot(ranks, row, color="#888888", alpha=0.15, linewidth=0.6, rasterized=True)
    _bands(axes, scores, "#0060a0", "score")
    axes.legend(frameon=False)
    return figure


def _one(labels: SoftLabels) -> Figure:
    first = labels.qids[0]
    one = labels[first]
    figure, axes = _axes(f"Scores and targets of query {first}", "score")
    there = np.flatnonzero(np.isfinite(one.scores))
    order = there[np.argsort(-one.scores[there], kind="stable")]
    ranks = np.arange(1, len(order) + 1)
    axes.plot(ranks, one.scores[order], color="#0060a0", marker=".", label="score")
    known = one.positive[order]
    axes.scatter(
        ranks[known], one.scores[order][known], s=45, marker="D", color="#c04000", edgecolor="k", linewidth=0.6,
        zorder=3, label="judged relevant",
    )  # fmt: skip
    right = axes.twinx()
    bars = right.bar(ranks, one.targets[order], color="#0060a0", alpha=0.25, label="target (right)")
    right.set_ylabel("target probability")
    right.spines[["top"]].set_visible(False)
    axes.legend(handles=[*axes.get_legend_handles_labels()[0], bars], frameon=False)
    return figure


def _mass(mass: np.ndarray) -> Figure:
    figure, axes = _axes(
        f"Target probability by rank, {len(mass)} queries", "probability", "rank by target probability"
    )
    ranks = np.arange(1, mass.shape[1] + 1)
    axes.plot(ranks, np.nanmean(mass, axis=0), color="#0060a0", label="of that rank, mean over queries")
    axes.plot(
        ranks,
        np.nanmean(np.cumsum(mass, axis=1), axis=0),
        color="#c04000",
        linestyle="--",
        label="of all ranks up to it",
    )
    axes.set_ylim(0, 1.02)
    axes.legend(frameon=False, loc="center right")
    return figure


def _normalization(scores: np.ndarray, labels: SoftLabels) -> Figure:
    how = labels.metadata.get("labels", {}).get("normalization", LabelParams().normalization)
    figure, axes = _axes(f"Scores before and after normalisation ({how})", "score")
    real = ~np.isnan(scores)
    after = np.where(real, normalized(np.where(real, scores, 0.0), real, how), np.nan)
    _bands(axes, scores, "#707070", "before", "--")
    _bands(axes, after, "#0060a0", "after")
    axes.legend(frameon=False)
    return figure
