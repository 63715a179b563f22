"""The matrix: every published cell with what is on record for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError, nearest, refuse
from rnnreranker.base.record import Record, read_records
from rnnreranker.regress.papers.paper import cells_of, paper_names, read_paper
from rnnreranker.regress.papers.twins import TwinSet, check_twins, twin_sets
from rnnreranker.regress.plans.measure import chains
from rnnreranker.regress.plans.plan import make_plan
from rnnreranker.regress.records import recorded, records_file
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.entries import Condition, Model, QuerySet
from rnnreranker.regress.specs.methods import needs_text
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
TIME = "a time on the authors' machine: shown, never compared"
RERANKED, TRAINED = "r-tas-b", "coder-tas-b"  # conditions of msmarco-dev that need least of their kind
System = tuple[str, str]  # query set, condition
Cell = dict[str, Any]
SAME = ["obtained", "query_set", "condition", "query", "metric", "counted"]  # of cells that are one value
COLUMNS = [*SAME, "paper", "table", "row", "latency", "state"]  # of a matrix without cells


class Matrix:
    """The published cells of a folder of specs, with what is on record for them, or `measured` just now.

    Attributes:
        sets: query set → its spec and itself.
        runs: query set and condition → its records, oldest first.
        cells: a data frame, a row a cell, in the order of the tables: the columns of `paper.cells_of`, `measured` (in
            the unit of the paper, or None), `state` (of STATES), `note`, `history`, `tuned` (the paper chose
            parameters of this system on the set), `parameters` and `commands`.
        twins: paper and table → its twins, one per query set.

    Raises:
        InputError: a mistake in a paper, spec or record; an unknown condition, query set or twin.
    """

    def __init__(
        self,
        folder: Path,
        papers: Sequence[str] | None = None,
        table: str | None = None,
        measured: Sequence[Record] = (),
        commands: bool = True,
    ) -> None:
        import pandas

        self.specs = {name: read_spec(folder / f"{name}.yaml") for name in spec_names(folder)}
        self.sets = {entry.id: (spec, entry) for spec in self.specs.values() for entry in spec.query_sets}
        records = [*recorded(folder, self.specs), *measured]
        self.runs: dict[System, list[Record]] = {}
        for record in records:
            self.runs.setdefault((record.outcome["query_set"], record.name), []).append(record)
        names = papers if papers is not None else paper_names(folder)
        self.papers = [read_paper(name, folder) for name in names]
        cells = [cell for paper in self.papers for cell in cells_of(paper)]
        hint = nearest(str(table), known := dict.fromkeys(cell["table"] for cell in cells))
        refuse((table not in (None, *known), f"table {table}: no such table in {', '.join(names)}; {hint}"))
        cells = [cell for cell in cells if table in (None, cell["table"])]
        faults = {f"{folder / 'papers' / 'paper-'}{paper}.yaml{at}": None for paper, at in self._faults(cells)}
        if faults:
            raise InputError("; ".join(faults))
        self._rehearsed = rehearsed(folder, self.specs.values())
        self._commands: dict[System, tuple[list[str], str]] | None = {} if commands else None
        rows = [cell | self._known(cell) for cell in cells]
        self.cells = pandas.DataFrame(rows, columns=None if rows else COLUMNS, dtype=object)
        studies = read_records(records_file(folder, "", "study"))
        self.twins: dict[tuple[str, str], list[TwinSet]] = {
            (paper.number, entry.table): twin_sets(paper, entry, self.sets, [*records, *studies])
            for paper in self.papers
            for entry in paper.tables
            if entry.twins and table in (None, entry.table)
        }

    def _faults(self, cells: list[Cell]) -> Iterator[tuple[str, str]]:
        """The paper of each mistake, and its message from the line on."""
        for cell in (cell for cell in cells if cell["obtained"]):
            where, name = f":{cell['line']}: row {cell['row']}", cell["query_set"]
            if name not in self.sets:
                yield cell["paper"], f"{where}: no query set {name}; {nearest(name, self.sets)}"
                continue
            spec, query_set = self.sets[name]
            for kind, wanted, known in (
                ("condition", cell["condition"], [condition.id for condition in spec.conditions_of(query_set)]),
                ("protocol", cell["counted"], query_set.protocols),
                ("measure", cell["metric"], spec.measures_of(query_set)),
            ):
                if wanted not in known:
                    yield cell["paper"], f"{where}: {name} has no {kind} {wanted}; {nearest(wanted, known)}"
        for paper in self.papers:
            for line, said in check_twins(paper, self.sets):
                yield paper.number, f"{f':{line}' if line else ''}: {said}"

    def _known(self, cell: Cell) -> Cell:
        """The columns that the matrix adds to a cell."""
        state = "planned" if cell["planned"] else "external" if cell["external"] or cell["latency"] else ""
        where = {"query set": cell["query_set"], "condition": cell["condition"]} if cell["condition"] else {}
        known: Cell = {"measured": None, "state": state or "runnable elsewhere", "tuned": False, "history": []}
        known |= {"commands": [], "parameters": {name: value for name, value in where.items() if value}}
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
            elif when := self._rehearsed.get((query_set.id, condition.id), ""):
                known["state"] = "rehearsed"
            what = "measured on a published run, which cannot be made here" if history else "planned"
            ours = [] if history else model_notes(spec, condition)  # a published run has the authors' models
            remarks += [condition.note, *ours, f"{what}: {lacking}" if lacking else "", when]
            steps = {"training": bool(condition.model), "reranking": bool(condition.rerank)}  # a retriever: by others
            known["tuned"] = any(steps[step] for step in cell["steps"])
            if self._commands is not None:
                commands, needs = self._plan(spec, query_set, condition)
                known["commands"] = [*_measuring(query_set, condition), *commands] if history else commands
                known["parameters"] = {"spec": spec.name} | where | ({"needs": needs} if commands else {})
        remarks += [TIME if cell["latency"] else "", cell["external"], cell["planned"], cell["note"]]
        return known | {"note": "; ".join(dict.fromkeys(filter(None, remarks)))}

    def _history(self, cell: Cell) -> list[dict[str, Any]]:
        """The recorded values of a cell, oldest first, without its factor."""
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

    def _plan(self, spec: Spec, query_set: QuerySet, condition: Condition) -> tuple[list[str], str]:
        assert self._commands is not None
        key = (query_set.id, condition.id)
        if key not in self._commands:
            plan = make_plan(spec, conditions=(condition,), query_sets=(query_set,))
            commands = [step.command() for step in plan.steps] + (plan.evaluations() if plan.steps else [])
            self._commands[key] = commands, needs_text(plan.needs())
        return self._commands[key]

    def summary(self) -> list[list[Any]]:
        """Rows of state, cells, distinct cells (by run, query, measure and protocol; changed if one of them is)."""
        changed_first = self.cells.sort_values("state", key=lambda states: states != "changed", kind="stable")
        again = changed_first["obtained"].astype(bool) & changed_first.duplicated(SAME)
        states, distinct = Counter(self.cells["state"]), Counter(changed_first["state"][~again])
        rows: list[list[Any]] = [[state, states[state], distinct[state]] for state in STATES]
        return [*rows, ["all", states.total(), distinct.total()]]

    def whose(self) -> str:
        """Sentences on what the reproduced values are of, and what can be computed where, or ""."""
        reproduced = self.cells[self.cells["state"] == "reproduced"]
        if reproduced.empty:
            return ""
        of = Counter(name.partition(" [")[0] for name in reproduced["row"])
        listed = ", ".join(f"{name} {count}" for name, count in of.most_common())
        text = f"The {len(reproduced)} reproduced values are evaluations of published first-stage runs ({listed})"
        systems = {*zip(reproduced["query_set"], reproduced["condition"], strict=True)}
        if not any(_is_ours(self.sets[one][0], name) for one, name in systems):
            text += "; none is a value of rNN, label smoothing or CODER"
        spec, query_set = self.sets.get("msmarco-dev", (None, None))
        if spec is None or query_set is None:
            return f"{text}."
        of_two = ([spec.condition(name)] for name in (RERANKED, TRAINED))
        plans = (make_plan(spec, conditions=one, query_sets=[query_set]) for one in of_two)
        first, second = (plan.needs() for plan in plans)
        sizes = f"{first['download_gb']:.0f} GB to download, {first['hours']:g} hours and no GPU"
        again = f"`python -m rnnreranker.regress {query_set.id} --only {RERANKED}`"
        trained = f"those of label smoothing and CODER take a GPU for {second['gpu_hours']:g} hours or more"
        return f"{text}. Values of rNN over TAS-B take {sizes}: {again}; {trained} (`--only {TRAINED}`)."


def _is_ours(spec: Spec, name: str) -> bool:
    """Whether a condition reranks by rNN, or searches with a trained query encoder."""
    condition = spec.condition(name)
    trained = bool(condition.model) and spec.model(condition.model).train.name == "query"
    return trained or any(use.name == "rnn" for use in condition.rerank)


def counted(states: Iterable[str]) -> str:
    """The number of cells in each state.

    >>> counted(["planned", "reproduced", "planned"])
    '1 reproduced, 2 planned'
    """
    return ", ".join(f"{count} {state}" for state, count in count_states(states).items())


def count_states(states: Iterable[str]) -> dict[str, int]:
    """The number of each occurring state, in the order of `STATES`."""
    counts = Counter(states)
    return {state: counts[state] for state in STATES if counts[state]}


def model_notes(spec: Spec, condition: Condition) -> list[str]:
    """The notes of all models that a condition needs, directly or not."""
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


def rehearsed(folder: Path, specs: Iterable[Spec]) -> dict[System, str]:
    """Query set and condition → when its present commands ran to their end on miniatures."""
    records = {record.spec: record for record in read_records(records_file(folder, "", "rehearsal"))}
    known: dict[System, str] = {}
    for spec in specs:
        if record := records.get(spec.name):
            for (query_set, condition), commands in chains(make_plan(spec)).items():
                if record.outcome["systems"].get(query_set, {}).get(condition) == commands:
                    known[query_set, condition] = f"rehearsed on {record.date[:10]} at commit {record.commit}"
    return known


def _measuring(query_set: QuerySet, condition: Condition) -> list[str]:
    if not condition.runs:
        return []
    again = f"python -m rnnreranker.regress {query_set.id} --runs RUNS --only {condition.id}"
    return ["# with the published run files in the folder RUNS:", again, "# from the documents:"]
