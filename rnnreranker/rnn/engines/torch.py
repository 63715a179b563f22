"""The similarity functions on tensors, where the vectors lie: batches of contexts on a GPU, or on a CPU.

For vectors that are on a GPU already, or many queries beside one. On a CPU the compiled kernel behind
`rnnreranker.rnn.rnn_similarity` is the better choice: 4 times as fast at N = 60, 9 times at N = 200 (d = 384, one
thread).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rnnreranker.base.device import one_device
from rnnreranker.base.errors import InputError
from rnnreranker.rnn import refusals, similarity
from rnnreranker.rnn.engines import torch_steps
from rnnreranker.rnn.params import RnnParams

SHARE = 0.5  # of the free memory of a CUDA device
ELSEWHERE = 2**30  # bytes on other devices

Vectors = Tensor | np.ndarray


@torch.no_grad()
def rnn_similarity(
    queries: Vectors,
    candidates: Vectors,
    params: RnnParams,
    *,
    base: Tensor | np.ndarray | Sequence[Sequence[float]] | None = None,
    lengths: Tensor | np.ndarray | Sequence[int] | None = None,
    device: str | torch.device | None = None,
    memory_budget: int | None = None,
) -> Tensor:
    """s* of every candidate: (B, N) float32 on the device, in candidate order; -inf for padding.

    The values of `rnnreranker.rnn.rnn_similarity` (relative 1e-4, absolute 1e-6) by the same rule for ties, except near
    them: inner products are summed in float64 here and in float32 there, so two that float32 hardly tells apart can
    change ranks in a list, which moves a candidate's value by a visible amount (measured: 1 of 16,000 values, by .016,
    at N = 200; none of 15,360 at N = 60). TF32, if the program allows it, plays no part. No gradient is kept.

    queries: (B, d); candidates: (B, N, d), N >= 1; tensors or numpy arrays, of float32 or any real type that is cast to
    it. Arrays are moved to the device a part at a time. base: (B, N) scores of a first stage, the candidates in its
    order (None = the inner products are the first stage). lengths: (B,) real candidates of each row, 0..N (None = all).
    device: where to compute (None = where the tensors are, "cpu" for arrays).
    memory_budget: bytes that intermediate results may take, which sets how many contexts are computed at once; at least
    one is (None = half of the free memory of a CUDA device, 1 GiB elsewhere). Results do not depend on it: to the byte
    on a CPU; elsewhere as far as the device sums alike for any number of contexts.

    Raises:
        InputError: shapes that do not fit, NaN or infinity in a vector or in base, lengths outside 0..N, an exponential
            weight that would overflow, tensors on two devices, a device that is not there.

    >>> query = torch.tensor([[1.0, 0.0]])
    >>> near_and_far = torch.tensor([[[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]]])
    >>> rnn_similarity(query, near_and_far, RnnParams(k=1)).argsort().tolist()
    [[2, 1, 0]]
    """
    queries, candidates = _vectors(queries, "queries", "(B, d)"), _vectors(candidates, "candidates", "(B, N, d)")
    if len(queries) != len(candidates):
        raise InputError(f"queries has {len(queries)} rows and candidates {len(candidates)}: expected as many")
    if queries.shape[1] != candidates.shape[2]:
        raise InputError(
            f"the dimension of queries is {queries.shape[1]}, that of candidates {candidates.shape[2]}: expected "
            "the same; were both made by the same encoder?"
        )
    batch, width, dimension = candidates.shape
    if width == 0:
        raise InputError(f"candidates has shape {tuple(candidates.shape)}: expected at least one candidate per query")
    real = refusals.lengths_of(_on_host(lengths), batch, width)
    known = refusals.base_scores(_on_host(base), real, width)
    where = _device(device, {"queries": queries, "candidates": candidates})

    def load(rows: slice, most: int) -> Tensor:
        query = _part(queries, (rows,), where)
        return torch.cat([query[:, None], _part(candidates, (rows, slice(most - 1)), where)], dim=1)

    out = torch.full((batch, width), -torch.inf, dtype=torch.float32, device=where)
    problems = []
    for rows, most in _parts(real, dimension, where, memory_budget):
        done = torch_steps.steps(load(rows, most), real[rows] + 1, params)
        mixed = torch_steps.mixed(done, None if known is None else known[rows, : most - 1], real[rows] + 1, params)
        out[rows, : most - 1] = torch.where(done.inside[:, 0, 1:], mixed.float(), -torch.inf)
        problems.append(done.problem)
    _check(problems, load, dimension, real, "candidate")
    return out


@torch.no_grad()
def jaccard_similarity(
    vectors: Vectors,
    params: RnnParams,
    *,
    probes: Tensor | np.ndarray | Sequence[int] = (0,),
    lengths: Tensor | np.ndarray | Sequence[int] | None = None,
    device: str | torch.device | None = None,
    memory_budget: int | None = None,
) -> Tensor:
    """Jaccard similarity of each probe to every element: (B, len(probes), m) float32 on the device; -inf for padding.

    The same values as `rnnreranker.rnn.jaccard_similarity`, see `rnn_similarity` for how near.

    vectors: (B, m, d), row 0 = query, m >= 2; tensor or numpy array, of float32 or any real type that is cast to it.
    probes: row numbers of `vectors`, the same for the whole batch; 0 = the query. lengths: (B,) real candidates of each
    row, 0..m-1, the query not counted (None = all). A query without candidates, and a probe that is padding, give -inf
    throughout. device, memory_budget: as in `rnn_similarity`.

    Raises:
        InputError: as `rnn_similarity`, and a probe outside 0..m-1.

    >>> jaccard_similarity(torch.ones(1, 3, 2), RnnParams(k=2, scale="none"), probes=(0, 1)).tolist()
    [[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]]
    """
    vectors = _vectors(vectors, "vectors", "(B, m, d)")
    batch, width, dimension = vectors.shape
    if width < 2:
        shape = tuple(vectors.shape)
        raise InputError(f"vectors has shape {shape}: expected row 0 (the query) and at least one candidate")
    chosen = refusals.integers(_on_host(probes), "probes")
    if chosen.ndim != 1 or not chosen.size:
        raise InputError(f"probes={probes!r}: expected at least one row number, such as (0,)")
    if (outside := chosen[(chosen < 0) | (chosen >= width)]).size:
        raise InputError(f"probe {outside[0]} is no row of vectors: expected 0 (the query) to {width - 1}")
    real = refusals.lengths_of(_on_host(lengths), batch, width - 1)
    where = _device(device, {"vectors": vectors})

    def load(rows: slice, most: int) -> Tensor:
        return _part(vectors, (rows, slice(most)), where)

    out = torch.full((batch, len(chosen), width), -torch.inf, dtype=torch.float32, device=where)
    problems = []
    for rows, most in _parts(real, dimension, where, memory_budget):
        done = torch_steps.steps(load(rows, most), real[rows] + 1, params)
        shown = done.inside & done.inside[:, 0, 1][:, None, None]  # nothing of a query without candidates
        there = [(row, probe) for row, probe in enumerate(chosen.tolist()) if probe < most]
        similarities = torch_steps.jaccard(done.expanded, [probe for _, probe in there])
        for (row, probe), values in zip(there, similarities, strict=True):
            out[rows, row, :most] = torch.where(shown[:, probe], values.float(), -torch.inf)
        problems.append(done.problem)
    _check(problems, load, dimension, real, "vector")
    return out


def usable_device(device: str | torch.device) -> torch.device:
    """The device, if this machine has it; of several the first.

    Raises:
        InputError: no name of a device, or one that is not there, with those that are.
    """
    where = torch.device(one_device(str(device)))
    if where.type == "cuda" and where.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return where


def _vectors(values: Vectors, name: str, shape: str) -> Vectors:
    """A tensor as it is, anything else as an array; the number of dimensions and the type are checked."""
    if not isinstance(values, Tensor):
        return refusals.vectors(values, name, shape)
    if values.dtype == torch.bool or values.is_complex():
        raise InputError(f"{name} has type {values.dtype}: expected float32 or float16")
    # an array of the same shape that holds nothing is checked in place of the tensor
    refusals.vectors(np.broadcast_to(np.float32(0), tuple(values.shape)), name, shape)
    return values


def _on_host(values: Any) -> Any:
    """A tensor as an array, anything else as it is."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values


