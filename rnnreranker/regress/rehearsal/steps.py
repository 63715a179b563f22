"""Steps of a rehearsal in processes that begin with everything imported, since there are hundreds of short ones.

A server process imports what commands import, once, and is forked for every step; the step's `main` is the command's
own. What a step says goes to a file, since several are at work at a time.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import resource
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.process import parent_process
from pathlib import Path
from typing import Any

from rnnreranker.base import command
from rnnreranker.base.command import say
from rnnreranker.base.files import fingerprint, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.process import interrupts
from rnnreranker.regress.plans.step import Step
from rnnreranker.regress.specs.methods import module_of

PRELOADED = (  # by the server: libraries that start no thread before they are used
    *("numpy", "pandas", "pyarrow.parquet", "torch", "transformers", "sentence_transformers", "accelerate"),
    *("ir_datasets", "ir_measures", "numba", "onnxruntime", "rnnreranker.search.pipeline", "rnnreranker.train.trainer"),
)

ENDED = 1  # exit code of a step that ended before it could say one


@dataclass(frozen=True)
class Took:
    """What a step took: seconds, bytes of memory at most and of disk for its output; and its exit code."""

    code: int
    seconds: float
    memory: int
    disk: int = 0


class WarmSteps:
    """Runs the commands of steps, as `runner.Take`.

    Args:
        logs: the folder of what steps say, a file each, and of what they took.
        number: how many steps there are, to say how far it is.
    """

    def __init__(self, logs: Path, number: int) -> None:
        self._logs, self._number, self._begun = logs, number, 0
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([*PRELOADED])
        self._lock = threading.Lock()
        logs.mkdir(parents=True, exist_ok=True)

    def __call__(self, step: Step) -> tuple[int, str]:
        """Exit code and last line of a step's command."""
        clear(step)
        with self._lock:  # the server is started by the first
            self._begun += 1
            shown = f"{self._begun} of {self._number}"
            log = self._log(step)
            _taken(log).unlink(missing_ok=True)
            process = self._context.Process(target=_work, args=(step, log))
            started = time.perf_counter()
            process.start()
        process.join()  # its exit code is not taken from here: who starts another one may have read it away
        took, seconds = self.took(step), time.perf_counter() - started
        code = ENDED if took is None else took.code
        said = log.read_text("utf-8", "replace").strip().splitlines() if log.is_file() else []
        say(f"{shown}: {step.module} {step.output.name}: {seconds:.1f} s{f', exit code {code}' if code else ''}")
        if code:
            say(f"  {log}: {said[-1] if said else 'nothing was said'}")
        return code, said[-1] if said else f"exit code {code}"

    def _log(self, step: Step) -> Path:
        return self._logs / f"{step.output.name}.{fingerprint(step.argv)[:6]}.log"

    def took(self, step: Step) -> Took | None:
        """What a step took when it was taken last; None where that is not known."""
        path = _taken(self._log(step))
        return Took(**read_json(path)) if path.is_file() else None


def clear(step: Step) -> None:
    """Remove the index that a step makes anew: the command refuses one of other vectors, which may have taken days.

    A step that adds a part to an index leaves it as it is.
    """
    if step.module == "index" and step.output == Path(step.value("--output")):
        shutil.rmtree(step.output, ignore_errors=True)


def _taken(log: Path) -> Path:
    return log.with_suffix(".json")


def _work(step: Step, log: Path) -> None:
    """In the process of a step: run its command, with what it says in a file."""
    _end_with_parent()
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor in (1, 2):
        os.dup2(target, descriptor)
    os.environ[interrupts.STEP] = "1"
    sys.argv = ["-m", *step.argv]
    started = time.perf_counter()
    main: Callable[[Any], int] = importlib.import_module(module_of(step.module)).main
    code = command.run(main)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    output = [step.output] if step.output.is_file() else step.output.rglob("*")
    disk = sum(path.stat().st_size for path in output if path.is_file())
    write_json(_taken(log), asdict(Took(code, round(time.perf_counter() - started, 2), most, disk)))
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)


def _end_with_parent() -> None:
    """A step does not go on alone when the runner is killed."""
    parent = parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
