"""A rehearsal: the commands of a plan, to their end, on miniatures; which systems came through, and what failed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base.command import counted, say
from rnnreranker.base.files import write_atomically
from rnnreranker.base.record import Record, add_records, made_here, read_records
from rnnreranker.regress.pages.page import spec_page
from rnnreranker.regress.plans.plan import Plan, make_plan
from rnnreranker.regress.plans.runner import TOGETHER, Outcome, run
from rnnreranker.regress.plans.stale import read_stamp
from rnnreranker.regress.plans.state import State
from rnnreranker.regress.plans.step import PASTE_FOLDER
from rnnreranker.regress.records import records_file
from rnnreranker.regress.rehearsal.estimates import estimates
from rnnreranker.regress.rehearsal.miniatures import among, folder_of, write_miniatures
from rnnreranker.regress.rehearsal.needs import Needs, needs_of_plan
from rnnreranker.regress.rehearsal.shorten import Miniature, shortened
from rnnreranker.regress.rehearsal.states import KIND, System, outcome
from rnnreranker.regress.rehearsal.steps import WarmSteps
from rnnreranker.regress.specs.spec import planned

FOLDER = "rehearsal"  # of miniatures and what is made of them, beside indexes, models and runs


@dataclass(frozen=True)
class Rehearsal:
    """What came of a rehearsal of a spec.

    Attributes:
        spec: its name.
        done: systems whose runs were made and measured.
        lost: the others, and why.
        record: for the file of rehearsals.
    """

    spec: str
    done: tuple[System, ...]
    lost: dict[System, State]
    record: Record


def rehearse(
    plans: Sequence[Plan], work: Path, size: Miniature, folder: Path, jobs: int | None = None
) -> list[Rehearsal]:
    """Take the steps of plans on miniatures; steps that were taken before, by the same code, are not taken again.

    Args:
        plans: whose files are in `PASTE_FOLDER`.
        work: folder of miniatures and of what is made of them.
        size: how small they are.
        folder: of the specs, whose file of rehearsals says what was rehearsed before.
        jobs: steps at a time; None = two.

    Raises:
        InputError: something that no miniature is known of, a miniature that is damaged.
    """
    needs = Needs()
    for plan in plans:
        needs |= needs_of_plan(plan)
    work, folder = work.absolute(), folder.absolute()
    miniatures = folder_of(work, size)
    environment = write_miniatures(needs, miniatures, size)
    with among(miniatures, environment):
        return [_rehearse(plan, work, size, folder, jobs) for plan in plans]


def _rehearse(plan: Plan, work: Path, size: Miniature, folder: Path, jobs: int | None) -> Rehearsal:
    spec, files = plan.spec, work / "runs"
    own = make_plan(spec, files, plan.conditions, plan.query_sets, plan.works, plan.published)
    short = shortened(own, size)
    started = time.perf_counter()
    warm = WarmSteps(work / "logs" / spec.name, len(short.steps))
    came = run(short, folder, jobs or TOGETHER, warm)
    minutes = (time.perf_counter() - started) / 60
    states = _states(plan, came)
    done = tuple(system for system, state in states.items() if state is None)
    lost = {system: state for system, state in states.items() if state is not None}
    of_steps = sum(read_stamp(step).get("seconds", 0.0) for step in short.steps) / 60
    say(
        f"{spec.name}: {len(done)} of {counted(len(states), 'system')} rehearsed, {counted(len(short.steps), 'step')} "
        f"of {of_steps:.1f} minutes in {minutes:.1f}"
    )
    taken = {step.output: warm.took(step) for step in short.steps}
    compared = estimates(own, size, lambda step: took.disk if (took := taken[step.output]) else 0)
    for one in (one for one in compared if one.off):
        say(f"{spec.name}: {one.output}: {one.said:g} GB of disk, the miniature at full size {one.scaled:g}")
    if came.records:
        add_records(work / "runs" / spec.name / "records.json", came.records)
        page = spec_page(
            spec, came.records, miniature=", ".join(f"{value} {name}" for name, value in size.to_dict().items())
        )
        with write_atomically(work / "runs" / f"{spec.name}.md") as stream:
            stream.write(page.encode())
    figures: dict[str, Any] = {"steps": len(short.steps), "minutes": round(of_steps, 1), "size": size.to_dict()}
    figures["disk"] = {one.output: [one.said, one.scaled] for one in compared}  # GB, as said and as it came out
    before = next((one for one in read_records(records_file(folder, "", KIND)) if one.spec == spec.name), None)
    printed = make_plan(spec, PASTE_FOLDER, plan.conditions, plan.query_sets, plan.works, plan.published)
    content = outcome(printed, done, before, **figures)
    return Rehearsal(spec.name, done, lost, made_here(KIND, spec.name, spec.name, content, seconds=of_steps * 60))


def _states(plan: Plan, came: Outcome) -> dict[System, State | None]:
    """Of every system that the plan makes runs of, why one of them is not there; None where all were measured."""
    measured = {(record.outcome["query_set"], record.name) for record in came.records if record.kind == "run"}
    states: dict[System, State | None] = {}
    for query_set in plan.query_sets:
        for condition in plan.conditions:
            if not plan.run_files(condition, query_set) or planned(plan.spec, condition):
                continue
            lacking = [name for name in condition.run_names if (query_set.id, name) not in measured]
            unknown = State("error", "nothing was measured")
            state = came.states.get((query_set.id, lacking[0]), unknown) if lacking else None
            states[query_set.id, condition.id] = state
    return states
