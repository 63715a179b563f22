"""What is run of a spec, and what came of it: conditions measured and compared, records of studies gathered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.command import say
from rnnreranker.errors import InputError, nearest
from rnnreranker.regress.measure import Key, measure
from rnnreranker.regress.plan import Plan, make_plan, work_file
from rnnreranker.regress.published import Queries, find_runs, measure_published
from rnnreranker.regress.records import compare, records_file
from rnnreranker.regress.runner import run_plan
from rnnreranker.regress.spec import Condition, QuerySet, Spec, planned
from rnnreranker.regress.state import State, failed, skipped

if TYPE_CHECKING:
    from rnnreranker.record import Record


@dataclass(frozen=True)
class Outcome:
    """What was measured, and the state of every run (query set, name) and every study and the like ("", id)."""

    records: list[Record]
    states: dict[Key, State]

    def reasons(self) -> dict[State, list[str]]:
        """Why something is missing → the names of what."""
        found: dict[State, list[str]] = {}
        for (_, name), state in self.states.items():
            if state.kind in ("skipped", "error") and name not in found.setdefault(state, []):
                found[state].append(name)
        return found


def chosen_plan(spec: Spec, query_sets: Sequence[QuerySet], only: str | None, folder: Path) -> Plan:
    """The plan of what is asked for of a spec.

    Without `only`, all conditions; a spec without conditions: all its studies and the like. They take long, so that one
    beside conditions is run when `only` names it.

    Args:
        spec: which.
        query_sets: those of it that are asked for.
        only: the id of one condition, which comes with those that it needs, or of one study, tuning, ….
        folder: for its files.

    Raises:
        InputError: `only` names nothing in the spec.
    """
    if only is None:
        return make_plan(spec, folder, None, query_sets, () if spec.conditions else spec.works)
    works = [work for work in spec.works if work.id == only]
    if works:
        return make_plan(spec, folder, (), query_sets, works)
    wanted: list[Condition] = []

    def visit(condition: Condition) -> None:
        for name in condition.of:
            visit(spec.condition(name))
        if condition not in wanted:
            wanted.append(condition)

    visit(spec.condition(only))
    return make_plan(spec, folder, wanted, query_sets, ())


def run(plan: Plan, folder: Path, jobs: int | None = None) -> Outcome:
    """Take the steps of a plan that can be taken here, measure what they made, and compare.

    Args:
        plan: of `chosen_plan`.
        folder: of the specs, whose records the values are compared with where the spec expects none.
        jobs: steps at a time; see `run_plan`.
    """
    from rnnreranker.record import read_records

    lost = run_plan(plan, jobs)
    records, states = measure(plan, lost)
    before = read_records(records_file(folder, plan.spec.name))
    states |= {(entry.outcome["query_set"], entry.name): compare(plan.spec, entry, before) for entry in records}
    for condition in plan.conditions:
        if lacking := planned(plan.spec, condition):
            for query_set in plan.query_sets:
                states[(query_set.id, condition.id)] = skipped(lacking)
    for work in plan.works:
        path = work_file(plan.spec, plan.folder, work)
        made = [] if path in lost else read_records(path)
        records += [replace(entry, spec=plan.spec.name, name=work.id) for entry in made]
        none = failed(f"{work.id}: its command wrote no record")
        states["", work.id] = lost.get(path) or (State("new") if made else none)
    return Outcome(records, states)


def put_on_record(folder: Path, records: Sequence[Record]) -> None:
    """Add records to those of their specs, in the folder of specs."""
    from rnnreranker.record import add_records

    files: dict[Path, list[Record]] = {}
    for record in records:
        files.setdefault(records_file(folder, record.spec, record.kind), []).append(record)
    for path, mine in files.items():
        add_records(path, mine)
        say(f"on record: {path}")


def run_files(
    asked: Sequence[tuple[Spec, QuerySet]], folder: Path, only: str | None, queries: Queries
) -> tuple[list[Record], list[str]]:
    """What published run files score, in place of retrieval, and the errors of those that could not be measured.

    Args:
        asked: query sets with their specs.
        folder: of the run files.
        only: the id of one condition.
        queries: see `measure_published`.

    Raises:
        InputError: no such condition, no such folder.
    """
    known = [condition.id for spec, _ in asked for condition in spec.conditions]
    if only is not None and only not in known:
        names = ", ".join(dict.fromkeys(spec.name for spec, _ in asked))
        raise InputError(f"--only {only}: no such condition in {names}; {nearest(only, dict.fromkeys(known))}")
    found = [entry for entry in find_runs(folder, asked) if only in (None, entry.condition)]
    if not found:
        looked_for = ", ".join(query_set.runs for _, query_set in asked if query_set.runs)
        say(f"{folder}: no run file of these conditions; looked for {looked_for} with `runs` of the conditions")
    for entry in found:
        others = f" (not used: {', '.join(entry.others)})" if entry.others else ""
        say(f"{entry.query_set.id} {entry.condition}: {entry.path}{others}")
    records, errors = measure_published(found, folder, queries)
    for error in errors:
        say(f"error: {error}")
    return records, errors
