"""The similarity compiled by numba: one context at a time, from the matrix of its similarities.

Rows are not sorted: the elements that reach a floor, somewhat more than a list holds, are ranked by comparing all pairs
of them. Lists and sets are rows of bits. Weights are whole rows of up to 64 elements, or else compressed sparse ones;
sums have the order of the elements. `dense` computes the same values by NumPy. Loops name elements by their numbers: a
view of a row would be counted by two atomic operations. numba looks for changes in the file of a kept function alone:
what it calls is in this file.
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
LANES = 32  # bounds that are kept side by side
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


@compiled
def bounds(sims, m):  # type: ignore[no-untyped-def]
    """The lowest and the highest known similarity of two different elements; 0 and 0 where no pair is known.

    This writes -inf behind the elements of each row.
    """
    lows, highs = np.full(LANES, -NONE), np.full(LANES, NONE)
    for i in range(m):
        own = sims[i, i]
        sims[i, m:], sims[i, i] = NONE, sims[i, i - 1 if i else 1]  # any but the diagonal
        for first in range(i & -LANES, m, LANES):  # of a symmetric matrix
            for lane in range(LANES):
                value = sims[i, np.uint64(first) + np.uint64(lane)]
                highs[lane] = value if value > highs[lane] else highs[lane]
                value = value if value > NONE else -NONE
                lows[lane] = value if value < lows[lane] else lows[lane]
        sims[i, i] = own
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
def mark(order, n, sets, i):  # type: ignore[no-untyped-def]
    """Make a row of bits of the first n elements of an order."""
    word, words = np.uint64(0), sets.shape[1]
    for w in range(words):
        sets[i, w] = 0
    if words == 1:
        for r in range(n):
            word |= ONE << np.uint64(order[r])
        sets[i, 0] = word
    else:
        for r in range(n):
            sets[i, order[r] >> 6] |= ONE << np.uint64(order[r] & 63)


@compiled
def neighbours(sims, m, words, length, columns, top, lenders, low, high, listed, short, nearest, closest):  # type: ignore[no-untyped-def]
    """Fill the bits of lists and of short ones, the `top` nearest in the order of elements, and bits of the closest.

    An element that knows fewer than `top` stands for the others. low, high: `bounds`; nearest: with a spare row.
    """
    elements, values = np.empty(m + SPARE, dtype=np.uint32), np.empty(m + SPARE, dtype=np.float32)
    ranks, order = np.empty(m + SPARE, dtype=np.int32), np.empty(m + SPARE, dtype=np.uint32)
    raw, floor = np.empty(64, dtype=np.uint8), np.float32(0.5) * low + np.float32(0.5) * high
    packed, width = raw.view(np.uint64), words << 6
    least = min(m, max(length, top, lenders + 2 if lenders else 0))
    most = (least + least // 4 + 15) & ~7
    for i in range(m):
        below, above = min(low, sims[i, i]), high
        known = reaching(sims, i, width, LOWEST) if sims[i, i] == -NONE else m  # of a graph, some
        floor = max(floor, below)
        for _ in range(STEPS if known > most else 0):
            n = reaching(sims, i, width, floor)
            if least <= n <= most:
                break
            below, above = (floor, above) if n > most else (below, floor)
            floor = np.float32(0.5) * below + np.float32(0.5) * above
        else:
            floor = below if known > most and reaching(sims, i, width, below) >= least else LOWEST
        n = gather(sims, i, words, floor, raw, packed, elements, values)
        at, taken = 0, min(n, top)
        for e in range(rank(values, n, ranks)):
            order[ranks[e]], nearest[i, at] = elements[e], elements[e]
            at += ranks[e] < taken
        for t in range(at if top > 1 else 0, top):
            nearest[i, t] = i
        mark(order, min(n, length), listed, i)
        mark(order, min(n, columns), short, i)
        if lenders and i:  # the query and the element itself do not count
            own, query = 0, np.int64(ranks[0]) if n and elements[0] == 0 else n
            while own < n and order[own] != i:
                own += 1
            last = lenders + (min(own, query) < lenders)
            mark(order, min(n, last + (max(own, query) < last)), closest, i - 1)
            closest[i - 1, 0] &= ~ONE
            closest[i - 1, i >> 6] &= ~(ONE << np.uint64(i & 63))


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
def whole_rows(sets, sims, m, scale, divisors, setting, rows, sums):  # type: ignore[no-untyped-def]
    """Fill the rows of weights, (64, 64), of at most 64 elements, and their sums; whether any weight is negative.

    The authors' rows sum to 1 or are zero.
    """
    authors, weight, weight_scale, least = setting[0], setting[1], setting[2], 0.0
    for i in range(m):
        own, factor = sets[i, 0], 1.0 / divisors[i]
        for j in range(BITS):
            value = 1.0 if weight == 2 else mapped(sims[i, j], scale) * factor
            rows[i, j] = value if (own >> j) & ONE else 0.0
        for j in range(BITS if weight == 1 or not scale[3] else np.uint64(0)):
            if weight == 1 and (own >> j) & ONE:
                rows[i, j] = math.exp(weight_scale * rows[i, j]) - (1.0 if authors else 0.0)
            least = min(least, rows[i, j])
    for i in range(0, m, 8):  # eight sums at a time: they do not wait for each other
        a = b = c = d = e = f = g = h = 0.0
        for j in range(BITS):
            a, b, c, d = a + rows[i, j], b + rows[i + 1, j], c + rows[i + 2, j], d + rows[i + 3, j]
            e, f, g, h = e + rows[i + 4, j], f + rows[i + 5, j], g + rows[i + 6, j], h + rows[i + 7, j]
        sums[i], sums[i + 1], sums[i + 2], sums[i + 3] = a, b, c, d
        sums[i + 4], sums[i + 5], sums[i + 6], sums[i + 7] = e, f, g, h
    for i in range(m if authors else 0):
        usable, factor = sums[i] != 0.0 and np.isfinite(sums[i]), 1.0 / sums[i]
        for j in range(BITS):
            rows[i, j] = rows[i, j] * factor if usable else 0.0
        sums[i] = 1.0 if usable else 0.0
    return least < 0.0


@compiled
def sparse_rows(sets, sims, m, words, scale, divisors, setting, sums):  # type: ignore[no-untyped-def]
    """As `whole_rows`, but compressed sparse rows: starts, members, values, (1, n), and whether any is negative."""
    authors, weight, weight_scale, count = setting[0], setting[1], setting[2], 0
    for i in range(m):
        for w in range(words):
            count += np.int64(ones(sets[i, w]))
    starts, n, least = np.zeros(m + 1, dtype=np.int64), np.uint64(0), 0.0
    members, values = np.empty(count, dtype=np.uint32), np.empty((1, count))
    for i in range(m):
        first, factor, total = n, 1.0 / divisors[i], 0.0
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
                members[n], values[0, n] = j, value
                n += ONE
        if authors:
            if total == 0.0 or not np.isfinite(total):
                n = first
            factor = 1.0 / total
            for e in range(first, n):
                values[0, e] *= factor
            total = 1.0 if n > first else 0.0
        starts[i + 1], sums[i] = n, total
    return starts, members, values, least < 0.0


@inlined
def expand(i, rows, sums, nearest, into, r):  # type: ignore[no-untyped-def]
    """Add up the rows of the nearest of element i in row r of `into`; what they sum to."""
    starts, members, values, _ = rows
    total = 0.0
    for j in range(into.shape[1]):
        into[r, j] = 0.0
    for t in range(nearest.shape[1]):
        near = nearest[i, t]
        total += sums[near]
        if len(starts):
            for e in range(starts[near], starts[near + 1]):
                into[r, members[e]] += values[0, e]
        else:
            for j in range(BITS):
                into[r, j] += values[near, j]
    return total


@inlined
def lower(rows, r, s, j, eighth):  # type: ignore[no-untyped-def]
    one, other = rows[r, np.uint64(j + eighth)], rows[s, np.uint64(j + eighth)]
    return one if one < other else other


@inlined
def minima(rows, r, s):  # type: ignore[no-untyped-def]
    """The sum of the smaller of two rows' values, added up in eight parts, of every eighth element."""
    a = b = c = d = e = f = g = h = 0.0
    for j in range(0, rows.shape[1], 8):
        a, b = a + lower(rows, r, s, j, 0), b + lower(rows, r, s, j, 1)
        c, d = c + lower(rows, r, s, j, 2), d + lower(rows, r, s, j, 3)
        e, f = e + lower(rows, r, s, j, 4), f + lower(rows, r, s, j, 5)
        g, h = g + lower(rows, r, s, j, 6), h + lower(rows, r, s, j, 7)
    return ((a + e) + (c + g)) + ((b + f) + (d + h))


