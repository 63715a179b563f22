"""The matrix: one data frame of every published cell with what is on record for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError, nearest, refuse
from rnnreranker.base.record import Record, read_records
from rnnreranker.regress.papers.paper import StudyArm, cells_of, paper_names, read_paper
from rnnreranker.regress.plans.maker import make_plan
from rnnreranker.regress.records import recorded, records_file
from rnnreranker.regress.specs.entries import Condition, Spec, needs_text
from rnnreranker.regress.specs.spec import SpecFile, read_spec, spec_names

STATES = {  # state: sign, what it says
    "reproduced": ("✓", "measured here; within half a unit of the printed last digit"),
    "changed": ("≠", "measured here; differs by more than that"),
    "runnable elsewhere": (
        "▸",
        "every step is in the toolkit; needs data, a GPU or a network that the machine of these records lacked",
    ),
    "planned": ("○", "a step whose method is not in the toolkit yet"),
    "external": ("–", "quoted from others, or a time on the authors' machine; nothing to run"),
}
TIME = "a time on the authors' machine: shown, never compared"
SAME = ["query_set", "condition", "protocol", "metric", "query"]  # of cells that are one value


class Matrix:
    """The published cells of a folder of specs, with what is on record for them, or `measured` just now.

    Attributes:
        specs: by name; sets: query set → its spec and itself; papers: in order; records: of all specs, oldest first.
        cells: a data frame, a row a cell, in the order of the tables: the columns of `paper.cells_of`, `spec`,
            `measured` (in the unit of the paper, or None), its `record`, `state` (of STATES), `note`, and `tuned`: the
            paper chose parameters of this system on the set.

    Raises:
        InputError: a mistake in a paper, spec or record; an unknown name in a paper.
    """

    def __init__(
        self,
        folder: Path,
        papers: Sequence[str] | None = None,
        table: str | None = None,
        measured: Sequence[Record] = (),
    ) -> None:
        import pandas

        self.specs = {name: read_spec(folder / f"{name}.yaml") for name in spec_names(folder)}
        self.sets = {entry.id: (spec, entry) for spec in self.specs.values() for entry in spec.query_sets.values()}
        self.records = [*recorded(folder, self.specs), *measured]
        self._runs: dict[tuple[str, str], list[Record]] = {}
        for record in self.records:
            self._runs.setdefault((record.outcome["query_set"], record.name), []).append(record)
        self._studies = {(one.spec, one.name): one for one in read_records(records_file(folder, "", "study"))}
        names = paper_names(folder) if papers is None else papers
        self.papers = [read_paper(name, folder) for name in names]
        cells = [cell for paper in self.papers for cell in cells_of(paper)]
        tables = dict.fromkeys(cell["table"] for cell in cells)
        hint = nearest(str(table), tables)
        refuse((table not in (None, *tables), f"table {table}: no such table in {', '.join(names)}; {hint}"))
        cells = [cell for cell in cells if table in (None, cell["table"])]
        faults: dict[str, None] = {}
        for cell in cells:
            for what, name, known in self._links(cell):
                if name not in known:
                    path, line = SpecFile(folder / "papers" / f"paper-{cell['paper']}.yaml").where(cell["at"])
                    faults[f"{path}:{line}: row {cell['row']}: no {what} {name}; {nearest(name, known)}"] = None
        if faults:
            raise InputError("; ".join(faults))
        rows = [cell | self._known(cell) for cell in cells]
        self.cells = pandas.DataFrame(
            rows, columns=None if rows else ["paper", "table", "row", "spec", "state", *SAME], dtype=object
        )

    def newest(self, query_set: str, name: str, protocol: str, metric: str, query: str = "") -> tuple[Any, Any]:
        """The last recorded value of a run and its record, or None twice; query: "" = the mean."""
        for record in reversed(self._runs.get((query_set, name), ())):
            value = record.outcome.get("queries" if query else "values", {}).get(protocol, {}).get(metric)
            value = (value or {}).get(query) if query else value
            if value is not None:
                return value, record
        return None, None

    def of_arm(self, spec: str, twin: StudyArm, metric: str) -> tuple[Any, Any]:
        """The recorded value of an arm of a study over all topics and its record, or None twice."""
        record = self._studies.get((spec, twin.study))
        of_arm = {"arm": twin.arm, "group": "all", "measure": metric}
        rows = [one for one in record.outcome["rows"] if of_arm.items() <= one.items()] if record else []
        return (rows[0]["value"], record) if rows else (None, None)

    def _links(self, cell: dict[str, Any]) -> Iterator[tuple[str, str, Collection[str]]]:
        """Names in a cell: what is named, the name, the known ones."""
        name, twin, specs = (
            cell["query_set"],
            cell["twin"],
            [self.sets[one][0] for one in cell["twins"] if one in self.sets],
        )
        if cell["condition"]:
            yield "query set", name, self.sets
            if name in self.sets:
                spec, query_set = self.sets[name]
                yield "condition", cell["condition"], [entry.id for entry in spec.conditions_of(query_set)]
                yield "protocol", cell["protocol"], query_set.protocols
                yield "measure", cell["metric"], spec.measures_of(query_set)
        yield from (("twins: query set", one, self.sets) for one in cell["twins"])
        if isinstance(twin, StudyArm):
            made = [one for one in self._studies.values() if one.name == twin.study]
            arms = {entry["arm"] for one in made for entry in one.outcome["rows"]}
            yield "twin: arm", twin.arm, arms or [twin.arm]
            twin = twin.study
        if twin:
            yield "twin", twin, [name for spec in specs for name in (*spec.conditions, *spec.studies)]

    def _known(self, cell: dict[str, Any]) -> dict[str, Any]:
        """The columns that the matrix adds to a cell."""
        known: dict[str, Any] = {"spec": "", "measured": None, "record": None, "tuned": False}
        lacking, notes = cell["planned"], [cell["remark"]]
        if cell["condition"]:
            spec = self.sets[cell["query_set"]][0]
            condition = spec.condition(cell["condition"])
            value, record = self.newest(*(cell[key] for key in SAME))
            steps = {"training": condition.model, "reranking": condition.rerank}  # a retriever: by others
            known |= {"spec": spec.name, "record": record, "tuned": any(steps[step] for step in cell["tuned"])}
            notes = [*notes, condition.note]
            if record:
                known["measured"] = value * cell["factor"]
            else:  # a published run has the authors' models
                notes += model_notes(spec, condition)
        if known["record"]:
            near = abs(known["measured"] - cell["published"]) <= 0.5 * 10.0 ** -cell["decimals"] + 1e-9
            states = {"reproduced": near, "changed": not near}
        else:
            nothing = cell["external"] or cell["latency"]
            states = {"planned": lacking, "external": nothing, "runnable elsewhere": True}
        known["state"] = next(state for state, holds in states.items() if holds)
        what = "measured on a published run, which cannot be made here" if known["record"] else "planned"
        notes += [f"{what}: {lacking}" if lacking else "", TIME if cell["latency"] else ""]
        return known | {"note": "; ".join(dict.fromkeys(filter(None, [*notes, cell["external"], cell["note"]])))}

    def commands(self, query_set: str, condition: str) -> tuple[list[str], str]:
        """The commands from documents to values of a condition, and what they need."""
        spec, entry = self.sets[query_set]
        plan = make_plan(spec, conditions=[spec.condition(condition)], query_sets=[entry])
        return [step.command() for step in plan.steps] + plan.evaluations() * bool(plan.steps), needs_text(plan.needs())

    def summary(self) -> list[list[Any]]:
        """Rows of state, cells, distinct cells (by run, query, measure and protocol; changed if one of them is)."""
        changed_first = self.cells.sort_values("state", key=lambda states: states != "changed", kind="stable")
        again = (changed_first["condition"] != "") & changed_first.duplicated(SAME)
        states, distinct = Counter(self.cells["state"]), Counter(changed_first["state"][~again])
        rows: list[list[Any]] = [[state, states[state], distinct[state]] for state in STATES]
        return [*rows, ["all", states.total(), distinct.total()]]

    def whose(self) -> str:
        """A sentence on what the reproduced values are of, or ""."""
        cells = self.cells[self.cells["state"] == "reproduced"]
        of = ", ".join(
            f"{row} {count}" for row, count in cells["row"].str.split(" [", regex=False).str[0].value_counts().items()
        )
        text = f"The {len(cells)} reproduced values are evaluations of published first-stage runs ({of})"
        systems = {*zip(cells["query_set"], cells["condition"], strict=True)}
        conditions = [self.sets[one][0].condition(name) for one, name in systems]
        ours = any(one.model or "rnn" in [use.name for use in one.rerank] for one in conditions)
        return f"{text}{'' if ours else '; none is a value of rNN, label smoothing or CODER'}." if of else ""


def count_states(states: Iterable[str]) -> dict[str, int]:
    """The number of each occurring state, in the order of `STATES`."""
    counts = Counter(states)
    return {state: counts[state] for state in STATES if counts[state]}


def counted(states: Iterable[str]) -> str:
    """The number of cells in each state.

    >>> counted(["planned", "reproduced", "planned"])
    '1 reproduced, 2 planned'
    """
    return ", ".join(f"{count} {state}" for state, count in count_states(states).items())


def model_notes(spec: Spec, condition: Condition) -> list[str]:
    """The notes of all models that a condition stands on, directly or not."""
    seen: dict[tuple[str, str], None] = {}

    def visit(entry: tuple[str, str]) -> None:
        if entry not in seen:
            seen[entry] = None
            for other in spec.links[entry]:
                visit(other)

    visit(("conditions", condition.id))
    notes = (spec.models[name].note for group, name in seen if group == "models")
    return list(dict.fromkeys(filter(None, notes)))
