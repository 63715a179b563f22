"""The order of a run, by sorting integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.runs.arrow import as_numpy, numbers

if TYPE_CHECKING:
    from rnnreranker.runs.columns import Docids


def best_first(queries: np.ndarray, scores: np.ndarray, docids: Docids, rows: np.ndarray, count: int) -> np.ndarray:
    """Positions that sort entries by query, then descending score, then ascending docid.

    queries: (n,) int64, ascending, below `count`; scores: (n,) float32, finite; rows: (n,) rows of docids.
    """
    bits = (scores + np.float32(0)).view(np.uint32)  # + 0: no negative zero
    falling = np.where(bits >> 31, bits, bits ^ np.uint32(0x7FFFFFFF))  # whole numbers in descending order of scores
    keys = queries << 32 | falling
    first = offsets_of(queries, count)  # entry of every query
    order = ascending(keys, count << 32, within=np.arange(len(keys)) - first[queries])
    return order[by_docid(np.diff(keys[order]) == 0, docids, rows[order])]


def offsets_of(queries: np.ndarray, count: int) -> np.ndarray:
    """(count + 1,) int64: where the entries of each query begin; queries: (n,) below count.

    >>> offsets_of(np.array([0, 0, 2]), 3).tolist()
    [0, 2, 2, 3]
    """
    return np.concatenate([[0], np.cumsum(np.bincount(queries, minlength=count))]).astype(np.int64)


def by_docid(tied: np.ndarray, docids: Docids, rows: np.ndarray) -> np.ndarray:
    """Positions that sort the entries of every tied stretch by ascending docid, as strcmp.

    tied: (n-1,) bool, whether an entry ties with the next one; rows: (n,) rows of docids.
    """
    import pyarrow.compute

    placed = np.arange(len(rows))
    if not tied.any():
        return placed
    names = docids.names  # made of Python's strings only where entries tie
    before, after = np.append(False, tied), np.append(tied, False)
    first = np.flatnonzero(after & ~before & ~np.append(after[1:], False))  # of exactly two, the usual tie of rrf
    one, two = (names.take(numbers(rows[positions])) for positions in (first, first + 1))
    swapped = first[as_numpy(pyarrow.compute.greater(one, two).cast("uint8")) > 0]
    placed[swapped], placed[swapped + 1] = swapped + 1, swapped
    longer = before | after
    longer[first] = longer[first + 1] = False
    known, codes = np.unique(rows[longer], return_inverse=True)
    ranks = np.empty(len(known), dtype=np.int64)
    ranks[as_numpy(pyarrow.compute.sort_indices(names.take(numbers(known))))] = np.arange(len(known))
    stretches = np.cumsum(~before)[longer]
    order = ascending(stretches * len(known) + ranks[codes], (len(rows) + 1) * len(known))
    placed[longer] = np.flatnonzero(longer)[order]
    return placed


def steps(scores: np.ndarray) -> np.ndarray:
    """(n,) int64 in the order of (n,) float32 scores, one apart if no float32 lies between.

    >>> steps(np.array([-1e-45, -0.0, 0.0, 1e-45], dtype=np.float32)).tolist()
    [-1, 0, 0, 1]
    """
    bits = scores.view(np.int32).astype(np.int64)
    return np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF))


def ascending(keys: np.ndarray, span: int, within: np.ndarray | None = None) -> np.ndarray:
    """Positions that stably sort (n,) integers in [0, span).

    within: (n,) int64, positions relative to their stretch, for keys that ascend from stretch to stretch.
    """
    numbers_of = np.arange(len(keys))
    own = numbers_of if within is None else within
    bits = int(own.max(initial=0)).bit_length()
    if span << bits > 1 << 63:
        return np.argsort(keys, kind="stable")
    packed = keys << bits | own  # a plain sort is several times faster than one of positions
    packed.sort()
    order: np.ndarray = packed & ((1 << bits) - 1)
    return order if within is None else order + (numbers_of - within)


def repeated_entry(queries: np.ndarray, rows: np.ndarray, count: int) -> tuple[int, int] | None:
    """The two entries, from 0, of the first docid that a query has twice; count: of docids."""
    pairs = queries.astype(np.int64) * max(count, 1) + rows
    order = ascending(pairs, int(pairs.max(initial=0)) + 1)
    same = np.flatnonzero(np.diff(pairs[order]) == 0)
    if not len(same):
        return None
    repeated = same[np.argmin(order[same + 1])]  # the pair that is completed first
    return int(order[repeated]), int(order[repeated + 1])
