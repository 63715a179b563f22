"""Neighbour lists and reciprocal sets of one context, compiled: bounds instead of sorting, bits instead of sets."""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.compiled import compiled, float_of, ones


@compiled()
def extremes(row, n):  # type: ignore[no-untyped-def]
    """The lowest and highest of row[:n], compared as integers in the order of the floats: only those are vectorised."""
    words = row.view(np.int32)
    low, high = np.int32(2147483647), np.int32(-2147483648)
    for j in range(n):
        word = words[j]
        word = np.int32(word ^ np.int32(np.int32(word >> np.int32(31)) & np.int32(2147483647)))
        low = word if word < low else low
        high = word if word > high else high
    low = np.int32(low ^ np.int32(np.int32(low >> np.int32(31)) & np.int32(2147483647)))
    high = np.int32(high ^ np.int32(np.int32(high >> np.int32(31)) & np.int32(2147483647)))
    return float_of(low), float_of(high)


@compiled()
def _count(row, n, floor):  # type: ignore[no-untyped-def]
    found = 0
    for j in range(n):
        found += row[j] >= floor
    return found


@compiled()
def _cut(row, n, size, hint):  # type: ignore[no-untyped-def]
    """(bound, last): the `size` highest of row[:n] are those above bound, and those equal to it up to position last.

    hint: where the bound may be, say that of the row before; it changes the number of steps, not which are chosen.
    """
    if size >= n:
        return np.float32(-np.inf), n
    if size <= 0:
        return np.float32(np.inf), -1
    low, high = extremes(row, n)
    at_low, at_high = n, _count(row, n, high)
    if at_high >= size:
        low = high
    guess = True
    if low < hint < high:
        found = _count(row, n, hint)
        if found == size:
            return hint, n
        if found > size:
            low, at_low = hint, found
        else:
            high, at_high = hint, found
    while True:
        middle = np.float32((np.float64(low) + np.float64(high)) * 0.5)
        if middle <= low or middle >= high:
            break
        if guess:  # as if counts fell evenly, or in long rows exponentially; every other step halves, so that it ends
            if n > 128:
                share = np.log(at_low / (size - 0.5)) / np.log(at_low / at_high)
            else:
                share = (at_low - size + 0.5) / (at_low - at_high)
            even = np.float32(np.float64(low) + (np.float64(high) - np.float64(low)) * share)
            middle = even if low < even < high else middle
        guess = not guess
        found = _count(row, n, middle)
        if found == size:
            return middle, n
        if found > size:
            low, at_low = middle, found
        else:
            high, at_high = middle, found
    wanted = size  # several values equal the bound: the first of them belong
    for j in range(n):
        wanted -= row[j] > low
    j = -1
    while wanted > 0:
        j += 1
        wanted -= row[j] == low
    return low, j


@compiled()
def neighbours(sims, m, length, columns, top, k_exp):  # type: ignore[no-untyped-def]
    """Neighbour lists in element order, the first k_exp entries of each, and the bounds of lists and short lists."""
    lists = np.empty((m, length), dtype=np.int32)
    nearest = np.empty((m, top), dtype=np.int32)
    bound, short_bound = np.empty(m, dtype=np.float32), np.empty(m, dtype=np.float32)
    last, short_last = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    octets = (m + 7) // 8
    listed = np.zeros(8 * octets, dtype=np.uint8)  # 1 = in the list; read eight at a time to pass over the rest
    eight = listed.view(np.uint64)
    held = np.empty(m + 8, dtype=np.float32)  # some to spare: elements are stored first, members kept
    found = np.empty(m + 8, dtype=np.int32)
    hint, short_hint, near_hint = np.float32(0), np.float32(0), np.float32(0)
    for i in range(m):
        row, entries = sims[i], lists[i]
        hint, stop = _cut(row, m, length, hint)
        bound[i], last[i] = hint, stop
        if stop == m:
            for j in range(m):
                listed[j] = row[j] >= hint
        else:
            for j in range(m):
                listed[j] = (row[j] > hint) | ((row[j] == hint) & (j <= stop))
        n = 0
        for o in range(octets):
            if eight[o]:
                for j in range(8 * o, min(8 * o + 8, m)):
                    found[n], held[n] = j, row[j]
                    n += listed[j]
        for e in range(length):
            entries[e] = found[e]
        if columns >= length:
            short_bound[i], short_last[i] = bound[i], last[i]
        elif columns >= 0:
            short_hint, stop = _cut(held, length, columns, short_hint)
            short_bound[i] = short_hint
            if stop >= 0:
                stop = entries[stop] if stop < length else m
            short_last[i] = stop
        if k_exp == 1:
            nearest[i, 0] = i
        else:
            near_hint, stop = _cut(held, length, top, near_hint)
            n = 0
            for e in range(length):
                if held[e] > near_hint or (held[e] == near_hint and e <= stop):
                    nearest[i, n] = entries[e]
                    n += 1
    return lists, nearest, bound, last, short_bound, short_last


@compiled()
def reciprocal(sims, m, lists, bound, last, symmetric, sets):  # type: ignore[no-untyped-def]
    """Set the bits of the elements that have each other in their lists, as bounded."""
    length = lists.shape[1]
    for i in range(m):
        for e in range(length):
            j = lists[i, e]
            s = sims[i, j]
            t = s if symmetric else sims[j, i]
            listed = (s > bound[i]) | ((s == bound[i]) & (j <= last[i]))
            lists_me = (t > bound[j]) | ((t == bound[j]) & (i <= last[j]))
            sets[i, j >> 6] |= np.uint64(listed & lists_me) << np.uint64(j & 63)


@compiled()
def extended(sets, short, m, strict):  # type: ignore[no-untyped-def]
    """Each set joined with the short sets of its members that overlap it by more than (or at least) two thirds."""
    words = sets.shape[1]
    result = sets.copy()
    size = np.zeros(m, dtype=np.int64)
    for i in range(m):
        for w in range(words):
            size[i] += np.int64(ones(short[i, w]))
    for i in range(m):
        for v in range(words):
            rest = sets[i, v]
            while rest:
                bit = rest & (~rest + np.uint64(1))
                rest ^= bit
                q = (v << 6) + np.int64(ones(bit - np.uint64(1)))
                shared = np.int64(0)
                for w in range(words):
                    shared += np.int64(ones(short[q, w] & sets[i, w]))
                if 3 * shared > 2 * size[q] or (not strict and 3 * shared == 2 * size[q]):
                    for w in range(words):
                        result[i, w] |= short[q, w]
    return result
