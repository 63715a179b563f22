"""The similarity compiled by numba: one context at a time, from the matrix of its similarities.

Lists and sets are rows of bits, overlaps are counted 64 elements at a time, and weights are compressed sparse rows in
the order of the elements, which fixes the order of every sum. `dense` computes the same values by NumPy.
"""

from __future__ import annotations

import math

import numpy as np

from rnnreranker.rnn.kernel_lists import NONE, compiled, kept, lowest, neighbours, ones

SPARSE = 3  # times as long takes an element of a sparse row as one of a dense row


@compiled
def reciprocal(listed, m, sets):  # type: ignore[no-untyped-def]
    """Set the bits of the elements that each lists and that list it: 64 x 64 bits at a time are mirrored."""
    words, block = (m + 63) >> 6, np.empty(64, dtype=np.uint64)
    for v in range(words):
        for w in range(words):
            first, last = 64 * w, min(64 * w + 64, m)
            block[last - first :] = 0
            for i in range(first, last):
                block[i - first] = listed[i, v]
            mirror(block)
            for i in range(64 * v, min(64 * v + 64, m)):
                sets[i, w] = listed[i, w] & block[i - 64 * v]


@compiled
def mirror(block):  # type: ignore[no-untyped-def]
    """Mirror 64 x 64 bits: halves are exchanged across the diagonal, then quarters, down to single bits."""
    width, mask = np.int64(32), np.uint64(0xFFFFFFFF)
    while width:
        for first in range(0, 64, 2 * width):
            for i in range(first, first + width):
                change = ((block[i] >> np.uint64(width)) ^ block[i + width]) & mask
                block[i] ^= change << np.uint64(width)
                block[i + width] ^= change
        width >>= 1
        mask ^= mask << np.uint64(width)


@compiled
def extend(sets, short, m, authors, extended):  # type: ignore[no-untyped-def]
    """Join each set with the short sets of its members that overlap it by more than (or at least) two thirds."""
    words = (m + 63) >> 6
    size = np.zeros(m, dtype=np.int64)
    if words == 1:  # without the inner loops
        for i in range(m):
            size[i] = 2 * np.int64(ones(short[i, 0])) + authors
        for i in range(m):
            own = rest = joined = sets[i, 0]
            while rest:
                q = lowest(rest)
                rest &= rest - np.uint64(1)
                enough = 3 * np.int64(ones(short[q, 0] & own)) >= size[q]
                joined |= short[q, 0] if enough else np.uint64(0)
            extended[i, 0] = joined
        return
    for i in range(m):
        for w in range(words):
            size[i] += np.int64(ones(short[i, w]))
    for i in range(m):
        for w in range(words):
            extended[i, w] = sets[i, w]
        for v in range(words):
            rest = sets[i, v]
            while rest:
                q = np.int64(v << 6) + np.int64(lowest(rest))
                rest &= rest - np.uint64(1)
                shared = np.int64(0)
                for w in range(words):
                    shared += np.int64(ones(short[q, w] & sets[i, w]))
                enough = np.uint64(0) - np.uint64(3 * shared >= 2 * size[q] + authors)  # all bits or none
                for w in range(words):
                    extended[i, w] |= short[q, w] & enough


@compiled
def mapped(similarity, low, high, minmax):  # type: ignore[no-untyped-def]
    """What a weight is made of: a pair that is not known counts as the lowest, an element to itself as the highest."""
    value = np.float64(low if similarity == NONE else high if similarity == -NONE else similarity)
    if not minmax:
        return value
    span = np.float64(high) - np.float64(low)
    return min(max((value - low) / span, 0.0), 1.0) if span > 0.0 else 0.0


@compiled
def divisors(sims, m, low, high, minmax, normalize, divisor):  # type: ignore[no-untyped-def]
    """Set the maximum of each row, or 1e-8 + its mean, over known pairs; 1 where it cannot divide the row."""
    for i in range(m):
        highest, total, size = -np.inf, 0.0, 0.0
        for j in range(m):
            if sims[i, j] > NONE:
                s = mapped(sims[i, j], low, high, minmax)
                highest, total, size = max(highest, s), total + s, max(size, abs(s))
        d = highest if normalize == 1 else 1e-8 + total / m
        divisor[i] = d if size < abs(d) * 3e38 else 1.0


