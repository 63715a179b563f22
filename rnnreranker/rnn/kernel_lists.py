"""The neighbour lists of the compiled kernel, by thresholds instead of sorting, and how its functions are compiled.

Rows are not sorted. A floor that somewhat more elements reach than a list holds is mostly that of the row before; the
elements that reach it are ranked by comparing all pairs of them. Lists are rows of bits.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rnnreranker.rnn.dense import kernel_sources

NONE = np.float32(-np.inf)  # the similarity of a pair that is not known
RANKED = 32  # elements of a row that are ranked, at most; more where lists are longer
BLOCK = 8  # elements that are ranked at a time
SPARE = 16  # values that are read or written beyond those that count
ROWS, STEPS = 16, 12  # rows whose floors are looked for side by side, in so many steps at most
LONG, STRIPS = 320, 128  # elements of a long row; its parts whose highest elements are looked at
LANES = 32  # bounds that are kept side by side


def compiled(function: Any, **options: Any) -> Any:
    """numba.njit without the interpreter's lock, with floats divided as NumPy does."""
    options = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True} | options
    return numba.njit(**options)(function)


def kept(function: Any) -> Any:
    """`compiled`, with the machine code kept on disk where numba finds a folder for it.

    numba looks for changes in the file of the function alone, so its name says the state of all files of the kernel.
    """
    function.__qualname__ = f"{function.__name__}_{kernel_sources()}"
    try:
        return compiled(function, cache=True, no_cpython_wrapper=False)
    except RuntimeError:  # no folder can be written
        return compiled(function, no_cpython_wrapper=False)


@compiled
def ones(word):  # type: ignore[no-untyped-def]
    """The number of bits that a word has; LLVM makes one instruction of it."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled
def lowest(word):  # type: ignore[no-untyped-def]
    """The number of the lowest bit of a word that has one."""
    return ones(~word & (word - np.uint64(1)))


@compiled
def bounds(sims, m):  # type: ignore[no-untyped-def]
    """The lowest and the highest known similarity of two different elements; 0 and 0 where no pair is known.

    In lanes, which LLVM makes vectors of.
    """
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
    low, high = lows[0], highs[0]
    for lane in range(1, LANES):
        low, high = min(low, lows[lane]), max(high, highs[lane])
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
            marks[j >> 6] |= np.uint64(1) << np.uint64(j & 63)
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
            rest &= rest - np.uint64(1)
            elements[n], values[n] = j, row[j]
            n += np.uint64(1)


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
def neighbours(sims, m, length, columns, top, listed, short, nearest, closest):  # type: ignore[no-untyped-def]
    """Fill bits of lists and of short ones, the `top` nearest and the closest candidates, all in order of elements.

    Returns the lowest and the highest known similarity. An element that knows fewer than `top` stands for the others.
    closest: (m - 1, n) int32 of the candidates, -1 where one knows fewer, without itself and the query.
    """
    words, lenders = (m + 63) >> 6, closest.shape[1]
    elements, values = np.empty(m + SPARE, dtype=np.uint32), np.empty(m + SPARE, dtype=np.float32)
    ranks, close = np.empty(m + SPARE, dtype=np.int32), np.empty(lenders + 1, dtype=np.int32)
    raw, marks = np.empty(64, dtype=np.uint8), np.empty(words, dtype=np.uint64)
    packed = raw.view(np.uint64)
    least = min(m, max(length, top, lenders + 2 if lenders else 0))
    most = (least + 11) & ~7 if m <= 64 else max(RANKED, least + least // 4)
    low, high = bounds(sims, m)
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
                bit, r = rest & (~rest + np.uint64(1)), ranks[e]
                rest ^= bit
                inside |= bit if r < length else np.uint64(0)
                brief |= bit if r < columns else np.uint64(0)
                e += np.uint64(1)
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
            if marks[0] & np.uint64(1):
                query = ranks[0]
            if marks[i >> 6] >> np.uint64(i & 63) & np.uint64(1):
                before = ones(marks[i >> 6] & ((np.uint64(1) << np.uint64(i & 63)) - np.uint64(1)))
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
    return low, high
