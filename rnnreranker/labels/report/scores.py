"""How the scores of labels are distributed, file beside file, as Figure 5 of paper 004 shows scores of models."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.tables import print_table

if TYPE_CHECKING:
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
    distributions = {}
    every = np.ones(len(labels.scores), dtype=bool)
    for name, side in (("all", every), ("positives", labels.positive), ("others", ~labels.positive)):
        real = labels.scores[side & np.isfinite(labels.scores)]
        if real.size:
            real = (np.float32(1) - real) / np.float32(2) if distances else real
            counts = np.bincount(np.searchsorted(edges, real, side="left"), minlength=len(edges) + 1)
            exact = real.astype(np.float64)
            distributions[name] = Distribution(
                real.size,
                int(side.sum()) - real.size,
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
    return [f"<= {shown[0]}", *(f"({low}, {high}]" for low, high in itertools.pairwise(shown)), f"> {shown[-1]}"]


def show_scores(
    files: Sequence[str | Path],
    *,
    distances: bool = False,
    between: tuple[float, float] = (0.0, 1.0),
    bins: int = 10,
    plots: str | Path | None = None,
) -> None:
    """Print a table of quantiles and one of ranges, and draw the ranges; those at the ends where a score is there.

    Args:
        files: of labels.
        distances: (1 - score) / 2, of scores that are cosines, in place of them.
        between: the range of scores; bins: equal parts of it.
        plots: folder of a picture of the shares by range; None = none.

    Raises:
        InputError: unreadable files, one twice, labels without scores, a range that is none.
        MissingDependencyError: a picture without matplotlib.
    """
    from rnnreranker.labels.soft import SoftLabels

    edges, paths = edges_of(*between, bins), list(map(str, files))
    if twice := [path for path, times in Counter(paths).items() if times > 1]:
        raise InputError(f"{twice[0]}: given twice; expected different files")
    short = [Path(path).stem for path in paths]  # where that tells them apart
    columns: dict[tuple[str, str], Distribution] = {}
    for path, name in zip(paths, short if len(set(short)) == len(short) else paths, strict=True):
        own = distributions_of(SoftLabels.read(path), edges, distances)
        if not own:
            raise InputError(f"{path}: no candidate has a score; give labels of a method that scores candidates")
        if unscored := own["all"].unscored:
            command.say(f"{path}: {command.counted(unscored, 'candidate')} beyond its context without a score left out")
        columns |= {(name, side): one for side, one in own.items()}
    print_table(
        ["labels", "of", "pairs", "zeros", "mean", *(f"q{100 * at:g}" for at in QUANTILES)],
        [
            [*names, one.pairs, *(f"{value:.4f}" for value in (one.zeros, one.mean, *one.quantiles))]
            for names, one in columns.items()
        ],
    )
    print()
    ranges = ranges_of(edges)
    inner = range(1, len(ranges) - 1)
    print_table(
        ["range", *map(" ".join, columns)],
        [
            [name, *(f"{one.shares[at]:.4f}" for one in columns.values())]
            for at, name in enumerate(ranges)
            if at in inner or any(one.shares[at] for one in columns.values())
        ],
    )
    if plots:
        command.put(_draw(columns, ranges, "distance (1 - score) / 2" if distances else "score", Path(plots)))


def _draw(columns: Mapping[tuple[str, str], Distribution], ranges: Sequence[str], what: str, folder: Path) -> Path:
    """The SVG written into `folder`, which is made: shares of `what` by range, a line a file, its positives dashed."""
    require("matplotlib", "--plots", "'rnnreranker[plots]'")
    from rnnreranker.labels.report.plots import new_axes, save_figure

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = new_axes(7.5, 4.2)
    colours = {name: f"C{number % 10}" for number, name in enumerate(dict.fromkeys(name for name, _ in columns))}
    for (name, side), one in columns.items():
        if side != "all":
            line = {"others": ".-", "positives": ".--"}[side]
            axes.plot(range(len(ranges)), one.shares, line, color=colours[name], label=f"{name}, {side}")
    axes.set(xlabel=what, ylabel="share of pairs", ylim=(0, None))
    axes.set_xticks(range(len(ranges)), ranges, rotation=40, ha="right")
    axes.legend(frameon=False)
    return save_figure(figure, folder / "score-distribution.svg")