def _device(device: str | torch.device | None, given: dict[str, Vectors]) -> torch.device:
    """Where to compute: the device asked for, else that of the tensors."""
    if device is not None:
        return usable_device(device)
    devices = {name: values.device for name, values in given.items() if isinstance(values, Tensor)}
    if len(set(devices.values())) > 1:
        shown = ", ".join(f"{name} on {where}" for name, where in devices.items())
        raise InputError(f"received {shown}: expected one device; give device= to have both moved there")
    return usable_device(next(iter(devices.values()), "cpu"))


def _part(values: Vectors, index: tuple[slice, ...], where: torch.device) -> Tensor:
    """Some of the vectors as float32 on the device."""
    if isinstance(values, Tensor):
        return values[index].to(where).to(torch.float32)
    with np.errstate(all="ignore"):  # infinities are seen in the result
        return torch.from_numpy(np.array(values[index], dtype=np.float32)).to(where)  # a copy: arrays can be read-only


def _parts(real: np.ndarray, dimension: int, where: torch.device, budget: int | None) -> Iterator[tuple[slice, int]]:
    """Ranges of contexts that fit the budget, with the size M of the largest context of all (at least 2)."""
    if budget is None:
        budget = ELSEWHERE
        if where.type == "cuda":
            held = torch.cuda.memory_reserved(where) - torch.cuda.memory_allocated(where)  # free within torch
            budget = int(SHARE * (torch.cuda.mem_get_info(where)[0] + held))
    elif isinstance(budget, bool) or not isinstance(budget, (int, np.integer)) or budget < 1:
        raise InputError(f"memory_budget={budget!r}: expected bytes, an integer >= 1, or None")
    most = max(int(real.max(initial=0)) + 1, 2)
    count = max(1, int(budget) // (most * (most * torch_steps.BYTES_PER_PAIR + dimension * 20)))
    for start in range(0, len(real), count):
        yield slice(start, min(start + count, len(real))), most


def _check(
    problems: list[Tensor], load: Callable[[slice, int], Tensor], dimension: int, real: np.ndarray, what: str
) -> None:
    """Raise for the first row of the batch that could not be computed, in the words of the other functions."""
    if not problems:
        return
    problem = torch.cat(problems).cpu().numpy()
    problem[real == 0] = 0.0  # nothing is computed of a query without candidates

    def from_device(row: int, into: np.ndarray) -> np.ndarray:
        into[:] = load(slice(row, row + 1), len(into))[0].cpu().numpy()
        return into

    similarity.check_problem(problem, from_device, dimension, real, what)
