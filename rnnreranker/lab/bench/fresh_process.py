"""What can only be measured in a process of its own: the first call, and the memory of a worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import UnavailableError
from rnnreranker.lab.bench.summaries import judged, quartiles

COMPILE_BOUND, LATER_BOUND, MEMORY_BOUND = 6.0, 0.5, 16.0  # seconds, seconds, MB a worker
CHILD = (
    "import importlib, json, sys; "
    "function = getattr(importlib.import_module(sys.argv[1]), sys.argv[2]); "
    "print(json.dumps(function(**json.loads(sys.argv[3]))))"
)


def in_fresh_process(module: str, function: str, environment: dict[str, str] | None = None, **values: Any) -> Any:
    """What a function of ours returns when a new Python calls it; values and result go as JSON.

    Raises:
        UnavailableError: the process failed, with the last line that it said.
    """
    said = fresh_python(["-c", CHILD, module, function, json.dumps(values)], f"{module}.{function}", environment)
    return json.loads(said.splitlines()[-1])


def fresh_python(words: Sequence[str], what: str, environment: Mapping[str, str] | None = None) -> str:
    """What a new Python prints that finds this package; `what` names it where it fails, see `in_fresh_process`."""
    root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {**os.environ, "PYTHONPATH": path, **(environment or {})}
    done = subprocess.run([sys.executable, *words], env=own, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise UnavailableError(f"{what} failed in a process of its own (exit {done.returncode}): {said}")
    return done.stdout


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many other processes multiply matrices, one thread each, until the block ends."""
    work = "import numpy\none = numpy.ones((600, 600), dtype=numpy.float32)\nwhile True:\n    one @ one"
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    others = [subprocess.Popen([sys.executable, "-c", work], env=alone) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def first_call(kernel: bool) -> dict[str, float]:
    """Seconds to import the functions, and of a first call of `rnn_similarity` in this process.

    kernel: it is waited for, in the call.
    """
    clock = [time.perf_counter()]
    from rnnreranker.rnn import RnnParams, chunks, rnn_similarity

    clock.append(time.perf_counter())
    vectors = np.random.default_rng(0).standard_normal((1, 61, 64), dtype=np.float32)
    used = time.process_time()
    if kernel:
        chunks.ENGINES.now()
    rnn_similarity(vectors[:, 0], vectors[:, 1:], RnnParams(), threads=1)
    clock.append(time.perf_counter())
    return {"import": clock[1] - clock[0], "call": clock[2] - clock[1], "processor": time.process_time() - used}


def compiling(times: int) -> list[dict[str, Any]]:
    """A first call that has to compile, numba's cache being empty, and those of later processes."""
    by_cache: dict[str, list[dict[str, float]]] = {"empty": [], "filled": []}
    unwaited: dict[str, list[float]] = {cache: [] for cache in by_cache}
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            for cache in by_cache:
                where = {"NUMBA_CACHE_DIR": folder}
                unwaited[cache].append(in_fresh_process(__name__, "first_call", where, kernel=False)["call"])
                by_cache[cache].append(in_fresh_process(__name__, "first_call", where, kernel=True))
    rows = []
    for (cache, seen), bound in zip(by_cache.items(), (COMPILE_BOUND, LATER_BOUND), strict=True):
        row: dict[str, Any] = {"cache": cache, "times": times}
        row |= {f"{name}_s": quartiles([one[name] for one in seen])[1] for name in ("import", "call", "processor")}
        row["unwaited_s"] = quartiles(unwaited[cache])[1]
        rows.append(judged(row, "call_s", bound))
    return rows


def anonymous() -> float:
    """MB of this process that belong to no file (RssAnon of Linux).

    Raises:
        UnavailableError: the system does not tell.
    """
    return _of_status("RssAnon", "anonymous memory")


def most_resident() -> float:
    """The most MB that this process had in memory so far, mapped files included (VmHWM of Linux).

    `getrusage` would give that of the process that started this one, if it is more.

    Raises:
        UnavailableError: the system does not tell.
    """
    return _of_status("VmHWM", "resident memory")


def _of_status(name: str, what: str) -> float:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition(f"{name}:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        raise UnavailableError(f"the system does not tell {what} (no {name} in /proc/self/status)") from None


def most_anonymous(work: Callable[[], object], every: float = 0.001) -> tuple[float, float]:
    """Anonymous MB before some work and the most while it ran, looked at every so many seconds."""
    before = most = anonymous()
    done = threading.Event()

    def look() -> None:
        nonlocal most
        while not done.wait(every):
            most = max(most, anonymous())

    watch = threading.Thread(target=look)
    watch.start()
    try:
        work()
    finally:
        done.set()
        watch.join()
    return before, max(most, anonymous())


def worker(candidates: int, dimension: int, tau: float, threads: int) -> dict[str, float]:
    """MB before and at most during `jaccard_similarity` of a batch, four contexts a thread, after a small one."""
    from rnnreranker.lab.bench.synthetic import contexts
    from rnnreranker.rnn import RnnParams, chunks, jaccard_similarity

    chunks.ENGINES.now()
    vectors = contexts("clustered", 4 * threads, candidates, dimension)
    params = RnnParams(k=21, k_exp=3, tau=tau)
    jaccard_similarity(vectors[:, :40], params, threads=1)
    before, most = most_anonymous(lambda: jaccard_similarity(vectors, params, threads=threads))
    return {"before": before, "most": most}


def memory(candidates: int, dimension: int) -> list[dict[str, Any]]:
    """Anonymous memory that a worker adds to what its process holds, the input being there before."""
    rows = []
    for tau in (0.0, 0.5):
        for threads in (1, 2):
            measured = in_fresh_process(
                __name__, "worker", candidates=candidates, dimension=dimension, tau=tau, threads=threads
            )
            each = (measured["most"] - measured["before"]) / threads
            row = {"N": candidates, "d": dimension, "tau": tau, "threads": threads}
            row |= {"before_MB": measured["before"], "most_MB": measured["most"], "worker_MB": each}
            rows.append(judged(row, "worker_MB", MEMORY_BOUND))
    return rows
