"""A Dask cluster of this machine that loses a worker while it works."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def cluster_that_loses_a_worker(begun: Callable[[], bool]) -> Iterator[str]:
    """The address of a cluster of two workers, of which one is killed once the work has begun; skips without Dask."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'rnnreranker[cluster]'")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(cluster.workers.values())).pid

        def kill_when_begun() -> None:
            while not begun():
                time.sleep(0.002)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill_when_begun)
        killer.start()
        yield client.scheduler.address
        killer.join(timeout=30)
        assert not killer.is_alive()