@compiled
def jaccard(m, words, sets, rows, sums, nearest, probes, similarities):  # type: ignore[no-untyped-def]
    """Sum of minima over sum of maxima of expanded rows, of each probe that is an element with all of them.

    Rows are sums over the nearest, not means: the factor cancels. With weights >= 0 what the rows sum to gives the sum
    of maxima, and an element that shares no member with a probe has 0; else maxima are added up.
    """
    chosen, top, signed = len(probes), nearest.shape[1], rows[3]
    own, totals = np.zeros((chosen + 1, max(64, (m + 7) & ~7))), np.zeros(chosen)
    reach = np.zeros(words, dtype=np.uint64)
    for r in range(chosen):
        if 0 <= probes[r] < m:
            totals[r] = expand(probes[r], rows, sums, nearest, own, r)
            for t in range(top):
                for w in range(words):
                    reach[w] |= sets[nearest[probes[r], t], w]
    for i in range(m):
        shared = np.uint64(signed)
        for t in range(top):
            for w in range(words):
                shared |= sets[nearest[i, t], w] & reach[w]
        total = expand(i, rows, sums, nearest, own, chosen) if shared else 0.0
        for r in range(chosen):
            if shared and 0 <= probes[r] < m:
                below = above = 0.0
                if signed:
                    for j in range(m):
                        below += min(own[chosen, j], own[r, j])
                        above += max(own[chosen, j], own[r, j])
                else:
                    below = minima(own, chosen, r)
                    above = totals[r] + total - below
                usable = above != 0.0 and abs(below) < abs(above) * 3e38
                similarities[r, i] = below / above if usable else 0.0


