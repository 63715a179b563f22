"""The runner of recipes: what stands in the way of a step here, and the steps that can be taken, each once."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from rnnreranker.command import say
from rnnreranker.errors import RnnrerankerError
from rnnreranker.files import fingerprint, read_text
from rnnreranker.regress.recipe import Condition, planned
from rnnreranker.regress.recipe_plan import RecipePlan, RecipeStep

MIRROR = ("rgw.cs.uwaterloo.ca", 443)  # where Pyserini's prebuilt indexes are
PATIENCE = 3.0  # seconds for an answer


def run_plan(plan: RecipePlan, jobs: int = 1) -> dict[str, str]:
    """Take the steps of a plan, `jobs` at a time; condition id → `done`, `skipped: reason` or `error: reason`.

    A step whose output is there from the same command, the same inputs and the same code is not taken again, so that a
    plan that was killed goes on where it stopped.
    """
    states: dict[str, str] = {}
    blocked: dict[Path, str] = {}
    for step in plan.steps:
        reason = next((blocked[path] for path in step.inputs if path in blocked), "") or obstacle(plan, step)
        if reason:
            blocked[step.output] = reason
    blocked |= _take([step for step in plan.steps if step.output not in blocked], jobs, plan)
    for condition in plan.conditions:
        lacking = planned(plan.recipe, condition)
        reasons = [blocked[path] for path in plan.run_files(condition) if path in blocked]
        states[condition.id] = f"skipped: {lacking}" if lacking else (reasons or ["done"])[0]
    return states


def obstacle(plan: RecipePlan, step: RecipeStep) -> str:
    """`skipped: reason` where this machine cannot take a step, else an empty text; quick, nothing is loaded."""
    if _is_current(step):
        return ""
    if "agreement" in plan.recipe.needs and not os.environ.get("TRIPCLICK_HOME"):
        return f"skipped: {plan.recipe.needs['agreement']}"
    files = str(step.needs.get("files", "")).partition(":")[0]
    if files and not Path(files).exists():
        return f"skipped: needs {step.needs['files']}"
    if step.module == "train" and not Path("/dev/nvidia0").exists():
        return "skipped: training takes a GPU, and there is none here"
    free = shutil.disk_usage(_existing(plan.folder)).free / 1e9
    if step.needs.get("disk_gb", 0) > free:
        return f"skipped: needs {step.needs['disk_gb']} GB of disk, {free:.0f} GB are free"
    index = step.argv[step.argv.index("--index") + 1] if "--index" in step.argv else ""
    prebuilt = index and not index.startswith(str(plan.folder))
    if (prebuilt and not _downloaded(index)) or (step.module == "index" and step.needs.get("download_gb", 0)):
        what = index or step.argv[step.argv.index("--documents") + 1]
        if not _network():
            return f"skipped: {what} must be downloaded, and {MIRROR[0]} cannot be reached from here"
    return ""


def _downloaded(index: str) -> bool:
    """Whether Pyserini has this prebuilt index already."""
    cache = Path(os.environ.get("PYSERINI_CACHE", "~/.cache/pyserini")).expanduser() / "indexes"
    return any(cache.glob(f"*{index}*"))


@functools.cache
def _network() -> bool:
    try:
        with socket.create_connection(MIRROR, timeout=PATIENCE):
            return True
    except OSError:
        return False


def _existing(folder: Path) -> Path:
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return folder


def _take(steps: list[RecipeStep], jobs: int, plan: RecipePlan) -> dict[Path, str]:
    """Take steps in processes of their own, each after those that make its inputs; output: why it is not there."""
    failed: dict[Path, str] = {}
    waiting = list(steps)
    running: dict[Future[str], RecipeStep] = {}
    made: set[Path] = {path for step in steps for path in step.inputs} - {step.output for step in steps}
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        while waiting or running:
            for step in list(waiting):
                reason = next((failed[path] for path in step.inputs if path in failed), "")
                if reason:
                    failed[step.output] = reason
                    waiting.remove(step)
                elif all(path in made for path in step.inputs) and len(running) < max(1, jobs):
                    running[pool.submit(_run, step)] = step
                    waiting.remove(step)
            if not running:
                continue
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                step = running.pop(future)
                reason = future.result()
                if reason:
                    failed[step.output] = reason
                made.add(step.output)
    return failed


def _run(step: RecipeStep) -> str:
    if _is_current(step):
        return ""
    say(step.command())
    step.output.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(  # its own process: a step that is killed leaves the others alone
        [sys.executable, "-m", f"rnnreranker.{step.module}", *step.argv], stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return f"error: {lines[-1]}"
    _stamp(step).write_text(_key(step), encoding="utf-8")
    return ""


def _is_current(step: RecipeStep) -> bool:
    stamp = _stamp(step)
    return step.output.exists() and stamp.is_file() and read_text(stamp) == _key(step)


def _stamp(step: RecipeStep) -> Path:
    return step.output.with_name(f".{step.output.name}.inputs")


def _key(step: RecipeStep) -> str:
    """Names what a step's output depends on: its command, what its inputs were made from, the code."""
    inputs = []
    for path in step.inputs:
        stamp = path.with_name(f".{path.name}.inputs")
        inputs.append(read_text(stamp) if stamp.is_file() else "")
    return fingerprint(list(step.argv), inputs, _code())


@functools.cache
def _code() -> str:
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def measured(plan: RecipePlan, condition: Condition) -> dict[str, dict[str, dict[str, float]]]:
    """Run name → protocol → measure → value, of the runs that were made for a condition."""
    from rnnreranker.data.qrels import load_qrels
    from rnnreranker.evaluate import evaluate
    from rnnreranker.runs import Run

    runs = {path.stem: Run.read(path) for path in plan.run_files(condition)}
    found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in runs}
    try:
        qrels = load_qrels(plan.recipe.qrels)
    except RnnrerankerError as error:
        say(f"skipped: {error}")
        return found
    for protocol in plan.recipe.protocols:
        scores = evaluate(runs, qrels, plan.recipe.measures, protocol)
        for number, name in enumerate(scores.runs):
            found[name][protocol] = dict(zip(plan.recipe.measures, map(float, scores.means[number]), strict=True))
    return found
