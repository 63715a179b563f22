"""Ours beside every peer that is installed, on the same task, in turn in one process, one thread."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rnnreranker.base.command import say
from rnnreranker.lab.bench.fresh_process import in_fresh_process, most_resident
from rnnreranker.lab.bench.peers.tasks import PEERS, PeerTask, Work, tasks
from rnnreranker.lab.bench.sizes import FULL, PeerSizes
from rnnreranker.lab.bench.summaries import Ratio, in_pairs, judged, ratio_of

BOUND = 1.0
LONG, FEWER = 1.0, 3  # seconds of a work from which so many pairs are enough
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def peers(sizes: PeerSizes, pairs: int) -> list[dict[str, Any]]:
    """A row for every task and peer: processor seconds of both, their ratio, whether they agree, memory.

    Processor seconds of all threads, of which each library is held to one, count; a peer that is not installed has a
    row that says so. What takes long has fewer pairs.
    """
    rows = []
    for made in tasks():
        with tempfile.TemporaryDirectory() as name:
            task = made(Path(name), sizes)
            task.write()
            rows += list(_rows(task, pairs))
    return rows


def _rows(task: PeerTask, pairs: int) -> Iterator[dict[str, Any]]:
    ours = task.ours()
    own_memory: float | None = None
    for peer in task.peers:
        version = PEERS[peer].version
        row: dict[str, Any] = {
            "task": task.name,
            "size": task.size,
            "peer": peer,
            "version": version or "not installed",
        }
        timed = dict.fromkeys(("peer_s", "ours_s", "ratio", "low", "high", "pairs"))
        row |= {**timed, "agreement": "", "peer_MB": None, "ours_MB": None}
        if not version:
            yield judged(row, "ratio", None)
            continue
        with _quiet():
            theirs = task.by(peer)
        with one_thread(), _quiet():
            own, (other, seconds) = ours(), _timed(theirs)
            row["agreement"] = task.agreement(peer, own, other)
            ratio = _compared(theirs, ours, seconds, pairs)
        row |= {"peer_s": ratio.base / task.each, "ours_s": ratio.other / task.each}
        row |= {"ratio": ratio.ratio, "low": ratio.low, "high": ratio.high, "pairs": ratio.pairs}
        if task.of_process:
            own_memory = _memory(task, "") if own_memory is None else own_memory
            row |= {"peer_MB": _memory(task, peer), "ours_MB": own_memory}
        say(f"{task.name}: {peer} {ratio.base / task.each:.3g} s, ours {ratio.ratio:.2f} of it")
        yield judged(row, "ratio", BOUND if task.sizes == FULL.peers else None)  # a bound belongs to its sizes


def _timed(work: Work) -> tuple[Any, float]:
    """What a work returns, and its processor seconds."""
    begun = time.process_time()
    returned = work()
    return returned, time.process_time() - begun


def _compared(theirs: Work, ours: Work, seconds: float, pairs: int) -> Ratio:
    """Both in turn; what took long the first time, which was in this process, is not repeated more than it must be."""
    if seconds < LONG:
        return in_pairs(theirs, ours, pairs, time.process_time)
    return ratio_of([(_timed(theirs)[1], _timed(ours)[1]) for _ in range(min(pairs, FEWER))])


def _memory(task: PeerTask, peer: str) -> float:
    """The most MB that a fresh process has in memory that does the work of a peer, or ours."""
    given = {"task": task.name, "peer": peer, "folder": str(task.folder), "sizes": dataclasses.asdict(task.sizes)}
    most: float = in_fresh_process(__name__, "done_alone", ONE_THREAD, **given)
    return most


def done_alone(task: str, peer: str, folder: str, sizes: dict[str, int]) -> float:
    """Do the work of a peer of a task, or ours, in this process; the most MB that it has had in memory so far."""
    made = next(one for one in tasks() if one.name == task)(Path(folder), PeerSizes(**sizes))
    with one_thread(), _quiet():
        (made.by(peer) if peer else made.ours())()
    return most_resident()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """BLAS, OpenMP, numba and PyTorch, as far as they are loaded, on one thread in the block."""
    from threadpoolctl import threadpool_limits

    with contextlib.ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        if (numba := sys.modules.get("numba")) is not None:
            stack.callback(numba.set_num_threads, numba.get_num_threads())
            numba.set_num_threads(1)
        if "torch" in sys.modules:
            from rnnreranker.base.process.torch_threads import one_torch_thread

            stack.enter_context(one_torch_thread())
        yield


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What the works print while they are measured is kept; errors are raised as ever."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