@compiled
def divide_rows(sims, m, normalize, divisor):  # type: ignore[no-untyped-def]
    """Divide the rows of raw similarities; divisors are 1 afterwards."""
    divisors(sims, m, np.float32(0), np.float32(0), False, normalize, divisor)
    for i in range(m):
        for j in range(m):
            sims[i, j] = np.float32(np.float64(sims[i, j]) / divisor[i])
        divisor[i] = 1.0


@compiled
def largest_of(sims, m, low, high, minmax, divisor):  # type: ignore[no-untyped-def]
    """The largest similarity that a weight is made of."""
    largest = -np.inf
    for i in range(m):
        for j in range(m):
            largest = max(largest, mapped(sims[i, j], low, high, minmax) * (1.0 / divisor[i]))
    return largest


@compiled
def weigh(sets, sims, m, low, high, divisor, setting):  # type: ignore[no-untyped-def]
    """Compressed sparse rows: members of the sets with their weights, the sum of each row, whether any is negative.

    The authors' rows sum to 1 or become empty.
    """
    words, count = (m + 63) >> 6, 0
    for i in range(m):
        for w in range(words):
            count += np.int64(ones(sets[i, w]))
    starts, ends, sums = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64), np.empty(m)
    members, values = np.empty(count, dtype=np.uint32), np.empty(count)
    lowest_of, span, signed, n = np.float64(low), np.float64(high) - np.float64(low), False, np.uint64(0)
    inverse = 1.0 / span if span > 0.0 else 0.0
    for i in range(m):
        starts[i] = first = n
        factor, total, least = 1.0 / divisor[i], 0.0, 0.0
        for w in range(words):
            rest = sets[i, w]
            while rest:
                j = np.uint64(w << 6) + lowest(rest)
                rest &= rest - np.uint64(1)
                s = sims[i, j]
                value = np.float64(low if s == NONE else high if s == -NONE else s)
                if setting.minmax:
                    value = (value - lowest_of) * inverse
                    value = value if value > 0.0 else 0.0
                    value = value if value < 1.0 else 1.0
                value = 1.0 if setting.weight == 2 else value * factor
                if setting.weight == 1:
                    value = math.exp(setting.weight_scale * value) - (1.0 if setting.authors else 0.0)
                least = value if value < least else least
                total += value
                members[n], values[n] = j, value
                n += np.uint64(1)
        signed |= least < 0.0
        if setting.authors:
            if total == 0.0 or not np.isfinite(total):
                n = first
            factor = 1.0 / total
            for e in range(first, n):
                values[e] *= factor
            total = 1.0 if n > first else 0.0
        ends[i], sums[i] = n, total
    return starts, ends, members, values, sums, signed


@compiled
def expand(rows, nearest, top, into):  # type: ignore[no-untyped-def]
    """Add up the sparse rows of the nearest of an element; what they sum to."""
    starts, ends, members, values, sums, _ = rows
    total = 0.0
    into[:] = 0.0
    for t in range(top):
        near = nearest[t]
        total += sums[near]
        for e in range(starts[near], ends[near]):
            into[members[e]] += values[e]
    return total


@compiled
def minima(row, own, count):  # type: ignore[no-untyped-def]
    """The sum of the smaller of row[:count] and own[:count]: eight parts, of every eighth, added up in halves."""
    a = b = c = d = e = f = g = h = 0.0
    for first in range(0, count, 8):
        j = np.uint64(first)
        a += lower(row[j], own[j])
        b += lower(row[j + np.uint64(1)], own[j + np.uint64(1)])
        c += lower(row[j + np.uint64(2)], own[j + np.uint64(2)])
        d += lower(row[j + np.uint64(3)], own[j + np.uint64(3)])
        e += lower(row[j + np.uint64(4)], own[j + np.uint64(4)])
        f += lower(row[j + np.uint64(5)], own[j + np.uint64(5)])
        g += lower(row[j + np.uint64(6)], own[j + np.uint64(6)])
        h += lower(row[j + np.uint64(7)], own[j + np.uint64(7)])
    return ((a + e) + (c + g)) + ((b + f) + (d + h))


