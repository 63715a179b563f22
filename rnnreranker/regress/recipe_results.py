"""What the runs of a recipe score, from which steps they came, and how that compares with what is on record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rnnreranker.errors import MissingDependencyError, RnnrerankerError, UnavailableError
from rnnreranker.regress.published_runs import Measured, RunFile, measure_run
from rnnreranker.regress.recipe import Recipe
from rnnreranker.regress.recipe_plan import PASTE_FOLDER, RecipePlan, RecipeStep, make_recipe_plan
from rnnreranker.regress.recipe_runner import read_stamp

TOLERANCE = 0.0005  # of a measure: beyond it a value has changed


def measure_made(plan: RecipePlan, states: dict[str, str]) -> tuple[dict[str, str], list[Measured]]:
    """The states with those of conditions whose runs cannot be measured, and what the others score."""
    states, values = dict(states), []
    steps = {step.output: step for step in plan.steps}
    shown = {step.output.relative_to(PASTE_FOLDER): step for step in _to_paste(plan).steps}
    for condition in plan.conditions:
        if states[condition.id] != "done":
            continue
        for path in plan.run_files(condition):
            chain = _chain(path, steps)
            taken = [
                {
                    "command": shown[step.output.relative_to(plan.folder)].command(),
                    "seconds": read_stamp(step).get("seconds", 0.0),
                }
                for step in chain
            ]
            file = RunFile(plan.recipe.name, path.stem, path, ())
            try:
                values.append(measure_run(file, plan.recipe, plan.folder, depth=plan.recipe.hits, steps=taken))
            except (UnavailableError, MissingDependencyError) as error:
                states[condition.id] = f"skipped: {error}"
            except RnnrerankerError as error:
                states[condition.id] = f"error: {error}"
    return states, values


def _to_paste(plan: RecipePlan) -> RecipePlan:
    """The same plan with its files where printed commands put them."""
    return make_recipe_plan(plan.recipe, PASTE_FOLDER, plan.conditions)


def _chain(path: Path, steps: dict[Path, RecipeStep]) -> list[RecipeStep]:
    """The steps that a file is made by, each once, in their order."""
    found: dict[Path, RecipeStep] = {}

    def visit(output: Path) -> None:
        if output in steps and output not in found:
            for before in steps[output].inputs:
                visit(before)
            found[output] = steps[output]

    visit(path)
    return list(found.values())


def compare(recipe: Recipe, values: Sequence[Measured], recorded: Sequence[Measured]) -> list[str]:
    """`ok`, `changed: …` or `new` for every run: against `expected` of the recipe, else the newest value on record."""
    states = []
    for entry in values:
        before = [old.values for old in recorded if old.condition == entry.condition]
        wanted = recipe.expected.get(entry.condition) or (before[-1] if before else {})
        changes = [
            f"{protocol} {name} {was:.4f} → {now:.4f}"
            for protocol, scores in entry.values.items()
            for name, now in scores.items()
            if (was := (wanted.get(protocol) or {}).get(name)) is not None and not abs(now - was) <= TOLERANCE
        ]
        states.append(f"changed: {', '.join(changes)}" if changes else ("ok" if wanted else "new"))
    return states
