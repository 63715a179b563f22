"""The equations of paper 000 as loops: the specification of every engine.

`variant` chooses between the authors' implementation and the printed text. A context has m elements; element 0 is the
query. Weights are summed in float64 in the order of the elements, rows and scores of neighbours the nearest first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rnnreranker.base.errors import ParameterError
from rnnreranker.rnn.params import RnnParams

Scores = Sequence[float] | np.ndarray | None
OUTWEIGHS = 8.0  # times the range of the query's similarities: beyond that their middle is a constant to take off
EXPONENT_LIMIT = 80.0  # exp(88.8) is the end of float32; weights are summed, so stop before


@dataclass(frozen=True, eq=False)
class Steps:
    """Every intermediate result of one context.

    raw: (m, m) float32 inner products; ranking: (m, m) float32, sorts the lists; sims: (m, m) float64, makes the
    weights; lists: m lists, nearest first; sets: m extended sets; weights, expanded: (m, m) float64; known: (m, m)
    bool, pairs that a graph knows, None = all.
    """

    raw: np.ndarray
    ranking: np.ndarray
    sims: np.ndarray
    lists: list[list[int]]
    sets: list[set[int]]
    weights: np.ndarray
    expanded: np.ndarray
    known: np.ndarray | None = None


def steps(vectors: np.ndarray, params: RnnParams, lists: Sequence[Sequence[int]] | None = None) -> Steps:
    """All steps of one context; ParameterError: the exponential weight would overflow.

    vectors: (m, d), row 0 = query. lists: with another rule for ties; None = ours.
    """
    raw = inner_products(vectors, shift_free=params.scale == "minmax")
    if lists is None:
        longest = max(list_length(len(raw), params), nearest_taken(len(raw), params))
        lists = neighbour_lists(similarities(raw, params)[0], longest)
    return _steps(raw, [list(map(int, row)) for row in lists], params)


def graph_steps(known: np.ndarray, params: RnnParams) -> Steps:
    """As `steps`, of `known_similarities`: lists hold known elements, itself first; unknown pairs weigh as the lowest
    known similarity, the diagonal as the highest.
    """
    values = [value for value in known.ravel().tolist() if math.isfinite(value)] or [0.0]
    raw = np.where(np.isfinite(known), known, np.float32(min(values)))
    raw[np.diag_indices(len(known))] = max(values)
    ranked = []
    for i, row in enumerate(known.tolist()):
        others = sorted((-value, j) for j, value in enumerate(row) if math.isfinite(value))
        ranked.append([i, *(j for _, j in others)])
    return _steps(raw, ranked, params, np.isfinite(known))


def _steps(raw: np.ndarray, ranked: list[list[int]], params: RnnParams, known: np.ndarray | None = None) -> Steps:
    m = len(raw)
    ranking, sims = similarities(raw, params)
    check_exponent(sims.max(), params)
    lists, nearest = [entries[: list_length(m, params)] for entries in ranked], nearest_taken(m, params)
    sets = reciprocal_sets(lists)
    if params.tau > 0:
        sets = extend(sets, lists, extension_columns(m, params), params.variant)
    weights = weight_rows(sets, sims, params)
    if known is not None:  # an element that knows too few stands for the others
        ranked = [[*entries, *[entries[0]] * nearest] for entries in ranked]
    return Steps(raw, ranking, sims, lists, sets, weights, expand(weights, ranked, nearest), known)


def jaccard_similarity(vectors: np.ndarray, params: RnnParams, probes: Iterable[int] = (0,)) -> np.ndarray:
    expanded = steps(vectors, params).expanded
    return np.stack([jaccard(expanded, probe) for probe in probes])


def inner_products(vectors: np.ndarray, shift_free: bool = False, out: np.ndarray | None = None) -> np.ndarray:
    """S = X X^T, (m, m) float32; vectors: (m, d); out: to fill.

    shift_free: a constant that outweighs the differences, which float32 would round away, is subtracted in float64.
    """
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    sims = np.matmul(rows, rows.T, out=out)
    if shift_free and outweighed(sims):
        exact = rows.astype(np.float64)
        exact = np.matmul(exact, exact.T)
        np.subtract(exact, exact[0, 1:].mean(), out=sims, casting="same_kind")
    return sims


def outweighed(sims: np.ndarray) -> bool:
    """Whether a constant outweighs the differences of the query's similarities."""
    if len(sims) < 2:
        return False
    low, high = float(sims[0, 1:].min()), float(sims[0, 1:].max())
    return abs(low + high) / 2 > OUTWEIGHS * (high - low)


