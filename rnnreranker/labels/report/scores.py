"""How the scores of label files are distributed, one beside the other: tables, and a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.tables import print_table

if TYPE_CHECKING:
    from rnnreranker.labels.report.distribution import Distribution


def show_scores(
    files: Sequence[str | Path],
    *,
    distances: bool = False,
    between: tuple[float, float] = (0.0, 1.0),
    bins: int = 10,
    plots: str | Path | None = None,
) -> None:
    """Print what is distributed how, and draw it.

    Args:
        files: of labels.
        distances: (1 - score) / 2, of scores that are cosines, in place of them.
        between: the range of scores; bins: equal parts of it.
        plots: folder of a picture of the shares by range; None = none.

    Raises:
        InputError: unreadable files, one twice, labels without scores, a range that is none.
    """
    from rnnreranker.labels.report.distribution import distributions_of, draw, edges_of, ranges_of
    from rnnreranker.labels.soft import SoftLabels

    edges = edges_of(*between, bins)
    several: dict[str, dict[str, Distribution]] = {}
    for path, name in zip(files, _names(list(map(str, files))), strict=True):
        several[name] = distributions_of(SoftLabels.read(path), edges, distances)
        if not several[name]:
            raise InputError(f"{path}: no candidate has a score; give labels of a method that scores candidates")
        if unscored := several[name]["all"].unscored:
            command.say(f"{path}: {command.counted(unscored, 'candidate')} beyond its context without a score left out")
    _print(several, ranges_of(edges))
    if plots:
        what = "distance (1 - score) / 2" if distances else "score"
        command.put(draw(several, ranges_of(edges), what, Path(plots)))


def _names(paths: list[str]) -> list[str]:
    """What the files are called: without folder and ending, where that tells them apart."""
    if twice := [path for path, times in Counter(paths).items() if times > 1]:
        raise InputError(f"{twice[0]}: given twice; expected different files")
    short = [Path(path).stem for path in paths]
    return short if len(set(short)) == len(short) else paths


def _print(several: dict[str, dict[str, Distribution]], ranges: list[str]) -> None:
    """A table of quantiles and one of ranges; ranges at the ends only where a score is there."""
    from rnnreranker.labels.report.distribution import QUANTILES

    sides = [(name, side, distribution) for name, of in several.items() for side, distribution in of.items()]
    header = ["labels", "of", "pairs", "zeros", "mean", *(f"q{100 * at:g}" for at in QUANTILES)]
    numbers = [[one.zeros, one.mean, *one.quantiles] for _, _, one in sides]
    rows = [
        [name, side, one.pairs, *(f"{value:.4f}" for value in own)]
        for (name, side, one), own in zip(sides, numbers, strict=True)
    ]
    print_table(header, rows)
    print()
    last = len(ranges) - 1
    kept = [at for at in range(last + 1) if 0 < at < last or any(one.shares[at] for _, _, one in sides)]
    print_table(
        ["range", *(f"{name} {side}" for name, side, _ in sides)],
        [[ranges[at], *(f"{one.shares[at]:.4f}" for _, _, one in sides)] for at in kept],
    )
