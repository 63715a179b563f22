"""The compiled engine of the graph form: contexts of which only some pairs are known, without a matrix of all pairs.

The pairs of a context are found through a table of its rows and kept as compressed sparse rows in element order. Lists
hold known elements alone; from them on, sets, weights and Jaccard similarities are those of the kernel for vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.rnn.engines.compiled import checksum, compiled, int_of, kept, ones, rank_sixteen
from rnnreranker.rnn.engines.extension import extended
from rnnreranker.rnn.engines.jaccard import clipped, jaccard, weighed
from rnnreranker.rnn.engines.smoothing import smooth_chunk
from rnnreranker.rnn.graph.contexts import as_mapped
from rnnreranker.rnn.graph.pairs import SPARE, both_ways, bounds, dealt, named, room, with_query

if TYPE_CHECKING:
    from rnnreranker.rnn.engines.setting import EngineSetting
    from rnnreranker.rnn.graph.contexts import GraphContexts
    from rnnreranker.rnn.smoothing import Closest


COUNTED = 64  # known pairs of an element that are put in order by counting those above each


def score_contexts(
    contexts: GraphContexts,
    setting: EngineSetting,
    probes: np.ndarray,
    out: np.ndarray,
    problem: np.ndarray,
    closest: Closest | None = None,
) -> None:
    """Fill `out` for a chunk of contexts; the contract is in `graph_contexts.GraphEngine`."""
    query = np.empty((0, 0), dtype=np.float32) if contexts.query is None else contexts.query
    if closest is not None:
        closest.smooth = smooth_chunk
    _score_chunk(
        *as_mapped(contexts.edges, contexts.weights),
        np.ascontiguousarray(contexts.rows),
        np.ascontiguousarray(query),
        contexts.sizes,
        *setting.lengths(contexts.sizes),
        setting.authors,
        setting.weight,
        setting.weight_scale,
        setting.exponent_limit,
        setting.normalize,
        setting.minmax,
        probes,
        out,
        problem,
        0 if closest is None else closest.count,
        np.empty((len(contexts.sizes), 0, 0), dtype=np.uint64) if closest is None else closest.bits,
    )


@compiled()
def _highest(values, first, last, count, keys):  # type: ignore[no-untyped-def]
    """Set keys[:count] to those of the highest of values[first:last], from the highest, equal ones as they stand.

    A key has the value, as an integer of the same order, above the number of positions to the end.
    """
    n = 0
    for e in range(first, last):
        word = np.int64(int_of(values[e] + np.float32(0.0)))  # -0 and 0 are equal
        word ^= (word >> 31) & 0x7FFFFFFF
        key = word << 32 | (last - e)
        if n == count:
            if n == 0 or key < keys[n - 1]:
                continue
        else:
            n += 1
        at = n - 1
        while at > 0 and keys[at - 1] < key:
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key


@compiled()
def _mark(listed, lists_me, i, near, order, count):  # type: ignore[no-untyped-def]
    """Set the bits of a list of `count` elements, i itself the first, and in those elements' rows the bit of i."""
    word, bit = i >> 6, np.uint64(1) << np.uint64(i & 63)
    if count > 0:
        listed[i, word] |= bit
        lists_me[i, word] |= bit
    for e in range(count - 1):
        j = np.int64(near[order[e]])
        listed[i, j >> 6] |= np.uint64(1) << np.uint64(j & 63)
        lists_me[j, word] |= bit


@compiled()
def _lists(starts, last, near, values, m, length, columns, top, lenders, closest):  # type: ignore[no-untyped-def]
    """Bits of the elements that have each other in their lists, of those in each other's short list, the `top` nearest.

    Lists hold known elements alone, the most similar first, after the element itself; of equal ones the earlier. The
    nearest are in element order, and the element itself where it knows too few. closest: bit rows, filled with
    the known candidates nearest to each, `lenders` of them.
    """
    words, wide = (m + 63) // 64, columns >= 0
    listed, lists_me = np.zeros((m, words), dtype=np.uint64), np.zeros((m, words), dtype=np.uint64)
    short = np.zeros((m if wide else 0, words), dtype=np.uint64)
    shorts_me = np.zeros(short.shape, dtype=np.uint64)
    nearest = np.empty((m, top), dtype=np.uint32)
    others = max(length, top, lenders + 2 if lenders else 0) - 1
    keys, order = np.empty(others + 1, dtype=np.int64), np.empty(max(others, COUNTED) + SPARE, dtype=np.int64)
    ranks = np.empty(COUNTED + SPARE, dtype=np.int32)
    for i in range(m):
        first, known = starts[i], last[i] - starts[i]
        n = min(known, others)
        if known <= COUNTED:
            for block in range(0, known, 16):
                rank_sixteen(values, first, known, block, ranks)
            for e in range(known):
                order[ranks[e]] = first + e
        else:
            _highest(values, first, last[i], n, keys)
            for e in range(n):
                order[e] = last[i] - (keys[e] & 0xFFFFFFFF)
        _mark(listed, lists_me, i, near, order, min(n + 1, length))
        _mark(short, shorts_me, i, near, order, min(n + 1, columns))
        for t in range(top):  # in element order
            j, rank = np.int64(near[order[t - 1]]) if 1 <= t <= n else i, t
            while rank > 0 and nearest[i, rank - 1] > j:
                nearest[i, rank] = nearest[i, rank - 1]
                rank -= 1
            nearest[i, rank] = j
        if i > 0 and lenders:
            _fill_closest(near, order, n, lenders, closest[i - 1])
    for i in range(m):
        for w in range(words):
            listed[i, w] &= lists_me[i, w]
            if wide:
                short[i, w] &= shorts_me[i, w]
    return listed, short, nearest


