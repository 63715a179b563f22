"""The known pairs of a context, compiled: looked up in the rows that a graph has, and kept as sparse rows."""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.engines.compiled import compiled, fetch_ahead, float_of, ones

SCALE = np.float32(2.0**112)  # of a float16 whose bits stand in those of a float32
EMPTY = np.uint32(2**32 - 1)  # no row of a graph
MIX = np.uint32(0x9E3779B9)  # spreads neighbouring row numbers over the table
SPARE = 16  # similarities that are read beyond a row, and do not count


@compiled()
def _half(bits):  # type: ignore[no-untyped-def]
    """The float32 of the bits of a float16 that is finite."""
    word = np.int32(bits)
    high = (word & np.int32(0x8000)) << np.int32(16)
    return np.float32(float_of(np.int32(high | (word & np.int32(0x7FFF)) << np.int32(13))) * SCALE)


@compiled()
def _slot(table, shift, row):  # type: ignore[no-untyped-def]
    """Where a row stands in the table, or the free slot where it would."""
    at = np.uint32(np.uint32(row * MIX) >> shift)
    while (table[at] != EMPTY) & (table[at] != row):
        at = np.uint32(np.uint32(at + np.uint32(1)) & np.uint32(len(table) - 1))
    return at


@compiled()
def room(widest, k):  # type: ignore[no-untyped-def]
    """What `named` works in, for contexts of up to so many elements: table, elements, neighbours, held, ends.

    table, elements: a power of two of slots, few of them taken; neighbours, held: of all rows; ends: of each.
    """
    size = 4
    while size < 16 * widest:
        size *= 2
    table, elements = np.empty(size, dtype=np.uint32), np.empty(size, dtype=np.uint32)
    neighbours, held = np.empty(widest * k + 1, dtype=np.uint32), np.empty(widest * k + 1, dtype=np.float32)
    return table, elements, neighbours, held, np.empty(widest, dtype=np.int64)


@compiled()
def named(edges, weights, rows, n, room):  # type: ignore[no-untyped-def]
    """The elements of the context that each document's row names, and their similarities, as the row has them.

    Those of element i stand from (i - 1) K to ends[i] of neighbours and held of the room. False where a similarity is
    NaN or infinite.

    A row is read twice: first for what may be in the table, then for what is, which is mostly the same. Entries are
    stored first and kept if they belong: there is no branch that cannot be foreseen.
    """
    table, elements, neighbours, held, ends = room
    k, bits = edges.shape[1], 0
    while 1 << bits < len(table):
        bits += 1
    shift = np.uint32(32 - bits)
    table[:] = EMPTY
    for i in range(1, n + 1):
        fetch_ahead(edges, rows[i - 1])
        fetch_ahead(weights, rows[i - 1])
        at = _slot(table, shift, np.uint32(rows[i - 1]))
        if table[at] == EMPTY:
            table[at], elements[at] = np.uint32(rows[i - 1]), i
    largest = np.int64(0)
    for i in range(1, n + 1):
        near, similar = edges[rows[i - 1]], weights[rows[i - 1]]
        first = (i - 1) * k
        last = first
        for t in range(k):
            neighbours[last] = t
            last += table[np.uint32(near[t] * MIX) >> shift] != EMPTY
        end = first
        for e in range(first, last):
            t = neighbours[e]
            at = _slot(table, shift, near[t])
            neighbours[end], held[end] = elements[at], _half(similar[t])
            hit = np.int64((table[at] == near[t]) & (elements[at] != i) & (near[t] != EMPTY))
            largest = max(largest, hit * np.int64(similar[t] & np.uint16(0x7FFF)))
            end += hit
        ends[i] = end
    return largest < 0x7C00  # the bits of infinity


@compiled()
def both_ways(n, k, neighbours, held, ends):  # type: ignore[no-untyped-def]
    """Compressed sparse rows of the known pairs of documents: starts, ends, elements ascending, similarities.

    Of a pair that both rows name, the larger similarity counts. Before each row there is room for the query, and that
    of the query, element 0, is empty with room for all. A pair's index in a row is the number of bits before its own.
    """
    known = np.zeros((n + 1, (n + 64) // 64), dtype=np.uint64)
    for i in range(1, n + 1):
        for e in range((i - 1) * k, ends[i]):
            j = np.int64(neighbours[e])
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
    near, values = np.empty(at, dtype=np.uint32), np.empty(at + SPARE, dtype=np.float32)
    for e in range(at):
        values[e] = -np.inf
    for i in range(1, n + 1):
        for e in range((i - 1) * k, ends[i]):
            j, value = np.int64(neighbours[e]), held[e]
            for _ in range(2):
                word, bit = j >> 6, np.uint64(1) << np.uint64(j & 63)
                position = before[i, word] + np.int64(ones(known[i, word] & (bit - np.uint64(1))))
                near[position] = j
                values[position] = max(values[position], value)
                i, j = j, i
    return starts, last, near, values


@compiled()
def bounds(values, n):  # type: ignore[no-untyped-def]
    """The lowest and highest of values[:n] but -inf, which stands for none, as float64; 0 and 0 where all are none.

    Compared as integers in the order of the floats: only those are vectorised.
    """
    words, none = values.view(np.int32), np.int32(-2139095041)
    low, high = np.int32(2147483647), none
    for e in range(n):
        word = words[e]
        word = np.int32(word ^ np.int32(np.int32(word >> np.int32(31)) & np.int32(2147483647)))
        high = word if word > high else high
        word = np.int32(2147483647) if word == none else word
        low = word if word < low else low
    if high == none:
        return 0.0, 0.0
    low = np.int32(low ^ np.int32(np.int32(low >> np.int32(31)) & np.int32(2147483647)))
    high = np.int32(high ^ np.int32(np.int32(high >> np.int32(31)) & np.int32(2147483647)))
    return np.float64(float_of(low)), np.float64(float_of(high))


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
