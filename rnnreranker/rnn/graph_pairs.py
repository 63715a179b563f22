"""The known pairs of a context, compiled: looked up in the rows that a graph has, and kept as sparse rows."""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.compiled import compiled, float_of, ones

SCALE = np.float32(2.0**112)  # of a float16 whose bits stand in those of a float32
ELEMENT = np.uint64(24)  # bits of an element's number beside a row's in one word
LARGEST, EMPTY = np.uint64((1 << 24) - 1), np.uint64(2**64 - 1)
MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads neighbouring row numbers over the table


@compiled()
def _half(bits):  # type: ignore[no-untyped-def]
    """The float32 of the bits of a float16; NaN where that is NaN or infinite."""
    if bits & np.uint16(0x7C00) == np.uint16(0x7C00):
        return np.float32(np.nan)
    value = np.float32(float_of(np.int32(np.int32(bits & np.uint16(0x7FFF)) << np.int32(13))) * SCALE)
    return np.float32(-value) if bits & np.uint16(0x8000) else value


@compiled()
def _place(table, row):  # type: ignore[no-untyped-def]
    """Where a row stands in the table, or the free place where it would; entries are row << ELEMENT | element."""
    last = np.uint64(len(table) - 1)
    at = ((row * MIX) >> np.uint64(40)) & last
    while table[at] != EMPTY and table[at] >> ELEMENT != row:
        at = (at + np.uint64(1)) & last
    return at


@compiled()
def named(edges, weights, rows, n, table, found, held, ends):  # type: ignore[no-untyped-def]
    """The elements of the context that each document's row names, and their similarities, as the row has them.

    Those of element i stand from (i - 1) K to ends[i]. False where a similarity is NaN or infinite. table: a power of
    two of places, more than twice n; found, held: n K + 1.
    """
    k = edges.shape[1]
    table[:] = EMPTY
    for i in range(1, n + 1):
        row = np.uint64(rows[i - 1])
        at = _place(table, row)
        if table[at] == EMPTY:
            table[at] = row << ELEMENT | np.uint64(i)
    sound, end = True, 0
    for i in range(1, n + 1):
        row, end = rows[i - 1], (i - 1) * k
        near, similar = edges[row], weights[row]
        for t in range(k):
            entry = table[_place(table, np.uint64(near[t]))]
            j = np.int64(entry & LARGEST)
            hit = (entry != EMPTY) & (j != i)
            found[end], held[end] = j, _half(similar[t])  # kept if it belongs: no branch that cannot be foreseen
            sound &= not (hit & np.isnan(held[end]))
            end += hit
        ends[i] = end
    return sound


@compiled()
def both_ways(n, k, found, held, ends):  # type: ignore[no-untyped-def]
    """Compressed sparse rows of the known pairs of documents: starts, ends, elements ascending, similarities.

    Of a pair that both rows name, the larger similarity counts. Before each row there is room for the query, and that
    of the query, element 0, is empty with room for all. A pair's place in a row is the number of bits before its own.
    """
    known = np.zeros((n + 1, (n + 64) // 64), dtype=np.uint64)
    for i in range(1, n + 1):
        for e in range((i - 1) * k, ends[i]):
            j = np.int64(found[e])
            known[i, j >> 6] |= np.uint64(1) << np.uint64(j & 63)
            known[j, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    starts, last = np.empty(n + 1, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    before = np.empty(known.shape, dtype=np.int64)
    starts[0], last[0], at = 0, 0, n
    for i in range(1, n + 1):
        at += 1
        starts[i] = at
        for w in range(known.shape[1]):
            before[i, w] = at
            at += np.int64(ones(known[i, w]))
        last[i] = at
    near, values = np.empty(at, dtype=np.uint32), np.empty(at, dtype=np.float32)
    for e in range(at):
        values[e] = -np.inf
    for i in range(1, n + 1):
        for e in range((i - 1) * k, ends[i]):
            j, value = np.int64(found[e]), held[e]
            for _ in range(2):
                word, bit = j >> 6, np.uint64(1) << np.uint64(j & 63)
                place = before[i, word] + np.int64(ones(known[i, word] & (bit - np.uint64(1))))
                near[place] = j
                values[place] = max(values[place], value)
                i, j = j, i
    return starts, last, near, values


@compiled()
def dealt(first, last, values, n, query):  # type: ignore[no-untyped-def]
    """The similarities that the first candidate has, dealt to the candidates in their order, the largest first."""
    for i in range(n):
        query[i] = -np.inf
    for e in range(first, last):
        at = min(e - first, n - 1)
        while at > 0 and query[at - 1] < values[e]:
            query[at] = query[at - 1]
            at -= 1
        query[at] = values[e]


@compiled()
def with_query(query, n, starts, last, near, values):  # type: ignore[no-untyped-def]
    """Put the query into the rows of the candidates that it knows, and these into its own."""
    for i in range(1, n + 1):
        if query[i - 1] > -np.inf:
            starts[i] -= 1
            near[starts[i]], values[starts[i]] = 0, query[i - 1]
            near[last[0]], values[last[0]] = i, query[i - 1]
            last[0] += 1
