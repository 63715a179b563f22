"""The lists that `python -m rnnreranker.regress` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rnnreranker.base.command import print_table, say
from rnnreranker.base.record import Record
from rnnreranker.regress.papers.matrix import Matrix, counted
from rnnreranker.regress.papers.paper import paper_names
from rnnreranker.regress.plans.maker import make_plan
from rnnreranker.regress.plans.plan import Plan
from rnnreranker.regress.specs.entries import Spec


def paper_plans(folder: Path, names: Sequence[str], table: str | None) -> list[Plan]:
    """The plans of all conditions of cells of papers."""
    matrix = Matrix(folder, names, table)
    wanted = set(zip(matrix.cells["query_set"], matrix.cells["condition"], strict=True))
    plans = []
    for spec, query_set in matrix.sets.values():
        if conditions := [entry for entry in spec.conditions.values() if (query_set.id, entry.id) in wanted]:
            plans.append(make_plan(spec, conditions=conditions, query_sets=(query_set,)))
    return plans


def print_matrix(
    folder: Path, names: Sequence[str], table: str | None, cells: bool, measured: Sequence[Record] = ()
) -> None:
    """Print how many published cells are in which state; with `cells`, every cell."""
    papers = [name for name in names if name in paper_names(folder)]
    matrix = Matrix(folder, papers or None, table, measured)
    if cells:
        rows = []
        for cell in matrix.cells.to_dict("records"):
            value, printed = cell["measured"], cell["published"]
            shown, gap = ("-", "-") if value is None else (f"{value:.4f}", f"{value - printed:+.4f}")
            about = [cell[key] for key in ("paper", "table", "row", "dataset", "measure")]
            rows.append([*about, printed, shown, gap, cell["state"]])
        print_table(
            ["paper", "table", "row", "data set", "measure", "published", "measured", "difference", "state"], rows
        )
    print_table(["state", "cells", "distinct"], matrix.summary())
    if said := matrix.whose():
        say(said)


def print_list(folder: Path) -> None:
    """Print all specs and papers with their state, then the query sets."""
    matrix = Matrix(folder)
    measured = {(record.spec, record.name) for record in matrix.records}
    rows = [
        [name, ", ".join(spec.query_sets), len(spec.conditions), _state(spec, measured), spec.title]
        for name, spec in matrix.specs.items()
    ]
    for paper in matrix.papers:
        states = matrix.cells["state"][matrix.cells["paper"] == paper.number]
        rows.append([paper.name, "-", "-", counted(states), paper.title])
    print_table(["spec", "query sets", "conditions", "state", "title"], rows)
    print()
    sets = []
    for name, (spec, query_set) in matrix.sets.items():
        mine = matrix.cells[matrix.cells["query_set"] == name].groupby("paper")["table"].unique()
        tables = [f"{paper}: {', '.join(of)}" for paper, of in mine.items()]
        sets.append([name, query_set.topics, "; ".join(tables) or "-", query_set.title or spec.title])
    print_table(["query set", "topics", "tables of papers", "title"], sets)


def _state(spec: Spec, measured: set[tuple[str, str]]) -> str:
    runs = [(entry.id, *entry.run_names) for entry in spec.conditions.values()]
    states = Counter("measured" if measured & {(spec.name, name) for name in of} else "not measured" for of in runs)
    return ", ".join(f"{states[name]} {name}" for name in ("measured", "not measured") if states[name])
