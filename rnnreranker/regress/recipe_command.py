"""What `python -m rnnreranker.regress` does with recipes and papers: plans, runs, published runs, the matrix, pages."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rnnreranker import command
from rnnreranker.errors import InputError, nearest
from rnnreranker.regress.matrix import Matrix, recipes
from rnnreranker.regress.papers import paper_names, published, read_paper
from rnnreranker.regress.published_runs import Measured, find_runs, measure_run, on_record, record, records_file
from rnnreranker.regress.recipe import Condition, Recipe, planned, read_recipe
from rnnreranker.regress.recipe_plan import PASTE_FOLDER, RecipePlan, make_recipe_plan, needs_of
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
    return ", ".join(f"{number} {name}" for name, number in states.items())


def chosen(recipe: Recipe, only: str | None) -> tuple[Condition, ...]:
    """All conditions of a recipe, or the one asked for."""
    return recipe.conditions if only is None else (recipe.condition(only),)


def dry_run(path: Path, only: str | None) -> None:
    """Print the complete plan of a recipe: needs, commands, what is planned."""
    recipe = read_recipe(path)
    print("\n".join(plan_lines(make_recipe_plan(recipe, PASTE_FOLDER, chosen(recipe, only)))))


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
            lines.append(f"# {condition.id}: planned, not in the toolkit: {lacking}")
    return lines


def needs_text(needs: dict[str, object]) -> str:
    """Needs in words."""
    units = {"disk_gb": "GB of disk", "ram_gb": "GB of memory", "download_gb": "GB to download"}
    units |= {"gpu_hours": "hours of a GPU", "hours": "hours"}
    return ", ".join(
        f"{value:g} {units[key]}" if key in units and isinstance(value, int | float) else str(value)
        for key, value in needs.items()
    )


def run(path: Path, work: Path, only: str | None, jobs: int, record_in: Path | None = None) -> int:
    """Run what can be run of a recipe here and print what it scores.

    Args:
        path: of the recipe.
        work: the folder for indexes, models and runs; what was measured goes to `work/NAME/results.json`.
        only: the id of one condition.
        jobs: steps at a time.
        record_in: the folder of specs on whose record the values are put; None = on none.

    Returns:
        2 when nothing could be run, or not the condition that was asked for; 1 when a step failed or a value changed.
    """
    recipe = read_recipe(path, data=True)
    plan = make_recipe_plan(recipe, work, chosen(recipe, only))
    states = run_plan(plan, jobs)
    states, values = measure_made(plan, states)
    found = compare(recipe, values, on_record(records_file(record_in or path.parent, recipe.name)))
    rows = [
        [
            entry.condition,
            protocol,
            *(f"{scores[name]:.4f}" if name in scores else "-" for name in recipe.measures),
            state,
        ]
        for entry, state in zip(values, found, strict=True)
        for protocol, scores in entry.values.items()
    ]
    if rows:
        print_table(["run", "protocol", *recipe.measures, "state"], rows)
        record(work / recipe.name / "results.json", values)
    if values and record_in is not None:
        record(records_file(record_in, recipe.name), values)
        command.say(f"on record: {records_file(record_in, recipe.name)}")
    reasons: dict[str, list[str]] = {}
    for name, reason in states.items():
        if reason != "done":
            reasons.setdefault(reason, []).append(name)
    failed = any(reason.startswith("error") for reason in reasons)
    if not rows and not failed:
        first = next(iter(reasons))
        more = (
            f" (and {command.counted(len(reasons) - 1, 'more reason')}; --only CONDITION tells its own)"
            if len(reasons) > 1
            else ""
        )
        command.say(f"{recipe.name}: nothing can be run here; {first}{more}")
        return command.BAD_INPUT
    for reason, names in reasons.items():
        command.say(f"{reason} ({', '.join(names)})")
    return 1 if failed or (record_in is None and any(state.startswith("changed") for state in found)) else 0


def measure_published(folder: Path, names: Sequence[str], runs: Path, only: str | None) -> list[Measured]:
    """Measure published runs in place of retrieving, print the values; none where no run file fits."""
    known = recipes(folder)
    for name in names:
        if name not in known and name not in paper_names(folder):
            raise InputError(f"{name}: --runs is for {', '.join(known)}; {nearest(name, known)}")
    cells = [cell for paper in paper_names(folder) for cell in published(read_paper(paper, folder))]
    papers = {name.removeprefix("paper-") for name in names if name.startswith("paper-")}
    wanted = {name for name in names if name in known}
    wanted |= {cell.columns.spec for cell in cells if cell.paper in papers}
    chosen_recipes = [recipe for name, recipe in known.items() if not names or name in wanted]
    found = [entry for entry in find_runs(runs, chosen_recipes) if only in (None, entry.condition)]
    if not found:
        command.say(f"{runs}: no run file of these conditions; the `runs` patterns of the specs say what is looked for")
        return []
    measured = []
    for entry in found:
        others = f" (not used: {', '.join(entry.others)})" if entry.others else ""
        command.say(f"{entry.spec} {entry.condition}: {entry.path}{others}")
        measured.append(measure_run(entry, known[entry.spec], cells, runs))
    rows = [
        [value.spec, value.condition, protocol, name, f"{number:.4f}"]
        for value in measured
        for protocol, values in value.values.items()
        for name, number in values.items()
    ]
    print_table(["spec", "condition", "protocol", "measure", "value"], rows)
    return measured


def print_matrix(
    folder: Path, names: Sequence[str], table: str | None, cells: bool, measured: Sequence[Measured] = ()
) -> None:
    """Print how many published cells are in which state; with `cells`, every cell that was measured."""
    found = Matrix(folder, [name for name in names if name in paper_names(folder)] or None, table, measured)
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
