"""Neighbour lists and reciprocal sets of one context, compiled: bounds instead of sorting, bits instead of sets."""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.engines.compiled import compiled, ones
from rnnreranker.rnn.engines.selection import (
    LANES,
    RANKED,
    cut,
    entries,
    floor_for,
    highest,
    lane_maxima,
    marked,
    ordered,
    others,
    reaching,
    set_highest,
    spread,
)

STRIP = 4096  # similarities whose lowest and highest are looked for at once


@compiled()
def neighbours(sims, m, length, columns, top, minmax, lent, closest):  # type: ignore[no-untyped-def]
    """Bit rows of neighbour lists and of short ones, without rows where there are none, and the `top` nearest.

    The nearest are the first entries of the lists, in element order, or go beyond them; for top = 1 they are the
    elements themselves. closest: bit rows, filled with the `lent` candidates nearest to each.

    With min-max also the lowest off-diagonal similarity and the distance to the highest, else 0 and 1.

    Short rows are put in order whole. For lists of usual length in longer rows: a value that somewhat more elements
    reach than the list holds is quickly found, mostly the one of the row before; those elements are put in order. Long
    lists: by bisection.
    """
    words, wide = (m + 63) // 64, columns >= 0
    listed, short = np.zeros((m, words), dtype=np.uint64), np.zeros((m if wide else 0, words), dtype=np.uint64)
    nearest = np.empty((m, top), dtype=np.uint32)
    marks = np.empty(words, dtype=np.uint64)
    held, elements = np.empty(m + RANKED, dtype=np.float32), np.empty(m + 8, dtype=np.uint32)
    standings = np.empty(RANKED, dtype=np.float32)
    longest = max(length, top, min(lent + 2, m) if lent else 0)
    columns = columns if columns < length else length
    whole = m <= RANKED
    ranked, most = whole or longest <= RANKED - 8, RANKED // 2 if longest <= RANKED // 2 - 8 else RANKED
    floor = np.float32(0)
    maxima = np.empty(LANES, dtype=np.float32)
    in_lanes = ranked and m > 2 * LANES and LANES * np.log(LANES / (LANES - longest)) < most - 3  # values above a floor
    list_floor, short_floor, near_floor, close_floor = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    lowest, highest_of_all = np.float32(np.inf), np.float32(-np.inf)
    flat, strip = sims.reshape(-1), max(1, STRIP // m)
    for i in range(m):
        row, n = sims[i], 0
        if minmax and i % strip == 0:
            low, high = others(flat, m, i, min(i + strip, m))
            lowest, highest_of_all = low if low < lowest else lowest, high if high > highest_of_all else highest_of_all
        if whole:
            n = m
        elif ranked:
            if in_lanes:
                lane_maxima(row, m, i, maxima)
                floor = floor_for(maxima, LANES, longest, longest + 1, floor)
            n = reaching(row, m, floor, most, marks, elements, held)
            if n < longest or n > most:
                floor = floor_for(row, m, longest, most, floor)
                n = reaching(row, m, floor, most, marks, elements, held)
        if n < longest:
            floor, stop = cut(row, m, longest, floor)
            for w in range(words):
                marks[w] = np.uint64(0)
            for j in range(m):
                marks[j >> 6] |= np.uint64((row[j] > floor) | ((row[j] == floor) & (j <= stop))) << np.uint64(j & 63)
            n = marked(row, marks, elements, held)
        if ranked:
            ordered(row if whole else held, n, standings)
            inside, brief = highest(standings, n, length), highest(standings, n, columns if wide else 0)
            close = highest(standings, n, top)
            if lent and i:
                _closest_ranked(standings, n, elements, whole, i, lent, closest[i - 1])
            if whole:
                listed[i, 0], marks[0] = inside, close
                if wide:
                    short[i, 0] = brief
            else:
                spread(marks, inside, brief, close, listed[i], short[i] if wide else short.reshape(-1))
        else:
            list_floor = set_highest(held, elements, n, length, list_floor, listed[i])
            if wide:
                short_floor = set_highest(held, elements, n, columns, short_floor, short[i])
            for w in range(words):
                marks[w] = np.uint64(0)
            near_floor = set_highest(held, elements, n, top, near_floor, marks)
            if lent and i:
                close_floor = _closest_held(held, elements, n, i, close_floor, lent, closest[i - 1])
        if top == 1:
            nearest[i, 0] = i
        else:
            entries(marks, nearest[i])
    low, span = (np.float64(lowest), np.float64(highest_of_all) - np.float64(lowest)) if minmax else (0.0, 1.0)
    return listed, short, nearest, low, span


@compiled()
def _closest_ranked(standings, n, elements, whole, i, count, closest):  # type: ignore[no-untyped-def]
    """Set the bits of the `count` nearest of n values in order: of all elements, where `whole`, or of those found."""
    own, asking, others = i, 0, np.uint64(1) | np.uint64(1) << np.uint64(i)  # the element itself and the query
    if not whole:
        own, asking, others = -1, -1, np.uint64(0)
        for e in range(n):
            own, asking = e if elements[e] == i else own, e if elements[e] == 0 else asking
            others |= np.uint64((elements[e] == 0) | (elements[e] == i)) << np.uint64(e)
    first = standings[own] if own >= 0 else np.float32(-1)
    second = standings[asking] if asking >= 0 else np.float32(-1)
    size = count + (max(first, second) >= n - count)
    bits = highest(standings, n, size + (min(first, second) >= n - size)) & ~others
    if whole:
        closest[0] = bits
    while bits and not whole:
        bit = bits & (~bits + np.uint64(1))
        bits ^= bit
        j = np.uint64(elements[ones(bit - np.uint64(1))])
        closest[j >> np.uint64(6)] |= np.uint64(1) << (j & np.uint64(63))


@compiled()
def _closest_held(held, elements, n, i, hint, count, closest):  # type: ignore[no-untyped-def]
    """Set the bits of the `count` nearest of the elements found, by their values; a bound, a hint for the next."""
    bound, size = hint, count
    while size <= count + 2:
        bound, stop = cut(held, n, size, bound)
        closest[:] = np.uint64(0)
        inside = 0
        for e in range(n):
            if ((held[e] > bound) | ((held[e] == bound) & (e <= stop))) & (elements[e] != 0) & (elements[e] != i):
                j = np.uint64(elements[e])
                closest[j >> np.uint64(6)] |= np.uint64(1) << (j & np.uint64(63))
                inside += 1
        if inside == count:
            break
        size += 1
    return bound


@compiled()
def reciprocal(listed, m):  # type: ignore[no-untyped-def]
    """Bit rows of the elements that each lists and that list it, of bit rows of lists: 64 x 64 bits at a time."""
    words = listed.shape[1]
    result, block = np.empty((m, words), dtype=np.uint64), np.empty(64, dtype=np.uint64)
    for v in range(words):
        for w in range(words):
            first, last = 64 * w, min(64 * w + 64, m)
            for i in range(first, last):
                block[i - first] = listed[i, v]
            for i in range(last - first, 64):
                block[i] = np.uint64(0)
            transpose(block)
            for i in range(64 * v, min(64 * v + 64, m)):
                result[i, w] = listed[i, w] & block[i - 64 * v]
    return result


@compiled()
def transpose(block):  # type: ignore[no-untyped-def]
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
