"""`python -m rnnreranker.labels scores`: how the scores of label files are distributed, one beside the other."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.tables import print_table
from rnnreranker.base.typed_numbers import number

if TYPE_CHECKING:
    from rnnreranker.labels.report.distribution import Distribution

EPILOG = """examples:
  python -m rnnreranker.labels scores tf-idf.parquet scorer.parquet evidence.parquet --plots pictures
  python -m rnnreranker.labels scores sbert.parquet le-bs.parquet --distances

Of labels --method run from the cosines of several models, --distances gives what Figure 5 of paper 004 shows.
"""


def scores_parser() -> argparse.ArgumentParser:
    """The arguments of `labels scores`."""
    parser = command.parser("labels scores", "Show how the scores of labels are distributed, file by file.", EPILOG)
    parser.add_argument("labels", nargs="+", metavar="FILE.parquet", help="of python -m rnnreranker.labels")
    parser.add_argument(
        "--distances", action="store_true", help="(1 - score) / 2, of scores that are cosines, in place of them"
    )
    parser.add_argument(
        "--range", nargs=2, type=number, default=(0.0, 1.0), metavar=("LOW", "HIGH"), help="of scores (default: 0 1)"
    )
    parser.add_argument("--bins", type=command.positive, default=10, help="equal parts of it (default: 10)")
    parser.add_argument("--plots", metavar="DIR", help="picture of the shares by range")
    return parser


def show_scores(args: argparse.Namespace) -> int:
    """Print what is distributed how, and draw it; the exit code.

    Args:
        args: of `scores_parser`.
    """
    from rnnreranker.labels.report.distribution import distributions_of, draw, edges_of, ranges_of
    from rnnreranker.labels.soft import SoftLabels

    low, high = args.range
    edges = edges_of(low, high, args.bins)
    several: dict[str, dict[str, Distribution]] = {}
    for path, name in zip(args.labels, _names(args.labels), strict=True):
        several[name] = distributions_of(SoftLabels.read(path), edges, args.distances)
        if not several[name]:
            raise InputError(f"{path}: no candidate has a score; give labels of a method that scores candidates")
        if unscored := several[name]["all"].unscored:
            command.say(f"{path}: {command.counted(unscored, 'candidate')} beyond its context without a score left out")
    _print(several, ranges_of(edges))
    if args.plots:
        what = "distance (1 - score) / 2" if args.distances else "score"
        command.put(draw(several, ranges_of(edges), what, Path(args.plots)))
    return 0


def _names(paths: list[str]) -> list[str]:
    """What the files are called: without folder and ending, where that tells them apart."""
    if twice := [path for path, times in Counter(paths).items() if times > 1]:
        raise InputError(f"{twice[0]}: given twice; expected different files")
    short = [Path(path).stem for path in paths]
    return short if len(set(short)) == len(short) else paths


def _print(several: dict[str, dict[str, Distribution]], ranges: list[str]) -> None:
    """A table of quantiles and one of ranges; ranges at the ends only where a score is there."""
    from rnnreranker.labels.report.distribution import QUANTILES

    sides = [(name, side, found) for name, of in several.items() for side, found in of.items()]
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
