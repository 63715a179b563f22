"""The tables of values and of comparisons, as `evaluate` and `search --qrels` print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rnnreranker.base.tables import print_table

if TYPE_CHECKING:
    from rnnreranker.evaluate.comparison import Comparison


def print_scores(header: Sequence[object], rows: Iterable[Sequence[object]], protocol: str) -> None:
    """Print a table whose first column is the run; a table of another protocol than `trec` has a column for it."""
    added = [] if protocol == "trec" else ["protocol"]
    print_table([header[0], *added, *header[1:]], [[row[0], *([protocol] if added else []), *row[1:]] for row in rows])


def print_comparisons(comparisons: Sequence[Comparison], protocol: str) -> None:
    """Print a row per run and measure: values, difference, 95% interval, p, win/tie/loss, judged of the first ten."""
    header = ["run", "measure", "baseline", "value", "difference", "low", "high", "p", "p (Holm)", "win/tie/loss"]
    rows = [
        [
            *(one.run, one.measure, f"{one.baseline_value:.4f}", f"{one.value:.4f}"),
            *(f"{one.difference:+.4f}", f"{one.low:+.4f}", f"{one.high:+.4f}"),
            *(f"{one.p:.3g}", f"{one.p_holm:.3g}", f"{one.wins}/{one.ties}/{one.losses}"),
            *(f"{one.baseline_judged:.3f}", f"{one.judged:.3f}"),
        ]
        for one in comparisons
    ]
    print_scores([*header, "judged@10 baseline", "judged@10"], rows, protocol)
