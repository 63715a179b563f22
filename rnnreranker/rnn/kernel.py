"""The similarity compiled by numba: one context at a time, from the matrix of its similarities.

Rows are not sorted: the elements that reach a floor, somewhat more than a list holds, are ranked by comparing all pairs
of them. Lists and sets are rows of bits, and weights are compressed sparse rows in the order of the elements, which
fixes the order of every sum. `dense` computes the same values by NumPy. numba looks for changes in the file of a kept
function alone: what it calls is in this file.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

NONE = np.float32(-np.inf)  # the similarity of a pair that is not known
LOWEST = np.finfo(np.float32).min  # what every known similarity reaches
ONE = np.uint64(1)
LANES = 32  # bounds that are kept side by side
SPARE = 8  # values that are read or written beyond those that count
STEPS = 24  # of the search for a floor, at most
OPTIONS: Any = {"nogil": True, "error_model": "numpy"}  # without the interpreter's lock; floats divided as NumPy does
compiled = numba.njit(**OPTIONS)


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
def set_bit(row, j):  # type: ignore[no-untyped-def]
    row[j >> np.uint64(6)] |= ONE << (j & np.uint64(63))


@compiled
def bounds(sims, m):  # type: ignore[no-untyped-def]
    """The lowest and the highest known similarity of two different elements; 0 and 0 where no pair is known.

    This writes -inf behind the elements of each row.
    """
    lows, highs = np.full(LANES, -NONE), np.full(LANES, NONE)
    for i in range(m):
        row, own = sims[i], sims[i, i]
        row[m:], row[i] = NONE, row[i - 1 if i else 1]  # any but the diagonal
        for first in range(i & -LANES, m, LANES):  # of a symmetric matrix
            for lane in range(LANES):
                value = row[np.uint64(first) + np.uint64(lane)]
                highs[lane] = value if value > highs[lane] else highs[lane]
                value = value if value > NONE else -NONE
                lows[lane] = value if value < lows[lane] else lows[lane]
        row[i] = own
    low, high = lows.min(), highs.max()
    return (low, high) if low <= high else (np.float32(0), np.float32(0))


@compiled
def reaching(row, floor):  # type: ignore[no-untyped-def]
    """How many of a row reach a floor."""
    count = np.int32(0)
    for j in range(len(row)):
        count = np.int32(count + np.int32(row[j] >= floor))
    return count


@compiled
def gather(row, floor, raw, packed, elements, values):  # type: ignore[no-untyped-def]
    """Put the elements of a row that reach a floor, and their values, one after the other; their number.

    raw: 64 bytes; packed: the same as words. A product gathers eight bytes, 0 or 1, as bits.
    """
    n = np.uint64(0)
    for first in range(0, len(row), 64):
        for lane in range(64):
            raw[lane] = row[np.uint64(first) + np.uint64(lane)] >= floor
        word = np.uint64(0)
        for b in range(8):
            word |= ((packed[b] * np.uint64(0x0102040810204080)) >> np.uint64(56)) << np.uint64(8 * b)
        while word:
            j = np.uint64(first) + lowest(word)
            word &= word - ONE
            elements[n], values[n] = j, row[j]
            n += ONE
    return np.int64(n)


@compiled
def rank(values, n, ranks):  # type: ignore[no-untyped-def]
    """Set ranks[:n] to how many of values[:n] are higher; both have spare room."""
    wide = (n + 7) & ~7
    values[n:wide] = NONE
    ranks[:wide] = 0
    for f in range(0, wide, 8):
        a, b, c, d = values[f], values[f + 1], values[f + 2], values[f + 3]
        p, q, r, s = values[f + 4], values[f + 5], values[f + 6], values[f + 7]
        for e in range(wide):
            value = values[e]
            above = np.int32(a > value) + np.int32(b > value) + np.int32(c > value) + np.int32(d > value)
            below = np.int32(p > value) + np.int32(q > value) + np.int32(r > value) + np.int32(s > value)
            ranks[e] += above + below


@compiled
def neighbours(sims, m, length, columns, top, lenders, low, high, listed, short, lists, nearest, closest):  # type: ignore[no-untyped-def]
    """Fill the bits of lists and of short ones, lists in falling order, the `top` nearest and bits of the closest.

    A list that is too short repeats its first element; an element that knows fewer than `top` stands for the others.
    low, high: `bounds`.
    """
    elements, values = np.empty(m + SPARE, dtype=np.uint32), np.empty(m + SPARE, dtype=np.float32)
    ranks, order = np.empty(m + SPARE, dtype=np.int32), np.empty(m + SPARE, dtype=np.uint32)
    raw, none, floor = np.empty(64, dtype=np.uint8), np.uint32(m), np.float32(0.5) * low + np.float32(0.5) * high
    packed = raw.view(np.uint64)
    least = min(m, max(length, top, lenders + 2 if lenders else 0))
    most = least + least // 4 + 8
    for i in range(m):
        row = sims[i][: (m + 63) & ~63]
        below, above = min(low, row[i]), high
        known = reaching(row, LOWEST) if row[i] == -NONE else m  # of a graph, some
        floor = max(floor, below)
        for _ in range(STEPS if known > most else 0):
            n = reaching(row, floor)
            if least <= n <= most:
                break
            below, above = (floor, above) if n > most else (below, floor)
            floor = np.float32(0.5) * below + np.float32(0.5) * above
        else:
            floor = below if known > most and reaching(row, below) >= least else LOWEST
        n = gather(row, floor, raw, packed, elements, values)
        rank(values, n, ranks)
        order[:n] = none
        for e in range(n):
            r = np.uint64(ranks[e])
            while order[r] != none:  # of equal ones the first
                r += ONE
            order[r] = elements[e]
        listed[i], short[i] = 0, 0
        for r in range(length):
            j = order[r if r < n else 0]
            lists[i, r] = j
            set_bit(listed[i], j)
            if r < columns:
                set_bit(short[i], j)
        for t in range(top):
            j, at = np.uint32(i), t
            if t < n and top > 1:
                j = order[t]
                while at > 0 and nearest[i, at - 1] > j:
                    nearest[i, at] = nearest[i, at - 1]
                    at -= 1
            nearest[i, at] = j
        if i:
            left = lenders
            for r in range(min(n, least)):
                j = order[r]
                if left and j and j != np.uint32(i):
                    set_bit(closest[i - 1], j)
                    left -= 1


@compiled
def reciprocal(lists, listed, m, length, sets):  # type: ignore[no-untyped-def]
    """Set the bits of the elements that each lists and that list it."""
    for i in range(m):
        w, bit = np.uint64(i >> 6), np.uint64(i & 63)
        sets[i] = 0
        for r in range(length):
            j = lists[i, r]
            sets[i, j >> 6] |= ((listed[j, w] >> bit) & ONE) << np.uint64(j & 63)


@compiled
def extend(sets, short, m, authors, extended):  # type: ignore[no-untyped-def]
    """Join each set with the short sets of its members that overlap it by more than (or at least) two thirds."""
    words, size = sets.shape[1], np.zeros(m, dtype=np.int64)
    for i in range(m):
        for w in range(words):
            size[i] += 2 * np.int64(ones(short[i, w]))
            extended[i, w] = sets[i, w]
    for i in range(m):
        for v in range(words):
            rest = sets[i, v]
            while rest:
                q, shared = np.int64(v << 6) + np.int64(lowest(rest)), np.int64(0)
                rest &= rest - ONE
                for w in range(words):
                    shared += np.int64(ones(short[q, w] & sets[i, w]))
                enough = np.uint64(0) - np.uint64(3 * shared >= size[q] + authors)  # all bits or none
                for w in range(words):
                    extended[i, w] |= short[q, w] & enough


@compiled
def weigh(sets, sims, m, low, high, divisors, setting):  # type: ignore[no-untyped-def]
    """Compressed sparse rows: members of the sets with their weights, the sum of each row, whether any is negative.

    A pair that is not known counts as the lowest, an element to itself in a graph as the highest. The authors' rows sum
    to 1 or become empty.
    """
    count, authors, weight, weight_scale, minmax = 0, setting[0], setting[1], setting[2], setting[3]
    for i in range(m):
        for w in range(sets.shape[1]):
            count += np.int64(ones(sets[i, w]))
    starts, sums, n, signed = np.zeros(m + 1, dtype=np.int64), np.empty(m), np.uint64(0), False
    members, values = np.empty(count, dtype=np.uint32), np.empty(count)
    span = np.float64(high) - np.float64(low)
    inverse = 1.0 / span if span > 0.0 else 0.0
    for i in range(m):
        first, factor, total, least = n, 1.0 / divisors[i], 0.0, 0.0
        for w in range(sets.shape[1]):
            rest = sets[i, w]
            while rest:
                j = np.uint64(w << 6) + lowest(rest)
                rest &= rest - ONE
                s = sims[i, j]
                value = np.float64(low if s == NONE else high if s == -NONE else s)
                if minmax:
                    value = (value - np.float64(low)) * inverse
                    value = value if value > 0.0 else 0.0
                    value = value if value < 1.0 else 1.0
                value = 1.0 if weight == 2 else value * factor
                if weight == 1:
                    value = math.exp(weight_scale * value) - (1.0 if authors else 0.0)
                least = value if value < least else least
                total += value
                members[n], values[n] = j, value
                n += ONE
        signed |= least < 0.0
        if authors:
            if total == 0.0 or not np.isfinite(total):
                n = first
            factor = 1.0 / total
            for e in range(first, n):
                values[e] *= factor
            total = 1.0 if n > first else 0.0
        starts[i + 1], sums[i] = n, total
    return starts, members, values, sums, signed


@compiled
def expand(rows, nearest, into):  # type: ignore[no-untyped-def]
    """Add up the sparse rows of the nearest of an element; what they sum to."""
    starts, members, values, sums, _ = rows
    total = 0.0
    into[:] = 0.0
    for near in nearest:
        total += sums[near]
        for e in range(starts[near], starts[near + 1]):
            into[members[e]] += values[e]
    return total


@compiled
def lower(a, b):  # type: ignore[no-untyped-def]
    return a if a < b else b


@compiled
def minima(row, own):  # type: ignore[no-untyped-def]
    """The sum of the smaller of two rows' values, added up in eight parts, of every eighth element."""
    a = b = c = d = e = f = g = h = 0.0
    for first in range(0, len(row), 8):
        x, y = row[first : first + 8], own[first : first + 8]
        a, b, c, d = a + lower(x[0], y[0]), b + lower(x[1], y[1]), c + lower(x[2], y[2]), d + lower(x[3], y[3])
        e, f, g, h = e + lower(x[4], y[4]), f + lower(x[5], y[5]), g + lower(x[6], y[6]), h + lower(x[7], y[7])
    return ((a + e) + (c + g)) + ((b + f) + (d + h))


