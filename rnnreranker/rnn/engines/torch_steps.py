"""The steps of `reference` for a batch of contexts at once, as tensor operations on any device.

Contexts of different sizes stand in one (B, M, M) tensor, M being the largest: context b uses the first sizes[b] rows
and columns. `inside` (B, M, M) is True there. Nothing outside takes part: vectors there are zeros, similarities are
ranked as -inf, and no neighbour list is long enough to reach them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rnnreranker.rnn import mixing, reference
from rnnreranker.rnn.params import RnnParams

LARGEST_SQUARE = 1e38  # of a vector's length: so no inner product of two can overflow float32
BYTES_PER_PAIR = 128  # of elements of a context: what all steps together hold of it at most


@dataclass(frozen=True, eq=False)
class BatchSteps:
    """What the last steps of a batch of contexts need, and what is wrong with it.

    raw: (B, M, M) float32 inner products; sims: (B, M, M), what weights are made of; expanded: (B, M, M), sums of the
    weight rows of the nearest; problem: (B,), NaN where the vectors are not finite or too large, the largest exponent
    where an exponential weight would overflow, else 0. closest: (B, M-1, M-1) bool, the candidates whose scores each
    takes a share of; None where scores are not smoothed.
    """

    raw: Tensor
    sims: Tensor
    expanded: Tensor
    inside: Tensor
    problem: Tensor
    closest: Tensor | None = None


def steps(vectors: Tensor, contexts: np.ndarray, params: RnnParams) -> BatchSteps:
    """All steps up to the expanded weights.

    vectors: (B, M, d) float32, row 0 = query, M >= 2; contexts: (B,) int64 on the host, elements of each, 1..M.
    """
    width, sizes = vectors.shape[1], torch.from_numpy(contexts).to(vectors.device)
    real = torch.arange(width, device=vectors.device) < sizes[:, None]
    inside = real[:, :, None] & real[:, None, :]
    vectors = torch.where(real[:, :, None], vectors, 0.0)
    raw = inner_products(vectors, real, shift_free=params.scale == "minmax")
    sound = (raw.diagonal(dim1=1, dim2=2) <= LARGEST_SQUARE).all(dim=1)
    ranking, sims = similarities(raw, inside, sizes, params)
    problem = torch.zeros_like(sims[:, 0, 0])
    if params.weight == "exp":
        exponent = params.weight_scale * torch.where(inside, sims, -torch.inf).amax(dim=(1, 2))
        problem = torch.where(exponent > reference.EXPONENT_LIMIT, exponent, problem)
    problem = torch.where(sound, problem, torch.nan)

    # what depends on the size of a context comes from the reference; sizes below 2 are computed along and not looked at
    lengths = by_size(reference.list_length, contexts, params)
    ranking = torch.where(inside, ranking, -torch.inf)
    tops = by_size(reference.nearest_taken, contexts, params)
    most = int(np.maximum(lengths, tops).max())
    highest = torch.topk(ranking, most, dim=2).values  # values only: which of equal ones is left open
    sets = reciprocal(listed(ranking, highest, lengths))
    if params.tau > 0:
        columns = by_size(reference.extension_columns, contexts, params)
        sets = extend(sets, reciprocal(listed(ranking, highest, columns)), params.variant)
    rows = weight_rows(sets, sims, params)
    if params.k_exp > 1:
        rows = expand(rows, listed(ranking, highest, tops), int(tops.max()))
    closest = closest_candidates(ranking, contexts, params.smoothed_over) if params.smoothed_over else None
    return BatchSteps(raw, sims, rows, inside, problem, closest)


def closest_candidates(ranking: Tensor, contexts: np.ndarray, count: int) -> Tensor:
    """(B, M-1, M-1) bool: whether candidate j is among the `count` nearest to i, itself and the query left out."""
    itself = torch.eye(ranking.shape[1] - 1, dtype=torch.bool, device=ranking.device)
    others = torch.where(itself, -torch.inf, ranking[:, 1:, 1:])
    lengths = np.minimum(count, np.maximum(contexts - 2, 0))
    return listed(others, torch.topk(others, max(int(lengths.max()), 1), dim=2).values, lengths)


def smoothed(scores: Tensor, closest: Tensor, share: float) -> Tensor:
    """(B, N): (1 - share) s* + share * mean of s* over the closest candidates; s* where there is none.

    scores: (B, N), anything at padding.
    """
    count = closest.sum(dim=2)
    lent = totals(torch.where(closest, scores[:, None, :], 0.0)) / count.clamp(min=1)
    return torch.where(count > 0, (1.0 - share) * scores + share * lent, scores)


def by_size(rule: Callable[[int, RnnParams], int], contexts: np.ndarray, params: RnnParams) -> np.ndarray:
    """What a rule says of the size of every context, (B,) int64; it is asked once for each distinct size."""
    distinct, inverse = np.unique(contexts, return_inverse=True)
    return np.array([rule(max(m, 2), params) for m in distinct.tolist()], dtype=np.int64)[inverse]


def wide(device: torch.device) -> torch.dtype:
    """The type that weights are summed in: float64, except on Apple GPUs, which have none."""
    return torch.float32 if device.type == "mps" else torch.float64


def inner_products(vectors: Tensor, real: Tensor, shift_free: bool) -> Tensor:
    """X X^T of every context, (B, M, M) float32; shift_free as in `reference.inner_products`.

    Products are summed in float64 and rounded once. So they do not depend on the device, on reduced precision allowed
    elsewhere in the program (TF32), or on where in a batch a vector stands: equal vectors have equal similarities.
    """
    if vectors.device.type == "mps":  # no float64 there
        return inner_products(vectors.cpu(), real.cpu(), shift_free).to(vectors.device)
    exact = vectors.double()
    exact = exact @ exact.mT
    raw = exact.float()
    if not shift_free:
        return raw
    candidates = real.clone()
    candidates[:, 0] = False
    low, high = extremes(raw[:, 0].double(), candidates)
    far = (low + high).abs() / 2 > reference.OUTWEIGHS * (high - low)
    count = candidates.sum(dim=1).clamp(min=1)
    middle = torch.where(candidates, exact[:, 0], 0.0).sum(dim=1) / count
    return torch.where(far[:, None, None], (exact - middle[:, None, None]).float(), raw)


def extremes(values: Tensor, among: Tensor) -> tuple[Tensor, Tensor]:
    """Lowest and highest of the values where `among` is True, over all dimensions but the first: (B,) each."""
    every = tuple(range(1, values.ndim))
    low = torch.where(among, values, torch.inf).amin(dim=every)
    return low, torch.where(among, values, -torch.inf).amax(dim=every)


def similarities(raw: Tensor, inside: Tensor, sizes: Tensor, params: RnnParams) -> tuple[Tensor, Tensor]:
    """What lists are sorted by, float32, and what weights are made of, float64; both (B, M, M)."""
    exact = raw.to(wide(raw.device))
    if params.scale == "none":
        ranking = normalize_rows(exact, inside, sizes, params.normalize).float()
        return ranking, ranking.to(exact.dtype)
    itself = torch.eye(raw.shape[1], dtype=torch.bool, device=raw.device)
    low, high = (bound[:, None, None] for bound in extremes(exact, inside & ~itself))
    span = high - low
    mapped = torch.where(span > 0, ((exact - low) / torch.where(span > 0, span, 1.0)).clamp(0.0, 1.0), 0.0)
    return raw, normalize_rows(mapped, inside, sizes, params.normalize)


def normalize_rows(sims: Tensor, inside: Tensor, sizes: Tensor, how: str | None) -> Tensor:
    """Each row divided by its maximum, or by 1e-8 + its mean; as it is where the divisor cannot divide it."""
    if how is None:
        return sims
    if how == "max":
        divisor = torch.where(inside, sims, -torch.inf).amax(dim=2)
    else:
        divisor = 1e-8 + totals(torch.where(inside, sims, 0.0)) / sizes[:, None]
    usable = torch.where(inside, sims.abs(), 0.0).amax(dim=2) < divisor.abs() * 3e38
    return sims / torch.where(usable, divisor, 1.0)[:, :, None]


def listed(ranking: Tensor, highest: Tensor, lengths: np.ndarray) -> Tensor:
    """Whether j is in the list of i, (B, M, M) bool; of equal similarities the lower index is listed first.

    highest: (B, M, L) the highest similarities of each row, in order; lengths: (B,) entries of a list.
    """
    count = torch.from_numpy(lengths).to(ranking.device)[:, None, None]
    bound = highest.gather(2, (count - 1).clamp(min=0).expand(-1, ranking.shape[1], 1))
    above = ranking > bound
    level = ranking == bound
    room = count - above.sum(dim=2, keepdim=True)
    return (above | (level & (level.cumsum(dim=2, dtype=torch.int32) <= room))) & (count > 0)


def reciprocal(lists: Tensor) -> Tensor:
    """Row i: the j in the list of i that have i in theirs."""
    return lists & lists.mT


def extend(sets: Tensor, short: Tensor, variant: str) -> Tensor:
    """Each set joined with the short sets of its members that overlap it enough: by more than two thirds, or exactly.

    Counts are sums of zeros and ones in float32, exact at any matrix precision.
    """
    parts = short.float()
    shared = sets.float() @ parts.mT  # (i, q): |T_q & R(i)|
    sizes = parts.sum(dim=2)[:, None, :]
    enough = 3 * shared > 2 * sizes if variant == "authors" else 3 * shared >= 2 * sizes
    return sets | ((enough & sets).float() @ parts > 0)


def weight_rows(sets: Tensor, sims: Tensor, params: RnnParams) -> Tensor:
    """The weights of the members; the authors' variant divides rows by their sums, zeros where they sum to 0."""
    weights = torch.where(sets, sims, 0.0)
    if params.weight == "exp":
        weights = torch.exp(params.weight_scale * weights) - (1.0 if params.variant == "authors" else 0.0)
        weights = torch.where(sets, weights, 0.0)
    elif params.weight == "binary":
        weights = sets.to(sims.dtype)
    if params.variant == "paper":
        return weights
    divisor = totals(weights)
    usable = (divisor != 0) & divisor.isfinite()
    return torch.where(usable[:, :, None], weights / torch.where(usable, divisor, 1.0)[:, :, None], 0.0)


