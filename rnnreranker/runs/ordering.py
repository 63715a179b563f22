"""Entries of many queries put into the order of a run, by sorting whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.runs.arrow import as_numpy, numbers, truths

if TYPE_CHECKING:
    import pyarrow


def best_first(
    queries: np.ndarray, scores: np.ndarray, names: pyarrow.Array, rows: np.ndarray, count: int
) -> np.ndarray:
    """Positions that put entries by query, then descending score, then ascending docid.

    Args:
        queries: (n,) int64, below `count`; scores: (n,) float32, finite.
        names: V distinct docids; rows: (n,) entry → row of names.
    """
    import pyarrow.compute

    bits = (scores + np.float32(0)).view(np.uint32)  # + 0: no negative zero
    falling = np.where(bits >> 31, bits, bits ^ np.uint32(0x7FFFFFFF))  # whole numbers in descending order of scores
    keys = queries << 32 | falling
    order = ascending(keys, count << 32)
    same = np.diff(keys[order]) == 0
    before, after = np.append(False, same), np.append(same, False)  # whether the neighbour has the same key
    first = np.flatnonzero(after & ~before & ~np.append(after[1:], False))  # of exactly two, the usual tie of rrf
    one, two = (names.take(numbers(rows[order[positions]])) for positions in (first, first + 1))
    swapped = first[truths(pyarrow.compute.greater(one, two))]  # by bytes, as strcmp
    order[swapped], order[swapped + 1] = order[swapped + 1], order[swapped]
    tied = (before | after)[: len(order)]
    tied[first] = tied[first + 1] = False
    among = order[tied]
    column = names.take(numbers(rows[among]))
    by_docid = among[as_numpy(pyarrow.compute.sort_indices(column))]
    order[tied] = by_docid[np.argsort(keys[by_docid], kind="stable")]
    return order


def steps(scores: np.ndarray) -> np.ndarray:
    """(n,) int64: whole numbers in the order of (n,) float32 scores, one apart where no float32 lies between.

    >>> steps(np.array([-1e-45, -0.0, 0.0, 1e-45], dtype=np.float32)).tolist()
    [-1, 0, 0, 1]
    """
    bits = scores.view(np.int32).astype(np.int64)
    return np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))


def ascending(keys: np.ndarray, span: int) -> np.ndarray:
    """Positions that put (n,) whole numbers in [0, span) in ascending order, equal ones as they stand."""
    bits = max(len(keys) - 1, 0).bit_length()
    if span << bits > 1 << 63:
        return np.argsort(keys, kind="stable")
    packed = keys << bits | np.arange(len(keys))  # a plain sort is several times faster than one of positions
    packed.sort()
    return packed & ((1 << bits) - 1)
