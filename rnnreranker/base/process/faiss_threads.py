"""Faiss on one thread, where blocks are searched beside one another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def one_thread(faiss: Any) -> Iterator[None]:
    """Faiss on one thread: blocks are searched beside one another, and sums do not depend on the machine."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
