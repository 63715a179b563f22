"""What a recovery says, in a sentence: does similarity to a positive find the others better than the query does?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rnnreranker.base.tables import interval
from rnnreranker.lab.recover.detection import MEASURES

SURE = 0.05  # p after Holm's correction, below which a difference is called one


def answer(rows: Sequence[Mapping[str, Any]]) -> str:
    """The similarity that finds hidden positives best, beside the query's, by the first of the measures.

    Args:
        rows: of `Recovery`: scorer, measure, value; of those compared with the query difference, low, high and p_holm.
    """
    measure = MEASURES[0]
    query = next(row["value"] for row in rows if (row["scorer"], row["measure"]) == ("query", measure))
    compared = [row for row in rows if row["measure"] == measure and "difference" in row]
    if not compared:
        return f"Similarity to the query finds hidden positives with {measure} {query:.4f}; nothing else was compared."
    best = max(compared, key=lambda row: row["value"])
    gap = f"{interval(best['difference'], best['low'], best['high'])}, p {best['p_holm']:.3f} after Holm"
    if best["p_holm"] >= SURE:
        start = "Whether a positive helps to find the others is not clear"
    elif best["difference"] > 0:
        start = "A positive helps to find the others"
    else:
        start = "A positive does not help to find the others"
    return (
        f"{start}: the best similarity, to {best['scorer']}, has {measure} {best['value']:.4f}, the query alone "
        f"{query:.4f} ({gap})."
    )
