"""Twins of a paper's rows: the pipeline with another model on other collections, and whether their order agrees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rnnreranker.regress.papers.matrix import Matrix
from rnnreranker.regress.papers.paper import StudyArm

if TYPE_CHECKING:
    import pandas

DIGITS = 12  # of means of the same numbers, added in another order
Agreement = tuple[int, int, float]  # pairs in the printed order, pairs that the paper orders, τ-b or nan


@dataclass(frozen=True)
class TwinSet:
    """The twins of a table's rows on a query set.

    Attributes:
        names: row → its twin, date and commit; values: measure → row → value; agreements: by measure.
    """

    id: str
    spec: str
    title: str
    names: dict[str, str]
    values: dict[str, dict[str, float]]
    agreements: dict[str, Agreement]


def twin_sets(matrix: Matrix, cells: pandas.DataFrame) -> list[TwinSet]:
    """The twins of the cells of a table on every query set that has some."""
    with_twins = []
    for name in cells["twins"].iloc[0]:
        spec, query_set = matrix.sets[name]
        names: dict[str, str] = {}
        agreements: dict[str, Agreement] = {}
        values: dict[str, dict[str, float]] = {}
        by_measure: Any = cells[~cells["latency"].astype(bool)].groupby("metric", sort=False)
        for measure, of_measure in by_measure:
            if measure not in spec.measures_of(query_set):
                continue
            for row, twin in dict(zip(of_measure["row"], of_measure["twin"], strict=True)).items():
                if isinstance(twin, StudyArm):
                    value, record = matrix.of_arm(spec.name, twin, measure)
                else:
                    value, record = matrix.newest(name, twin, query_set.protocols[0], measure)
                if value is not None:
                    values.setdefault(measure, {})[row] = value
                    names[row] = f"{twin} on {name}, {record.date[:10]}, commit {record.commit[:10]}"
            if measure in values:
                agreements[measure] = agreement(of_measure, values[measure])
        if values:
            title = (query_set.title or spec.title).partition(":")[0]
            with_twins.append(TwinSet(name, spec.name, title, names, values, agreements))
    return with_twins


def agreement(cells: pandas.DataFrame, twins: Mapping[str, float]) -> Agreement:
    """How the twins of rows agree with the order of their published values.

    Two rows are a pair in every column with values of both; tau-b sums over all columns.

    Args:
        cells: of one measure: `row`, `dataset`, `measure` and `published`.
        twins: row → value.
    """
    import numpy as np

    known = cells.assign(twin=cells["row"].map(twins)).dropna(subset=["twin"])
    pairs = known.merge(known, on=["dataset", "measure"])
    pairs = pairs[pairs["row_x"] < pairs["row_y"]]
    printed, ours = (
        np.sign((pairs[f"{name}_x"] - pairs[f"{name}_y"]).astype(float).round(DIGITS)) for name in ("published", "twin")
    )
    count = int((printed != 0).sum())
    size = math.sqrt(count * (ours != 0).sum())
    return int((printed * ours == 1).sum()), count, float((printed * ours).sum() / size) if size else math.nan
