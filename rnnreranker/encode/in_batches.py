"""Texts in batches of about the same length, each computed by one thread: the result depends on neither."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from typing import NamedTuple

import numpy as np

from rnnreranker.base.command import cores
from rnnreranker.base.command import progress as show_progress
from rnnreranker.base.process.torch_threads import one_torch_thread


class CountedText(NamedTuple):
    """A text of which a model takes the tokens itself: how many it reads, and whether there were more."""

    text: str
    length: int
    cut: bool


def compute_batches(
    compute: Callable[[list[int]], None],
    lengths: Sequence[int],
    tokens: int,
    threads: int | None = None,
    *,
    progress: bool = False,
) -> None:
    """Call `compute` with the numbers of the texts of every batch, several at a time, each on one thread of torch.

    Args:
        compute: takes the numbers of some texts.
        lengths: tokens of each text.
        tokens: padded tokens of a batch, at most; a longer text stands alone.
        threads: None = one per core.
        progress: show a bar on stderr.
    """
    batches = list(_batches(lengths, tokens))
    workers = min(threads or cores(), len(batches))
    with one_torch_thread() if "torch" in sys.modules else nullcontext() as initializer, ExitStack() as stack:
        done: Iterator[None] = map(compute, batches)
        if workers > 1:
            pool = stack.enter_context(ThreadPoolExecutor(workers, initializer=initializer))
            done = pool.map(compute, batches)
        for _ in show_progress(done, unit="batches", total=len(batches), what="encode") if progress else done:
            pass


def padded(batch: Sequence[Sequence[int]], pad: int) -> tuple[np.ndarray, np.ndarray]:
    """Token numbers and attention of a batch, (b, longest) int64 both; short lists are filled with `pad`.

    >>> [part.tolist() for part in padded([[5, 6], [7]], 0)]
    [[[5, 6], [7, 0]], [[1, 1], [1, 0]]]
    """
    longest = max(map(len, batch))
    tokens = np.full((len(batch), longest), pad, dtype=np.int64)
    attention = np.zeros((len(batch), longest), dtype=np.int64)
    for row, entry in enumerate(batch):
        tokens[row, : len(entry)] = entry
        attention[row, : len(entry)] = 1
    return tokens, attention


def _batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Numbers of texts, batch by batch, shortest first, as many as fit `tokens` with their padding.

    >>> list(_batches([600, 3, 300, 300], 1024))
    [[1, 2, 3], [0]]
    """
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda number: (lengths[number], number)):
        if batch and (len(batch) + 1) * lengths[number] > tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
