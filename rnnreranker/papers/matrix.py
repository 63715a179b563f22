"""The matrix: what is known here of every published cell, and how many are in which state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rnnreranker.errors import InputError, nearest
from rnnreranker.method import make_params
from rnnreranker.papers.cells import STATES
from rnnreranker.papers.join import Key, key_of, page_cells
from rnnreranker.papers.letters import letters
from rnnreranker.papers.paper import Published, paper_names, published, read_paper, remark
from rnnreranker.regress.published_runs import Measured, on_record, records_file
from rnnreranker.regress.recipe import Condition, Recipe, planned, recipes
from rnnreranker.regress.recipe_plan import PASTE_FOLDER, make_recipe_plan, needs_of, needs_text


class Matrix:
    """The published cells of a folder of specs, with what is on record for them, or `measured` just now.

    Args:
        folder: of specs.
        papers: their names; None = all.
        table: only this table of them.
        measured: values that are not on record.
        commands: give each cell its commands and parameters too, which takes most of the time.

    Attributes:
        recipes: all recipes of the folder by name.
        records: everything measured, oldest first within a file of records.
        published: every cell, in the order of papers and tables.
        found: cell → what `join.page_cells` takes.
        cells: one dictionary a cell, in the same order, as the page takes them.

    Raises:
        InputError: a paper, recipe or record that is not as it must be; a condition or spec that does not exist.
    """

    def __init__(
        self,
        folder: Path,
        papers: Sequence[str] | None = None,
        table: str | None = None,
        measured: Sequence[Measured] = (),
        commands: bool = True,
    ) -> None:
        self.recipes = recipes(folder)
        self._measured: dict[tuple[str, str], list[Measured]] = {}
        recorded = [
            entry for name in ("published-runs", *self.recipes) for entry in on_record(records_file(folder, name))
        ]
        self.records = [*recorded, *measured]
        for entry in self.records:
            self._measured.setdefault((entry.spec, entry.condition), []).append(entry)
        self._commands = commands
        self._plans: dict[tuple[str, str], tuple[list[str], dict[str, Any]]] = {}
        names = papers if papers is not None else paper_names(folder)
        everything = [cell for name in names for cell in published(read_paper(name, folder))]
        self.published = [cell for cell in everything if table is None or cell.table == table]
        if not self.published:
            known = list(dict.fromkeys(cell.table for cell in everything))
            raise InputError(f"table {table}: no such table in {', '.join(names)}; {nearest(str(table), known)}")
        self._check(folder)
        self.found: dict[Key, dict[str, Any]] = {key_of(cell): self._known(cell) for cell in self.published}
        newest = {system: entries[-1] for system, entries in self._measured.items()}
        for name, found in zip(("letter", "letters"), letters(self.published, newest), strict=True):
            for key, text in found.items():
                self.found[key][name] = text
        self.cells = page_cells(self.published, self.found)

    def _known(self, cell: Published) -> dict[str, Any]:
        known: dict[str, Any] = {"note": remark(cell)}
        if not cell.how.condition or cell.columns.latency:
            return known
        recipe, condition = self._condition(cell)
        history = self._history(cell)
        lacking = planned(recipe, condition)
        if history:
            known["measured"] = history[-1]["value"]
        elif lacking:
            known["state"] = "planned"
        what = "measured on a published run, which cannot be made here" if history else "planned"
        remarks = (known["note"], condition.note, f"{what}: {lacking}" if lacking else "")
        known["note"] = "; ".join(filter(None, remarks))
        known["history"] = history
        known["tuned"] = not condition.retrieve or bool(condition.model)  # a retriever as it is was tuned by others
        if self._commands:
            commands, known["parameters"] = self._plan(recipe, condition)
            known["commands"] = [*_measuring(recipe, condition), *commands] if history else commands
        return known

    def _check(self, folder: Path) -> None:
        """Every cell that a condition obtains must find it, and what it asks for among what its recipe measures.

        Raises:
            InputError: all cells' faults at once, by file:line.
        """
        faults: dict[str, None] = {}
        for cell in self.published:
            if not cell.how.condition or cell.columns.latency:
                continue
            place = f"{folder / 'papers' / f'paper-{cell.paper}.yaml'}:{cell.how.line}: row {cell.row}"
            recipe = self.recipes.get(cell.columns.spec)
            if recipe is None:
                faults[f"{place}: no recipe {cell.columns.spec}; {nearest(cell.columns.spec, self.recipes)}"] = None
                continue
            for kind, name, known in (
                ("condition", cell.how.condition, [condition.id for condition in recipe.conditions]),
                ("protocol", cell.columns.protocol, recipe.protocols),
                ("measure", cell.metric, recipe.measures),
            ):
                if name not in known:
                    faults[f"{place}: {recipe.name} has no {kind} {name}; {nearest(name, known)}"] = None
        if faults:
            raise InputError("; ".join(faults))

    def _condition(self, cell: Published) -> tuple[Recipe, Condition]:
        recipe = self.recipes[cell.columns.spec]
        return recipe, recipe.condition(cell.how.condition)

    def _history(self, cell: Published) -> list[dict[str, Any]]:
        """What is on record, oldest first, in the unit of ir-measures."""
        found = []
        for entry in self._measured.get((cell.columns.spec, cell.how.condition), ()):
            if cell.query:
                value = entry.queries.get(cell.columns.protocol, {}).get(cell.metric, {}).get(cell.query)
            else:
                value = entry.values.get(cell.columns.protocol, {}).get(cell.metric)
            if value is not None:
                about = {"date": entry.date[:10], "commit": entry.commit[:10], "value": value}
                found.append({**about, "run": entry.file, "sha256": entry.sha256[:16]})
        return found

    def _plan(self, recipe: Recipe, condition: Condition) -> tuple[list[str], dict[str, Any]]:
        key = (recipe.name, condition.id)
        if key not in self._plans:
            plan = make_recipe_plan(recipe, PASTE_FOLDER, (condition,))
            commands = [step.command() for step in plan.steps] + (plan.evaluations() if plan.steps else [])
            parameters: dict[str, Any] = {"spec": recipe.name, "condition": condition.id}
            if condition.base:
                preset = condition.preset or None
                parameters |= asdict(make_params("reranker", condition.rerank, condition.params, preset))
            else:
                parameters |= condition.params
            if condition.model:
                model = recipe.model(condition.model)
                parameters |= {f"labels {name}": value for name, value in model.labels.items()}
                parameters |= {f"train {name}": value for name, value in model.train.items()}
            self._plans[key] = commands, parameters | ({"needs": needs_text(needs_of(plan))} if plan.steps else {})
        return self._plans[key]

    def recorded(self, recipe: str) -> set[str]:
        """The conditions of a recipe with measured values."""
        return {condition for name, condition in self._measured if name == recipe}

    def distinct(self) -> Counter[str]:
        """Cells by state, those of the same run, query, measure and protocol counted once (changed if one is)."""
        states: dict[tuple[str, ...], str] = {}
        for number, (cell, shown) in enumerate(zip(self.published, self.cells, strict=True)):
            key: tuple[str, ...] = (str(number),)
            if cell.how.condition and not cell.columns.latency:
                system = (cell.columns.spec, cell.how.condition)
                key = (*system, cell.query, cell.metric, cell.columns.protocol)
            before = states.get(key)
            states[key] = "changed" if "changed" in (before, shown["state"]) else shown["state"]
        return Counter(states.values())

    def summary(self) -> list[list[Any]]:
        """Rows for a table: state, cells as the tables print them, distinct ones."""
        printed: Counter[str] = Counter(cell["state"] for cell in self.cells)
        distinct = self.distinct()
        rows: list[list[Any]] = [[state, printed[state], distinct[state]] for state in STATES]
        return [*rows, ["all", sum(printed.values()), sum(distinct.values())]]


def _measuring(recipe: Recipe, condition: Condition) -> list[str]:
    """The lines that measure a published run of a condition again, before those that make the run."""
    if not condition.runs:
        return []
    again = f"python -m rnnreranker.regress {recipe.name} --runs RUNS --only {condition.id}"
    return ["# with the published run files in the folder RUNS:", again, "# from the documents:"]