@compiled
def sparse_minima(row, own, support, width, parts):  # type: ignore[no-untyped-def]
    """The same, of `own` that is 0 but at support[:width]."""
    parts[:] = 0.0
    for s in range(width):
        j = support[s]
        parts[j & np.uint32(7)] += lower(row[j], own[j])
    return ((parts[0] + parts[4]) + (parts[2] + parts[6])) + ((parts[1] + parts[5]) + (parts[3] + parts[7]))


@compiled
def lower(a, b):  # type: ignore[no-untyped-def]
    return a if a < b else b


@compiled
def minima_and_maxima(row, own, m):  # type: ignore[no-untyped-def]
    below, above = 0.0, 0.0
    for j in range(m):
        below += min(row[j], own[j])
        above += max(row[j], own[j])
    return below, above


@compiled
def jaccard(rows, nearest, top, probes, similarities):  # type: ignore[no-untyped-def]
    """Sum of minima over sum of maxima of expanded rows, of each probe that is an element with all of them.

    Rows are sums over the nearest, not means: the factor cancels. With weights >= 0 what the rows sum to gives the sum
    of maxima; else it is added up.
    """
    signed, m, chosen = rows[5], len(rows[0]), len(probes)
    wide = (m + 7) & ~7
    own, totals, parts = np.zeros((chosen + 1, wide)), np.zeros(chosen), np.empty(8)
    row = own[chosen]  # beside them: where memory lies does not change the speed
    supports, widths = np.empty((chosen, m), dtype=np.uint32), np.zeros(chosen, dtype=np.int64)
    for r in range(chosen):
        if 0 <= probes[r] < m:
            totals[r] = expand(rows, nearest[probes[r]], top, own[r])
            for j in range(m):
                if own[r, j] != 0.0:
                    supports[r, widths[r]] = j
                    widths[r] += 1
    for i in range(m):
        total = expand(rows, nearest[i], top, row)
        for r in range(chosen):
            if signed:
                below, above = minima_and_maxima(row, own[r], m)
            else:
                if SPARSE * widths[r] < wide:
                    below = sparse_minima(row, own[r], supports[r], widths[r], parts)
                else:
                    below = minima(row, own[r], wide)
                above = totals[r] + total - below
            if 0 <= probes[r] < m:
                usable = above != 0.0 and abs(below) < abs(above) * 3e38
                similarities[r, i] = below / above if usable else 0.0


@compiled
def outweighed(row, m, times):  # type: ignore[no-untyped-def]
    """Whether the middle of row[1:m] is more than so many times their range."""
    low, high = row[1], row[1]
    for j in range(2, m):
        low, high = min(low, row[j]), max(high, row[j])
    low, high = np.float64(low), np.float64(high)
    return abs(low + high) / 2.0 > times * (high - low)


@compiled
def choose_probes(row, m, probes):  # type: ignore[no-untyped-def]
    """Set all probes but the first to the candidates with the largest of row[1:m], of equal ones the earlier first."""
    for r in range(1, len(probes)):
        best = -1
        for j in range(1, m):
            there = False
            for s in range(1, r):
                there |= probes[s] == j
            if not there and (best < 0 or row[j] > row[best]):
                best = j
        probes[r] = best


