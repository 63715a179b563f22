"""The tables of a study of trainings, as its page shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rnnreranker.base.record import Record

KINDS = ("labels", "losses", "candidates")  # what a study compares, in the order of the page


def study_table(study: Mapping[str, Any], group: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a study's table for a group of test queries: an arm a row, its values and differences."""
    rows = [row for row in study["rows"] if row["group"] == group]
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    first = measures[0]
    smoothing = study["arms"] == "labels"
    header = [_protocol(study), *measures, f"{first} − base"] + (
        [f"{first} − CODER, same hyperparameters"] if smoothing else []
    )
    lines = []
    for arm in dict.fromkeys(row["arm"] for row in rows):
        of_arm = {row["measure"]: row for row in rows if row["arm"] == arm}
        against = of_arm[first]["against"]
        line = [arm, *(f"{of_arm[measure]['value']:.4f}" for measure in measures), _difference(against.get("base"))]
        if smoothing:
            others = [difference for name, difference in against.items() if name != "base"]
            line.append(_difference(others[0] if others else None))
        lines.append(line)
    return header, lines


def arms_table(study: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a study of models that read texts: values, words or seconds where they were counted, and
    comparisons; where arms learn from labels in [0, 1], what these find by themselves (`of d`)."""
    rows = [row for row in study["rows"] if row["group"] == "all"]
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    first, used = measures[0], study["words"]
    counted = ["words a query", "words a document", "FLOPS"] if used else []
    spent = study.get("costs", {})
    counted += ["s of training", "s of labels"] if spent else []
    of_labels = study.get("by_degrees", {})
    counted += [f"{first} of d"] if of_labels else []
    lines = []
    for arm in dict.fromkeys(row["arm"] for row in rows):
        of_arm = {row["measure"]: row for row in rows if row["arm"] == arm}
        own = [f"{value:.1f}" for value in used[arm].values()] if used else []
        of_arm_spent = spent.get(arm, {})
        own += (
            [f"{of_arm_spent[name]:,.0f}" if of_arm_spent else "-" for name in ("training", "labelling")]
            if spent
            else []
        )
        own += [f"{of_labels[arm][first]:.4f}" if arm in of_labels else "-"] if of_labels else []
        compared = [f"− {other} {_difference(difference)}" for other, difference in of_arm[first]["against"].items()]
        lines.append([arm, *(f"{of_arm[name]['value']:.4f}" for name in measures), *own, "; ".join(compared) or "-"])
    return [_protocol(study), *measures, *counted, f"differences in {first}"], lines


def distances_table(study: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of how far encoders put questions from documents, see `lab.study.trial.distances_of`."""
    lines = []
    for arm, far in study["distances"].items():
        half = len(far["relevant"]) // 2
        shares = (sum(far["relevant"][:half]), sum(far["others"][:half]), far["relevant"][-1], far["others"][-1])
        lines.append([arm, *(f"{share:.3f}" for share in shares), f"{far['line']:.3f}"])
    return ["", "relevant to .5", "others to .5", "relevant above .9", "others above .9", "line"], lines


def against(
    study: Mapping[str, Any], other: str, group: str = "all", measure: str = "nDCG@10"
) -> dict[str, Mapping[str, float]]:
    """Arm → its difference to another arm, of those that are compared with it."""
    rows = [row for row in study["rows"] if (row["group"], row["measure"]) == (group, measure)]
    return {row["arm"]: row["against"][other] for row in rows if other in row["against"]}


def differences(by_arm: Mapping[str, Mapping[str, float]], arms: Sequence[str]) -> list[float]:
    """The differences of some arms, in their order."""
    return [by_arm[arm]["difference"] for arm in arms]


def rises(study: Mapping[str, Any]) -> dict[str, float]:
    """Arm → by how much nDCG@10 of validation rose from the first step to the last."""
    curves = {arm: curve["nDCG@10"] for arm, curve in study["curves"].items()}
    return {arm: values[-1] - values[0] for arm, values in curves.items() if not arm.endswith(", hparam")}


def picture(study: Record, name: str = "") -> str:
    """The file of a study's picture, below docs/."""
    stem = study.spec if study.name == "labels" else f"{study.spec}-{study.name}"
    return f"study/{stem}{'-' if name else ''}{name.replace('@', '-')}.svg"


def _protocol(study: Mapping[str, Any]) -> str:
    """The head of the first column: the protocol of the values, where it is another than `trec`."""
    protocol = study.get("protocol", "trec")
    return "" if protocol == "trec" else f"protocol `{protocol}`"


def _difference(difference: Mapping[str, float] | None) -> str:
    if difference is None:
        return "-"
    text = f"{difference['difference']:+.4f} [{difference['low']:+.4f}, {difference['high']:+.4f}]"
    return f"{text}, p {'<.001' if difference['p_holm'] < 0.001 else format(difference['p_holm'], '.3f')}"
