"""The table of comparisons, as `evaluate --compare` and `search --qrels` print it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rnnreranker.base.tables import print_table

if TYPE_CHECKING:
    from rnnreranker.evaluate.comparison import Comparison


def print_comparisons(comparisons: Sequence[Comparison]) -> None:
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
    print_table([*header, "judged@10 baseline", "judged@10"], rows)
