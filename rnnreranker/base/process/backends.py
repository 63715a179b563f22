"""Workers for the parts of a long job: threads or processes by joblib, or a Dask or Ray cluster."""

from __future__ import annotations

import contextlib
import itertools
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, UnavailableError, require
from rnnreranker.base.process.quiet import show_notices

CLUSTERS = {"dask": "distributed", "ray": "ray"}  # backend → its package
BACKENDS = ("threads", "loky", *CLUSTERS)
RETRIES = 3  # of a part whose worker has died
AHEAD = 2  # parts that wait at a cluster, for each worker
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
        shown: iterates over the finished parts, to show progress.
        gpus: of a Ray worker for a part.

    Raises:
        UnavailableError: no cluster at the address, or one without a worker.
    """
    waiting = iter(parts)
    first = list(itertools.islice(waiting, 1))
    if not first:
        return
    every = itertools.chain(first, waiting)
    with contextlib.ExitStack() as stack:
        if backend == "ray":
            done = stack.enter_context(_ray(do, every, workers, address, gpus))
        else:
            import joblib

            name, options = ("threading" if backend == "threads" else backend), dict[str, Any]()
            if backend == "dask":
                options = {"client": stack.enter_context(_dask(workers, address)), "retries": RETRIES}
                workers = sum(options["client"].nthreads().values())
            stack.enter_context(joblib.parallel_config(backend=name, n_jobs=workers, **options))
            calls = (
                joblib.delayed(do)(*part) if name == "threading" else joblib.delayed(_called)(do, part)
                for part in every
            )
            done = joblib.Parallel(return_as="generator_unordered")(calls)
        for _ in shown(done):
            pass


def _dask(workers: int, address: str | None) -> Any:
    """A client of Dask, to be closed by `with`."""
    import distributed

    try:
        client = (
            distributed.Client(address, timeout=PATIENCE)
            if address
            else distributed.Client(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        )
    except (OSError, ValueError) as error:
        raise _no_cluster("Dask scheduler", address, error) from None
    if not client.nthreads():
        client.close()
        raise UnavailableError(f"{argument('address', address)}: this Dask cluster has no worker; start some")
    return client


@contextlib.contextmanager
def _ray(
    do: Callable[..., Any], parts: Iterator[tuple[Any, ...]], workers: int, address: str | None, gpus: float
) -> Iterator[Iterator[None]]:
    """Yields the finished parts; a connection that the caller opened stays open."""
    import ray

    opened = not ray.is_initialized()
    if opened:
        here: dict[str, Any] = {"address": address} if address else {"num_cpus": workers, "include_dashboard": False}
        try:
            if address and ":" in address:
                _knock(address)  # Ray itself asks for minutes
            ray.init(**here, log_to_driver=False, configure_logging=False)
        except (OSError, ValueError, RuntimeError) as error:
            raise _no_cluster("head of a Ray cluster", address, error) from None
    try:
        resources = ray.cluster_resources()
        if gpus > resources.get("GPU", 0):
            raise UnavailableError("this Ray cluster has no GPU; leave out " + argument("device"))
        workers = max(1, int(resources.get("GPU", 0) / gpus if gpus else resources.get("CPU", 1)))
        remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(_called)

        def done() -> Iterator[None]:
            def submitted(count: int) -> list[Any]:
                return [remote.remote(do, part) for part in itertools.islice(parts, count)]

            waiting = submitted(AHEAD * workers)
            while waiting:
                ready, waiting = ray.wait(waiting, num_returns=1)
                ray.get(ready)
                waiting += submitted(1)
                yield

        yield done()
    finally:
        if opened:
            ray.shutdown()


def _knock(address: str) -> None:
    host, _, port = address.rpartition("://")[2].rpartition(":")
    socket.create_connection((host, int(port)), timeout=PATIENCE).close()


def _called(do: Callable[..., Any], part: tuple[Any, ...]) -> None:
    """Do a part in a worker process, which ignores Ctrl-C."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    show_notices()
    do(*part)


def _no_cluster(what: str, address: str | None, error: Exception) -> UnavailableError:
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    if address is None:
        return UnavailableError(f"no cluster can be started here ({reason}); name one by {argument('address')}")
    return UnavailableError(f"{argument('address', address)}: no {what} answers ({reason}); start it, or correct it")
