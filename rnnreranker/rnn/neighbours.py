"""Neighbour lists and reciprocal sets of one context, compiled: bounds instead of sorting, bits instead of sets."""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.compiled import compiled, float_of, ones, sixteen

RANKED = 64  # so many values are put in order by counting; bounds of longer lists are found by bisection


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
        if guess:  # as if counts fell exponentially; every other step halves, so that it ends
            share = np.log(at_low / (size - 0.5)) / np.log(at_low / at_high)
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
def _floor(row, n, least, most, hint):  # type: ignore[no-untyped-def]
    """A value that `least` to `most` of row[:n] reach, or NaN where ties or the number of steps stand in the way."""
    low, high = extremes(row, n)
    at_low, at_high = n, 1
    value = hint
    for _ in range(12):
        if not low < value < high:
            value = np.float32((np.float64(low) + np.float64(high)) * 0.5)
        found = _count(row, n, value)
        if least <= found <= most:
            return value
        if found > most:
            low, at_low = value, found
        else:
            high, at_high = value, found if found else 1
        # as if counts fell exponentially between the two
        share = np.log(2.0 * at_low / (least + most)) / np.log((at_low + 1e-6) / at_high)
        value = np.float32(np.float64(low) + (np.float64(high) - np.float64(low)) * share)
    return np.float32(np.nan)


@compiled()
def _reaching(row, m, floor, most, marks, found, held):  # type: ignore[no-untyped-def]
    """How many of row[:m] reach the floor; their positions and values, unless they are more than `most`."""
    blocks = m // 16
    n = np.int64(0)
    for w in range(len(marks)):
        marks[w] = np.uint64(0)
    for b in range(blocks):
        bits = sixteen(row, 16 * b, floor)
        marks[b >> 2] |= bits << np.uint64(16 * (b & 3))
    if m < 16:
        for j in range(m):
            marks[0] |= np.uint64(row[j] >= floor) << np.uint64(j)
    elif m % 16:  # the last sixteen again
        word, place = (m - 16) >> 6, np.uint64((m - 16) & 63)
        bits = sixteen(row, m - 16, floor)
        marks[word] |= bits << place
        if place > 48:
            marks[word + 1] |= bits >> (np.uint64(64) - place)
    for w in range(len(marks)):
        n += np.int64(ones(marks[w]))
    return n if n > most else _marked(row, marks, found, held)


@compiled()
def _marked(row, marks, found, held):  # type: ignore[no-untyped-def]
    """How many elements of a row are marked, their positions and values."""
    n = 0
    for w in range(len(marks)):
        rest = marks[w]
        while rest:
            bit = rest & (~rest + np.uint64(1))
            rest ^= bit
            j = np.uint64(w << 6) + ones(bit - np.uint64(1))
            found[n], held[n] = j, row[j]
            n += 1
    return n


@compiled()
def _larger(held, width, value):  # type: ignore[no-untyped-def]
    larger = np.int32(0)
    for j in range(width):
        larger = np.int32(larger + np.int32(held[j] > value))
    return larger


@compiled()
def _ordered(held, n, order):  # type: ignore[no-untyped-def]
    """Positions of held[:n], at most RANKED values, from the highest to the lowest, equal ones as they stand."""
    for j in range(n, RANKED):
        held[j] = -np.inf
    total = 0
    if n <= RANKED // 2:  # lengths known to the compiler
        for e in range(n):
            larger = _larger(held, RANKED // 2, held[e])
            order[larger] = e
            total += larger
    else:
        for e in range(n):
            larger = _larger(held, RANKED, held[e])
            order[larger] = e
            total += larger
    if 2 * total != n * (n - 1):  # some are equal
        for e in range(n):
            rank = 0
            for j in range(n):
                rank += held[j] > held[e] or (held[j] == held[e] and j < e)
            order[rank] = e


@compiled()
def neighbours(sims, m, length, columns, top, k_exp, minmax):  # type: ignore[no-untyped-def]
    """Neighbour lists in element order with their similarities, the first k_exp of each, the bounds of (short) lists.

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
    ranked, most = length <= RANKED - 8, RANKED // 2 if length <= RANKED // 2 - 8 else RANKED
    floor = np.float32(-np.inf) if ranked and m <= most else np.float32(0)
    short_floor, near_floor = np.float32(0), np.float32(0)
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
            n = _reaching(row, m, floor, most, marks, found, held)
            if n < length or n > most:
                floor = _floor(row, m, length, most, floor)
                n = _reaching(row, m, floor, most, marks, found, held)
        if n < length:
            floor, stop = _cut(row, m, length, floor)
            for w in range(len(marks)):
                marks[w] = np.uint64(0)
            for j in range(m):
                marks[j >> 6] |= np.uint64((row[j] > floor) | ((row[j] == floor) & (j <= stop))) << np.uint64(j & 63)
            n = _marked(row, marks, found, held)
            bound[i], last[i] = floor, stop
        if ranked:
            _ordered(held, n, order)
            bound[i], last[i] = held[order[length - 1]], found[order[length - 1]]
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
            short_floor, stop = _cut(held, n, columns, short_floor)
            short_bound[i], short_last[i] = short_floor, found[stop] if stop < n else m
        if k_exp == 1:
            nearest[i, 0] = i
        elif ranked:
            for t in range(top):  # in element order
                j, place = found[order[t]], t
                while place > 0 and nearest[i, place - 1] > j:
                    nearest[i, place] = nearest[i, place - 1]
                    place -= 1
                nearest[i, place] = j
        else:
            near_floor, stop = _cut(held, n, top, near_floor)
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
def extended(sets, short, m, strict):  # type: ignore[no-untyped-def]
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
                if 3 * shared > 2 * size[q] or (not strict and 3 * shared == 2 * size[q]):
                    for w in range(words):
                        result[i, w] |= short[q, w]
    return result
