"""What `python -m rnnreranker.regress` does with recipes and papers: plans, runs, published runs, the matrix, pages."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rnnreranker import command
from rnnreranker.errors import InputError, RnnrerankerError, nearest
from rnnreranker.regress.matrix import Matrix, recipes
from rnnreranker.regress.paired import with_pairs
from rnnreranker.regress.papers import paper_names, published, read_paper
from rnnreranker.regress.published_runs import Measured, find_runs, measure_run, on_record, record, records_file
from rnnreranker.regress.recipe import Condition, Recipe, planned
from rnnreranker.regress.recipe_plan import PASTE_FOLDER, RecipePlan, make_recipe_plan, needs_of, needs_text
from rnnreranker.regress.recipe_results import compare, measure_made
from rnnreranker.regress.recipe_runner import run_plan
from rnnreranker.tables import print_table


def state(recipe: Recipe, matrix: Matrix) -> str:
    """Counts of a recipe's conditions for `--list`: measured on record, runnable elsewhere, planned."""
    measured = matrix.recorded(recipe.name)
    states = Counter(
        "measured" if condition.id in measured else "planned" if planned(recipe, condition) else "runnable elsewhere"
        for condition in recipe.conditions
    )
    return ", ".join(f"{states[name]} {name}" for name in ("measured", "runnable elsewhere", "planned") if states[name])


def chosen(recipe: Recipe, only: str | None) -> tuple[Condition, ...]:
    """All conditions of a recipe, or the one asked for."""
    return recipe.conditions if only is None else (recipe.condition(only),)


def dry_run(recipe: Recipe, conditions: tuple[Condition, ...]) -> None:
    """Print the complete plan of conditions of a recipe: needs, commands, what is planned."""
    print("\n".join(plan_lines(make_recipe_plan(recipe, PASTE_FOLDER, conditions))))


def dry_run_papers(folder: Path, names: Sequence[str], table: str | None) -> None:
    """Print the plans of all conditions that obtain cells of papers, recipe by recipe."""
    matrix = Matrix(folder, names, table, commands=False)
    wanted = {(cell.columns.spec, cell.how.condition) for cell in matrix.published if not cell.columns.latency}
    for recipe in matrix.recipes.values():
        conditions = tuple(entry for entry in recipe.conditions if (recipe.name, entry.id) in wanted)
        if conditions:
            dry_run(recipe, conditions)


def plan_lines(plan: RecipePlan) -> list[str]:
    """The complete plan in lines to paste into a shell: needs, commands, what is planned; pages show the same."""
    lines = [f"# {plan.recipe.title}", f"# needs in all: {needs_text(needs_of(plan))}"]
    for folder in dict.fromkeys(step.output.parent for step in plan.steps):
        lines.append(shlex.join(["mkdir", "-p", str(folder)]))
    for number, step in enumerate(plan.steps, 1):
        needs = f": {needs_text(step.needs)}" if step.needs else ""
        lines += [f"# {number} of {len(plan.steps)}{needs}", step.command()]
    lines += plan.evaluations()
    for condition in plan.conditions:
        lacking = planned(plan.recipe, condition)
        if lacking:
            lines.append(f"# {condition.id}: planned: {lacking}")
    return lines


def run(recipe: Recipe, work: Path, only: str | None, jobs: int, folder: Path, put_on_record: bool) -> int:
    """Run what can be run of a recipe here and print what it scores.

    Args:
        recipe: which.
        work: the folder for indexes, models and runs; what was measured goes to `work/NAME/results.json`.
        only: the id of one condition.
        jobs: steps at a time.
        folder: of the specs, whose record the values are compared with where the recipe expects none.
        put_on_record: put them there.

    Returns:
        2 when nothing could be run, or not the condition that was asked for; 1 when a step failed or a value changed.
    """
    plan = make_recipe_plan(recipe, work, chosen(recipe, only))
    states, values = measure_made(plan, run_plan(plan, jobs))
    found = compare(recipe, values, on_record(records_file(folder, recipe.name)))
    if values:
        _print_values(recipe, values, found)
        record(work / recipe.name / "results.json", values)
    if values and put_on_record:
        record(records_file(folder, recipe.name), values)
        command.say(f"on record: {records_file(folder, recipe.name)}")
    reasons: dict[str, list[str]] = {}
    for name, reason in states.items():
        if reason != "done":
            reasons.setdefault(reason, []).append(name)
    failed = any(reason.startswith("error") for reason in reasons)
    if not values and not failed:
        first = next(iter(reasons))
        others = f" (and {command.counted(len(reasons) - 1, 'more reason')}; --only CONDITION tells its own)"
        command.say(f"{recipe.name}: nothing can be run here; {first}{others if len(reasons) > 1 else ''}")
        return command.BAD_INPUT
    for reason, names in reasons.items():
        command.say(f"{reason} ({', '.join(names)})")
    return 1 if failed or (not put_on_record and any(state.startswith("changed") for state in found)) else 0


def _print_values(recipe: Recipe, values: Sequence[Measured], states: Sequence[str]) -> None:
    rows = []
    for entry, state in zip(values, states, strict=True):
        for protocol, scores in entry.values.items():
            cells = [f"{scores[name]:.4f}" if name in scores else "-" for name in recipe.measures]
            rows.append([entry.condition, protocol, *cells, state])
    print_table(["run", "protocol", *recipe.measures, "state"], rows)


def measure_published(
    folder: Path, names: Sequence[str], runs: Path, only: str | None
) -> tuple[list[Measured], list[str]]:
    """Measure published runs in place of retrieving, and print the values.

    Returns:
        What was measured, none where no run file fits, and the errors of run files that could not be.
    """
    known, papers = recipes(folder), paper_names(folder)
    for name in names:
        if name not in known and name not in papers:
            raise InputError(f"{name}: --runs is for recipes and papers; {nearest(name, [*known, *papers])}")
    cells = [cell for paper in papers for cell in published(read_paper(paper, folder))]
    wanted = {name for name in names if name in known}
    wanted |= {cell.columns.spec for cell in cells if f"paper-{cell.paper}" in names}
    asked = [recipe for name, recipe in known.items() if not names or name in wanted]
    if only is not None and not any(entry.id == only for recipe in asked for entry in recipe.conditions):
        hint = nearest(only, [entry.id for recipe in asked for entry in recipe.conditions])
        raise InputError(f"--only {only}: no such condition in {', '.join(recipe.name for recipe in asked)}; {hint}")
    found = [entry for entry in find_runs(runs, asked) if only in (None, entry.condition)]
    if not found:
        looked_for = ", ".join(recipe.runs for recipe in asked if recipe.runs)
        command.say(f"{runs}: no run file of these conditions; looked for {looked_for} with `runs` of the conditions")
    measured, failed = [], []
    for entry in found:
        others = f" (not used: {', '.join(entry.others)})" if entry.others else ""
        command.say(f"{entry.spec} {entry.condition}: {entry.path}{others}")
        try:
            measured.append(measure_run(entry, known[entry.spec], cells, runs))
        except RnnrerankerError as error:
            failed.append(str(error))
            command.say(f"error: {error}")
    measured = with_pairs(measured, known, runs)
    rows = [
        [value.spec, value.condition, protocol, name, f"{number:.4f}"]
        for value in measured
        for protocol, values in value.values.items()
        for name, number in values.items()
    ]
    if rows:
        print_table(["spec", "condition", "protocol", "measure", "value"], rows)
    return measured, failed


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