@kept
def score(gram, sizes, lengths, columns, tops, setting, probes, out, problem, closest):  # type: ignore[no-untyped-def]
    """Fill `out` and `closest` for some contexts; the contract is in `contexts.Engine`."""
    widest = 2
    for c in range(len(sizes)):
        widest = max(widest, sizes[c])
    shape = (widest, (widest + 63) >> 6)
    listed, short = np.empty(shape, dtype=np.uint64), np.empty(shape, dtype=np.uint64)
    sets, shorts = np.empty(shape, dtype=np.uint64), np.empty(shape, dtype=np.uint64)
    divisor = np.ones(widest)
    for c in range(len(sizes)):
        m = sizes[c]
        if m < 2:
            continue
        sims = gram[c, :m]
        sound = True
        for i in range(m):
            sound &= sims[i, i] <= setting.largest
        if not sound:
            problem[c] = np.nan
            continue
        if outweighed(sims[0], m, setting.outweighs):
            problem[c] = np.inf
            continue
        if setting.by_products:
            choose_probes(sims[0], m, probes[c])
        if setting.normalize and not setting.minmax:  # the lists depend on it
            divide_rows(sims, m, setting.normalize, divisor)
        nearest = np.empty((m, tops[c] + 1), dtype=np.uint32)
        low, high = neighbours(sims, m, lengths[c], columns[c], tops[c], listed, short, nearest, closest[c])
        if setting.normalize and setting.minmax:
            divisors(sims, m, low, high, setting.minmax, setting.normalize, divisor)
        if setting.weight == 1:
            exponent = setting.weight_scale * largest_of(sims, m, low, high, setting.minmax, divisor)
            if exponent > setting.limit:
                problem[c] = exponent
                continue
        reciprocal(listed, m, sets)
        if columns[c] >= 0:
            reciprocal(short, m, shorts)
            extend(sets, shorts, m, setting.authors, listed)
        rows = weigh(listed if columns[c] >= 0 else sets, sims, m, low, high, divisor, setting)
        jaccard(rows, nearest, tops[c], probes[c], out[c])


@kept
def smooth(scores, closest, share, out):  # type: ignore[no-untyped-def]
    """Fill `out` as `dense.smooth` does."""
    for c in range(len(scores)):
        row = scores[c]
        for i in range(scores.shape[1]):
            total, count = 0.0, 0
            for e in range(closest.shape[2]):
                j = closest[c, i, e]
                total += row[j - 1] if j > 0 else 0.0
                count += j > 0
            out[c, i] = (1.0 - share) * row[i] + share * (total / count) if count else row[i]


@kept
def known_pairs(near, similar, rows, query, sizes, gram):  # type: ignore[no-untyped-def]
    """Fill the matrices of some contexts of a graph; the contract is in `contexts.Engine`."""
    k, size, shift = near.shape[2], 4, np.uint32(30)
    while size < 8 * rows.shape[1]:
        size, shift = 2 * size, np.uint32(shift - np.uint32(1))
    slots = np.empty(size, dtype=np.int32)  # elements by their rows, 0 = free
    for c in range(len(sizes)):
        m = sizes[c]
        if m < 2:
            continue
        sims = gram[c, :m, :m]
        sims[:], slots[:] = NONE, 0
        for i in range(1, m):
            at = slot_of(slots, shift, rows[c], rows[c, i - 1])
            slots[at] = slots[at] if slots[at] else i
        sound = True
        for i in range(1, m):
            for t in range(k):
                j = slots[slot_of(slots, shift, rows[c], near[c, i - 1, t])]
                if j > 0 and j != i:
                    value = similar[c, i - 1, t]
                    sound &= np.isfinite(value)
                    if value > sims[i, j]:
                        sims[i, j] = sims[j, i] = value
        if query.shape[1]:
            sims[0, 1:] = query[c, : m - 1]
        else:
            sims[0, 1:] = -np.sort(-sims[1, 1:])
        for i in range(m):
            sims[i, 0], sims[i, i] = sims[0, i], -NONE if sound else np.float32(np.nan)


@compiled
def slot_of(slots, shift, rows, row):  # type: ignore[no-untyped-def]
    """The slot of an element by its row, or the free one where it would be."""
    at = np.uint32(np.uint32(np.uint32(row) * np.uint32(0x9E3779B9)) >> shift)
    while slots[at] and rows[slots[at] - 1] != row:
        at = np.uint32(at + np.uint32(1)) & np.uint32(len(slots) - 1)
    return at
