"""The similarity compiled by numba: one context at a time, from the matrix of its similarities.

Rows are not sorted: the elements that reach a floor, somewhat more than a list holds, are ranked by comparing all pairs
of them. Lists and sets are rows of bits, and weights are compressed sparse rows in the order of the elements, which
fixes the order of every sum. `dense` computes the same values by NumPy.
"""

from __future__ import annotations

import math

import numpy as np

from rnnreranker.rnn.graph_kernel import NONE, compiled, kept
from rnnreranker.rnn.graph_kernel import known_pairs as known_pairs

ONE = np.uint64(1)
RANKED = 32  # elements of a row that are ranked, at most; more where lists are longer
BLOCK = 8  # elements that are ranked at a time
SPARE = 16  # values that are read or written beyond those that count
ROWS, STEPS = 16, 12  # rows whose floors are looked for side by side, in so many steps at most
LONG, STRIPS = 320, 128  # elements of a long row; its parts whose highest elements are looked at
LANES = 32  # bounds that are kept side by side
SPARSE = 3  # times as long takes an element of a sparse row as one of a dense row


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
    """The lowest and the highest known similarity of two different elements; 0 and 0 where no pair is known."""
    lows, highs = np.full(LANES, -NONE), np.full(LANES, NONE)
    for i in range(m):
        row, own = sims[i], sims[i, i]
        row[i] = row[i - 1 if i else 1]  # any but the diagonal
        for first in range(0, m, LANES):
            for lane in range(LANES):
                value = row[np.uint64(first) + np.uint64(lane)]
                highs[lane] = value if value > highs[lane] else highs[lane]
                value = value if value > NONE else -NONE
                lows[lane] = value if value < lows[lane] else lows[lane]
        row[i] = own
    low, high = lows.min(), highs.max()
    return (low, high) if low <= high else (np.float32(0), np.float32(0))


@compiled
def mark(row, floor, raw, packed, marks):  # type: ignore[no-untyped-def]
    """Set the bits of the elements of a row that reach the floor; their number.

    raw: 64 bytes; packed: the same as words. A product gathers eight bytes, 0 or 1, as bits.
    """
    count = np.uint64(0)
    for w in range(len(marks)):
        first = np.uint64(w << 6)
        for lane in range(64):
            raw[lane] = row[first + np.uint64(lane)] >= floor
        word = np.uint64(0)
        for b in range(8):
            word |= ((packed[b] * np.uint64(0x0102040810204080)) >> np.uint64(56)) << np.uint64(8 * b)
        marks[w] = word
        count += ones(word)
    return np.int64(count)


@compiled
def guess_floors(sims, m, least, most, low, high, floors):  # type: ignore[no-untyped-def]
    """Set for each row a value that `least` to `most` of its elements reach, mostly: `mark_some` looks.

    So many rows at a time, as lanes: that of a lane is the column of a symmetric matrix.
    """
    flat, stride = sims.reshape(-1), np.uint64(sims.shape[1])
    middle, lows = np.empty(ROWS, dtype=np.float32), np.empty(ROWS, dtype=np.float32)
    highs, counts = np.empty(ROWS, dtype=np.float32), np.empty(ROWS, dtype=np.int32)
    floors[:] = low
    if m > LONG and sims[0, 0] != -NONE:
        guess_long(sims, m, least, most, low, high, floors)
        return
    start = low if sims[0, 0] == -NONE else np.float32(0.5) * low + np.float32(0.5) * high  # of a graph: all known
    for first in range(0, m if m > most else 0, ROWS):
        middle[:], lows[:], highs[:] = start, low, high
        for _ in range(STEPS):
            counts[:] = 0
            for j in range(0, m - 3, 4):
                a = np.uint64(j) * stride + np.uint64(first)
                b, c, d = a + stride, a + np.uint64(2) * stride, a + np.uint64(3) * stride
                for lane in range(ROWS):
                    at, floor = np.uint64(lane), middle[lane]
                    counts[lane] += (
                        np.int32(flat[a + at] >= floor)
                        + np.int32(flat[b + at] >= floor)
                        + np.int32(flat[c + at] >= floor)
                        + np.int32(flat[d + at] >= floor)
                    )
            for j in range(m & ~3, m):
                a = np.uint64(j) * stride + np.uint64(first)
                for lane in range(ROWS):
                    counts[lane] += np.int32(flat[a + np.uint64(lane)] >= middle[lane])
            wrong = 0
            for lane in range(ROWS):
                floor = middle[lane]
                few, many = counts[lane] < least and floor > low and first + lane < m, counts[lane] > most
                highs[lane] = floor if few else highs[lane]
                lows[lane] = floor if many else lows[lane]
                half = np.float32(0.5) * lows[lane] + np.float32(0.5) * highs[lane]
                middle[lane] = half if few or many else floor
                wrong += few or many
            if wrong == 0:
                break
        total = np.float32(0)
        for lane in range(ROWS):
            floors[first + lane] = middle[lane]
            total += middle[lane]
        start = total / np.float32(ROWS)


