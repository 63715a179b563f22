"""Who does the parts of a long job: threads or processes of this machine, or the workers of a cluster, by joblib."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.process.interrupts import left_to_this_process

BACKENDS = ("threads", "loky", "dask")
ONE_BY_ONE = ("threads", "loky")  # whose parts are told as they are done


def check_backend(backend: str) -> None:
    """Look that a backend is known and installed, before any work.

    Raises:
        InputError: not one of BACKENDS.
        MissingDependencyError: its package is not installed.
    """
    if backend not in BACKENDS:
        raise InputError(f"backend {backend}: not known; known: {', '.join(BACKENDS)}")
    if backend == "dask":
        require("distributed", "--backend dask", "'rnnreranker[cluster]'")


@contextlib.contextmanager
def joblib_backend(backend: str, cluster: str | None) -> Iterator[str]:
    """The name that joblib knows a backend by, while a connection to its cluster is open."""
    if backend == "dask":
        import distributed

        with distributed.Client(cluster) if cluster else distributed.Client(dashboard_address=None):
            yield "dask"
    else:
        yield "threading" if backend == "threads" else backend


def do_parts(
    do: Callable[..., Any],
    parts: Sequence[tuple[Any, ...]],
    *,
    workers: int,
    backend: str,
    cluster: str | None,
    shown: Callable[[Iterable[Any]], Iterable[Any]],
) -> None:
    """Do the parts of a job, several at a time; without parts nothing is started.

    Args:
        do: called with the arguments of each part.
        workers: how many at a time.
        backend, cluster: as `joblib_backend`.
        shown: goes through the parts as they are done, to show progress; of a cluster's parts nothing is shown.
    """
    if not parts:
        return
    import joblib

    with (
        left_to_this_process(),
        joblib_backend(backend, cluster) as name,
        joblib.parallel_config(backend=name, n_jobs=workers),
    ):
        calls = (joblib.delayed(do)(*part) for part in parts)
        if backend in ONE_BY_ONE:
            for _ in shown(joblib.Parallel(return_as="generator_unordered")(calls)):
                pass
        else:
            joblib.Parallel()(calls)
