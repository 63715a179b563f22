"""Arms of one family: which of them the validation queries choose, a task at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def with_chosen(
    records: Sequence[Mapping[str, Any]], families: Mapping[str, str], measure: str
) -> tuple[list[Mapping[str, Any]], dict[str, dict[str, Any]]]:
    """The records, behind them those of the arm that each family's validation queries choose.

    A task's own trainings alone have a say, their mean over the seeds, so that no query that it tests has any. Of equal
    arms the first is taken.

    Args:
        records: of `run_trial`, with `checked`: measure → mean over the validation queries, all documents searched.
        families: arm → its family, "" = none.
        measure: that decides.

    Returns:
        The records, and family → task → `arm`, the one taken, and `validation`: arm → its value.
    """
    with_families, choices = list(records), {}
    for family in dict.fromkeys(name for name in families.values() if name):
        arms = [arm for arm, own in families.items() if own == family]
        choices[family] = dict[str, Any]()
        for task in dict.fromkeys(record["task"] for record in records):
            mine = {arm: [one for one in records if (one["arm"], one["task"]) == (arm, task)] for arm in arms}
            values = {arm: float(np.mean([one["checked"][measure] for one in own])) for arm, own in mine.items()}
            best = max(arms, key=lambda arm: values[arm])
            choices[family][task] = {"arm": best, "validation": values}
            with_families += [{**one, "arm": family} for one in mine[best]]
    return with_families, choices


def by_degrees(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Arm → measure → what its labels find by themselves, means over trainings; those that have any."""
    by_arm: dict[str, list[Mapping[str, float]]] = {}
    for record in records:
        if "by_degrees" in record:
            by_arm.setdefault(record["arm"], []).append(record["by_degrees"])
    return {arm: {name: float(np.mean([one[name] for one in own])) for name in own[0]} for arm, own in by_arm.items()}
