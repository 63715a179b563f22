"""The similarity compiled by numba: one context at a time, from the matrix of its similarities.

Rows are not sorted: the elements that reach a floor, somewhat more than a list holds, are ranked by comparing all pairs
of them. Lists and sets are rows of bits. Weights are compressed sparse rows; sums have the order of the elements.
`dense` computes the same values by NumPy. Loops name elements by their numbers: a view of a row would be counted by two
atomic operations. numba looks for changes in the file of a kept function alone: what it calls is in this file.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

NONE = np.float32(-np.inf)  # the similarity of a pair that is not known
LOWEST = np.finfo(np.float32).min  # what every known similarity reaches
ONE = np.uint64(1)
BITS = np.uint64(64)  # of a word; unsigned numbers of elements need no check for those below 0
SPARE = 8  # values that are read or written beyond those that count
STEPS = 24  # of the search for a floor, at most
OPTIONS: Any = {"nogil": True, "error_model": "numpy"}  # without the interpreter's lock; floats divided as NumPy does
compiled = numba.njit(**OPTIONS)
inlined = numba.njit(forceinline=True, **OPTIONS)


def kept(signature: str) -> Any:
    """`compiled` for types now, with the machine code kept on disk where numba finds a folder for it."""

    def compile_now(function: Any) -> Any:
        try:
            return numba.njit(signature, cache=True, **OPTIONS)(function)
        except RuntimeError:  # no folder can be written
            return numba.njit(signature, **OPTIONS)(function)

    return compile_now


@compiled
def ones(word):  # type: ignore[no-untyped-def]
    """The number of bits that a word has; LLVM makes one instruction of it."""
    word = word - ((word >> ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled
def lowest(word):  # type: ignore[no-untyped-def]
    """The number of the lowest bit of a word that has one."""
    return ones(~word & (word - ONE))


@inlined
def whole(n):  # type: ignore[no-untyped-def]
    """The next multiple of 16, so many numbers loops take at once."""
    return (n + 15) & ~15


@compiled
def bounds(sims, m):  # type: ignore[no-untyped-def]
    """The lowest and the highest known similarity of two different elements; 0 and 0 where no pair is known."""
    lows, highs = np.full(m, -NONE), np.full(m, NONE)
    for i in range(m):
        for j in range(i):  # of a symmetric matrix
            value = sims[i, j]
            highs[j] = value if value > highs[j] else highs[j]
            value = value if value > NONE else -NONE
            lows[j] = value if value < lows[j] else lows[j]
    low, high = lows.min(), highs.max()
    return (low, high) if low <= high else (np.float32(0), np.float32(0))


@inlined
def reaching(sims, i, width, floor):  # type: ignore[no-untyped-def]
    """How many of a row reach a floor."""
    count = np.int32(0)
    for j in range(width):
        count = np.int32(count + np.int32(sims[i, j] >= floor))
    return count


@inlined
def gather(sims, i, words, floor, raw, packed, elements, values):  # type: ignore[no-untyped-def]
    """Put the elements of a row that reach a floor, and their values, one after the other; their number.

    raw: 64 bytes; packed: the same as words. A product gathers eight bytes, 0 or 1, as bits.
    """
    n = np.uint64(0)
    for w in range(words):
        first = np.uint64(w << 6)
        for lane in range(BITS):
            raw[lane] = sims[i, first + lane] >= floor
        word = np.uint64(0)
        for b in range(8):
            word |= ((packed[b] * np.uint64(0x0102040810204080)) >> np.uint64(56)) << np.uint64(8 * b)
        while word:
            j = first + lowest(word)
            word &= word - ONE
            elements[n], values[n] = j, sims[i, j]
            n += ONE
    return np.int64(n)


@inlined
def rank(values, n, ranks):  # type: ignore[no-untyped-def]
    """Set ranks[:n] to how many of values[:n] come before each: higher ones, and equal ones before it.

    Both are filled up to a multiple of eight, the number of which is returned, with -inf and n.
    """
    wide = (n + 7) & ~7
    for e in range(n, wide):
        values[e] = NONE
    for e in range(wide):
        ranks[e] = 0
    for f in range(0, wide, 8):
        a, b, c, d = values[f], values[f + 1], values[f + 2], values[f + 3]
        p, q, r, s = values[f + 4], values[f + 5], values[f + 6], values[f + 7]
        for e in range(wide):
            value = values[e]
            above = np.int32(a > value) + np.int32(b > value) + np.int32(c > value) + np.int32(d > value)
            below = np.int32(p > value) + np.int32(q > value) + np.int32(r > value) + np.int32(s > value)
            ranks[e] += above + below
    total = np.int32(0)
    for e in range(wide):
        total = np.int32(total + ranks[e])
    if total < n * (n - 1) // 2 + (wide - n) * n:  # some are equal
        for e in range(n):
            for f in range(e):
                ranks[e] += np.int32(values[f] == values[e])
    return wide


@inlined
def mark(order, first, last, sets, i):  # type: ignore[no-untyped-def]
    """Add order[first:last] to a row of bits."""
    if sets.shape[1] == 1:
        word = sets[i, 0]
        for r in range(first, last):
            word |= ONE << np.uint64(order[r])
        sets[i, 0] = word
    else:
        for r in range(first, last):
            sets[i, order[r] >> 6] |= ONE << np.uint64(order[r] & 63)


@compiled
def neighbours(sims, m, words, length, columns, low, high, listed, short, nearest, closest):  # type: ignore[no-untyped-def]
    """Fill the bits of lists and of short ones, the nearest, and the closest candidates of each but the query.

    An element stands for the nearest that it lacks, and for a single one. low, high: `bounds`. This writes -inf behind
    the elements of each row.
    """
    elements, values = np.empty(m + SPARE, dtype=np.uint32), np.empty(m + SPARE, dtype=np.float32)
    ranks, order = np.empty(m + SPARE, dtype=np.int32), np.empty(m + SPARE, dtype=np.uint32)
    raw, floor = np.empty(64, dtype=np.uint8), np.float32(0.5) * low + np.float32(0.5) * high
    packed, width = raw.view(np.uint64), words << 6
    top, lenders = nearest.shape[1], closest.shape[1]
    least = min(m, max(length, top, lenders + 2 if lenders else 0))
    most = (least + least // 4 + 15) & ~7
    for i in range(m):
        for j in range(m, width):
            sims[i, j] = NONE
        many = m > most and (sims[i, i] != -NONE or reaching(sims, i, width, LOWEST) > most)  # of a graph, some
        below, above = min(low, sims[i, i]), high
        floor = max(floor, below)
        for _ in range(STEPS if many else 0):
            n = reaching(sims, i, width, floor)
            if least <= n <= most:
                break
            below, above = (floor, above) if n > most else (below, floor)
            floor = np.float32(0.5) * below + np.float32(0.5) * above
        else:
            floor = below if many and reaching(sims, i, width, below) >= least else LOWEST
        n = gather(sims, i, words, floor, raw, packed, elements, values)
        for e in range(rank(values, n, ranks)):
            order[ranks[e]] = elements[e]
        for t in range(top):
            nearest[i, t] = order[t] if t < n and top > 1 else i
        for w in range(words):
            short[i, w] = 0
        mark(order, 0, min(n, columns), short, i)
        for w in range(words):
            listed[i, w] = short[i, w]
        mark(order, max(columns, 0), min(n, length), listed, i)
        count = 0
        for e in range(min(n, lenders + 2) if i else 0):
            if count < lenders and order[e] != 0 and order[e] != i:
                closest[i - 1, count] = order[e]
                count += 1


@inlined
def transpose(tile):  # type: ignore[no-untyped-def]
    """Transpose 64 words of 64 bits."""
    shift, mask = np.uint64(32), np.uint64(0x00000000FFFFFFFF)
    while shift:
        for first in range(np.uint64(0), BITS, shift + shift):
            for r in range(first, first + shift):
                moved = ((tile[r] >> shift) ^ tile[r + shift]) & mask
                tile[r] ^= moved << shift
                tile[r + shift] ^= moved
        shift >>= ONE
        mask ^= mask << shift


@compiled
def reciprocal(sets, words):  # type: ignore[no-untyped-def]
    """Keep the bits of pairs of which each lists the other."""
    tile = np.empty(64, dtype=np.uint64)
    for a in range(words):
        for b in range(a + 1):
            for r in range(64):
                tile[r] = sets[64 * a + r, b]
            transpose(tile)
            for r in range(64):
                tile[r] &= sets[64 * b + r, a]
                sets[64 * b + r, a] = tile[r]
            if a != b:
                transpose(tile)
                for r in range(64):
                    sets[64 * a + r, b] = tile[r]


@inlined
def extend(sets, short, m, words, authors, extended):  # type: ignore[no-untyped-def]
    """Join each set with the short sets of its members that overlap it by more than (or at least) two thirds."""
    size, overlapping = np.zeros(m, dtype=np.int64), np.empty(m + 1, dtype=np.uint32)
    for i in range(m):
        for w in range(words):
            size[i] += 2 * np.int64(ones(short[i, w]))
    for i in range(m):
        count = np.uint64(0)
        for v in range(words):
            rest = sets[i, v]
            while rest:
                q, shared = np.uint64(v << 6) + lowest(rest), np.int64(0)
                rest &= rest - ONE
                for w in range(words):
                    shared += np.int64(ones(short[q, w] & sets[i, w]))
                overlapping[count] = q
                count += np.uint64(3 * shared >= size[q] + authors)
        for w in range(words):
            word = sets[i, w]
            for t in range(count):
                word |= short[overlapping[t], w]
            extended[i, w] = word


@inlined
def mapped(value, scale):  # type: ignore[no-untyped-def]
    """What weights are made of: an unknown pair counts as the lowest, itself in a graph as the highest."""
    low, high, inverse, minmax = scale
    value = np.float64(low if value == NONE else high if value == -NONE else value)
    if minmax:
        value = (value - np.float64(low)) * inverse
        value = value if value > 0.0 else 0.0
        value = value if value < 1.0 else 1.0
    return value


@compiled
def weigh(sets, sims, m, words, scale, divisors, setting, column, table, sums):  # type: ignore[no-untyped-def]
    """Fill the weights of some columns, 0 = none, and the sums of whole rows; whether any weight is negative.

    The authors' rows sum to 1 or are zero.
    """
    authors, weight, weight_scale, least = setting[0], setting[1], setting[2], 0.0
    for i in range(m):
        for c in range(table.shape[1]):
            table[i, c] = 0.0
        factor, total = 1.0 / divisors[i], 0.0
        for w in range(words):
            rest = sets[i, w]
            while rest:
                j = np.uint64(w << 6) + lowest(rest)
                rest &= rest - ONE
                value = 1.0 if weight == 2 else mapped(sims[i, j], scale) * factor
                if weight == 1:
                    value = math.exp(weight_scale * value) - (1.0 if authors else 0.0)
                least = value if value < least else least
                total += value
                table[i, column[j]] = value
        if authors:
            usable, factor = total != 0.0 and np.isfinite(total), 1.0 / total
            for c in range(table.shape[1]):
                table[i, c] = table[i, c] * factor if usable else 0.0
            total = 1.0 if usable else 0.0
        sums[i] = total
    return least < 0.0


@compiled
def jaccard(m, columns, table, sums, signed, nearest, probes, similarities):  # type: ignore[no-untyped-def]
    """Sum of minima over sum of maxima of expanded rows, of each probe that is an element with all of them.

    Rows are sums over the nearest, not means: the factor cancels. With weights >= 0 what the rows sum to gives the sum
    of maxima, and columns that no probe has do not count; else maxima are added up.
    """
    wide = whole(m)
    expanded, totals = np.zeros((columns, wide)), np.zeros(m)
    for i in range(m):
        for t in range(nearest.shape[1]):
            near = nearest[i, t]
            totals[i] += sums[near]
            for c in range(columns):
                expanded[c, i] += table[near, c]
    below, above = np.empty(wide), np.empty(wide)
    for r in range(len(probes)):
        probe = probes[r]
        if 0 <= probe < m:
            below[:] = above[:] = 0.0
            for c in range(1, columns):
                for i in range(wide):
                    below[i] += min(expanded[c, probe], expanded[c, i])
                for i in range(wide if signed else 0):
                    above[i] += max(expanded[c, probe], expanded[c, i])
            for i in range(m):
                most = above[i] if signed else totals[probe] + totals[i] - below[i]
                usable = most != 0.0 and abs(below[i]) < abs(most) * 3e38
                similarities[r, i] = below[i] / most if usable else 0.0


@inlined
def reached(sets, m, words, nearest, probes, column):  # type: ignore[no-untyped-def]
    """Number the columns in which a probe can have a weight, from 1, others 0; how many there are."""
    reach, columns = np.zeros(words, dtype=np.uint64), np.uint64(0)
    for probe in probes:
        for t in range(nearest.shape[1] if 0 <= probe < m else 0):
            for w in range(words):
                reach[w] |= sets[nearest[probe, t], w]
    for j in range(m):
        own = (reach[j >> 6] >> np.uint64(j & 63)) & ONE
        columns += own
        column[j] = columns * own
    return np.int64(columns)


@kept(
    "void(f4[:,:,::1], i8[::1], i8[:,::1], Tuple((b1, i8, f8, b1, b1)), f8[:,::1], i8[:,::1], f8[:,:,::1], u4[:,:,::1])"
)
def score(gram, sizes, lengths, setting, divisors, probes, out, closest):  # type: ignore[no-untyped-def]
    """Fill `out` and `closest` as `dense.score` does."""
    widest = max(2, sizes.max())
    space = np.empty((3, (widest + 63) & ~63, (widest + 63) >> 6), dtype=np.uint64)
    sums, column = np.empty(widest), np.empty(widest, dtype=np.uint32)
    for c in range(len(sizes)):
        m, length, columns, top = sizes[c], lengths[c, 0], lengths[c, 1], lengths[c, 2]
        if m < 2:
            continue
        sims, sets, short, extended, words = gram[c, :m], space[0], space[1], space[2], (m + 63) >> 6
        low, high = bounds(sims, m)
        nearest = np.empty((m, top), dtype=np.uint32)
        neighbours(sims, m, words, length, columns, low, high, sets, short, nearest, closest[c])
        if setting[4]:
            sets[m : 64 * words], short[m : 64 * words] = 0, 0
            reciprocal(sets, words)
            reciprocal(short, words if columns > 0 else 0)
        if columns >= 0:
            if words == 1:  # a constant: no loops over words
                extend(sets, short, m, 1, setting[0], extended)
            else:
                extend(sets, short, m, words, setting[0], extended)
            sets = extended
        span = np.float64(high) - np.float64(low)
        scale = low, high, 1.0 / span if span > 0.0 else 0.0, setting[3]
        columns = reached(sets, m, words, nearest, probes[c], column)
        table = np.empty((m, whole(columns + 1)))
        signed = weigh(sets, sims, m, words, scale, divisors[c], setting, column, table, sums)
        if signed:
            columns, table, column[:m] = m, np.empty((m, whole(m + 1))), np.arange(1, m + 1)
            weigh(sets, sims, m, words, scale, divisors[c], setting, column, table, sums)
        jaccard(m, columns + 1, table, sums, signed, nearest, probes[c], out[c])


@kept("void(f8[:,::1], u4[:,:,::1], f8, f8[:,::1])")
def smooth(scores, closest, share, out):  # type: ignore[no-untyped-def]
    """Fill `out` as `dense.smooth` does."""
    for c in range(len(scores)):
        for i in range(scores.shape[1]):
            total, count = 0.0, 0
            while count < closest.shape[2] and closest[c, i, count]:
                total += scores[c, closest[c, i, count] - 1]
                count += 1
            out[c, i] = (1.0 - share) * scores[c, i] + share * (total / count) if count else scores[c, i]
