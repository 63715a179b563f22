"""Who does the parts of a long job: threads or processes of this machine, or the workers of a cluster, by joblib."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rnnreranker.errors import InputError, require

BACKENDS = ("threads", "loky", "dask", "ray")
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
    elif backend == "ray":
        require("ray", "--backend ray", "ray (the extra cluster brings Dask alone)")


@contextlib.contextmanager
def joblib_backend(backend: str, cluster: str | None) -> Iterator[str]:
    """The name that joblib knows a backend by, while a connection to its cluster is open."""
    if backend == "dask":
        import distributed

        with distributed.Client(cluster) if cluster else distributed.Client(dashboard_address=None):
            yield "dask"
    elif backend == "ray":
        import ray  # type: ignore[import-not-found, unused-ignore]
        from ray.util.joblib import register_ray  # type: ignore[import-not-found, unused-ignore]

        ray.init(address=cluster, ignore_reinit_error=True)
        register_ray()
        yield "ray"
    else:
        yield "threading" if backend == "threads" else backend
