"""Texts in batches of similar length, each computed by one thread.

The result for a list of texts does not depend on their order or on threads, to the last bit: batches are made of the
distinct texts by length and content. Other texts in the list may change the last bits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from rnnreranker.base.command import cores
from rnnreranker.base.command import progress as show_progress
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.jobs import one_torch_thread

BATCH_TOKENS = 1024  # padded tokens of a batch: what a core's caches like best
DEVICE_TOKENS = 2**16  # of a batch on a GPU
Forward = Callable[[list[Any]], Any]
AT_ONCE = 2  # batches of one GPU: while one is computed, another is put together and copied


class Computed(NamedTuple):
    """The output of a model for n texts.

    parts: the output of each batch, a row a text; rows: (n,) int64, the row of each text, -1 = left out; read: what the
    model read of each text, or None.
    """

    parts: list[Any]
    rows: np.ndarray
    read: list[Any]

    @property
    def cut(self) -> int:
        return sum(one is not None and one.cut for one in self.read)


class CountedText(NamedTuple):
    """A text, or what a model makes of it: how many tokens the model reads, and whether there were more."""

    text: Any
    length: int
    cut: bool


def encode_texts(
    texts: Sequence[Any],
    read: Callable[[list[Any]], Sequence[Any]],
    forwards: Sequence[Forward],
    *,
    devices: Devices | None,
    tokens: int | None = None,
    threads: int | None = None,
    blank: bool = True,
    progress: bool = False,
) -> Computed:
    """The output of a model for texts; equal texts are computed once.

    Args:
        texts: strings, or tuples of strings; blank: whether those of white space alone are read.
        read: gives what a model reads of texts, as `CountedText`.
        forwards: compute a batch of that, one function a device; devices: None = the processor.
        tokens: padded tokens of a batch, at most; None = BATCH_TOKENS, on a GPU DEVICE_TOKENS.
        threads: None = one per core; progress: show a bar on stderr.

    Raises:
        InputError: a text that is not a string.
    """
    for number, text in enumerate(texts):
        if not isinstance(text, str) and not (isinstance(text, tuple) and all(isinstance(one, str) for one in text)):
            raise InputError(f"text {number} is a {type(text).__name__}; expected a string")
    distinct = sorted({text for text in texts if blank or text.strip()})
    own = read(distinct) if distinct else []

    free: SimpleQueue[Forward] = SimpleQueue()
    elsewhere = devices is not None and devices.elsewhere
    each = AT_ONCE if elsewhere else max(1, (threads or cores()) // len(forwards))
    for number, forward in enumerate([*forwards] * each):
        free.put(_in_stream(forward, devices.names[number % len(forwards)]) if devices is not None else forward)

    def compute(batch: list[int]) -> tuple[list[int], Any]:
        forward = free.get()
        try:
            return batch, forward([own[number] for number in batch])
        finally:
            free.put(forward)

    batches = list(_batches([one.length for one in own], tokens or (DEVICE_TOKENS if elsewhere else BATCH_TOKENS)))
    workers = min(each * len(forwards), len(batches))
    with one_torch_thread() if "torch" in sys.modules else nullcontext() as initializer, ExitStack() as stack:
        done: Iterator[tuple[list[int], Any]] = map(compute, batches)
        if workers > 1:
            pool = stack.enter_context(ThreadPoolExecutor(workers, initializer=initializer))
            done = pool.map(compute, batches)
        computed = list(show_progress(done, unit="batches", total=len(batches), what="encode") if progress else done)
    row_of = {number: row for row, number in enumerate(number for batch, _ in computed for number in batch)}
    number_of = {text: number for number, text in enumerate(distinct)}
    numbers = [number_of.get(text, -1) for text in texts]
    rows = np.array([row_of.get(number, -1) for number in numbers], dtype=np.int64)
    return Computed([part for _, part in computed], rows, [own[one] if one >= 0 else None for one in numbers])


def padded(batch: Sequence[Sequence[int]], pad: int) -> tuple[np.ndarray, np.ndarray]:
    """Token numbers and attention of a batch, (b, longest) int64 both; `pad` fills short lists.

    >>> [part.tolist() for part in padded([[5, 6], [7]], 0)]
    [[[5, 6], [7, 0]], [[1, 1], [1, 0]]]
    """
    lengths = np.array([[len(entry)] for entry in batch])
    attention = np.arange(lengths.max()) < lengths
    tokens = np.full(attention.shape, pad, dtype=np.int64)
    tokens[attention] = np.concatenate(batch)
    return tokens, attention.astype(np.int64)


def _in_stream(forward: Forward, device: str) -> Forward:
    """The function in a CUDA stream of its own, so that copies and computations overlap."""
    if not device.startswith("cuda"):
        return forward
    import torch

    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))

    def run(batch: list[Any]) -> Any:
        with torch.cuda.stream(stream):
            return forward(batch)

    return run


def _batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Numbers of texts in batches, shortest first, each as many as fit `tokens` with padding.

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
