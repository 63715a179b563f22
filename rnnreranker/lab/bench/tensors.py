"""The batched tensors of `rnnreranker.rnn.engines.torch` beside the kernel: on the processor, and on a GPU."""

from __future__ import annotations

import importlib
import importlib.util
import time
from typing import Any

import numpy as np

from rnnreranker.base.process.torch_threads import one_torch_thread
from rnnreranker.lab.bench.kernel_ratios import ELEMENTS, PARAMS, a_query
from rnnreranker.lab.bench.summaries import cells
from rnnreranker.lab.bench.synthetic import contexts
from rnnreranker.rnn import rnn_similarity

MODULE = "rnnreranker.rnn.engines.torch"


def devices() -> list[str]:
    """What tensors can be measured on here: nothing without PyTorch."""
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec(MODULE) is None:
        return []
    torch = importlib.import_module("torch")
    return ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def tensors(sizes: tuple[int, ...], dimension: int, pairs: int) -> list[dict[str, Any]]:
    """Elapsed time of tensors (one thread on the processor) against the kernel with one thread, in pairs.

    The vectors lie on the device before; the largest difference of results says that both do the same.
    """
    rows: list[dict[str, Any]] = []
    known_devices = devices()
    if not known_devices:
        return rows
    torch, similarity = importlib.import_module("torch"), importlib.import_module(MODULE).rnn_similarity
    for device in known_devices:
        with one_torch_thread():
            for n in sizes:
                vectors = contexts("clustered", max(1, min(256, ELEMENTS // n)), n, dimension)
                queries, candidates = np.ascontiguousarray(vectors[:, 0]), np.ascontiguousarray(vectors[:, 1:])
                placed = [torch.from_numpy(part).to(device) for part in (queries, candidates)]

                def with_kernel(q: np.ndarray = queries, c: np.ndarray = candidates) -> np.ndarray:
                    return rnn_similarity(q, c, PARAMS, threads=1)

                def with_tensors(placed: list[Any] = placed) -> np.ndarray:
                    return torch.as_tensor(similarity(*placed, PARAMS)).cpu().numpy()

                ratio = a_query((with_kernel, with_tensors), len(queries), pairs, time.perf_counter)
                apart = np.abs(with_kernel() - with_tensors())
                row: dict[str, Any] = {"device": device, "N": n, "d": dimension}
                rows.append(row | cells(ratio, "kernel_us", "tensors_us") | {"apart": float(apart.max())})
    return rows