@compiled
def jaccard(rows, sets, nearest, probes, similarities):  # type: ignore[no-untyped-def]
    """Sum of minima over sum of maxima of expanded rows, of each probe that is an element with all of them.

    Rows are sums over the nearest, not means: the factor cancels. With weights >= 0 what the rows sum to gives the sum
    of maxima, and an element that shares no member with a probe has 0; else maxima are added up.
    """
    signed, m, chosen = rows[4], len(nearest), len(probes)
    own, totals, reach = np.zeros((chosen + 1, (m + 7) & ~7)), np.zeros(chosen), np.zeros_like(sets[0])
    row = own[chosen]  # beside them: where memory lies does not change the speed
    for r in range(chosen):
        if 0 <= probes[r] < m:
            totals[r] = expand(rows, nearest[probes[r]], own[r])
            for near in nearest[probes[r]]:
                reach |= sets[near]
    for i in range(m):
        shared = np.uint64(signed)
        for near in nearest[i]:
            for w in range(len(reach)):
                shared |= sets[near, w] & reach[w]
        total = expand(rows, nearest[i], row) if shared else 0.0
        for r in range(chosen):
            if shared and 0 <= probes[r] < m:
                below = above = 0.0
                if signed:
                    for j in range(m):
                        below += min(row[j], own[r, j])
                        above += max(row[j], own[r, j])
                else:
                    below = minima(row, own[r])
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
    space = np.empty((4, widest, (widest + 63) >> 6), dtype=np.uint64)
    for c in range(len(sizes)):
        m, length, columns, top = sizes[c], lengths[c, 0], lengths[c, 1], lengths[c, 2]
        if m < 2:
            continue
        sims, listed, short, members, spare = gram[c, :m], space[0], space[1], space[2], space[3]
        low, high = bounds(sims, m)
        lists, nearest = np.empty((m, length), dtype=np.uint32), np.empty((m, top), dtype=np.uint32)
        neighbours(sims, m, length, columns, top, setting[5], low, high, listed, short, lists, nearest, closest[c])
        if setting[4]:
            reciprocal(lists, listed, m, length, members)
            reciprocal(lists, short, m, columns, spare)
            listed, short, members, spare = members, spare, listed, short
        if columns >= 0:
            extend(listed, short, m, setting[0], members)
            listed = members
        rows = weigh(listed, sims, m, low, high, divisors[c], setting)
        jaccard(rows, listed, nearest, probes[c], out[c])


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
