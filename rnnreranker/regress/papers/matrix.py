"""The matrix: every published cell with what is on record for it, and how many cells are in which state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from rnnreranker.base.errors import InputError, nearest, refuse
from rnnreranker.base.method import make_params
from rnnreranker.base.record import Record, read_records
from rnnreranker.regress.papers.paper import cells_of, paper_names, read_paper
from rnnreranker.regress.papers.rehearsed import rehearsed
from rnnreranker.regress.papers.twins import TwinSet, check_twins, twin_sets
from rnnreranker.regress.plans.plan import make_plan
from rnnreranker.regress.records import recorded, records_file
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.entries import Condition, Model, QuerySet
from rnnreranker.regress.specs.fields import needs_text
from rnnreranker.regress.specs.methods import use_with_folders
from rnnreranker.regress.specs.spec import Spec, links, planned, spec_names

STATES = {  # state: sign, what it says
    "reproduced": ("✓", "measured here; within half a unit of the printed last digit"),
    "changed": ("≠", "measured here; differs by more than that"),
    "rehearsed": (
        "▷",
        "all its steps ran to their end on miniatures of data and models, in their original formats; its value needs "
        "these themselves, a GPU or a network",
    ),
    "runnable elsewhere": (
        "▸",
        "every step is in the toolkit; needs data, a GPU or a network that the machine of these records lacked",
    ),
    "planned": ("○", "a step whose method is not in the toolkit yet"),
    "external": ("–", "quoted from others, or a time on the authors' machine; nothing to run"),
}
LEVEL = 0.05  # of p after Holm's correction: below it rows differ significantly
System = tuple[str, str]  # query set, condition
Cell = dict[str, Any]  # of `paper.cells_of`, with what the matrix adds


class Matrix:
    """The published cells of a folder of specs, with what is on record for them, or `measured` just now.

    Attributes:
        sets: query set → its spec and itself.
        runs: query set and condition → its records, oldest first.
        cells: of `paper.cells_of`, in the order of papers and tables, of one table alone where one is named. Each has
            besides `measured` (in the unit of the paper, or None), `state` (of STATES), `note`, `history`, `tuned` (the
            paper chose parameters of this system on the set), `letter` (of its row), `letters` (of the rows that it
            differs from), and with `commands` these and `parameters`, which take most of the time.
        twins: paper and table → its twins, a query set each.
        rehearsed: query set and condition → when its commands ran on miniatures.

    Raises:
        InputError: a paper, spec or record that is not as it must be; an unknown condition, query set or twin.
    """

    def __init__(
        self,
        folder: Path,
        papers: Sequence[str] | None = None,
        table: str | None = None,
        measured: Sequence[Record] = (),
        commands: bool = True,
    ) -> None:
        self.specs = {name: read_spec(folder / f"{name}.yaml") for name in spec_names(folder)}
        self.sets = {entry.id: (spec, entry) for spec in self.specs.values() for entry in spec.query_sets}
        records = [*recorded(folder, self.specs), *measured]
        self.runs: dict[System, list[Record]] = {}
        for record in records:
            self.runs.setdefault((record.outcome["query_set"], record.name), []).append(record)
        self._commands = commands
        self._plans: dict[System, tuple[list[str], dict[str, Any]]] = {}
        names = papers if papers is not None else paper_names(folder)
        self.papers = [read_paper(name, folder) for name in names]
        everything = [cell for paper in self.papers for cell in cells_of(paper)]
        cells = [cell for cell in everything if table in (None, cell["table"])]
        hint = nearest(str(table), dict.fromkeys(cell["table"] for cell in everything))
        refuse((table is not None and not cells, f"table {table}: no such table in {', '.join(names)}; {hint}"))
        self._check(folder, cells)
        self.rehearsed = rehearsed(folder, self.specs.values())
        self.cells: list[Cell] = [cell | self._known(cell) for cell in cells]
        self._add_letters()
        studies = read_records(records_file(folder, "", "study"))
        self.twins: dict[tuple[str, str], list[TwinSet]] = {
            (paper.number, entry.table): twin_sets(paper, entry, self.sets, [*records, *studies])
            for paper in self.papers
            for entry in paper.tables
            if entry.twins and table in (None, entry.table)
        }

    def _check(self, folder: Path, cells: list[Cell]) -> None:
        """Every cell that a condition obtains must find it, and what it asks for among what its spec measures.

        Raises:
            InputError: the faults of all cells and twins at once, by file:line.
        """
        faults: dict[str, None] = {}
        for cell in (cell for cell in cells if cell["obtained"]):
            where = f"{folder / 'papers' / 'paper-'}{cell['paper']}.yaml:{cell['line']}: row {cell['row']}"
            name = cell["query_set"]
            if name not in self.sets:
                faults[f"{where}: no query set {name}; {nearest(name, self.sets)}"] = None
                continue
            spec, query_set = self.sets[name]
            for kind, wanted, known in (
                ("condition", cell["condition"], [condition.id for condition in spec.conditions_of(query_set)]),
                ("protocol", cell["counted"], query_set.protocols),
                ("measure", cell["metric"], spec.measures_of(query_set)),
            ):
                if wanted not in known:
                    faults[f"{where}: {name} has no {kind} {wanted}; {nearest(wanted, known)}"] = None
        for paper in self.papers:
            faults |= dict.fromkeys(check_twins(paper, self.sets, folder))
        if faults:
            raise InputError("; ".join(faults))

    def _known(self, cell: Cell) -> Cell:
        """What the matrix adds to a cell."""
        usual = "planned" if cell["planned"] else "external" if cell["external"] or cell["latency"] else ""
        known: Cell = {"measured": None, "state": usual or "runnable elsewhere", "tuned": False, "history": []}
        where = {"query set": cell["query_set"], "condition": cell["condition"]} if cell["condition"] else {}
        known |= {"commands": [], "parameters": {name: value for name, value in where.items() if value}}
        known |= {"letter": "", "letters": ""}
        time = "a time on the authors' machine: shown, never compared" if cell["latency"] else ""
        remarks = [cell["remark"]]
        if cell["obtained"]:
            spec, query_set = self.sets[cell["query_set"]]
            condition = spec.condition(cell["condition"])
            known["history"] = history = self._history(cell)
            lacking, when = planned(spec, condition), ""
            if history:
                known["measured"] = measured = history[-1]["value"] * cell["factor"]
                near = abs(measured - cell["published"]) <= 0.5 * 10.0 ** -cell["decimals"] + 1e-9
                known["state"] = "reproduced" if near else "changed"
                for entry in history:
                    entry["value"] = round(entry["value"] * cell["factor"], cell["decimals"] + 2)
            elif lacking:
                known["state"] = "planned"
            elif one := self.rehearsed.get((query_set.id, condition.id)):
                known["state"], when = "rehearsed", f"rehearsed on {one.date} at commit {one.commit}"
            what = "measured on a published run, which cannot be made here" if history else "planned"
            ours = [] if history else model_notes(spec, condition)  # a published run has the authors' models
            remarks += [condition.note, *ours, f"{what}: {lacking}" if lacking else "", when]
            steps = {"training": bool(condition.model), "reranking": bool(condition.rerank)}  # a retriever: by others
            known["tuned"] = any(steps[step] for step in cell["steps"])
            if self._commands:
                commands, known["parameters"] = self._plan(spec, query_set, condition)
                known["commands"] = [*_measuring(query_set, condition), *commands] if history else commands
        remarks += [time, cell["external"], cell["planned"], cell["note"]]
        return known | {"note": "; ".join(dict.fromkeys(filter(None, remarks)))}

    def _history(self, cell: Cell) -> list[dict[str, Any]]:
        """What is on record of a cell, oldest first, in the unit of ir-measures."""
        history = []
        for record in self.runs.get((cell["query_set"], cell["condition"]), ()):
            outcome, query = record.outcome, cell["query"]
            value = outcome.get("queries" if query else "values", {}).get(cell["counted"], {}).get(cell["metric"])
            value = (value or {}).get(query) if query else value
            if value is not None:
                about = {"date": record.date[:10], "commit": record.commit[:10], "value": value}
                of_file = {"run": outcome["file"], "sha256": record.inputs["run"][:16]} if "file" in outcome else {}
                history.append({**about, **of_file})
        return history

    def _add_letters(self) -> None:
        """Give cells with runs at hand the letter of their row, and those of the rows they differ from (p < .05).

        A table has letters where it measures two systems or more whose runs were compared topic by topic.
        """
        newest = {system: entries[-1] for system, entries in self.runs.items()}
        for _, cells in groupby(self.cells, key=lambda cell: (cell["paper"], cell["table"])):
            table = [cell for cell in cells if _system(cell) in newest]
            systems: dict[str, set[System]] = {}  # of each row whose runs were compared
            for cell in table:
                if newest[_system(cell)].outcome.get("pairs"):
                    systems.setdefault(cell["row"], set()).add(_system(cell))
            if len({condition for several in systems.values() for _, condition in several}) < 2:
                continue
            names = dict(zip(systems, ascii_lowercase, strict=False))
            for cell in (cell for cell in table if cell["row"] in systems):
                cell["letter"] = names.get(cell["row"], "")
                others = {
                    other
                    for pair in newest[_system(cell)].outcome.get("pairs", ())
                    if (pair["protocol"], pair["measure"]) == (cell["counted"], cell["metric"])
                    and pair["p_holm"] < LEVEL
                    and (other := (cell["query_set"], str(pair["condition"]))) in newest
                    and newest[other].inputs.get("run") == pair["sha256"]  # still the run whose values are shown
                }
                different = [name for row, name in names.items() if systems[row] & others]
                cell["letters"] = "" if cell["query"] else "".join(different)

    def _plan(self, spec: Spec, query_set: QuerySet, condition: Condition) -> tuple[list[str], dict[str, Any]]:
        """The commands that make the runs of a condition, and its parameters."""
        key = (query_set.id, condition.id)
        if key not in self._plans:
            plan = make_plan(spec, conditions=(condition,), query_sets=(query_set,))
            commands = [step.command() for step in plan.steps] + (plan.evaluations() if plan.steps else [])
            parameters: dict[str, Any] = {"spec": spec.name, "query set": query_set.id, "condition": condition.id}
            for use in map(use_with_folders, condition.rerank):
                own = asdict(make_params("reranker", use.name, use.params, use.preset or None))
                several = len(condition.rerank) > 1
                parameters |= {f"{use.name} {name}" if several else name: value for name, value in own.items()}
            for one in (condition.retrieve, condition.prf, condition.fuse, condition.aggregate):
                parameters |= use_with_folders(one).params if one else {}
            if condition.model:
                model = spec.model(condition.model)
                steps = {"labels": model.labels, "negatives": model.negatives, "train": model.train}
                for step, taken in ((step, use_with_folders(use)) for step, use in steps.items() if use):
                    parameters |= {step: taken.name} if step != "train" else {}
                    given = {"preset": taken.preset} if taken.preset else {}
                    parameters |= {f"{step} {name}": value for name, value in (given | taken.params).items()}
            self._plans[key] = commands, parameters | ({"needs": needs_text(plan.needs())} if plan.steps else {})
        return self._plans[key]

    def summary(self) -> list[list[Any]]:
        """Rows for a table: state, cells as the tables print them, distinct ones.

        Cells of the same run, query, measure and protocol are one, changed if one of them is.
        """
        states: dict[Any, str] = {}
        for number, cell in enumerate(self.cells):
            own = (*_system(cell), cell["query"], cell["metric"], cell["counted"])
            key = own if cell["obtained"] else number
            states[key] = "changed" if "changed" in (states.get(key), cell["state"]) else cell["state"]
        printed, distinct = Counter(cell["state"] for cell in self.cells), Counter(states.values())
        rows: list[list[Any]] = [[state, printed[state], distinct[state]] for state in STATES]
        return [*rows, ["all", printed.total(), distinct.total()]]


def counted(states: Iterator[str] | Sequence[str]) -> str:
    """How many there are of each state, in words.

    >>> counted(["planned", "reproduced", "planned"])
    '1 reproduced, 2 planned'
    """
    counts = Counter(states)
    return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])


def model_notes(spec: Spec, condition: Condition) -> list[str]:
    """The notes of all models that a condition needs, each once: what differs from the paper in how they are trained.

    A model needs what it begins with, what labels its training queries and whose index its candidates are from; a
    condition what those need that it is of.
    """
    by_group = {"models": spec.model, "indexes": spec.index, "conditions": spec.condition}
    seen: dict[int, Any] = {}

    def visit(entry: Any) -> None:
        if id(entry) not in seen:
            seen[id(entry)] = entry
            for key, name, group, _ in links(entry):
                if group in ("models", "indexes") or key == "of":
                    visit(by_group[group](name))

    visit(condition)
    notes = (entry.note for entry in seen.values() if isinstance(entry, Model))
    return list(dict.fromkeys(filter(None, notes)))


def _system(cell: Cell) -> System:
    return cell["query_set"], cell["condition"]


def _measuring(query_set: QuerySet, condition: Condition) -> list[str]:
    """The lines that measure a published run of a condition again, before those that make the run."""
    if not condition.runs:
        return []
    again = f"python -m rnnreranker.regress {query_set.id} --runs RUNS --only {condition.id}"
    return ["# with the published run files in the folder RUNS:", again, "# from the documents:"]
