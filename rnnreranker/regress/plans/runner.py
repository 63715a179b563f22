"""The runner takes the stale steps of a plan, in processes of their own, and measures their runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from rnnreranker.base import command
from rnnreranker.base.command import say
from rnnreranker.base.errors import RnnrerankerError, UnavailableError
from rnnreranker.base.files import DESCRIPTION, file_digest, files_digest, fingerprint, remove, write_json
from rnnreranker.base.method import PACKAGE
from rnnreranker.base.record import Record, read_records
from rnnreranker.data import local, pydoc
from rnnreranker.data.names import is_path
from rnnreranker.regress.plans.measure import States, count_documents, measure
from rnnreranker.regress.plans.plan import DEVICE, PASTE_FOLDER, Plan, State, Step, index_name, state_of
from rnnreranker.regress.records import compare, records_file
from rnnreranker.regress.specs.entries import data_sets, needs_text

REMOVED = "removed"  # of a stamp: nobody needed the output any more
GB = 1e9
DATA = ("documents", "topics", "qrels", "validation_topics", "validation_qrels")  # flags that name data sets
Keys = dict[Path, str]  # output of a step → digest
PATIENCE = 2  # seconds that steps have to end by themselves after Ctrl-C, which a terminal sends to them too
PROCESSES: set[subprocess.Popen[str]] = set()  # of the steps that are being taken


def run(plan: Plan, folder: Path, fresh: bool = False, jobs: int = 1) -> tuple[list[Record], States]:
    """Take the steps of a plan, measure their runs, and compare.

    Args:
        folder: of the specs with their records.
        fresh: take current steps again.
        jobs: steps at a time.

    Returns:
        The records, and the state of every run (query set, name) and work ("", id).
    """
    for step in plan.steps if fresh else ():
        remove(step.stamp_file)
    lost = run_plan(plan, jobs)
    records, states = measure(plan, lost)
    before = read_records(records_file(folder, plan.spec.name))
    states |= {(entry.outcome["query_set"], entry.name): compare(plan.spec, entry, before) for entry in records}
    for work in plan.works:
        path = plan.work_file(work)
        for entry in [] if path in lost else read_records(path):
            texts = json.dumps([entry.outcome, entry.commands]).replace(f"{plan.folder}{os.sep}", f"{PASTE_FOLDER}/")
            outcome, commands = json.loads(texts)
            records.append(replace(entry, spec=plan.spec.name, name=work.id, outcome=outcome, commands=commands))
        states["", work.id] = lost.get(path) or State("new")
    return records, states


def run_plan(plan: Plan, jobs: int = 1) -> dict[Path, State]:
    """Take the stale steps of a plan, some at a time, in the plan's order; output of each step not taken → why."""
    keys = step_keys(plan)
    lost = obstacles(plan, plan.needed(plan.outputs(), lambda step: not is_current(step, keys)))
    steps = plan.needed(plan.outputs(), lambda step: step.output not in lost and not is_current(step, keys))
    if needs := replace(plan, steps=tuple(steps)).needs() if steps else {}:
        say(f"{command.counted(len(steps), 'step')}: {needs_text(needs)}")
    undone, running = [*steps], dict[Future[State | None], Step]()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while undone:
                for number, step in enumerate(undone):
                    if (
                        len(running) < jobs
                        and step not in running.values()
                        and not any(map(step.waits_for, undone[:number]))
                    ):
                        running[pool.submit(_run, step, keys, lost, jobs > 1)] = step
                while not (done := wait(running, PATIENCE, FIRST_COMPLETED).done):
                    pass  # a wait without an end would not notice Ctrl-C
                for future in done:
                    undone.remove(step := running.pop(future))
                    if state := future.result():
                        lost[step.output] = state
                    else:
                        _remove_unneeded(plan, keys, step)
        finally:
            while wait(running, PATIENCE).not_done:  # after Ctrl-C
                for process in [*PROCESSES]:
                    process.terminate()
    return lost


def obstacles(plan: Plan, steps: Collection[Step]) -> dict[Path, State]:
    """Output of a step that cannot be taken here → why; steps: those to take."""
    blocked = {
        path: State("skipped", f"needs {entry.title} for {one.id}; give the folder that holds it by --runs")
        for path, (entry, one) in plan.given().items()
        if not path.exists()
    }
    judged = {path: one.qrels for path, (_, _, one) in plan.runs().items()}
    taken, disk = {step.output for step in steps}, 0.0
    for step in plan.steps:
        state = next(filter(None, map(blocked.get, step.inputs)), None)
        if step.output in taken and not state:
            try:
                for flag in DATA:
                    check_data(step.value(flag), flag.removeprefix("validation_"))
                check_data(judged.get(step.output, ""), "qrels")
                if said := next((said for wrong, said in _lacking(plan, step, disk) if wrong), ""):
                    raise UnavailableError(said)
                gone = {*plan.removed(step)} - blocked.keys()
                disk += step.disk - sum(one.disk for one in plan.steps if one.output in gone)
            except RnnrerankerError as error:
                state = state_of(error)
        if state:
            blocked[step.output] = state
    return blocked


