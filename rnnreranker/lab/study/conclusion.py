"""What a study says, in a sentence: which arm is best on queries not trained on, and is it better than the others?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rnnreranker.base.tables import interval
from rnnreranker.lab.study.arm import BASE

SURE = 0.05  # p after Holm's correction, below which a difference is called one


def conclusion(rows: Sequence[Mapping[str, Any]]) -> str:
    """The best trained arm by the first measure over all queries, beside those that it is compared with.

    Args:
        rows: of `study_rows`.
    """
    measure = rows[0]["measure"]
    mine = [row for row in rows if (row["measure"], row["group"]) == (measure, "all")]
    values = {row["arm"]: row["value"] for row in mine}
    trained = [row for row in mine if row["arm"] != BASE]
    if not trained:
        return f"Nothing was trained; {BASE} has {measure} {values[BASE]:.4f}."
    best = max(trained, key=lambda row: row["value"])
    said = [_beside(other, difference) for other, difference in (best["against"] or {}).items()]
    if len(trained) > 1:
        first = f"Best of {len(trained)} trained arms on queries not trained on: {best['arm']}, {measure}"
    else:
        first = f"On queries not trained on {best['arm']} has {measure}"
    first = f"{first} {best['value']:.4f}"
    if not said and BASE in values:
        said = [f"{BASE} has {values[BASE]:.4f}"]
    return "; ".join([first, *said]) + "."


def _beside(other: str, gap: Mapping[str, Any]) -> str:
    """How an arm compares with another."""
    name = f"{BASE}, the model as it was" if other == BASE else other
    text = f"{interval(gap['difference'], gap['low'], gap['high'])}, p {gap['p_holm']:.3f} after Holm"
    if gap["p_holm"] >= SURE:
        return f"not surely apart from {name} ({text})"
    return f"{'better' if gap['difference'] > 0 else 'worse'} than {name} ({text})"
