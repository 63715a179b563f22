"""The matrix: what is known here of every published cell, and how many are in which state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import make_params
from rnnreranker.base.record import Record, read_records
from rnnreranker.regress.pages.model_notes import model_notes
from rnnreranker.regress.papers.cells import STATES
from rnnreranker.regress.papers.join import key_of, letters, page_cells
from rnnreranker.regress.papers.paper import Published, paper_names, published, read_paper, remark
from rnnreranker.regress.papers.rehearsed import rehearsed
from rnnreranker.regress.papers.twins import TwinSet, check_twins, twin_sets
from rnnreranker.regress.plans.plan import make_plan
from rnnreranker.regress.records import recorded, records_file
from rnnreranker.regress.specs.checks import read_spec
from rnnreranker.regress.specs.fields import needs_text
from rnnreranker.regress.specs.methods import use_with_folders
from rnnreranker.regress.specs.spec import Condition, QuerySet, Spec, planned, spec_names

System = tuple[str, str]  # query set, condition


class Matrix:
    """The published cells of a folder of specs, with what is on record for them, or `measured` just now.

    Attributes:
        sets: query set → its spec and itself.
        runs: query set and condition → its records, oldest first.
        published: every cell, in the order of papers and tables, of one table alone where one is named.
        cells: one dictionary a cell, in the same order, as the page takes them; with `commands` these and parameters,
            which take most of the time.
        twins: paper and table → its twins, a query set each.
        rehearsed: query set and condition → when its commands ran on miniatures.

    Raises:
        InputError: a paper, spec or record that is not as it must be; a condition, query set or twin that there is not.
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
        everything = [cell for paper in self.papers for cell in published(paper)]
        self.published = [cell for cell in everything if table is None or cell.table == table]
        if table is not None and not self.published:
            hint = nearest(str(table), [cell.table for cell in everything])
            raise InputError(f"table {table}: no such table in {', '.join(names)}; {hint}")
        self._check(folder)
        self.rehearsed = rehearsed(folder, self.specs.values())
        known = {key_of(cell): self._known(cell) for cell in self.published}
        newest = {system: entries[-1] for system, entries in self.runs.items()}
        for name, by_cell in zip(("letter", "letters"), letters(self.published, newest), strict=True):
            for key, text in by_cell.items():
                known[key][name] = text
        self.cells = page_cells(self.published, known)
        studies = read_records(records_file(folder, "", "study"))
        self.twins: dict[tuple[str, str], list[TwinSet]] = {
            (paper.id, entry.table): twin_sets(paper, entry, self.sets, [*records, *studies])
            for paper in self.papers
            for entry in paper.tables
            if entry.twins and table in (None, entry.table)
        }

    def of_spec(self, name: str) -> Iterator[tuple[Published, dict[str, Any]]]:
        """The cells that a spec obtains, with what the page takes of them."""
        for cell, shown in zip(self.published, self.cells, strict=True):
            if _obtained(cell) and self.sets[cell.columns.query_set][0].name == name:
                yield cell, shown

    def _known(self, cell: Published) -> dict[str, Any]:
        known: dict[str, Any] = {"note": remark(cell)}
        if not _obtained(cell):
            return known
        spec, query_set = self.sets[cell.columns.query_set]
        condition = spec.condition(cell.how.condition)
        history = self._history(cell)
        lacking, when = planned(spec, condition), ""
        if history:
            known["measured"] = history[-1]["value"]
        elif lacking:
            known["state"] = "planned"
        elif one := self.rehearsed.get((query_set.id, condition.id)):
            known["state"], when = "rehearsed", f"rehearsed on {one.date} at commit {one.commit}"
        what = "measured on a published run, which cannot be made here" if history else "planned"
        ours = [] if history else model_notes(spec, condition)  # a published run has the authors' models
        remarks = (known["note"], condition.note, *ours, f"{what}: {lacking}" if lacking else "", when)
        known["note"] = "; ".join(filter(None, remarks))
        known["history"] = history
        steps = {"training": bool(condition.model), "reranking": bool(condition.rerank)}  # a retriever: others chose
        known["tuned"] = any(steps[step] for step in cell.columns.tuned)
        if self._commands:
            commands, known["parameters"] = self._plan(spec, query_set, condition)
            known["commands"] = [*_measuring(query_set, condition), *commands] if history else commands
        return known

    def _check(self, folder: Path) -> None:
        """Every cell that a condition obtains must find it, and what it asks for among what its spec measures.

        Raises:
            InputError: the faults of all cells and twins at once, by file:line.
        """
        faults: dict[str, None] = {}
        lines = {paper.id: paper.lines for paper in self.papers}
        for cell in filter(_obtained, self.published):
            line = lines[cell.paper][cell.table, cell.row]
            where = f"{folder / 'papers' / f'paper-{cell.paper}.yaml'}:{line}: row {cell.row}"
            name = cell.columns.query_set
            if name not in self.sets:
                faults[f"{where}: no query set {name}; {nearest(name, self.sets)}"] = None
                continue
            spec, query_set = self.sets[name]
            for kind, wanted, known in (
                ("condition", cell.how.condition, [condition.id for condition in spec.conditions_of(query_set)]),
                ("protocol", cell.columns.protocol, query_set.protocols),
                ("measure", cell.metric, spec.measures_of(query_set)),
            ):
                if wanted not in known:
                    faults[f"{where}: {name} has no {kind} {wanted}; {nearest(wanted, known)}"] = None
        for paper in self.papers:
            faults |= dict.fromkeys(check_twins(paper, self.sets, folder))
        if faults:
            raise InputError("; ".join(faults))

    def _history(self, cell: Published) -> list[dict[str, Any]]:
        """What is on record, oldest first, in the unit of ir-measures."""
        history = []
        for record in self.runs.get((cell.columns.query_set, cell.how.condition), ()):
            outcome = record.outcome
            scores = outcome.get("queries" if cell.query else "values", {}).get(cell.columns.protocol, {})
            value = scores.get(cell.metric, {}).get(cell.query) if cell.query else scores.get(cell.metric)
            if value is not None:
                about = {"date": record.date[:10], "commit": record.commit[:10], "value": value}
                of_file = {"run": outcome["file"], "sha256": record.inputs["run"][:16]} if "file" in outcome else {}
                history.append({**about, **of_file})
        return history

    def _plan(self, spec: Spec, query_set: QuerySet, condition: Condition) -> tuple[list[str], dict[str, Any]]:
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
        states: dict[tuple[str, ...], str] = {}
        for number, (cell, shown) in enumerate(zip(self.published, self.cells, strict=True)):
            key: tuple[str, ...] = (str(number),)
            if _obtained(cell):
                key = (cell.columns.query_set, cell.how.condition, cell.query, cell.metric, cell.columns.protocol)
            states[key] = "changed" if "changed" in (states.get(key), shown["state"]) else shown["state"]
        printed, distinct = Counter(cell["state"] for cell in self.cells), Counter(states.values())
        rows: list[list[Any]] = [[state, printed[state], distinct[state]] for state in STATES]
        return [*rows, ["all", printed.total(), distinct.total()]]


def _obtained(cell: Published) -> bool:
    """Whether a condition of a spec obtains the cell."""
    return bool(cell.how.condition and not cell.columns.latency)


def _measuring(query_set: QuerySet, condition: Condition) -> list[str]:
    """The lines that measure a published run of a condition again, before those that make the run."""
    if not condition.runs:
        return []
    again = f"python -m rnnreranker.regress {query_set.id} --runs RUNS --only {condition.id}"
    return ["# with the published run files in the folder RUNS:", again, "# from the documents:"]
