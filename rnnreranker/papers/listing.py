"""What `python -m rnnreranker.regress` prints of papers: their cells, their plans, how far each paper is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rnnreranker.errors import InputError, nearest
from rnnreranker.papers.matrix import Matrix
from rnnreranker.papers.paper import paper_names, published, read_paper
from rnnreranker.regress.published_runs import Measured
from rnnreranker.regress.recipe import Recipe, planned, recipes
from rnnreranker.regress.recipe_command import dry_run, measure_published
from rnnreranker.tables import print_table


def measure_runs(folder: Path, names: Sequence[str], runs: Path, only: str | None) -> tuple[list[Measured], list[str]]:
    """Measure published runs of recipes and papers, and print the values; what `measure_published` returns.

    Raises:
        InputError: a name of neither.
    """
    known, papers = recipes(folder), paper_names(folder)
    for name in names:
        if name not in known and name not in papers:
            raise InputError(f"{name}: --runs is for recipes and papers; {nearest(name, [*known, *papers])}")
    cells = [cell for paper in papers for cell in published(read_paper(paper, folder)) if not cell.columns.latency]
    wanted = {name for name in names if name in known}
    wanted |= {cell.columns.spec for cell in cells if f"paper-{cell.paper}" in names}
    queries: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for cell in cells:
        if cell.query:
            system = (cell.columns.spec, cell.how.condition)
            queries.setdefault(system, set()).add((cell.columns.protocol, cell.metric))
    asked = [recipe for name, recipe in known.items() if not names or name in wanted]
    return measure_published(asked, runs, only, queries)


def dry_run_papers(folder: Path, names: Sequence[str], table: str | None) -> None:
    """Print the plans of all conditions that obtain cells of papers, recipe by recipe."""
    matrix = Matrix(folder, names, table, commands=False)
    wanted = {(cell.columns.spec, cell.how.condition) for cell in matrix.published if not cell.columns.latency}
    for recipe in matrix.recipes.values():
        conditions = tuple(entry for entry in recipe.conditions if (recipe.name, entry.id) in wanted)
        if conditions:
            dry_run(recipe, conditions)


def print_matrix(
    folder: Path, names: Sequence[str], table: str | None, cells: bool, measured: Sequence[Measured] = ()
) -> None:
    """Print how many published cells are in which state; with `cells`, every cell that was measured."""
    papers = [name for name in names if name in paper_names(folder)]
    found = Matrix(folder, papers or None, table, measured, commands=False)
    if cells:
        rows = []
        for cell in found.cells:
            measured = cell["measured"]
            shown, gap = ("-", "-") if measured is None else (f"{measured:.4f}", f"{measured - cell['published']:+.4f}")
            place = [cell["paper"], cell["table"], cell["row"], cell["dataset"], cell["measure"]]
            rows.append([*place, cell["published"], shown, gap, cell["state"]])
        print_table(
            ["paper", "table", "row", "data set", "measure", "published", "measured", "difference", "state"], rows
        )
    print_table(["state", "cells", "distinct"], found.summary())


def state(recipe: Recipe, matrix: Matrix) -> str:
    """Counts of a recipe's conditions for `--list`: measured on record, runnable elsewhere, planned."""
    measured = matrix.recorded(recipe.name)
    states = Counter(
        "measured" if condition.id in measured else "planned" if planned(recipe, condition) else "runnable elsewhere"
        for condition in recipe.conditions
    )
    return ", ".join(f"{states[name]} {name}" for name in ("measured", "runnable elsewhere", "planned") if states[name])
