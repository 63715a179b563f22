"""Texts in batches of about the same length, each computed by one thread: the result depends on neither.

What a list of texts comes to does not depend on their order, nor on the number of threads, to the last bit: the
different texts are put into batches by length and content, and every batch is computed by one thread. Other texts in
the list may change the last bits.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from rnnreranker.base.command import cores
from rnnreranker.base.command import progress as show_progress
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.process.threads import one_torch_thread

BATCH_TOKENS = 1024  # padded tokens of a batch: what a core's caches like best
DEVICE_TOKENS = 2**16  # of a batch on a GPU
AT_ONCE = 2  # batches of one GPU: while one is computed, another is put together and copied
T = TypeVar("T")


class Computed(NamedTuple, Generic[T]):
    """What a model computed of n texts.

    parts: what every batch came to, a row a text; rows: (n,) int64, where each text stands in the parts, one after the
    other, -1 = it was left out; read: what the model read of each text, None of one that was left out.
    """

    parts: list[T]
    rows: np.ndarray
    read: list[Any]

    @property
    def cut(self) -> int:
        """How many of the texts are longer than the model reads."""
        return sum(one is not None and one.cut for one in self.read)


class CountedText(NamedTuple):
    """A text of which a model takes the tokens itself: how many it reads, and whether there were more."""

    text: str
    length: int
    cut: bool


def encode_texts(
    texts: Sequence[Any],
    read: Callable[[list[Any]], Sequence[Any]],
    forwards: Sequence[Callable[[list[Any]], T]],
    *,
    devices: Devices | None = None,
    tokens: int | None = None,
    threads: int | None = None,
    blank: bool = True,
    length: Callable[[Any], int] = lambda one: one.length,
    progress: bool = False,
) -> Computed[T]:
    """What a model computes of texts, each of those that are the same once.

    Args:
        texts: strings, or tuples of such.
        read: what a model reads of texts, as `CountedText`; forwards: what it makes of some of that, row by row, on
            each of the devices.
        devices: None = the processor.
        tokens: padded tokens of a batch, at most; None = BATCH_TOKENS, on a GPU DEVICE_TOKENS.
        threads: None = one per core; a GPU has AT_ONCE.
        blank: whether texts of white space alone are read.
        length: the number of tokens of a text.
        progress: show a bar on stderr.

    Raises:
        InputError: a text that is not a string.
    """
    for number, text in enumerate(texts):
        if not isinstance(text, str) and not (isinstance(text, tuple) and all(isinstance(one, str) for one in text)):
            raise InputError(f"text {number} is a {type(text).__name__}; expected a string")
    distinct = sorted({text for text in texts if blank or text.strip()})
    own = read(distinct) if distinct else []

    free: SimpleQueue[Callable[[list[Any]], T]] = SimpleQueue()
    elsewhere = devices is not None and devices.elsewhere
    each = AT_ONCE if elsewhere else max(1, (threads or cores()) // len(forwards))
    for number, forward in enumerate([*forwards] * each):
        free.put(_in_stream(forward, devices.names[number % len(forwards)]) if devices is not None else forward)

    def compute(batch: list[int]) -> tuple[list[int], T]:
        forward = free.get()
        try:
            return batch, forward([own[number] for number in batch])
        finally:
            free.put(forward)

    lengths = [length(one) for one in own]
    most = tokens or (DEVICE_TOKENS if elsewhere else BATCH_TOKENS)
    computed = compute_batches(compute, lengths, most, each * len(forwards), progress=progress)
    row_of = {number: row for row, number in enumerate(number for batch, _ in computed for number in batch)}
    number_of = {text: number for number, text in enumerate(distinct)}
    numbers = [number_of.get(text, -1) for text in texts]
    rows = np.array([row_of.get(number, -1) for number in numbers], dtype=np.int64)
    return Computed([part for _, part in computed], rows, [own[one] if one >= 0 else None for one in numbers])


def count_tokens(tokenizer: Any, tokenizing: threading.Lock, *texts: Sequence[str]) -> list[int]:
    """The number of tokens of texts, or of pairs of them, as a tokenizer of transformers cuts them, without a limit.

    tokenizing: held meanwhile, as a tokenizer keeps its settings in itself: one thread at a time.
    """
    plain = {"truncation": False, "padding": False, "return_attention_mask": False, "return_token_type_ids": False}
    with tokenizing:
        return [len(tokens) for tokens in tokenizer(*map(list, texts), **plain)["input_ids"]]


def compute_batches(
    compute: Callable[[list[int]], T],
    lengths: Sequence[int],
    tokens: int,
    threads: int | None = None,
    *,
    progress: bool = False,
) -> list[T]:
    """What `compute` gives for the numbers of the texts of every batch, several at a time, each on one thread of torch.

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
        done: Iterator[T] = map(compute, batches)
        if workers > 1:
            pool = stack.enter_context(ThreadPoolExecutor(workers, initializer=initializer))
            done = pool.map(compute, batches)
        return list(show_progress(done, unit="batches", total=len(batches), what="encode") if progress else done)


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


def _in_stream(forward: Callable[[list[Any]], T], device: str) -> Callable[[list[Any]], T]:
    """The same in a stream of its own on a GPU of CUDA, where copies and work of several streams overlap."""
    if not device.startswith("cuda"):
        return forward
    import torch

    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))

    def run(batch: list[Any]) -> T:
        with torch.cuda.stream(stream):
            return forward(batch)

    return run


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
