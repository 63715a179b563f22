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
            *(found.run, found.measure, f"{found.baseline_value:.4f}", f"{found.value:.4f}"),
            *(f"{found.difference:+.4f}", f"{found.low:+.4f}", f"{found.high:+.4f}"),
            *(f"{found.p:.3g}", f"{found.p_holm:.3g}", f"{found.wins}/{found.ties}/{found.losses}"),
            *(f"{found.baseline_judged:.3f}", f"{found.judged:.3f}"),
        ]
        for found in comparisons
    ]
    print_table([*header, "judged@10 baseline", "judged@10"], rows)
