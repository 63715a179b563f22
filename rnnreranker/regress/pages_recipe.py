"""The Markdown page of a recipe: what it measures, published beside measured values, and the plan to paste."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rnnreranker.pages import render
from rnnreranker.regress.matrix_cells import addresses, entries
from rnnreranker.regress.pages_paper import counted, published_text, row
from rnnreranker.regress.papers import Published
from rnnreranker.regress.published_runs import Measured
from rnnreranker.regress.recipe import Recipe, planned
from rnnreranker.regress.recipe_command import PASTE_FOLDER, needs_text, plan_lines
from rnnreranker.regress.recipe_plan import make_recipe_plan, needs_of


def recipe_page(
    recipe: Recipe,
    published: Sequence[Published],
    cells: Sequence[Mapping[str, Any]],
    measured: Sequence[Measured],
) -> str:
    """The Markdown page of a recipe.

    Args:
        recipe: what the page is about.
        published: the published cells of all papers.
        cells: the same as the matrix page takes them, in the same order.
        measured: what is on record for the runs of all recipes.
    """
    pairs = [
        (cell, shown)
        for cell, shown in zip(published, cells, strict=True)
        if cell.columns.spec == recipe.name and cell.how.condition and not cell.columns.latency
    ]
    texts = entries([shown for _, shown in pairs], addresses([shown for _, shown in pairs]))[0]
    plan = make_recipe_plan(recipe, PASTE_FOLDER, recipe.conditions)
    mine = [entry for entry in measured if entry.spec == recipe.name]
    return render(
        "regress",
        "recipe.md.j2",
        recipe=recipe,
        row=row,
        needs=needs_text(needs_of(plan)) or "nothing beyond the package",
        counts=counted([shown for _, shown in pairs]),
        conditions=_conditions(recipe, pairs, texts),
        others=[c for c in recipe.conditions if c.id not in {cell.how.condition for cell, _ in pairs}],
        measured=mine,
        protocols=[name for name in recipe.protocols if any(name in entry.values for entry in mine)],
        planned=[(c, planned(recipe, c)) for c in recipe.conditions if planned(recipe, c)],
        plan=plan_lines(plan),
        tuned=any(cell.columns.tuned_on_test for cell, _ in pairs),
        remarks=list(dict.fromkeys(text["note"] for text in texts if text["state"] == "changed" and text["note"])),
    )


def _conditions(
    recipe: Recipe, pairs: Sequence[tuple[Published, Mapping[str, Any]]], texts: Sequence[dict[str, Any]]
) -> list[list[str]]:
    """Lines of the table of published values, in the order of the recipe's conditions; a query is named in `where`."""
    order = {condition.id: place for place, condition in enumerate(recipe.conditions)}
    lines = []
    for (cell, _), text in zip(pairs, texts, strict=True):
        where = f"{cell.paper} Table {cell.table}, {cell.row}" + (f", query {cell.query}" if cell.query else "")
        measure = text["measure"] + (f", {cell.columns.protocol}" if len(recipe.protocols) > 1 else "")
        line = [cell.how.condition, where, measure, published_text(text), text["measured"], text["difference"]]
        lines.append((order[cell.how.condition], [*line, text["state"]]))
    return [line for _, line in sorted(lines, key=lambda entry: entry[0])]