def expand(rows: Tensor, nearest: Tensor, most: int) -> Tensor:
    """Each row the sum, in element order, of the rows of its nearest; as a mean the factor cancels in the Jaccard.

    nearest: (B, M, M) bool, at most `most` True in a row.
    """
    batch, width, _ = rows.shape
    falling = torch.arange(width, 0, -1, dtype=torch.int32, device=rows.device)
    keys, elements = torch.topk(torch.where(nearest, falling, 0), most, dim=2)  # distinct keys: lowest index first
    padded = torch.cat([rows, torch.zeros_like(rows[:, :1])], dim=1)  # one empty row, for lists with fewer entries
    elements = torch.where(keys > 0, elements, width)
    elements += torch.arange(batch, device=rows.device)[:, None, None] * (width + 1)
    flat = padded.view(-1, width)
    result = torch.zeros_like(rows)
    for nth in range(most):
        result += flat[elements[:, :, nth]]
    return result


def jaccard(expanded: Tensor, probes: Sequence[int]) -> Iterator[Tensor]:
    """Of each probe in turn, its Jaccard similarity to every element, (B, M)."""
    for probe in probes:
        yield similarity(expanded[:, probe : probe + 1], expanded)


def similarity(row: Tensor, expanded: Tensor) -> Tensor:
    """The Jaccard similarity of one row of weights of every context, (B, 1, M), to all of its rows, (B, M)."""
    below, above = totals(torch.minimum(row, expanded)), totals(torch.maximum(row, expanded))
    usable = (above != 0) & (below.abs() < above.abs() * 3e38)
    return torch.where(usable, below / torch.where(usable, above, 1.0), 0.0)