def _lacking(plan: Plan, step: Step, disk: float) -> Iterator[tuple[object, str]]:
    """What this machine may lack for a step: whether it does, and how to say so; disk: GB that earlier steps take."""
    files, hours = str(step.needs.get("files", "")), step.needs.get("gpu_hours", 0)
    yield ":" in files and not Path(files.partition(":")[0]).expanduser().exists(), f"needs {files}"
    yield hours and not has_gpu(), f"{step.module} takes a GPU ({hours:g} hours), and there is none here"
    folder = plan.folder.expanduser().absolute()
    left = shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free / GB - disk
    yield step.disk > left, f"needs {step.disk:g} GB of disk in {folder}, {max(0.0, left):.0f} GB are free"
    for index in plan.spec.indexes.values():
        name = index_name(index, plan.folder)
        if index.count and name in (step.value("index"), str(step.output)):
            count, (fewest, most) = count_documents(index, name), index.count
            stated = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
            said = f"{index.documents} has {count:,} documents here, the spec is for {stated}: another collection"
            yield not fewest <= count <= most, said


def check_data(given: str, kind: str) -> None:
    """Look for the data sets in a name; InputError: damaged data; UnavailableError: missing data."""
    for name, of in data_sets(given, kind):
        if is_path(name) and not local.kept_at(name):
            raise UnavailableError(f"needs {name}, and there is no such file here")
        local.files_of(name, of)


def has_gpu() -> bool:
    """Whether this machine has a GPU that PyTorch can use, judged without PyTorch."""
    return any([*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("kfd"), shutil.which("nvidia-smi")])


def step_keys(plan: Plan) -> Keys:
    """Output → digest of the request of its step, the files outside the plan that it names, and the steps before."""
    keys: Keys = {}
    made = {step.output for step in plan.steps}
    for step in plan.steps:
        words = [word.replace(f"{plan.folder}{os.sep}", "") for word in step.words(DEVICE)]
        read = [content_of(name) for name in step.names() if Path(name) not in made]
        before = [keys[path] for path in step.inputs if path in keys]
        keys[step.output] = fingerprint(step.module, words, [*filter(None, read)], before)
    return keys


def content_of(name: str) -> str:
    """The digest of the named file or folder; "" for other names."""
    if name == "pydoc":
        return pydoc.fingerprint()
    marks = [
        files_digest(filter(Path.is_file, path.rglob("*")), path) if path.is_dir() else file_digest(path)
        for one, _ in data_sets(name, "")
        if (path := local.kept_at(one))
    ]
    return fingerprint(marks) if marks else ""


def is_current(step: Step, keys: Keys) -> bool:
    """Whether the output of a step is there, whole, and from its present inputs."""
    return was_taken(step, keys) and REMOVED not in step.stamp()


def was_taken(step: Step, keys: Keys) -> bool:
    """Whether a step was taken from its present inputs; its output is there, or was removed after its last reader."""
    stamp = step.stamp()
    there = REMOVED in stamp or step.output.exists()
    return there and stamp.get("key") == keys[step.output] and "seconds" in stamp


def _remove_unneeded(plan: Plan, keys: Keys, taken: Step) -> None:
    """Remove the outputs that no later step reads; an index keeps its description."""
    steps = {step.output: step for step in plan.steps}
    for output, reading in plan.readers.items():
        stamp = steps[output].stamp()
        over = taken.output in reading and all(was_taken(steps[path], keys) for path in reading)
        if over and REMOVED not in stamp and output.exists():
            write_json(steps[output].stamp_file, {**stamp, REMOVED: True})  # first: after a kill it is not whole
            for path in output.iterdir() if output.is_dir() else [output]:
                if path.name != DESCRIPTION:  # records name it
                    remove(path)
            say(f"removed {output}: no step needs it any more")


def _run(step: Step, keys: Keys, lost: dict[Path, State], together: bool) -> State | None:
    """Take a step, perhaps together with others; why its output is not there, or None.

    lost: output of an earlier step that is not there → why.
    """
    if state := next(filter(None, map(lost.get, step.inputs)), None):
        return state
    step.output.parent.mkdir(parents=True, exist_ok=True)
    stamp, before = {"key": keys[step.output]}, step.stamp()
    if before.get("key", stamp["key"]) != stamp["key"] or REMOVED in before:
        for ending in ("", ".partial", ".checkpoints"):
            remove(step.output.with_name(step.output.name + ending))
    write_json(step.stamp_file, stamp)  # begun: what a kill leaves behind belongs to this key
    started = time.perf_counter()
    code, last = _process(step, together)
    if code:
        return State("skipped" if code == command.UNAVAILABLE else "error", last)
    write_json(step.stamp_file, {**stamp, "seconds": round(time.perf_counter() - started, 2)})
    return None


def _process(step: Step, together: bool) -> tuple[int, str]:
    """Exit code and error of the command in a process of its own.

    It prints where this process does; if steps are taken together, its output follows its command at its end.
    """
    if not together:
        say(step.command())
    argv = [sys.executable, "-m", f"{PACKAGE.name}.{step.module}", *step.words()]
    paths = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]  # the code that plans is the code run
    to = subprocess.PIPE if together else 2
    with tempfile.NamedTemporaryFile() as said:
        environment = os.environ | {command.STEP: said.name, "PYTHONPATH": os.pathsep.join(paths)}
        with subprocess.Popen(argv, stdout=to, stderr=subprocess.STDOUT, errors="replace", env=environment) as process:
            PROCESSES.add(process)
            printed, _ = process.communicate()
        PROCESSES.remove(process)
        if together:
            say(f"{step.command()}\n{printed}".rstrip())
        return process.returncode, said.read().decode() or f"exit code {process.returncode}"
