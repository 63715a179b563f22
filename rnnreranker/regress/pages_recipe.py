"""The Markdown page of a recipe: what it measures, published beside measured values, and the plan to paste."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rnnreranker.pages import render
from rnnreranker.regress.matrix import Matrix
from rnnreranker.regress.matrix_cells import addresses, entries
from rnnreranker.regress.pages_paper import counted, published_text, row
from rnnreranker.regress.papers import Published
from rnnreranker.regress.published_runs import Measured
from rnnreranker.regress.recipe import Recipe, planned
from rnnreranker.regress.recipe_command import plan_lines
from rnnreranker.regress.recipe_plan import PASTE_FOLDER, make_recipe_plan, needs_of, needs_text


def recipe_page(recipe: Recipe, matrix: Matrix) -> str:
    """The Markdown page of a recipe.

    Args:
        recipe: what the page is about.
        matrix: of all papers, with what is on record.
    """
    pairs = [
        (cell, shown)
        for cell, shown in zip(matrix.published, matrix.cells, strict=True)
        if cell.columns.spec == recipe.name and cell.how.condition and not cell.columns.latency
    ]
    mine = [shown for _, shown in pairs]
    texts = entries(mine, addresses(mine))[0]
    plan = make_recipe_plan(recipe, PASTE_FOLDER, recipe.conditions)
    records = [entry for entry in matrix.records if entry.spec == recipe.name]
    printed = {cell.how.condition for cell, _ in pairs}
    changed = [(cell, text) for (cell, _), text in zip(pairs, texts, strict=True) if text["state"] == "changed"]
    return render(
        "regress",
        "recipe.md.j2",
        recipe=recipe,
        row=row,
        needs=_needs(needs_of(plan)),
        counts=counted(mine),
        papers=list(dict.fromkeys(cell.paper for cell, _ in pairs)),
        lines=_lines(recipe, pairs, texts),
        changed=[(_where(cell), cell.measure, text["note"]) for cell, text in changed if text["note"]],
        others=[c for c in recipe.conditions if c.id not in printed and not planned(recipe, c)],
        records=records,
        tested=_tested(records),
        planned=[
            (condition, planned(recipe, condition)) for condition in recipe.conditions if planned(recipe, condition)
        ],
        plan=plan_lines(plan),
        tuned=any(cell.columns.tuned_on_test for cell, _ in pairs),
    )


def _needs(needs: dict[str, Any]) -> list[str]:
    """Amounts on one line, then what must be had first, each on its own."""
    amounts = {key: value for key, value in needs.items() if not isinstance(value, str)}
    order = ("download_gb", "disk_gb", "ram_gb", "gpu_hours", "hours")
    numbers = needs_text({key: amounts[key] for key in order if key in amounts})
    texts = [value for key in ("agreement", "files") for value in str(needs.get(key, "")).split("; ") if value]
    return [text for text in (numbers, *texts) if text] or ["nothing beyond the package"]


def _where(cell: Published) -> str:
    return f"{cell.paper} Table {cell.table}, {cell.row}" + (f", query {cell.query}" if cell.query else "")


def _lines(
    recipe: Recipe, pairs: Sequence[tuple[Published, dict[str, Any]]], texts: Sequence[dict[str, Any]]
) -> list[list[str]]:
    """The table of published values, in the order of the recipe's conditions."""
    order = {condition.id: place for place, condition in enumerate(recipe.conditions)}
    lines = []
    for (cell, _), text in zip(pairs, texts, strict=True):
        measure = text["measure"] + (f", {cell.columns.protocol}" if len(recipe.protocols) > 1 else "")
        line = [f"`{cell.how.condition}`", _where(cell), measure, published_text(text), text["measured"]]
        lines.append((order[cell.how.condition], [*line, text["difference"], text["state"]]))
    return [line for _, line in sorted(lines, key=lambda entry: entry[0])]


def _tested(records: Sequence[Measured]) -> list[list[str]]:
    """Pairs of runs with their p, each pair once."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for entry in records:
        for pair in entry.pairs:
            one, other = entry.condition, str(pair["condition"])
            key = (min(one, other), max(one, other), str(pair["protocol"]), str(pair["measure"]))
            p = float(pair["p_holm"])
            text = "<.001" if p < 0.001 else f"{p:.3f}"[1:] if p < 1 else "1"
            found.setdefault(key, [f"`{one}`, `{other}`", key[2], key[3], text])
    return list(found.values())
