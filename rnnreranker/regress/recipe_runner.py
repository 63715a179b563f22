"""The runner of recipes: takes those steps whose output is not there from the same inputs, each once."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from rnnreranker import command
from rnnreranker.command import say
from rnnreranker.files import fingerprint, read_text, write_json
from rnnreranker.regress.obstacles import obstacles
from rnnreranker.regress.recipe import planned
from rnnreranker.regress.recipe_plan import RecipePlan, RecipeStep, value_of
from rnnreranker.regress.recipe_step import UNAVAILABLE
from rnnreranker.regress.source_code import PACKAGE, code_of

INPUTS = ("--documents", "--topics", "--qrels", "--encoder", "--preset")  # flags that may name a file or folder
NO_INPUTS = ("--output", "--tag")  # flags whose values are not read, even where a file has their name


def run_plan(plan: RecipePlan, jobs: int = 1) -> dict[str, str]:
    """Take the steps of a plan, `jobs` at a time; condition id → `done`, `skipped: reason` or `error: reason`.

    A step whose output is there from the same command, the same inputs and the same code is not taken again, so that a
    plan that was killed goes on where it stopped.
    """
    steps = to_take(plan)
    blocked = obstacles(plan, steps)
    steps = [step for step in steps if step.output not in blocked]
    _say_sizes(steps)
    blocked |= _take(steps, jobs, Keys(plan))
    states: dict[str, str] = {}
    for condition in plan.conditions:
        lacking = planned(plan.recipe, condition)
        reasons = [blocked[path] for path in plan.run_files(condition) if path in blocked]
        states[condition.id] = f"skipped: {lacking}" if lacking else (reasons or ["done"])[0]
    return states


class Keys:
    """Names of what the output of each step depends on: its command, the files it reads, the steps before it, the code.

    They follow from the plan alone, so that it is known before the first step which outputs are stale. A plan in
    another folder has the same ones.
    """

    def __init__(self, plan: RecipePlan) -> None:
        self._steps = {step.output: step for step in plan.steps}
        self._folder = plan.folder
        self._known: dict[Path, str] = {}

    def of(self, step: RecipeStep) -> str:
        """16 hexadecimal digits."""
        if step.output not in self._known:
            before = [self.of(self._steps[path]) for path in step.inputs if path in self._steps]
            words = [_within(word, self._folder) for word in step.argv]
            read = [_content(value_of(step.argv, flag), self._folder) for flag in INPUTS]
            read += filter(None, (_content(word, self._folder) for word in _others(step)))
            self._known[step.output] = fingerprint(step.module, words, read, before, code_of(step.module))
        return self._known[step.output]


def to_take(plan: RecipePlan) -> list[RecipeStep]:
    """The steps that must be taken for the runs of a plan: those that are stale, and stale ones that they need."""
    keys = Keys(plan)
    by_output = {step.output: step for step in plan.steps}
    wanted: set[Path] = set()

    def visit(path: Path) -> None:
        step = by_output.get(path)
        if step is not None and path not in wanted and not is_current(step, keys):
            wanted.add(path)
            for before in step.inputs:
                visit(before)

    for condition in plan.conditions:
        for path in plan.run_files(condition):
            visit(path)
    return [step for step in plan.steps if step.output in wanted]


def is_current(step: RecipeStep, keys: Keys) -> bool:
    """Whether the output of a step is there, whole, and from its present inputs."""
    stamp = read_stamp(step)
    return step.output.exists() and stamp.get("key") == keys.of(step) and "seconds" in stamp


def read_stamp(step: RecipeStep) -> dict[str, Any]:
    """What was noted when a step was begun (key) and ended (seconds); empty where it never was."""
    path = _stamp(step)
    if not path.is_file():
        return {}
    try:
        found = json.loads(read_text(path))
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _stamp(step: RecipeStep) -> Path:
    return step.output.with_name(f".{step.output.name}.inputs")


def _say_sizes(steps: list[RecipeStep]) -> None:
    """What is about to be downloaded and written, and whether the memory may be too small."""
    sizes = {key: sum(float(step.needs.get(key, 0)) for step in steps) for key in ("download_gb", "disk_gb")}
    if any(sizes.values()):
        count = command.counted(len(steps), "step")
        say(f"{count}: {sizes['download_gb']:g} GB to download, {sizes['disk_gb']:g} GB of disk")
    wanted, here = max((float(step.needs.get("ram_gb", 0)) for step in steps), default=0.0), memory_gb()
    if wanted > here > 0:
        say(f"a step needs about {wanted:g} GB of memory, this machine has {here:.0f}: it may be slow or fail")


def memory_gb() -> float:
    """The memory of this machine in GB; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (AttributeError, ValueError, OSError):
        return 0.0


