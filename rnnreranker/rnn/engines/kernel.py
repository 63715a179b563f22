"""The compiled engine: one context at a time, sparse rows, no matrix besides the Gram matrix it is given.

Rows of similarities are not sorted. What reaches a floor is marked, sixteen values at a time, and only that is put in
order, by comparing all pairs; a row of 64 is put in order whole. Lists and sets are bit rows, so that "i is in the list
of j" is a bit of the mirrored lists, and overlaps are counted 64 elements at a time. Weights are kept as compressed
sparse rows in element order, which fixes the order of every sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.rnn.engines.compiled import checksum, compiled, kept, ones
from rnnreranker.rnn.engines.extension import extended
from rnnreranker.rnn.engines.jaccard import clipped, jaccard, weighed
from rnnreranker.rnn.engines.neighbours import neighbours, reciprocal
from rnnreranker.rnn.engines.selection import extremes
from rnnreranker.rnn.engines.smoothing import smooth_chunk

if TYPE_CHECKING:
    from rnnreranker.rnn.engines.setting import EngineSetting
    from rnnreranker.rnn.smoothing import Closest


def score_contexts(
    gram: np.ndarray,
    sizes: np.ndarray,
    setting: EngineSetting,
    probes: np.ndarray,
    out: np.ndarray,
    problem: np.ndarray,
    closest: Closest | None = None,
) -> None:
    """Fill `out` for a chunk of contexts; the contract is in `chunks.Engine`."""
    if closest is not None:
        closest.smooth = smooth_chunk
    _score_chunk(
        gram.reshape(-1),
        gram.shape[1],
        sizes,
        *setting.lengths(sizes),
        setting.authors,
        setting.weight,
        setting.weight_scale,
        setting.exponent_limit,
        setting.largest_square,
        setting.normalize,
        setting.minmax,
        probes,
        out,
        problem,
        0 if closest is None else closest.count,
        np.empty((len(sizes), 0, 0), dtype=np.uint64) if closest is None else closest.bits,
    )


@compiled()
def _mapped(similarity, low, span, minmax):  # type: ignore[no-untyped-def]
    value = np.float64(similarity)
    if minmax:
        value = clipped((value - low) / span) if span > 0.0 else 0.0
    return value


@compiled()
def _divisor(row, m, low, span, minmax, normalize):  # type: ignore[no-untyped-def]
    """The maximum of a row, or 1e-8 + its mean; 1 where it cannot divide the row."""
    highest, total, size = -np.inf, 0.0, 0.0
    for j in range(m):
        s = _mapped(row[j], low, span, minmax)
        highest = s if s > highest else highest
        size = abs(s) if abs(s) > size else size
        total += s
    d = highest if normalize == 1 else 1e-8 + total / m
    return d if size < abs(d) * 3e38 else 1.0


@compiled()
def _members(sims, sets, m):  # type: ignore[no-untyped-def]
    """Compressed sparse rows of the members of the sets and their similarities."""
    count = 0
    for i in range(m):
        for v in range(sets.shape[1]):
            count += np.int64(ones(sets[i, v]))
    starts, ends = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    members, values = np.empty(count, dtype=np.uint32), np.empty(count)
    n = 0
    for i in range(m):
        starts[i] = n
        for v in range(sets.shape[1]):
            rest = sets[i, v]
            while rest:
                bit = rest & (~rest + np.uint64(1))
                rest ^= bit
                j = np.uint64(v << 6) + ones(bit - np.uint64(1))
                members[n], values[n] = j, sims[i, j]
                n += 1
        ends[i] = n
    return starts, ends, members, values


@compiled()
def _largest(sims, m, low, span, minmax, divisor):  # type: ignore[no-untyped-def]
    """The largest similarity that a weight is made of."""
    largest = -np.inf
    for i in range(m):
        value = _mapped(extremes(sims[i], m)[1], low, span, minmax) * (1.0 / divisor[i])
        largest = value if value > largest else largest
    return largest


def _filed_under(stamp: int) -> Any:
    """The compiled entry; numba files its machine code under the stamp, see `checksum`."""

    def score_chunk(  # type: ignore[no-untyped-def]
        gram,
        stride,
        sizes,
        lengths,
        columns,
        tops,
        authors,
        weight,
        weight_scale,
        exponent_limit,
        largest_square,
        normalize,
        minmax,
        probes,
        out,
        problem,
        lenders,
        closest,
    ):
        for c in range(len(sizes) if stamp >= 0 else 0):
            m = sizes[c]
            if m < 2:
                continue
            sims = gram[c * stride : c * stride + m * m].reshape((m, m))
            sound = True
            for i in range(m):
                sound &= sims[i, i] <= largest_square  # a vector with NaN or infinity shows on the diagonal
            if not sound:
                problem[c] = np.nan
                continue
            divisor = np.empty(m)
            for i in range(m):
                divisor[i] = 1.0
            if normalize and not minmax:  # the lists depend on it
                for i in range(m):
                    d = _divisor(sims[i], m, 0.0, 1.0, minmax, normalize)
                    for j in range(m):
                        sims[i, j] = np.float32(np.float64(sims[i, j]) / d)
            listed, short, nearest, low, span = neighbours(
                sims, m, lengths[c], columns[c], tops[c], minmax, lenders, closest[c]
            )
            if normalize and minmax:
                for i in range(m):
                    divisor[i] = _divisor(sims[i], m, low, span, minmax, normalize)
            if weight == 1:
                largest = _largest(sims, m, low, span, minmax, divisor)
                if weight_scale * largest > exponent_limit:
                    problem[c] = weight_scale * largest
                    continue
            sets = reciprocal(listed, m)
            if columns[c] >= 0:
                sets = extended(sets, reciprocal(short, m), m, authors)
            starts, ends, elements, shares = _members(sims, sets, m)
            sums, signed = weighed(starts, ends, shares, low, span, minmax, divisor, weight, weight_scale, authors)
            jaccard((starts, ends, elements, shares, sums, signed), nearest, m, probes[c], out[c])

    return kept(score_chunk)


_score_chunk = _filed_under(checksum())
