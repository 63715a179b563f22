"""How the scores of labels are distributed, method beside method, as Figure 5 of paper 004 shows scores of models."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rnnreranker.base.errors import InputError, require
from rnnreranker.labels.soft import SoftLabels

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True)
class Distribution:
    """Scores of some candidates.

    Attributes:
        pairs: how many have a score; unscored: how many have none.
        zeros: the share of scores that are exactly 0; mean: of the scores.
        quantiles: at `QUANTILES`.
        shares: (n + 2,) of the scores up to the lowest of n + 1 edges, in (edge, next edge], and above the highest.
    """

    pairs: int
    unscored: int
    zeros: float
    mean: float
    quantiles: tuple[float, ...]
    shares: tuple[float, ...]


def edges_of(low: float, high: float, bins: int) -> np.ndarray:
    """(bins + 1,) float32: edges of ranges of equal width; InputError: no range between the two, or no bins."""
    if not (np.isfinite([low, high]).all() and low < high):
        raise InputError(f"--range {low:g} {high:g}: expected two numbers, the first below the second")
    edges = np.linspace(low, high, bins + 1).astype(np.float32)
    if (np.diff(edges) <= 0).any():
        raise InputError(f"--bins {bins}: too many between {low:g} and {high:g}; give fewer, or a wider --range")
    return edges


def distributions_of(labels: SoftLabels, edges: np.ndarray, distances: bool = False) -> dict[str, Distribution]:
    """How the scores of "all", of "positives" and of "others" are distributed; without one of them that has no score.

    Args:
        labels: of a method.
        edges: ascending float32, as of `edges_of`.
        distances: (1 - score) / 2 in place of the score (paper 004, eq. 6).
    """
    sides = {"all": np.ones(len(labels.scores), dtype=bool), "positives": labels.positive, "others": ~labels.positive}
    distributions = {}
    for name, side in sides.items():
        scores = labels.scores[side]
        real = scores[np.isfinite(scores)]
        if not real.size:
            continue
        real = (np.float32(1) - real) / np.float32(2) if distances else real
        counts = np.bincount(np.searchsorted(edges, real, side="left"), minlength=len(edges) + 1)
        exact = real.astype(np.float64)
        distributions[name] = Distribution(
            real.size,
            scores.size - real.size,
            float((real == 0).mean()),
            float(exact.mean()),
            tuple(np.quantile(exact, QUANTILES).tolist()),
            tuple((counts / real.size).tolist()),
        )
    return distributions


def ranges_of(edges: np.ndarray) -> list[str]:
    """The names of the ranges that `shares` are of.

    >>> ranges_of(np.array([0, 0.5, 1], dtype=np.float32))
    ['<= 0', '(0, 0.5]', '(0.5, 1]', '> 1']
    """
    shown = [f"{edge:g}" for edge in edges.tolist()]
    between = [f"({low}, {high}]" for low, high in itertools.pairwise(shown)]
    return [f"<= {shown[0]}", *between, f"> {shown[-1]}"]


def draw(several: Mapping[str, Mapping[str, Distribution]], ranges: Sequence[str], what: str, folder: Path) -> Path:
    """The SVG written into `folder`, which is made: shares by range, a line a file, its positives dashed.

    Args:
        several: name of a file → what `distributions_of` it are.
        ranges: of `ranges_of`; what: is distributed, for the axis.

    Raises:
        MissingDependencyError: without matplotlib.
    """
    require("matplotlib", "--plots", "'rnnreranker[plots]'")
    from rnnreranker.labels.report.plots import new_axes, save_figure

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = new_axes(7.5, 4.2)
    for number, (name, distributions) in enumerate(several.items()):
        for side, line in (("others", "-"), ("positives", "--")):
            if side in distributions:
                shown = distributions[side].shares
                axes.plot(range(len(shown)), shown, line, color=f"C{number % 10}", marker=".", label=f"{name}, {side}")
    axes.set(xlabel=what, ylabel="share of pairs", ylim=(0, None))
    axes.set_xticks(range(len(ranges)), ranges, rotation=40, ha="right")
    axes.legend(frameon=False)
    return save_figure(figure, folder / "score-distribution.svg")