@compiled
def guess_long(sims, m, least, most, low, high, floors):  # type: ignore[no-untyped-def]
    """`guess_floors` of long rows, one after the other: the highest of every STRIPS-th element stand for all."""
    strips, floor = np.empty(STRIPS, dtype=np.float32), np.float32(0.5) * low + np.float32(0.5) * high
    for i in range(m):
        row, above, below = sims[i], high, low
        strips[:] = NONE
        for first in range(0, m, 64):
            at = np.uint64(first & (STRIPS - 1))
            for lane in range(64):
                value = row[np.uint64(first) + np.uint64(lane)]
                highest = strips[at + np.uint64(lane)]
                strips[at + np.uint64(lane)] = value if value > highest else highest
        for _ in range(STEPS):
            count = np.int32(0)
            for lane in range(STRIPS):
                count += np.int32(strips[lane] >= floor)
            if least <= count <= most:
                break
            above, below = (floor, below) if count < least else (above, floor)
            floor = np.float32(0.5) * below + np.float32(0.5) * above
        floors[i] = floor


@compiled
def mark_some(row, least, most, low, high, raw, packed, marks):  # type: ignore[no-untyped-def]
    """Mark `least` to `most` of the highest of a row, or all known ones where they are fewer: their number.

    low, high: what all known ones reach, and what none but the element itself is above.
    Of equal ones that would be more the first are taken.
    """
    n = mark(row, low, raw, packed, marks)
    if n <= most:
        return n
    high = np.nextafter(high, -NONE)
    while True:
        floor = np.float32(0.5 * (np.float64(low) + np.float64(high)))
        if floor <= low or floor >= high:
            break
        n = mark(row, floor, raw, packed, marks)
        if least <= n <= most:
            return n
        low, high = (floor, high) if n > most else (low, floor)
    spare, j = least - mark(row, high, raw, packed, marks), 0  # all below `high` that count are equal to `low`
    while spare > 0:
        if row[j] == low:
            marks[j >> 6] |= ONE << np.uint64(j & 63)
            spare -= 1
        j += 1
    return least


@compiled
def gather(row, marks, elements, values):  # type: ignore[no-untyped-def]
    """Put the elements that are marked, and their values, one after the other."""
    n = np.uint64(0)
    for w in range(len(marks)):
        rest = marks[w]
        while rest:
            j = np.uint64(w << 6) + lowest(rest)
            rest &= rest - ONE
            elements[n], values[n] = j, row[j]
            n += ONE


@compiled
def rank(values, n, ranks):  # type: ignore[no-untyped-def]
    """Set ranks[:n] to those of values[:n] from the highest, 0; equal ones rank as they stand. Both have spare room."""
    wide = (n + BLOCK - 1) // BLOCK * BLOCK
    for e in range(n, wide):
        values[e] = NONE
    ranks[:wide] = 0
    for f in range(0, wide, BLOCK):
        a, b, c, d = values[f], values[f + 1], values[f + 2], values[f + 3]
        p, q, r, s = values[f + 4], values[f + 5], values[f + 6], values[f + 7]
        for e in range(wide):
            value = values[e]
            above = np.int32(a > value) + np.int32(b > value) + np.int32(c > value) + np.int32(d > value)
            below = np.int32(p > value) + np.int32(q > value) + np.int32(r > value) + np.int32(s > value)
            ranks[e] += above + below
    total = 0
    for e in range(n):
        total += ranks[e]
    if total != n * (n - 1) // 2:  # some are equal
        for e in range(n):
            for f in range(e):
                ranks[e] += values[f] == values[e]


