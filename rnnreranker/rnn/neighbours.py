"""Neighbour lists and reciprocal sets of one context, compiled: bounds instead of sorting, bits instead of sets."""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.compiled import compiled, ones
from rnnreranker.rnn.selection import (
    LANES,
    RANKED,
    cut,
    extremes,
    floor_for,
    lane_maxima,
    marked,
    ordered,
    reaching,
)


@compiled()
def neighbours(sims, m, length, columns, top, minmax):  # type: ignore[no-untyped-def]
    """Neighbour lists in element order with their similarities, the `top` nearest, the bounds of (short) lists.

    The nearest are the first entries of the lists, or go beyond them; for top = 1 they are the elements themselves.

    With min-max also the lowest off-diagonal similarity and the distance to the highest, else 0 and 1.

    For lists of usual length: a value that somewhat more elements reach than the list holds is quickly found, mostly
    the one of the row before; those elements are put in order, which gives all bounds. Long lists: by bisection.
    """
    lists = np.empty(m * length + 1, dtype=np.uint32)  # one to spare: entries are stored first, kept if they belong
    values = np.empty(m * length + 1, dtype=np.float32)
    nearest = np.empty((m, top), dtype=np.uint32)
    bound, short_bound = np.empty(m, dtype=np.float32), np.empty(m, dtype=np.float32)
    last, short_last = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    marks = np.empty((m + 63) // 64, dtype=np.uint64)
    held, found = np.empty(m + RANKED, dtype=np.float32), np.empty(m + 8, dtype=np.uint32)
    order = np.empty(RANKED, dtype=np.int64)
    longest = length if length > top else top
    ranked, most = longest <= RANKED - 8, RANKED // 2 if longest <= RANKED // 2 - 8 else RANKED
    floor = np.float32(-np.inf) if ranked and m <= most else np.float32(0)
    maxima = np.empty(LANES, dtype=np.float32)
    in_lanes = ranked and m > 2 * LANES and LANES * np.log(LANES / (LANES - longest)) < most - 3  # values above a floor
    list_floor, short_floor, near_floor = np.float32(0), np.float32(0), np.float32(0)
    lowest, highest = np.float32(np.inf), np.float32(-np.inf)
    for i in range(m):
        row, n = sims[i], 0
        if minmax:
            own = row[i]
            row[i] = row[i - 1] if i else row[1]  # anything but the diagonal
            low, high = extremes(row, m)
            row[i] = own
            lowest, highest = low if low < lowest else lowest, high if high > highest else highest
        if ranked:
            if in_lanes:
                lane_maxima(row, m, i, maxima)
                floor = floor_for(maxima, LANES, longest, longest + 1, floor)
            n = reaching(row, m, floor, most, marks, found, held)
            if n < longest or n > most:
                floor = floor_for(row, m, longest, most, floor)
                n = reaching(row, m, floor, most, marks, found, held)
        if n < longest:
            floor, stop = cut(row, m, longest, floor)
            for w in range(len(marks)):
                marks[w] = np.uint64(0)
            for j in range(m):
                marks[j >> 6] |= np.uint64((row[j] > floor) | ((row[j] == floor) & (j <= stop))) << np.uint64(j & 63)
            n = marked(row, marks, found, held)
            bound[i], last[i] = floor, stop
        if ranked:
            ordered(held, n, order)
            bound[i], last[i] = held[order[length - 1]], found[order[length - 1]]
        elif longest > length:
            list_floor, stop = cut(held, n, length, list_floor)
            bound[i], last[i] = list_floor, found[stop] if stop < n else m
        entry, least, stop = i * length, bound[i], last[i]
        for e in range(n):
            lists[entry], values[entry] = found[e], held[e]
            entry += (held[e] > least) | ((held[e] == least) & (found[e] <= stop))
        if columns >= length:
            short_bound[i], short_last[i] = bound[i], last[i]
        elif columns == 0:
            short_bound[i], short_last[i] = np.inf, -1
        elif columns > 0 and ranked:
            short_bound[i], short_last[i] = held[order[columns - 1]], found[order[columns - 1]]
        elif columns > 0:
            short_floor, stop = cut(held, n, columns, short_floor)
            short_bound[i], short_last[i] = short_floor, found[stop] if stop < n else m
        if top == 1:
            nearest[i, 0] = i
        elif ranked:
            for t in range(top):  # in element order
                j, place = found[order[t]], t
                while place > 0 and nearest[i, place - 1] > j:
                    nearest[i, place] = nearest[i, place - 1]
                    place -= 1
                nearest[i, place] = j
        else:
            near_floor, stop = cut(held, n, top, near_floor)
            kept = 0
            for e in range(n):
                if held[e] > near_floor or (held[e] == near_floor and e <= stop):
                    nearest[i, kept] = found[e]
                    kept += 1
    lists, values = lists[: m * length].reshape((m, length)), values[: m * length].reshape((m, length))
    low, span = (np.float64(lowest), np.float64(highest) - np.float64(lowest)) if minmax else (0.0, 1.0)
    return lists, values, nearest, (bound, last), (short_bound, short_last), low, span


@compiled()
def reciprocal(sims, lists, values, bounds, short_bounds, symmetric, sets, short):  # type: ignore[no-untyped-def]
    """Set the bits of the elements that have each other in their lists, and of those in each other's short list.

    bounds, short_bounds: (bound, last) of every list. short: as sets, or without columns where there are none.
    """
    bound, last = bounds
    short_bound, short_last = short_bounds
    for i in range(len(lists)):
        for e in range(lists.shape[1]):
            j, s = np.uint64(lists[i, e]), values[i, e]
            t = s if symmetric else sims[j, i]
            word, bit = j >> np.uint64(6), j & np.uint64(63)
            lists_me = (t > bound[j]) | ((t == bound[j]) & (i <= last[j]))
            sets[i, word] |= np.uint64(lists_me) << bit
            if short.size:
                listed = (s > short_bound[i]) | ((s == short_bound[i]) & (np.int64(j) <= short_last[i]))
                lists_me = (t > short_bound[j]) | ((t == short_bound[j]) & (i <= short_last[j]))
                short[i, word] |= np.uint64(listed & lists_me) << bit


@compiled()
def extended(sets, short, m, authors):  # type: ignore[no-untyped-def]
    """Each set joined with the short sets of its members that overlap it by more than (or at least) two thirds."""
    words = sets.shape[1]
    result = np.zeros((m, words), dtype=np.uint64)
    size = np.empty(m, dtype=np.int64)
    for i in range(m):
        size[i] = 0
        for w in range(words):
            size[i] += np.int64(ones(short[i, w]))
    for i in range(m):
        for w in range(words):
            result[i, w] = sets[i, w]
        for v in range(words):
            rest = sets[i, v]
            while rest:
                bit = rest & (~rest + np.uint64(1))
                rest ^= bit
                q = np.uint64(v << 6) + ones(bit - np.uint64(1))
                shared = np.int64(0)
                for w in range(words):
                    shared += np.int64(ones(short[q, w] & sets[i, w]))
                if 3 * shared > 2 * size[q] or (not authors and 3 * shared == 2 * size[q]):
                    for w in range(words):
                        result[i, w] |= short[q, w]
    return result