def similarities(raw: np.ndarray, params: RnnParams) -> tuple[np.ndarray, np.ndarray]:
    """(m, m) float32, which sorts lists, and (m, m) float64, which makes weights.

    scale "none": both are the inner products, rows divided as `normalize` says; "minmax": the second is mapped.
    """
    if params.scale == "none":
        ranking = normalize_rows(raw.astype(np.float64), params.normalize).astype(np.float32)
        return ranking, ranking.astype(np.float64)
    return raw, normalize_rows(map_to_unit(raw), params.normalize)


def map_to_unit(raw: np.ndarray) -> np.ndarray:
    """(m, m) float64: off-diagonal similarities mapped to [0, 1], the diagonal clipped; 0 if all are equal."""
    m = len(raw)
    others = [float(raw[i, j]) for i in range(m) for j in range(m) if i != j]
    low, high = min(others), max(others)
    if high == low:
        return np.zeros((m, m))
    mapped = (raw.astype(np.float64) - low) / (high - low)
    return np.clip(mapped, 0.0, 1.0)  # only diagonal entries lie outside


def normalize_rows(sims: np.ndarray, how: str | None) -> np.ndarray:
    """Each row divided by its maximum, or by 1e-8 + its mean, itself included.

    A row stays if its divisor is 0 or too small for float32 quotients.
    """
    if how is None:
        return sims
    result = sims.copy()
    for i, row in enumerate(sims):
        divisor = row.max() if how == "max" else 1e-8 + total(row) / len(row)
        if np.abs(row).max() < abs(divisor) * 3e38:
            result[i] = row / divisor
    return result


def list_length(m: int, params: RnnParams) -> int:
    """Entries of a list: k+1 with the element itself (authors), k with it (paper, eq. 3); at most m."""
    return min(params.k + 1 if params.variant == "authors" else params.k, m)


def extension_columns(m: int, params: RnnParams) -> int:
    """Entries of a list that take part in the extension; halves round to even."""
    if params.variant == "paper":
        return min(round(params.tau * params.k), m)  # eq. 5
    length = list_length(m, params)
    return min(round(params.tau * length) + 2, length)


def nearest_taken(m: int, params: RnnParams) -> int:
    """The k_exp nearest whose weights are averaged: of a list (authors), or of all (paper, eq. 8)."""
    return min(params.k_exp, m if params.variant == "paper" else list_length(m, params))


def neighbour_lists(ranking: np.ndarray, length: int) -> list[list[int]]:
    """The `length` most similar elements of each, ties: the lower index."""
    result = []
    for row in ranking.tolist():
        pairs = sorted((-similarity, j) for j, similarity in enumerate(row))
        result.append([j for _, j in pairs[:length]])
    return result


def reciprocal_sets(lists: Sequence[Sequence[int]]) -> list[set[int]]:
    """R(i): the j in the list of i that have i in theirs."""
    members = [set(entries) for entries in lists]
    return [{j for j in members[i] if i in members[j]} for i in range(len(lists))]