@compiled
def neighbours(sims, m, length, columns, top, low, high, listed, short, nearest, closest):  # type: ignore[no-untyped-def]
    """Fill bits of lists and of short ones, the `top` nearest and the closest candidates, all in order of elements.

    An element that knows fewer than `top` stands for the others. low, high: `bounds`. closest: (m - 1, n) int32 of the
    candidates, -1 where one knows fewer, without itself and the query.
    """
    words, lenders = (m + 63) >> 6, closest.shape[1]
    elements, values = np.empty(m + SPARE, dtype=np.uint32), np.empty(m + SPARE, dtype=np.float32)
    ranks, close = np.empty(m + SPARE, dtype=np.int32), np.empty(lenders + 1, dtype=np.int32)
    raw, marks = np.empty(64, dtype=np.uint8), np.empty(words, dtype=np.uint64)
    packed = raw.view(np.uint64)
    least = min(m, max(length, top, lenders + 2 if lenders else 0))
    most = (least + 11) & ~7 if m <= 64 else max(RANKED, least + least // 4)
    floors = np.empty(sims.shape[1], dtype=np.float32)
    guess_floors(sims, m, least, most, low, high, floors)
    for i in range(m):
        row = sims[i]
        n = mark(row, floors[i], raw, packed, marks)
        if n > most or (n < least and floors[i] > min(low, row[i])):
            n = mark_some(row, least, most, min(low, row[i]), high, raw, packed, marks)
        gather(row, marks, elements, values)
        rank(values, n, ranks)
        e, near = np.uint64(0), np.uint64(0)
        for w in range(words):
            inside, brief, rest = np.uint64(0), np.uint64(0), marks[w]
            while rest:
                bit, r = rest & (~rest + ONE), ranks[e]
                rest ^= bit
                inside |= bit if r < length else np.uint64(0)
                brief |= bit if r < columns else np.uint64(0)
                e += ONE
            listed[i, w], short[i, w] = inside, brief
        for f in range(n):
            nearest[i, near] = elements[f]
            near += np.uint64(ranks[f] < top)
        for t in range(np.int64(near), top):
            nearest[i, t] = i
        if top == 1:
            nearest[i, 0] = i
        if lenders and i:
            lent, limit, own, query = np.uint64(0), lenders, m, m
            if marks[0] & ONE:
                query = ranks[0]
            if marks[i >> 6] >> np.uint64(i & 63) & ONE:
                before = ones(marks[i >> 6] & ((ONE << np.uint64(i & 63)) - ONE))
                for w in range(i >> 6):
                    before += ones(marks[w])
                own = ranks[before]
            limit += min(own, query) < limit
            limit += max(own, query) < limit
            for e in range(n):
                close[lent] = elements[e]
                lent += np.uint64((ranks[e] < limit) & (ranks[e] != own) & (ranks[e] != query))
            for e in range(lenders):
                closest[i - 1, e] = close[e] if e < lent else -1


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
    for i in range(m):
        for w in range(words):
            size[i] += 2 * np.int64(ones(short[i, w]))
            extended[i, w] = sets[i, w]
    for i in range(m):
        for v in range(words):
            rest = sets[i, v]
            while rest:
                q = np.int64(v << 6) + np.int64(lowest(rest))
                rest &= rest - ONE
                shared = np.int64(0)
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
    words, count = (m + 63) >> 6, 0
    for i in range(m):
        for w in range(words):
            count += np.int64(ones(sets[i, w]))
    authors, weight, weight_scale, minmax = setting
    starts, ends, sums = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64), np.empty(m)
    members, values = np.empty(count, dtype=np.uint32), np.empty(count)
    lowest_of, span, signed, n = np.float64(low), np.float64(high) - np.float64(low), False, np.uint64(0)
    inverse = 1.0 / span if span > 0.0 else 0.0
    for i in range(m):
        starts[i] = first = n
        factor, total, least = 1.0 / divisors[i], 0.0, 0.0
        for w in range(words):
            rest = sets[i, w]
            while rest:
                j = np.uint64(w << 6) + lowest(rest)
                rest &= rest - ONE
                s = sims[i, j]
                value = np.float64(low if s == NONE else high if s == -NONE else s)
                if minmax:
                    value = (value - lowest_of) * inverse
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
def lower(a, b):  # type: ignore[no-untyped-def]
    return a if a < b else b