@compiled()
def _fill_closest(near, order, n, lenders, closest):  # type: ignore[no-untyped-def]
    """Set the bits of the first elements of an order of n that are not the query."""
    for e in range(n):
        j = np.int64(near[order[e]])
        if j > 0 and lenders > 0:
            closest[j >> 6] |= np.uint64(1) << np.uint64(j & 63)
            lenders -= 1


@compiled()
def _members(sets, starts, last, near, values, m, low, high):  # type: ignore[no-untyped-def]
    """Compressed sparse rows of the members of the sets and their similarities; `low` where a pair is not known."""
    count = 0
    for i in range(m):
        for v in range(sets.shape[1]):
            count += np.int64(ones(sets[i, v]))
    firsts, ends = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    members, values_of_members = np.empty(count, dtype=np.uint32), np.empty(count)
    row = np.empty(m, dtype=np.float32)
    row[:] = low
    n = 0
    for i in range(m):
        firsts[i] = n
        row[i] = high
        for e in range(starts[i], last[i]):
            row[near[e]] = values[e]
        for v in range(sets.shape[1]):
            rest = sets[i, v]
            while rest:
                bit = rest & (~rest + np.uint64(1))
                rest ^= bit
                j = np.uint64(v << 6) + ones(bit - np.uint64(1))
                members[n], values_of_members[n] = j, row[j]
                n += 1
        ends[i] = n
        row[i] = low
        for e in range(starts[i], last[i]):
            row[near[e]] = low
    return firsts, ends, members, values_of_members


@compiled()
def _means(starts, last, values, m, low, span, divisor):  # type: ignore[no-untyped-def]
    """Set the divisors of rows to 1e-8 and their mean, itself included, where that can divide them."""
    for i in range(m if span > 0.0 else 0):
        total = 1.0
        for e in range(starts[i], last[i]):
            total += clipped((np.float64(values[e]) - low) / span)
        divisor[i] = 1e-8 + total / m


def _filed_under(stamp: int) -> Any:
    """The compiled entry; numba files its machine code under the stamp, see `checksum`."""

    def score_chunk(  # type: ignore[no-untyped-def]
        edges,
        weights,
        rows,
        queries,
        sizes,
        lengths,
        columns,
        tops,
        authors,
        weight,
        weight_scale,
        exponent_limit,
        normalize,
        minmax,
        probes,
        out,
        problem,
        lenders,
        closest,
    ):
        k, widest = edges.shape[1], 1
        for c in range(len(sizes) if stamp >= 0 else 0):
            widest = max(widest, sizes[c])
        given = room(widest, k)
        neighbours, held, ends = given[2:]
        query = np.empty(widest, dtype=np.float32)
        for c in range(len(sizes)):
            m = sizes[c]
            n = m - 1
            if m < 2:
                continue
            if not named(edges, weights, rows[c], n, given):
                problem[c] = np.nan
                continue
            starts, last, near, values = both_ways(n, k, neighbours, held, ends)
            if len(queries):
                query[:n] = queries[c, :n]
            else:
                dealt(starts[1], last[1], values, n, query)
            with_query(query, n, starts, last, near, values)
            low, high = bounds(values, last[n])
            divisor = np.ones(m)
            if normalize == 2:
                _means(starts, last, values, m, low, high - low, divisor)
            own, short, nearest = _lists(
                starts, last, near, values, m, lengths[c], columns[c], tops[c], lenders, closest[c]
            )
            sets = extended(own, short, m, authors) if columns[c] >= 0 else own
            firsts, stops, members, shares = _members(sets, starts, last, near, values, m, low, high)
            if weight == 1:
                largest = (1.0 / divisor.min() if high > low else 0.0) if minmax else high
                if weight_scale * largest > exponent_limit:
                    problem[c] = weight_scale * largest
                    continue
            span = high - low if minmax else 1.0
            sums, signed = weighed(firsts, stops, shares, low, span, minmax, divisor, weight, weight_scale, authors)
            jaccard((firsts, stops, members, shares, sums, signed), nearest, m, probes[c], out[c])

    return kept(score_chunk)


_score_chunk = _filed_under(checksum())