def extend(sets: list[set[int]], lists: Sequence[Sequence[int]], columns: int, variant: str) -> list[set[int]]:
    """R*(i): R(i) joined with the short reciprocal set T of each member that overlaps it enough.

    T is over the first `columns` list entries. Enough is |T & R(i)| > 2/3 |T| (authors), >= (paper).
    """
    short = reciprocal_sets([entries[:columns] for entries in lists])
    extended = []
    for own in sets:
        result = set(own)
        for member in own:
            shared, size = len(short[member] & own), len(short[member])
            if 3 * shared > 2 * size or (variant == "paper" and 3 * shared == 2 * size):
                result |= short[member]
        extended.append(result)
    return extended


def weight_rows(sets: list[set[int]], sims: np.ndarray, params: RnnParams) -> np.ndarray:
    """V, (m, m) float64: the weights of members (eq. 7), divided by the sum of the row, if not 0 (authors)."""
    rows = np.zeros(sims.shape)
    for i, members in enumerate(sets):
        weights = {j: weight(float(sims[i, j]), params) for j in sorted(members)}
        divisor = total(weights.values()) if params.variant == "authors" else 1.0
        if divisor != 0 and math.isfinite(divisor):
            for j, value in weights.items():
                rows[i, j] = value / divisor
    return rows


def weight(similarity: float, params: RnnParams) -> float:
    """f_w (eq. 7, of the distance -s): s, exp(p s) or 1; the authors subtract 1 from the exponential."""
    if params.weight == "binary":
        return 1.0
    if params.weight == "exp":
        return math.exp(params.weight_scale * similarity) - (1.0 if params.variant == "authors" else 0.0)
    return similarity


def check_exponent(largest: float, params: RnnParams) -> None:
    """Raise ParameterError if the exponential weight would overflow."""
    if params.weight == "exp" and (exponent := params.weight_scale * float(largest)) > EXPONENT_LIMIT:
        raise ParameterError(too_large(exponent))


def too_large(exponent: float) -> str:
    return (
        f"weight exp: the largest weight_scale * similarity is {exponent:.6g}, expected at most {EXPONENT_LIMIT:g} "
        '(float32 overflows); use scale="minmax" or normalize="max", or a smaller weight_scale'
    )


def expand(weights: np.ndarray, lists: Sequence[Sequence[int]], k_exp: int) -> np.ndarray:
    """V': the mean of the rows of the first k_exp list entries."""
    if k_exp == 1:
        return weights
    result = np.zeros_like(weights)
    for i, entries in enumerate(lists):
        for j in entries[:k_exp]:
            result[i] += weights[j]
        result[i] /= max(len(entries[:k_exp]), 1)
    return result


def jaccard(rows: np.ndarray, probe: int) -> np.ndarray:
    """J(probe, i) = sum min / sum max over all columns, (m,) float64; 0 if not finite."""
    above = np.add.accumulate(np.maximum(rows[probe], rows), axis=1)[:, -1]  # sums in order, as `total`
    below = np.add.accumulate(np.minimum(rows[probe], rows), axis=1)[:, -1]
    fine = (above != 0) & (np.abs(below) < np.abs(above) * 3e38)
    return np.divide(below, above, out=np.zeros(len(rows)), where=fine)


def total(values: Iterable[float]) -> float:
    """The sum in order, in float64."""
    result = 0.0
    for value in values:
        result += float(value)
    return result


