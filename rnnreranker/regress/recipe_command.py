"""What `python -m rnnreranker.regress` does with recipes: plans, runs, published runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rnnreranker import command
from rnnreranker.errors import InputError, RnnrerankerError, nearest
from rnnreranker.regress.paired import with_pairs
from rnnreranker.regress.published_runs import Measured, find_runs, measure_run, on_record, record, records_file
from rnnreranker.regress.recipe import Condition, Recipe, planned
from rnnreranker.regress.recipe_plan import PASTE_FOLDER, RecipePlan, make_recipe_plan, needs_of, needs_text
from rnnreranker.regress.recipe_results import compare, measure_made
from rnnreranker.regress.recipe_runner import run_plan
from rnnreranker.tables import print_table


def chosen(recipe: Recipe, only: str | None) -> tuple[Condition, ...]:
    """All conditions of a recipe, or the one asked for."""
    return recipe.conditions if only is None else (recipe.condition(only),)


def dry_run(recipe: Recipe, conditions: tuple[Condition, ...]) -> None:
    """Print the complete plan of conditions of a recipe: needs, commands, what is planned."""
    print("\n".join(plan_lines(make_recipe_plan(recipe, PASTE_FOLDER, conditions))))


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
    asked: Sequence[Recipe], runs: Path, only: str | None, queries: Mapping[tuple[str, str], Iterable[tuple[str, str]]]
) -> tuple[list[Measured], list[str]]:
    """Measure published runs in place of retrieving, and print the values.

    Args:
        asked: the recipes whose runs are looked for.
        runs: the folder of run files.
        only: the id of one condition.
        queries: spec and condition → protocols and measures that are asked for query by query too.

    Returns:
        What was measured, none where no run file fits, and the errors of run files that could not be.
    """
    known = {recipe.name: recipe for recipe in asked}
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
        wanted = queries.get((entry.spec, entry.condition), ())
        try:
            measured.append(measure_run(entry, known[entry.spec], runs, queries=wanted))
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
