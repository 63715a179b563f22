"""The lists that `python -m rnnreranker.regress` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rnnreranker.base.command import say
from rnnreranker.base.errors import nearest, refuse
from rnnreranker.base.record import Record
from rnnreranker.base.tables import print_table
from rnnreranker.regress.papers.matrix import Matrix, counted
from rnnreranker.regress.papers.paper import cells_of, paper_names, read_paper
from rnnreranker.regress.plans.plan import Plan, make_plan
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.entries import QuerySet
from rnnreranker.regress.specs.spec import Spec, planned, spec_names


def query_sets_of(
    folder: Path, names: Sequence[str]
) -> tuple[list[tuple[Spec, QuerySet]], dict[tuple[str, str], set[tuple[str, str]]]]:
    """The query sets, with their specs, of specs, query sets and papers (none = all), and the values by query.

    The latter are those that tables print: query set and condition → protocols and measures.

    Raises:
        InputError: an unknown name.
    """
    papers = paper_names(folder)
    cells = [cell for name in papers for cell in cells_of(read_paper(name, folder)) if not cell["latency"]]
    specs = [read_spec(folder / f"{name}.yaml") for name in spec_names(folder)]
    asked = [(spec, query_set) for spec in specs for query_set in spec.query_sets]
    known = [*(one for spec, query_set in asked for one in (spec.name, query_set.id)), *papers]
    said = "{}: --runs is for specs, query sets and papers; {}"
    refuse(*((name not in known, said.format(name, nearest(name, known))) for name in names))
    if names:
        wanted = {*names} | {cell["query_set"] for cell in cells if f"paper-{cell['paper']}" in names}
        asked = [(spec, query_set) for spec, query_set in asked if {spec.name, query_set.id} & wanted]
    queries: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for cell in cells:
        if cell["query"]:
            system = (cell["query_set"], cell["condition"])
            queries.setdefault(system, set()).add((cell["counted"], cell["metric"]))
    return asked, queries


def paper_plans(folder: Path, names: Sequence[str], table: str | None) -> list[Plan]:
    """The plans of all conditions of cells of papers."""
    matrix = Matrix(folder, names, table, commands=False)
    cells = matrix.cells[~matrix.cells["latency"].astype(bool)]
    wanted = set(zip(cells["query_set"], cells["condition"], strict=True))
    plans = []
    for spec, query_set in matrix.sets.values():
        if conditions := [entry for entry in spec.conditions if (query_set.id, entry.id) in wanted]:
            plans.append(make_plan(spec, conditions=conditions, query_sets=(query_set,)))
    return plans


def print_matrix(
    folder: Path, names: Sequence[str], table: str | None, cells: bool, measured: Sequence[Record] = ()
) -> None:
    """Print how many published cells are in which state; with `cells`, every cell."""
    papers = [name for name in names if name in paper_names(folder)]
    matrix = Matrix(folder, papers or None, table, measured, commands=False)
    if cells:
        rows = []
        for cell in matrix.cells.to_dict("records"):
            value, printed = cell["measured"], cell["published"]
            shown, gap = ("-", "-") if value is None else (f"{value:.4f}", f"{value - printed:+.4f}")
            names_of_cell = [cell[key] for key in ("paper", "table", "row", "dataset", "measure")]
            rows.append([*names_of_cell, printed, shown, gap, cell["state"]])
        print_table(
            ["paper", "table", "row", "data set", "measure", "published", "measured", "difference", "state"], rows
        )
    print_table(["state", "cells", "distinct"], matrix.summary())
    if said := matrix.whose():
        say(said)


def print_list(folder: Path) -> None:
    """Print all specs and papers with their state, then the query sets."""
    matrix = Matrix(folder, commands=False)
    cells = matrix.cells
    rows: list[list[object]] = [
        [name, ", ".join(one.id for one in spec.query_sets), len(spec.conditions), _state(spec, matrix), spec.title]
        for name, spec in matrix.specs.items()
    ]
    for paper in matrix.papers:
        rows.append([paper.name, "-", "-", counted(cells["state"][cells["paper"] == paper.number]), paper.title])
    print_table(["spec", "query sets", "conditions", "state", "title"], rows)
    print()
    sets = []
    for name, (spec, query_set) in matrix.sets.items():
        mine = cells[cells["query_set"] == name].groupby("paper")
        tables = [f"{paper}: {', '.join(of['table'].unique())}" for paper, of in mine]
        sets.append([name, query_set.topics, "; ".join(tables) or "-", query_set.title or spec.title])
    print_table(["query set", "topics", "tables of papers", "title"], sets)


def _state(spec: Spec, matrix: Matrix) -> str:
    measured = {name for one, name in matrix.runs if any(one == query_set.id for query_set in spec.query_sets)}
    states = Counter(
        "measured" if measured & {entry.id, *entry.run_names} else "planned" if planned(spec, entry) else "not measured"
        for entry in spec.conditions
    )
    return ", ".join(f"{states[name]} {name}" for name in ("measured", "not measured", "planned") if states[name])
