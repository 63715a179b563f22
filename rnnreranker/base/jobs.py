"""Jobs: workers by joblib, a Dask or a Ray cluster; threads of libraries; locks between processes."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError, UnavailableError, argument, in_command, of_command, require

CLUSTERS = {"dask": "distributed", "ray": "ray"}  # backend → its package
BACKENDS = ("threads", "loky", *CLUSTERS)
RETRIES = 3  # of a part whose worker has died
PATIENCE = 20  # seconds until a scheduler that does not answer is not there


def check_backend(backend: str, address: str | None = None) -> None:
    """Check that a backend is known and installed, and that only a cluster has an address.

    Raises:
        InputError: not one of BACKENDS, an address without a cluster.
        MissingDependencyError: its package is not installed.
    """
    if backend not in BACKENDS:
        raise InputError(f"backend {backend}: not known; known: {', '.join(BACKENDS)}")
    if backend in CLUSTERS:
        require(CLUSTERS[backend], f"--backend {backend}", "'rnnreranker[cluster]'")
    elif address:
        raise InputError(f"{argument('address', address)} goes with {argument('backend')} {' or '.join(CLUSTERS)}")


def do_parts(
    do: Callable[..., Any],
    parts: Iterable[tuple[Any, ...]],
    *,
    workers: int,
    backend: str,
    address: str | None,
    shown: Callable[[Iterable[Any]], Iterable[Any]],
    gpus: float = 0,
) -> None:
    """Do the parts of a job, several at a time; another worker repeats a part whose worker dies.

    Args:
        do: called with the arguments of each part; writes its file whole or not at all.
        parts: taken as workers become free; none start nothing.
        workers: parts at a time; a cluster with an address uses all its workers.
        backend: one of BACKENDS; address: of the cluster's scheduler, None starts one here.
        shown: iterates over the finished parts, to show progress; over those of Ray at the end.
        gpus: of a Ray worker for a part.

    Raises:
        UnavailableError: no cluster at the address, or one without a worker.
    """
    import joblib

    waiting = iter(parts)
    if (first := next(waiting, None)) is None:
        return
    calls = (joblib.delayed(_called)(do, part, in_command(), os.getpid()) for part in itertools.chain([first], waiting))
    options: dict[str, Any] = {"backend": "threading" if backend == "threads" else backend, "n_jobs": workers}
    with contextlib.ExitStack() as stack:
        if backend in CLUSTERS:
            options |= stack.enter_context(_cluster(backend, workers, address, gpus))
        stack.enter_context(joblib.parallel_config(**options))
        for _ in shown(joblib.Parallel(return_as="list" if backend == "ray" else "generator_unordered")(calls)):
            pass


@contextlib.contextmanager
def _cluster(backend: str, workers: int, address: str | None, gpus: float) -> Iterator[dict[str, Any]]:
    """A connection to a cluster; yields the options of joblib. A connection of Ray that the caller opened stays."""
    try:
        if backend == "dask":
            import distributed

            here = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
            client: Any = distributed.Client(address, timeout=PATIENCE, **({} if address else here))
            close, slots = client.close, sum(client.nthreads().values())
            options: dict[str, Any] = {"client": client, "retries": RETRIES}
        else:
            import ray
            from ray.util.joblib import register_ray

            close = (lambda: None) if ray.is_initialized() else ray.shutdown
            if address and ":" in address:  # Ray itself asks for minutes
                host, _, port = address.rpartition("://")[2].rpartition(":")
                socket.create_connection((host, int(port)), timeout=PATIENCE).close()
            own = {"address": address} if address else {"num_cpus": workers, "include_dashboard": False}
            ray.init(**own, log_to_driver=False, configure_logging=False, ignore_reinit_error=True)
            register_ray()
            slots = int(ray.cluster_resources().get("GPU" if gpus else "CPU", 0) / (gpus or 1))
            again = {"max_restarts": RETRIES, "max_task_retries": RETRIES}
            options = {"ray_remote_args": {"num_cpus": 1, "num_gpus": gpus, **again}}
    except (OSError, ValueError, RuntimeError) as error:
        reason = (str(error) or repr(error)).strip().splitlines()[0]
        at = f"{argument('address', address)}: no {backend} cluster answers" if address else f"{backend} does not start"
        raise UnavailableError(f"{at} ({reason}); start one and give its address") from None
    try:
        if not slots:
            raise UnavailableError(f"this {backend} cluster has no worker{' with a GPU' if gpus else ''}; start some")
        yield {"n_jobs": slots, **options}
    finally:
        close()


def _called(do: Callable[..., Any], part: tuple[Any, ...], by_command: bool, caller: int) -> None:
    """Do a part in a worker, which ignores Ctrl-C if it is a process of its own; caller: the process that asks."""
    if os.getpid() != caller and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with of_command() if by_command else contextlib.nullcontext():
        do(*part)


_lock = threading.Lock()
_users = 0
_limit: Any = None


@lru_cache(maxsize=1)
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looks through the loaded libraries: once, numpy's BLAS is among them


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread; blocks of several threads may overlap."""
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _libraries().limit(limits=1, user_api="blas")
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()
                _limit = None


@contextlib.contextmanager
def one_faiss_thread(faiss: Any) -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


@contextlib.contextmanager
def one_torch_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def alone(output: Path, waiting: str = "", *, doing: str = "") -> Iterator[bool]:
    """A block that one process at a time runs for an output, by the file `.NAME.lock`; yields whether it waited.

    The same thread may enter it again.

    Args:
        waiting: the line that is printed before it waits.
        doing: the work of another process; then this one does not wait.

    Raises:
        InputError: a folder that cannot be written; with `doing`, a lock that another process holds.
    """
    from filelock import FileLock, Timeout

    path = output.with_name(f".{output.name}.lock")
    lock = FileLock(path, is_singleton=True)
    busy = InputError(f"{output}: another process is {doing}; wait for it, or give another --output")
    if lock.is_locked:  # by this thread
        if doing:
            raise busy
        yield False
        return
    waited = False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        if doing:
            raise busy from None
        waited = True
        say(waiting)
        lock.acquire()
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror or error}); choose another folder") from None
    try:
        yield waited
    finally:
        with contextlib.suppress(OSError):  # the next process takes the file as it is; Windows removes it when free
            path.unlink()
        lock.release()