def rnn_similarity(query: np.ndarray, candidates: np.ndarray, params: RnnParams, base: Scores = None) -> np.ndarray:
    """s* of every candidate of one query, (N,) float64.

    query: (d,); candidates: (N, d) in the order of the first stage; base: its N scores, None = inner products.
    """
    return parts(steps(np.vstack([query[None], candidates]), params), params, base).scores


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of the scores of one context.

    mixed: (N,), s* = lam * weights @ terms + (1 - lam) * mean of jaccard. scores: (N,), (1 - a) s* + a * lent with a =
    `params.smoothing`, or s*.

    probes: P elements, the query (0) first; jaccard: (P, N); terms: (3, N) of rank, run score and inner product;
    weights: (3,) of sum 1; scale "none": the inner product alone. nearest: the elements that smooth each score; lent:
    (N,), the means of their s*.
    """

    probes: list[int]
    terms: np.ndarray
    weights: np.ndarray
    jaccard: np.ndarray
    mixed: np.ndarray
    nearest: list[list[int]]
    lent: np.ndarray
    scores: np.ndarray


def parts(done: Steps, params: RnnParams, base: Scores = None) -> Parts:
    count = len(done.raw) - 1
    if params.scale == "none":  # eq. 1
        probes, weights, terms = [0], [1.0], [done.sims[0, 1:]]
    else:
        scores = [float(value) for value in (done.raw[0, 1:] if base is None else base)]
        order = sorted(range(count), key=lambda i: -scores[i]) if base is None else list(range(count))
        probes = [0, *(i + 1 for i in order)][: params.probes]
        ranks = {i: rank for rank, i in enumerate(order, 1)}
        falling = unit([1 / (params.rank_constant + ranks[i]) for i in range(count)])
        terms = [falling, unit(scores), unit(done.raw[0, 1:])]
        weights = [params.rank_weight, params.run_weight, params.query_weight]
    shares = np.array(weights) / total(weights)
    known = sum((share * term for share, term in zip(shares, terms, strict=True)), start=np.zeros(count))
    near = np.stack([jaccard(done.expanded, probe)[1:] for probe in probes])
    for row, probe in enumerate(probes[1:], 1):
        near[row, probe - 1] = 1.0  # itself, also where it has no neighbours
    mixed = params.lam * known + (1.0 - params.lam) * near.mean(axis=0)
    nearest = nearest_candidates(done, params.smoothed_over)
    lent = np.array([total(mixed[j - 1] for j in own) / len(own) if own else mixed[i] for i, own in enumerate(nearest)])
    smoothed = (1.0 - params.smoothing) * mixed + params.smoothing * lent if params.smoothed_over else mixed
    return Parts(probes, np.stack(terms), shares, near, mixed, nearest, lent, smoothed)


def nearest_candidates(done: Steps, count: int) -> list[list[int]]:
    """The `count` most similar other candidates of each, nearest first, ties: the earlier; elements count from 1."""
    rows = neighbour_lists(done.ranking, len(done.ranking))
    known = [
        [j for j in row if j not in (0, i) and (done.known is None or done.known[i, j])] for i, row in enumerate(rows)
    ]
    return [row[:count] for row in known[1:]]


def unit(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """(n,) float64: min-max; 0 where all are equal."""
    low, high = float(min(values)), float(max(values))
    return np.array([(float(value) - low) / (high - low) if high > low else 0.0 for value in values])


def known_similarities(
    edges: np.ndarray, weights: np.ndarray, rows: Sequence[int], query: Sequence[float] | np.ndarray | None = None
) -> np.ndarray:
    """(m, m) float32: the similarities of the pairs of a context; -inf for unknown pairs and on the diagonal.

    edges, weights: (D, K), the graph; rows: N candidates in the order of the run. query: (N,) similarities to the
    query; None = those of the first candidate, largest first.
    """
    m = len(rows) + 1
    similarities = np.full((m, m), -np.inf, dtype=np.float32)
    for i, row in enumerate(rows, 1):
        for edge, weight in zip(edges[row].tolist(), weights[row].tolist(), strict=True):
            for j, other in enumerate(rows, 1):
                if other == edge and i != j:
                    similarities[i, j] = similarities[j, i] = max(similarities[i, j], np.float32(weight))
    if query is None:
        dealt = sorted((value for value in similarities[1, 1:].tolist() if math.isfinite(value)), reverse=True)
        query = [*dealt, *[-math.inf] * (m - 1 - len(dealt))]
    similarities[0, 1:] = similarities[1:, 0] = query
    return similarities
