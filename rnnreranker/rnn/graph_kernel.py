"""The compiled engine of the graph form: contexts of which only some pairs are known, without a matrix of all pairs.

The pairs of a context are found through a table of its rows and kept as compressed sparse rows in element order. Lists
hold known elements alone; from them on, sets, weights and Jaccard similarities are those of the kernel for vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.rnn.compiled import checksum, compiled, int_of, kept, ones
from rnnreranker.rnn.graph_pairs import both_ways, dealt, named, with_query
from rnnreranker.rnn.kernel import clipped, weighed
from rnnreranker.rnn.neighbours import extended, reciprocal

if TYPE_CHECKING:
    from rnnreranker.rnn.engine_setting import EngineSetting


def score_contexts(
    edges: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    query: np.ndarray | None,
    sizes: np.ndarray,
    setting: EngineSetting,
    probes: np.ndarray,
    out: np.ndarray,
    problem: np.ndarray,
) -> None:
    """Fill `out` for a chunk of contexts; the contract is in `graph_similarity.GraphEngine`."""
    lengths = np.array([setting.lists.get(m, 0) for m in sizes.tolist()], dtype=np.int64)
    columns = np.array([setting.columns.get(m, -1) for m in sizes.tolist()], dtype=np.int64)
    tops = np.array([setting.nearest.get(m, 0) for m in sizes.tolist()], dtype=np.int64)
    _score_chunk(
        _read_only(edges),
        _read_only(weights.view(np.uint16)),
        np.ascontiguousarray(rows),
        np.empty((0, 0), dtype=np.float32) if query is None else np.ascontiguousarray(query),
        sizes,
        lengths,
        columns,
        tops,
        setting.authors,
        setting.weight,
        setting.weight_scale,
        setting.exponent_limit,
        setting.normalize,
        setting.minmax,
        probes,
        out,
        problem,
    )


def _read_only(matrix: np.ndarray) -> np.ndarray:
    """The matrix as a mapped one is: numba compiles once for each kind of array that it is handed."""
    view = np.ascontiguousarray(matrix).view(np.ndarray)
    view.flags.writeable = False
    return view


@compiled()
def _highest(values, first, last, count, keys):  # type: ignore[no-untyped-def]
    """Set keys[:count] to those of the highest of values[first:last], from the highest, equal ones as they stand.

    A key has the value, as an integer of the same order, above the number of places to the end.
    """
    n = 0
    for e in range(first, last):
        word = np.int64(int_of(values[e]))
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
def _lists(starts, last, near, values, m, length, columns, top):  # type: ignore[no-untyped-def]
    """Neighbour lists with their similarities, the `top` nearest in element order, the bounds of (short) lists.

    As `neighbours.neighbours` gives them; an element is the first of its own list, and fills it where it knows too few.
    """
    lists, listed = np.empty((m, length), dtype=np.uint32), np.empty((m, length), dtype=np.float32)
    nearest = np.empty((m, top), dtype=np.uint32)
    bound, short_bound = np.empty(m, dtype=np.float32), np.empty(m, dtype=np.float32)
    stop, short_stop = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    others = max(length, top) - 1
    keys, order = np.empty(others + 1, dtype=np.int64), np.empty(others + 1, dtype=np.int64)
    for i in range(m):
        n = min(last[i] - starts[i], others)
        _highest(values, starts[i], last[i], n, keys)
        for e in range(n):
            order[e] = last[i] - (keys[e] & 0xFFFFFFFF)
        lists[i, 0], listed[i, 0] = i, np.inf
        for e in range(1, length):
            if e <= n:
                lists[i, e], listed[i, e] = near[order[e - 1]], values[order[e - 1]]
            else:
                lists[i, e], listed[i, e] = i, np.inf
        bound[i], stop[i] = (listed[i, length - 1], lists[i, length - 1]) if n >= length - 1 else (-np.inf, m)
        if length == 1:
            bound[i], stop[i] = np.inf, m
        if columns <= 1:
            short_bound[i], short_stop[i] = np.inf, (m if columns == 1 else -1)
        elif n >= columns - 1:
            short_bound[i], short_stop[i] = listed[i, columns - 1], lists[i, columns - 1]
        else:
            short_bound[i], short_stop[i] = -np.inf, m
        for t in range(top):  # in element order
            j, place = np.int64(near[order[t - 1]]) if 1 <= t <= n else i, t
            while place > 0 and nearest[i, place - 1] > j:
                nearest[i, place] = nearest[i, place - 1]
                place -= 1
            nearest[i, place] = j
    return lists, listed, nearest, (bound, stop), (short_bound, short_stop)


@compiled()
def _members(sets, starts, last, near, values, m, low, high):  # type: ignore[no-untyped-def]
    """Compressed sparse rows of the members of the sets and their similarities; `low` where a pair is not known."""
    count = 0
    for i in range(m):
        for v in range(sets.shape[1]):
            count += np.int64(ones(sets[i, v]))
    firsts, ends = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    members, found = np.empty(count, dtype=np.uint32), np.empty(count)
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
                members[n], found[n] = j, row[j]
                n += 1
        ends[i] = n
        row[i] = low
        for e in range(starts[i], last[i]):
            row[near[e]] = low
    return firsts, ends, members, found


@compiled()
def _jaccard(rows, nearest, m, probes, jaccard):  # type: ignore[no-untyped-def]
    """As `kernel._jaccard`, where rows have few members: minima are looked for among an element's, not a probe's."""
    starts, ends, members, values, sums, signed = rows
    top = nearest.shape[1]
    chosen = len(probes)
    probe_rows, row = np.zeros((m, chosen)), np.zeros(m)
    totals, real, below = np.zeros(chosen), np.empty(chosen, dtype=np.bool_), np.empty(chosen)
    for r in range(chosen):
        real[r] = 0 <= probes[r] < m
        for t in range(top if real[r] else 0):
            near = nearest[probes[r], t]
            totals[r] += sums[near]
            for e in range(starts[near], ends[near]):
                probe_rows[members[e], r] += values[e]
    for i in range(m):
        total = 0.0
        for t in range(top):
            near = nearest[i, t]
            total += sums[near]
            for e in range(starts[near], ends[near]):
                row[members[e]] += values[e]
        below[:] = 0.0
        if signed:
            for r in range(chosen):
                above = 0.0
                for j in range(m):
                    a, b = row[j], probe_rows[j, r]
                    below[r] += a if a < b else b
                    above += a if a > b else b
                if real[r]:
                    jaccard[r, i] = _quotient(below[r], above)
            row[:] = 0.0
            continue
        for t in range(top):
            near = nearest[i, t]
            for e in range(starts[near], ends[near]):
                j = members[e]
                a, row[j] = row[j], 0.0  # an element that stands in two of the rows adds nothing the second time
                for r in range(chosen):
                    b = probe_rows[j, r]
                    below[r] += a if a < b else b
        for r in range(chosen):
            if real[r]:
                jaccard[r, i] = _quotient(below[r], totals[r] + total - below[r])


@compiled()
def _quotient(below, above):  # type: ignore[no-untyped-def]
    return below / above if above != 0.0 and abs(below) < abs(above) * 3e38 else 0.0


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
    ):
        k, widest = edges.shape[1], 1
        for c in range(len(sizes) if stamp >= 0 else 0):
            widest = max(widest, sizes[c])
        places = 4
        while places < 4 * widest:
            places *= 2
        table = np.empty(places, dtype=np.uint64)
        found, held = np.empty(widest * k + 1, dtype=np.uint32), np.empty(widest * k + 1, dtype=np.float32)
        ends, query = np.empty(widest, dtype=np.int64), np.empty(widest, dtype=np.float32)
        for c in range(len(sizes)):
            m = sizes[c]
            n = m - 1
            if m < 2:
                continue
            if not named(edges, weights, rows[c], n, table, found, held, ends):
                problem[c] = np.nan
                continue
            starts, last, near, values = both_ways(n, k, found, held, ends)
            if len(queries):
                query[:n] = queries[c, :n]
            else:
                dealt(starts[1], last[1], values, n, query)
            with_query(query, n, starts, last, near, values)
            low, high = np.inf, -np.inf
            for i in range(m):
                for e in range(starts[i], last[i]):
                    low, high = min(low, values[e]), max(high, values[e])
            if low > high:  # nothing is known
                low, high = 0.0, 0.0
            divisor = np.ones(m)
            if normalize == 2:
                _means(starts, last, values, m, low, high - low, divisor)
            lists, listed, nearest, bounds, short_bounds = _lists(
                starts, last, near, values, m, lengths[c], columns[c], tops[c]
            )
            own = np.zeros((m, (m + 63) // 64), dtype=np.uint64)
            short = np.zeros((m if columns[c] >= 0 else 0, (m + 63) // 64), dtype=np.uint64)
            reciprocal(listed, lists, listed, bounds, short_bounds, True, own, short)
            sets = extended(own, short, m, authors) if columns[c] >= 0 else own
            firsts, stops, members, shares = _members(sets, starts, last, near, values, m, low, high)
            if weight == 1:
                largest = (1.0 / divisor.min() if high > low else 0.0) if minmax else high
                if weight_scale * largest > exponent_limit:
                    problem[c] = weight_scale * largest
                    continue
            span = high - low if minmax else 1.0
            sums, signed = weighed(firsts, stops, shares, low, span, minmax, divisor, weight, weight_scale, authors)
            _jaccard((firsts, stops, members, shares, sums, signed), nearest, m, probes[c], out[c])

    return kept(score_chunk)


_score_chunk = _filed_under(checksum())
