"""The tables of a study of trainings, as its page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnreranker.record import Record

KINDS = ("labels", "losses", "candidates")  # what a study compares, in the order of the page


def study_table(study: Mapping[str, Any], group: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a study's table for a group of test queries: an arm a row, its values and differences."""
    rows = [row for row in study["rows"] if row["group"] == group]
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    first = measures[0]
    smoothing = study["arms"] == "labels"
    header = ["", *measures, f"{first} − base"] + ([f"{first} − CODER, same hyperparameters"] if smoothing else [])
    lines = []
    for arm in dict.fromkeys(row["arm"] for row in rows):
        of_arm = {row["measure"]: row for row in rows if row["arm"] == arm}
        against = of_arm[first]["against"]
        line = [arm, *(f"{of_arm[measure]['value']:.4f}" for measure in measures), _difference(against.get("base"))]
        if smoothing:
            others = [found for name, found in against.items() if name != "base"]
            line.append(_difference(others[0] if others else None))
        lines.append(line)
    return header, lines


def picture(study: Record, name: str = "") -> str:
    """The file of a study's picture, below docs/."""
    stem = study.spec if study.name == "labels" else f"{study.spec}-{study.name}"
    return f"study/{stem}{'-' if name else ''}{name.replace('@', '-')}.svg"


def _difference(found: Mapping[str, float] | None) -> str:
    if found is None:
        return "-"
    text = f"{found['difference']:+.4f} [{found['low']:+.4f}, {found['high']:+.4f}]"
    return f"{text}, p {found['p_holm']:.3f}"