def _take(steps: list[RecipeStep], jobs: int, keys: Keys) -> dict[Path, str]:
    """Take steps in processes of their own, each after those that make its inputs; output: why it is not there."""
    failed: dict[Path, str] = {}
    waiting = list(steps)
    running: dict[Future[str], RecipeStep] = {}
    to_come = {step.output for step in steps}
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        while waiting or running:
            for step in list(waiting):
                reason = next((failed[path] for path in step.inputs if path in failed), "")
                if reason:
                    failed[step.output] = reason
                    waiting.remove(step)
                    to_come.discard(step.output)
                elif to_come.isdisjoint(step.inputs) and len(running) < max(1, jobs):
                    running[pool.submit(_run, step, keys)] = step
                    waiting.remove(step)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                step = running.pop(future)
                reason = future.result()
                if reason:
                    failed[step.output] = reason
                to_come.discard(step.output)
    return failed


def _run(step: RecipeStep, keys: Keys) -> str:
    """Take a step; why its output is not there, or an empty text."""
    say(step.command())
    step.output.parent.mkdir(parents=True, exist_ok=True)
    stamp = {"key": keys.of(step), "command": step.command()}
    if read_stamp(step).get("key") not in (None, stamp["key"]):
        _remove(step.output)
    write_json(_stamp(step), stamp)  # begun: what a kill leaves behind belongs to this key
    started = time.perf_counter()
    code, last = _process(step)
    if code:
        return f"{'skipped' if code == UNAVAILABLE else 'error'}: {last.removeprefix('error: ')}"
    write_json(_stamp(step), {**stamp, "seconds": round(time.perf_counter() - started, 2)})
    return ""


def _remove(output: Path) -> None:
    """Remove an output of other inputs, and what is left of an interrupted one."""
    for path in (output, *(output.with_name(output.name + ending) for ending in (".partial", ".checkpoints"))):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _process(step: RecipeStep) -> tuple[int, str]:
    """Exit code and last line of the command in a process of its own, whose output is shown on stderr as it comes."""
    argv = [sys.executable, "-m", "rnnreranker.regress.recipe_step", step.module, *step.argv]
    paths = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]  # the code that plans is the code run
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        tails = {"out": b"", "err": b""}

        def pass_on(name: str, stream: Any) -> None:
            while chunk := stream.read1(4096):  # progress bars come in pieces of a line
                sys.stderr.write(chunk.decode("utf-8", "replace"))
                sys.stderr.flush()
                tails[name] = (tails[name] + chunk)[-4096:]

        threads = [
            threading.Thread(target=pass_on, args=entry) for entry in (("out", process.stdout), ("err", process.stderr))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lines = tails["err"].decode("utf-8", "replace").strip().splitlines()
    return process.returncode, lines[-1] if lines else f"exit code {process.returncode}"


def _within(word: str, folder: Path) -> str:
    """A path under the folder of the plan relative to it; other words as they are."""
    path = Path(word)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else word


def _others(step: RecipeStep) -> list[str]:
    """Words of a command that may name what it reads, besides the values of INPUTS: every value of another flag."""
    pairs = zip(step.argv, step.argv[1:], strict=False)
    return [word for flag, word in pairs if flag not in (*INPUTS, *NO_INPUTS) and not word.startswith("--")]


def _content(name: str, folder: Path) -> str:
    """The digest of the file or folder that an argument names, outside the plan's folder; empty for other names."""
    path = Path(name).expanduser()
    if name == "pydoc":
        from rnnreranker.data import pydoc

        return pydoc.fingerprint()
    if not name or path.is_relative_to(folder) or not os.path.exists(path):
        return ""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    digest = hashlib.sha256()
    for file in files:
        digest.update(
            f"{file.relative_to(path)}\n{_digest(file, file.stat().st_size, file.stat().st_mtime_ns)}\n".encode()
        )
    return digest.hexdigest()


@functools.lru_cache(maxsize=4096)
def _digest(path: Path, size: int, changed: int) -> str:
    """The checksum of a file's content; size and time of change tell one content from the next within a process."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