@kept(
    "void(f4[:,:,::1], i8[::1], i8[:,::1], Tuple((b1, i8, f8, b1, b1, i8)), f8[:,::1], i8[:,::1], f8[:,:,::1], "
    "u8[:,:,::1])"
)
def score(gram, sizes, lengths, setting, divisors, probes, out, closest):  # type: ignore[no-untyped-def]
    """Fill `out` and `closest` as `dense.score` does."""
    widest = max(2, sizes.max())
    space = np.empty((3, (widest + 63) & ~63, (widest + 63) >> 6), dtype=np.uint64)
    whole, sums = np.empty((64, 64)), np.empty(widest + SPARE)
    no_starts, no_members = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint32)
    for c in range(len(sizes)):
        m, length, columns, top = sizes[c], lengths[c, 0], lengths[c, 1], lengths[c, 2]
        if m < 2:
            continue
        sims, sets, short, extended, words = gram[c, :m], space[0], space[1], space[2], (m + 63) >> 6
        low, high = bounds(sims, m)
        nearest = np.empty((m + 1, top), dtype=np.uint32)
        neighbours(sims, m, words, length, columns, top, setting[5], low, high, sets, short, nearest, closest[c])
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
        if words == 1:
            signed = whole_rows(sets, sims, m, scale, divisors[c], setting, whole, sums)
            rows = no_starts, no_members, whole, signed
        else:
            rows = sparse_rows(sets, sims, m, words, scale, divisors[c], setting, sums)
        jaccard(m, words, sets, rows, sums, nearest, probes[c], out[c])


@kept("void(f8[:,::1], u8[:,:,::1], f8, f8[:,::1])")
def smooth(scores, closest, share, out):  # type: ignore[no-untyped-def]
    """Fill `out` as `dense.smooth` does."""
    for c in range(len(scores)):
        for i in range(scores.shape[1]):
            total, count = 0.0, 0
            for w in range(closest.shape[2]):
                rest = closest[c, i, w]
                while rest:
                    total += scores[c, np.uint64(w << 6) + lowest(rest) - ONE]
                    count += 1
                    rest &= rest - ONE
            out[c, i] = (1.0 - share) * scores[c, i] + share * (total / count) if count else scores[c, i]
