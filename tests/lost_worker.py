"""A cluster of this machine that loses a worker while it works."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pytest

CLUSTERS = ["dask", "ray"]
LACKS = "is not installed: pip install 'rnnreranker[cluster]'"


@contextmanager
def cluster_that_loses_a_worker(backend: str, begun: Callable[[], bool]) -> Iterator[str]:
    """The address of a cluster of two workers, of which one is killed once the work has begun; skips without it."""
    with (_dask if backend == "dask" else _ray)() as (address, victim):
        killed: list[int] = []

        def kill_when_begun() -> None:
            while not begun():
                time.sleep(0.002)
            killed.append(victim())
            os.kill(killed[0], signal.SIGKILL)

        killer = threading.Thread(target=kill_when_begun)
        killer.start()
        yield address
        killer.join(timeout=30)
        assert killed


@contextmanager
def _dask() -> Iterator[tuple[str, Callable[[], int]]]:
    distributed = pytest.importorskip("distributed", reason=f"dask {LACKS}")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
    ) as cluster:
        pid = next(iter(cluster.workers.values())).pid
        yield cluster.scheduler_address, lambda: pid


@contextmanager
def _ray() -> Iterator[tuple[str, Callable[[], int]]]:
    pytest.importorskip("ray", reason=f"ray {LACKS}")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        yield cluster.address, _ray_worker
    finally:
        cluster.shutdown()


def _ray_worker() -> int:
    """A process of Ray that does a part now."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for process in psutil.Process().children(recursive=True):
            try:
                if process.cmdline()[:1] == ["ray::PoolActor.run_batch"] or process.name().startswith("ray::PoolActo"):
                    return process.pid
            except psutil.Error:
                continue
    raise AssertionError("no worker of Ray is at work")
