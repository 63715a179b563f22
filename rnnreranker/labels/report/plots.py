"""Pictures of labels: scores by rank, and label mass by rank, as Figures 12 and 13 of paper 000 show them."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import require
from rnnreranker.base.files import write_atomically
from rnnreranker.labels.soft import SoftLabels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BANDS = (5, 25, 50, 75, 95)  # percentiles


def write_plots(labels: SoftLabels, folder: str | Path) -> list[Path]:
    """The SVG files written into `folder`, which is made; MissingDependencyError: without matplotlib."""
    require("matplotlib", "--plots", "'rnnreranker[plots]'")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    scores, mass = by_rank(labels)
    ranks = np.arange(1, scores.shape[1] + 1)
    first, axes = new_axes(7, 4.2)
    low, lower, middle, upper, high = np.nanpercentile(scores, BANDS, axis=0)
    for below, above in ((low, high), (lower, upper)):
        axes.fill_between(ranks, below, above, color="C0", alpha=0.2, linewidth=0)
    axes.plot(ranks, middle, label="median; bands: half and nine tenths of queries")
    axes.set(title=f"Scores by rank, {len(scores)} queries", xlabel="rank by score", ylabel="score")
    second, others = new_axes(7, 4.2)
    others.plot(ranks, np.nanmean(mass, axis=0), label="of that rank, mean over queries")
    others.plot(ranks, np.nanmean(np.cumsum(mass, axis=1), axis=0), "--", label="of all ranks up to it")
    others.set(title=f"Target probability by rank, {len(mass)} queries", xlabel="rank by target", ylabel="probability")
    for one in (axes, others):
        one.legend(frameon=False)
    pictures = {"scores-by-rank": first, "mass-by-rank": second}
    return [save_figure(figure, folder / f"{name}.svg") for name, figure in pictures.items()]


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as SVG, equal figures with equal bytes; the path.

    Texts stay texts and coordinates have two decimals, which makes the file a quarter as large.
    """
    import matplotlib

    content = io.StringIO()
    style: Any = {"svg.hashsalt": path.name, "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"]}
    with matplotlib.rc_context(style):
        figure.savefig(content, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
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

    Only candidates that took part are counted; rank r is in column r - 1.
    """
    real = [np.isfinite(one.scores) for one in labels]
    out = np.full((2, len(real), max((int(one.sum()) for one in real), default=0)), np.nan)
    for row, (one, there) in enumerate(zip(labels, real, strict=True)):
        for which, values in enumerate((one.scores, one.targets)):
            out[which, row, : there.sum()] = -np.sort(-values[there])
    return out[0], out[1]


def new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of that many inches with one pair of axes, without a frame above and to the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
