"""PyTorch on one thread: its sums round differently on several."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def one_torch_thread() -> Iterator[Callable[[], None]]:
    """Hold PyTorch to one thread in the block, and to the number of before after it.

    Yields:
        What a thread that the block starts calls first, as PyTorch counts for each of them.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield lambda: torch.set_num_threads(1)
    finally:
        torch.set_num_threads(before)