@compiled
def add_minima(row, own, count, parts):  # type: ignore[no-untyped-def]
    """Set parts to the sums of the smaller of row[:count] and own[:count], of every eighth element."""
    a = b = c = d = e = f = g = h = 0.0
    for first in range(0, count, 8):
        x, y = row[first : first + 8], own[first : first + 8]
        a, b, c, d = a + lower(x[0], y[0]), b + lower(x[1], y[1]), c + lower(x[2], y[2]), d + lower(x[3], y[3])
        e, f, g, h = e + lower(x[4], y[4]), f + lower(x[5], y[5]), g + lower(x[6], y[6]), h + lower(x[7], y[7])
    parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6], parts[7] = a, b, c, d, e, f, g, h


@compiled
def jaccard(rows, nearest, top, probes, similarities):  # type: ignore[no-untyped-def]
    """Sum of minima over sum of maxima of expanded rows, of each probe that is an element with all of them.

    Rows are sums over the nearest, not means: the factor cancels. Minima are added up in eight parts, of every eighth
    element. With weights >= 0 what the rows sum to gives the sum of maxima; else it is added up.
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
            below = above = 0.0
            if signed:
                for j in range(m):
                    below += min(row[j], own[r, j])
                    above += max(row[j], own[r, j])
            else:
                if SPARSE * widths[r] < wide:
                    parts[:] = 0.0
                    for s in range(widths[r]):
                        j = supports[r, s]
                        parts[j & np.uint32(7)] += lower(row[j], own[r, j])
                else:
                    add_minima(row, own[r], wide, parts)
                below = ((parts[0] + parts[4]) + (parts[2] + parts[6])) + (
                    (parts[1] + parts[5]) + (parts[3] + parts[7])
                )
                above = totals[r] + total - below
            if 0 <= probes[r] < m:
                usable = above != 0.0 and abs(below) < abs(above) * 3e38
                similarities[r, i] = below / above if usable else 0.0


@kept(
    "void(f4[:,:,::1], i8[::1], i8[::1], i8[::1], i8[::1], Tuple((b1, i8, f8, b1)), f8[:,::1], i8[:,::1], "
    "f8[:,:,::1], i4[:,:,::1])"
)
def score(gram, sizes, lengths, columns, tops, setting, divisors, probes, out, closest):  # type: ignore[no-untyped-def]
    """Fill `out` and `closest` as `dense.score` does."""
    widest = max(2, sizes.max())
    sets = np.empty((4, widest, (widest + 63) >> 6), dtype=np.uint64)
    for c in range(len(sizes)):
        m = sizes[c]
        if m < 2:
            continue
        sims, listed, short = gram[c, :m], sets[0], sets[1]
        low, high = bounds(sims, m)
        nearest = np.empty((m, tops[c] + 1), dtype=np.uint32)
        neighbours(sims, m, lengths[c], columns[c], tops[c], low, high, listed, short, nearest, closest[c])
        reciprocal(listed, m, sets[2])
        members = sets[2]
        if columns[c] >= 0:
            reciprocal(short, m, sets[3])
            extend(sets[2], sets[3], m, setting[0], listed)
            members = listed
        rows = weigh(members, sims, m, low, high, divisors[c], setting)
        jaccard(rows, nearest, tops[c], probes[c], out[c])


@kept("void(f8[:,::1], i4[:,:,::1], f8, f8[:,::1])")
def smooth(scores, closest, share, out):  # type: ignore[no-untyped-def]
    """Fill `out` as `dense.smooth` does."""
    for c in range(len(scores)):
        row = scores[c]
        for i in range(scores.shape[1]):
            total, count = 0.0, 0
            for j in closest[c, i]:
                total += row[j - 1] if j > 0 else 0.0
                count += j > 0
            out[c, i] = (1.0 - share) * row[i] + share * (total / count) if count else row[i]