def mixed(done: BatchSteps, base: np.ndarray | None, contexts: np.ndarray, params: RnnParams) -> Tensor:
    """s* of the candidates, (B, M-1); anything at padding.

    base: (B, M-1) float64 on the host, as in `rnn_similarity`; contexts: as in `steps`.
    """
    if params.scale == "none":
        (near,) = jaccard(done.expanded, [0])
        return params.lam * done.sims[:, 0, 1:] + (1.0 - params.lam) * near[:, 1:]
    real, exact = done.inside[:, 0, 1:], done.sims.dtype
    counts = real.sum(dim=1, keepdim=True)
    columns = torch.arange(real.shape[1], device=real.device).expand(real.shape)
    raw = done.raw[:, 0, 1:].to(exact)
    products = unit(raw, real)
    if base is None:
        order = torch.where(real, raw, -torch.inf).argsort(dim=1, descending=True, stable=True)
        scores = products
    else:  # mapped on the host: Apple GPUs have no float64
        order, scores = columns, torch.from_numpy(mixing.unit(base, contexts[:, None] - 1)).to(exact).to(real.device)
    ranks = torch.empty_like(raw).scatter_(1, order, columns.to(exact) + 1)
    falling = (
        (counts - ranks) / (counts - 1).clamp(min=1) * ((params.rank_constant + 1) / (params.rank_constant + ranks))
    )
    known = sum(weight * term for weight, term in zip(mixing.weights(params), (falling, scores, products), strict=True))
    (near,) = jaccard(done.expanded, [0])
    near = near[:, 1:].clone()
    for nth in range(min(params.probes - 1, real.shape[1])):
        probe = order[:, nth : nth + 1]
        own = done.expanded.gather(1, (probe + 1)[:, :, None].expand(-1, 1, done.expanded.shape[2]))
        similarities = similarity(own, done.expanded)[:, 1:].scatter(1, probe, 1.0)
        near += torch.where(nth < counts, similarities, 0.0)
    near /= (counts + 1).clamp(max=params.probes)
    similarities = params.lam * known + (1.0 - params.lam) * near
    return similarities if done.closest is None else smoothed(similarities, done.closest, params.smoothing)


def unit(values: Tensor, real: Tensor) -> Tensor:
    """(B, N): each row mapped so that the lowest of its real values is 0 and the highest 1; a constant row is 0."""
    low, high = (bound[:, None] for bound in extremes(0.5 * values, real))
    return (0.5 * values - low) / torch.where(high > low, high - low, 1.0)


def totals(rows: Tensor) -> Tensor:
    """Sums over the last dimension: on a CPU in column order, as the reference adds, else as the device likes."""
    return rows.cumsum(dim=-1)[..., -1] if rows.device.type == "cpu" else rows.sum(dim=-1)
