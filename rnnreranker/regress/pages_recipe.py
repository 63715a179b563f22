"""The Markdown page of a recipe: what it measures, published beside measured values, and the plan to paste."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rnnreranker.pages import render, row
from rnnreranker.regress.published_runs import Measured
from rnnreranker.regress.recipe import Recipe, planned
from rnnreranker.regress.recipe_command import plan_lines
from rnnreranker.regress.recipe_plan import PASTE_FOLDER, make_recipe_plan, needs_of, needs_text


@dataclass(frozen=True)
class Printed:
    """A published cell that a condition of a recipe obtains, as its page shows it."""

    condition: str
    paper: str
    where: str  # paper, table, row, query
    measure: str
    protocol: str
    published: str
    measured: str
    difference: str
    state: str
    note: str
    tuned: bool  # the paper chose parameters on the set that it reports


def recipe_page(recipe: Recipe, records: Sequence[Measured], printed: Sequence[Printed], counts: str) -> str:
    """The Markdown page of a recipe.

    Args:
        recipe: what the page is about.
        records: what was measured of it.
        printed: the published cells that it obtains.
        counts: how many of them are in which state, in words.
    """
    plan = make_recipe_plan(recipe, PASTE_FOLDER, recipe.conditions)
    in_papers = {cell.condition for cell in printed}
    return render(
        "regress",
        "recipe.md.j2",
        recipe=recipe,
        row=row,
        needs=_needs(needs_of(plan)),
        counts=counts,
        papers=list(dict.fromkeys(cell.paper for cell in printed)),
        lines=_lines(recipe, printed),
        changed=[(cell.where, cell.measure, cell.note) for cell in printed if cell.state == "changed" and cell.note],
        others=[c for c in recipe.conditions if c.id not in in_papers and not planned(recipe, c)],
        records=records,
        tested=_tested(records),
        planned=[
            (condition, planned(recipe, condition)) for condition in recipe.conditions if planned(recipe, condition)
        ],
        plan=plan_lines(plan),
        tuned=any(cell.tuned for cell in printed),
    )


def _needs(needs: dict[str, Any]) -> list[str]:
    """Amounts on one line, then what must be had first, each on its own."""
    amounts = {key: value for key, value in needs.items() if not isinstance(value, str)}
    order = ("download_gb", "disk_gb", "ram_gb", "gpu_hours", "hours")
    numbers = needs_text({key: amounts[key] for key in order if key in amounts})
    texts = [value for key in ("agreement", "files") for value in str(needs.get(key, "")).split("; ") if value]
    return [text for text in (numbers, *texts) if text] or ["nothing beyond the package"]


def _lines(recipe: Recipe, printed: Sequence[Printed]) -> list[list[str]]:
    """The table of published values, in the order of the recipe's conditions."""
    order = {condition.id: place for place, condition in enumerate(recipe.conditions)}
    lines = []
    for cell in sorted(printed, key=lambda cell: order[cell.condition]):
        measure = cell.measure + (f", {cell.protocol}" if len(recipe.protocols) > 1 else "")
        texts = [f"`{cell.condition}`", cell.where, measure, cell.published, cell.measured]
        lines.append([*texts, cell.difference, cell.state])
    return lines


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
