"""The runner takes the stale steps of a plan, in processes of their own, and measures their runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import cast

from rnnreranker.base import command
from rnnreranker.base.checksums import DESCRIPTION
from rnnreranker.base.command import say
from rnnreranker.base.method import PACKAGE
from rnnreranker.base.record import Record, read_records
from rnnreranker.regress.plans.inputs import REMOVED, Keys, read_stamp, stale_steps, stamp_file, was_taken, write_stamp
from rnnreranker.regress.plans.measure import Key, measure
from rnnreranker.regress.plans.obstacles import obstacles
from rnnreranker.regress.plans.plan import Plan, make_plan
from rnnreranker.regress.plans.step import PASTE_FOLDER, State, Step, work_file
from rnnreranker.regress.records import compare, records_file
from rnnreranker.regress.specs.entries import Condition, QuerySet
from rnnreranker.regress.specs.methods import needs_text
from rnnreranker.regress.specs.spec import Spec, planned

RUNNING: set[subprocess.Popen[bytes]] = set()
TOGETHER = 2  # steps at a time, where none of them says what it needs

Take = Callable[[Step], tuple[int, str]]  # runs a step's command: its exit code, and the last line that it said


@dataclass(frozen=True)
class Outcome:
    """The records, and the state of every run (query set, name) and work ("", id)."""

    records: list[Record]
    states: dict[Key, State]

    def reasons(self) -> dict[State, list[str]]:
        """Why something is missing → its names."""
        reasons: dict[State, dict[str, None]] = defaultdict(dict)
        for (_, name), state in self.states.items():
            if state.kind in ("skipped", "error"):
                reasons[state][name] = None
        return {state: list(names) for state, names in reasons.items()}


def chosen_plan(
    spec: Spec,
    query_sets: Sequence[QuerySet],
    only: Sequence[str],
    folder: Path,
    published: Mapping[tuple[str, str], Path] | None = None,
    keep: bool = False,
) -> Plan:
    """The plan of the conditions and works in `only` with those they need; by default all conditions, or all works.

    Raises:
        InputError: `only` names nothing in the spec.
    """
    if not only:
        return make_plan(spec, folder, None, query_sets, () if spec.conditions else spec.works, published, keep)
    works = [work for work in spec.works if work.id in only]
    wanted: dict[str, Condition] = {}

    def visit(name: str) -> None:
        condition = spec.condition(name)
        for other in filter(None, (*condition.of, condition.against)):
            visit(other)
        wanted.setdefault(name, condition)

    for name in only:
        if name not in [work.id for work in works]:
            visit(name)
    return make_plan(spec, folder, list(wanted.values()), query_sets, works, published, keep)


def run(plan: Plan, folder: Path, jobs: int | None = None, take: Take | None = None, *, fresh: bool = False) -> Outcome:
    """Take the steps of a plan, measure their runs, and compare.

    Args:
        folder: of the specs with their records.
        jobs, take: see `run_plan`; fresh: take current steps again.
    """
    for step in plan.steps if fresh else ():
        stamp_file(step).unlink(missing_ok=True)
    lost = run_plan(plan, jobs, take)
    records, states = measure(plan, lost)
    before = read_records(records_file(folder, plan.spec.name))
    states |= {(entry.outcome["query_set"], entry.name): compare(plan.spec, entry, before) for entry in records}
    for condition in plan.conditions:
        if lacking := planned(plan.spec, condition):
            states |= {(one.id, condition.id): State("skipped", lacking) for one in plan.query_sets}
    for work in plan.works:
        path = work_file(plan.spec, plan.folder, work)
        made = [] if path in lost else read_records(path)
        for entry in made:
            texts = json.dumps([entry.outcome, entry.commands]).replace(f"{plan.folder}{os.sep}", f"{PASTE_FOLDER}/")
            outcome, commands = json.loads(texts)
            records.append(replace(entry, spec=plan.spec.name, name=work.id, outcome=outcome, commands=commands))
        none = State("error", f"{work.id}: its command wrote no record")
        states["", work.id] = lost.get(path) or (State("new") if made else none)
    return Outcome(records, states)


def run_plan(plan: Plan, jobs: int | None = None, take: Take | None = None) -> dict[Path, State]:
    """Take the stale steps of a plan; output of each step that was not taken → why.

    jobs: steps at a time; None = two, or one if a step has needs. take: runs a command.
    """
    keys, take = Keys(plan), take or _process
    blocked = obstacles(plan, stale_steps(plan, keys))
    steps = stale_steps(plan, keys, without=blocked)  # nor what only blocked ones need
    if needs := replace(plan, steps=tuple(steps)).needs() if steps else {}:
        say(f"{command.counted(len(steps), 'step')}: {needs_text(needs)}")
    locks: dict[str, threading.Lock] = defaultdict(threading.Lock)  # the parts of an index are made one at a time
    futures: dict[Path, Future[State | None]] = {}

    def run_step(step: Step) -> State | None:
        for path in step.inputs:
            if path in futures and (reason := futures[path].result()):
                return reason
        with locks[step.value("output") or str(step.output)]:
            state = _run(step, keys, take)
        with locks[REMOVED]:
            if state is None:
                _remove_unneeded(plan, keys, step)
        return state

    with ThreadPoolExecutor(jobs or (1 if any(step.needs for step in steps) else TOGETHER)) as pool:
        try:
            for step in steps:  # in their order: what a step waits for is begun before it
                futures[step.output] = pool.submit(run_step, step)
            lost = {path: state for path, future in futures.items() if (state := future.result())}
        except BaseException:  # Ctrl-C of a terminal reaches them too, KeyboardInterrupt of a program does not
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(RUNNING):
                process.terminate()
            raise
    return {**blocked, **lost}


def _remove_unneeded(plan: Plan, keys: Keys, taken: Step) -> None:
    """Remove the outputs that no later step reads; an index keeps its description."""
    steps = {step.output: step for step in plan.steps}
    for output, reading in plan.readers.items():
        if taken.output in reading and all(was_taken(steps[path], keys) for path in reading):
            stamp = read_stamp(steps[output])
            if REMOVED not in stamp and output.exists():
                write_stamp(steps[output], {**stamp, REMOVED: True})  # first: after a kill nothing passes for whole
                for path in output.iterdir() if output.is_dir() else (output,):
                    if path.name != DESCRIPTION:  # records name it
                        _remove(path)
                say(f"removed {output}: no step needs it any more")


def _run(step: Step, keys: Keys, take: Take) -> State | None:
    """Take a step; why its output is not there, or None."""
    step.output.parent.mkdir(parents=True, exist_ok=True)
    stamp, before = {"key": keys.of(step), "command": step.command()}, read_stamp(step)
    if before.get("key") not in (None, stamp["key"]) or REMOVED in before:
        for ending in ("", ".partial", ".checkpoints"):
            _remove(step.output.with_name(step.output.name + ending))
    write_stamp(step, stamp)  # begun: what a kill leaves behind belongs to this key
    started = time.perf_counter()
    code, last = take(step)
    if code:
        return State("skipped" if code == command.UNAVAILABLE else "error", last.removeprefix("error: "))
    write_stamp(step, {**stamp, "seconds": round(time.perf_counter() - started, 2)})
    return None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _process(step: Step) -> tuple[int, str]:
    """Exit code and last line of the command in a process of its own."""
    say(step.command())
    argv = [sys.executable, "-m", f"{PACKAGE.name}.{step.module}", *step.argv]
    paths = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]  # the code that plans is the code run
    environment = {
        **os.environ,
        command.STEP: "1",
        "PYTHONUNBUFFERED": "1",  # what it prints comes in order: an error last
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONIOENCODING": "utf-8",
    }
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as process:
        RUNNING.add(process)
        tail, stream = b"", cast(BufferedReader, process.stdout)
        while chunk := stream.read1(4096):  # progress bars come in pieces of a line
            sys.stderr.write(chunk.decode("utf-8", "replace"))
            sys.stderr.flush()
            tail = (tail + chunk)[-4096:]
    RUNNING.discard(process)
    lines = tail.decode("utf-8", "replace").strip().splitlines()
    return process.returncode, lines[-1] if lines else f"exit code {process.returncode}"
