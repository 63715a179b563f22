"""Which systems of a spec were rehearsed: at which commit their commands ran to their end on miniatures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rnnreranker.base.files import fingerprint
from rnnreranker.base.record import read_records
from rnnreranker.regress.plans.measure import chain_of
from rnnreranker.regress.plans.plan import Plan, make_plan
from rnnreranker.regress.records import records_file
from rnnreranker.regress.specs.spec import Spec

System = tuple[str, str]  # query set, condition
KIND = "rehearsal"  # of record


@dataclass(frozen=True)
class Rehearsed:
    """When the commands that make the runs of a system ran to their end on miniatures."""

    commit: str
    date: str


def chains(plan: Plan) -> dict[System, str]:
    """A fingerprint of the commands that make each run of a plan; conditions without steps are left out."""
    steps = {step.output: step for step in plan.steps}
    known: dict[System, str] = {}
    for query_set in plan.query_sets:
        for condition in plan.conditions:
            made = [path for path in plan.run_files(condition, query_set) if path in steps]
            if made:
                chain = {step.output: step for path in made for step in chain_of(path, steps)}.values()
                known[query_set.id, condition.id] = fingerprint(*(step.command() for step in chain))
    return known


def rehearsed(folder: Path, specs: Iterable[Spec]) -> dict[System, Rehearsed]:
    """The systems of specs whose present commands were rehearsed; another command is not.

    folder: of the specs.
    """
    records = {record.spec: record for record in read_records(records_file(folder, "", KIND))}
    known: dict[System, Rehearsed] = {}
    for spec in specs:
        if (record := records.get(spec.name)) is None:
            continue
        for (query_set, condition), commands in chains(make_plan(spec)).items():
            if record.outcome["systems"].get(query_set, {}).get(condition) == commands:
                known[query_set, condition] = Rehearsed(record.commit, record.date[:10])
    return known
