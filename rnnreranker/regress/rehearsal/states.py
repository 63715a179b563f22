"""Which systems of a spec were rehearsed: their whole chain of commands, to its end, at which commit and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base.files import fingerprint
from rnnreranker.base.record import Record, read_records
from rnnreranker.regress.plans.measure import chain_of
from rnnreranker.regress.plans.plan import Plan, make_plan
from rnnreranker.regress.records import records_file
from rnnreranker.regress.source_code import code_of
from rnnreranker.regress.specs.spec import Spec

System = tuple[str, str]  # query set, condition
KIND = "rehearsal"  # of record


@dataclass(frozen=True)
class Chain:
    """The commands that make the runs of a system: a fingerprint of them, and whose code they are."""

    commands: str
    modules: tuple[str, ...]


@dataclass(frozen=True)
class Rehearsed:
    """When the chain of a system ran to its end, by which code: command → its fingerprint."""

    commit: str
    date: str
    code: Mapping[str, str]

    def changed(self) -> list[str]:
        """The commands of the chain whose code is another one by now."""
        return [name for name, before in self.code.items() if code_of(name) != before]


def chains(plan: Plan) -> dict[System, Chain]:
    """The chains of what a plan measures, those of conditions without steps left out."""
    steps = {step.output: step for step in plan.steps}
    known: dict[System, Chain] = {}
    for query_set in plan.query_sets:
        for condition in plan.conditions:
            made = [path for path in plan.run_files(condition, query_set) if path in steps]
            if made:
                chain = {step.output: step for path in made for step in chain_of(path, steps)}.values()
                modules = tuple(sorted({step.module for step in chain}))
                known[query_set.id, condition.id] = Chain(fingerprint(*(step.command() for step in chain)), modules)
    return known


def rehearsed(folder: Path, specs: Iterable[Spec]) -> dict[System, Rehearsed]:
    """The systems of specs whose present chain was rehearsed.

    A chain with another command is another chain; whether its code has changed since says `Rehearsed.changed`.

    Args:
        folder: of the specs.
        specs: which.
    """
    records = {record.spec: record for record in read_records(records_file(folder, "", KIND))}
    known: dict[System, Rehearsed] = {}
    for spec in specs:
        record = records.get(spec.name)
        if record is None:
            continue
        code = record.outcome["code"]
        for (query_set, condition), chain in chains(make_plan(spec)).items():
            if record.outcome["systems"].get(query_set, {}).get(condition) == chain.commands:
                own = {name: str(code.get(name, "")) for name in chain.modules}
                known[query_set, condition] = Rehearsed(record.commit, record.date[:10], own)
    return known


def outcome(plan: Plan, done: Iterable[System], before: Record | None, **figures: Any) -> dict[str, Any]:
    """What the record of a rehearsal holds: chains of systems that ran to their end, the code, and figures.

    Args:
        plan: of the spec with printed paths and its own commands, not shortened.
        done: systems whose runs were made and measured.
        before: the record on file; systems that it has besides are kept where their code is the same.
        figures: steps, minutes, ….
    """
    chain_of_system, wanted = chains(plan), set(done)
    code = {name: code_of(name) for name in sorted({step.module for step in plan.steps})}
    systems: dict[str, dict[str, str]] = {}
    if before is not None and all(before.outcome["code"].get(name) == code[name] for name in code):
        systems = {query_set: dict(known) for query_set, known in before.outcome["systems"].items()}
        code = {**before.outcome["code"], **code}
    for (query_set, condition), chain in chain_of_system.items():
        systems.setdefault(query_set, {}).pop(condition, None)
        if (query_set, condition) in wanted:
            systems[query_set][condition] = chain.commands
    return {**figures, "code": code, "systems": {name: known for name, known in systems.items() if known}}
