"""The highest values of a row of similarities, compiled: by counting and bisection, not by sorting it."""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.compiled import compiled, float_of, ones, raise_sixteen, sixteen

LANES = 64  # of a long row
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
def cut(row, n, size, hint):  # type: ignore[no-untyped-def]
    """(bound, last): the `size` highest of row[:n] are those above bound, and those equal to it up to position last.

    hint: where the bound may be, say that of the row before; it changes the number of steps, not which are chosen.
    """
    if size >= n:
        return np.float32(-np.inf), n
    if size <= 0:
        return np.float32(np.inf), -1
    low, high = extremes(row, n)
    if _count(row, n, high) >= size:
        low = high
    middle = hint
    while True:
        if not low < middle < high:
            middle = np.float32((np.float64(low) + np.float64(high)) * 0.5)
            if middle <= low or middle >= high:
                break
        found = _count(row, n, middle)
        if found == size:
            return middle, n
        if found > size:
            low = middle
        else:
            high = middle
        middle = np.float32((np.float64(low) + np.float64(high)) * 0.5)
    wanted = size  # several values equal the bound: the first of them belong
    for j in range(n):
        wanted -= row[j] > low
    j = -1
    while wanted > 0:
        j += 1
        wanted -= row[j] == low
    return low, j


@compiled()
def lane_maxima(row, n, i, maxima):  # type: ignore[no-untyped-def]
    """The highest of every LANES-th value of row[:n] without row[i].

    A floor that some lanes reach is reached by at least as many values, and by few more.
    """
    own = row[i]
    row[i] = -np.inf
    for j in range(LANES):
        maxima[j] = -np.inf
    blocks = n // 16
    for b in range(blocks):
        raise_sixteen(maxima, 16 * (b % (LANES // 16)), row, 16 * b)
    for j in range(16 * blocks, n):
        if row[j] > maxima[j % LANES]:
            maxima[j % LANES] = row[j]
    row[i] = own


@compiled()
def floor_for(row, n, least, most, hint):  # type: ignore[no-untyped-def]
    """A value that `least` to `most` of row[:n] reach, or NaN where ties stand in the way.

    hint: where it may be, say that of the row before.
    """
    low, high = extremes(row, n)
    value = hint
    for _ in range(30):
        if not low < value < high:
            value = np.float32((low + high) * np.float32(0.5))
        found = _count(row, n, value)
        if least <= found <= most:
            return value
        if found > most:
            low = value
        else:
            high = value
        value = np.float32((low + high) * np.float32(0.5))
    return np.float32(np.nan)


@compiled()
def reaching(row, m, floor, most, marks, found, held):  # type: ignore[no-untyped-def]
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
    return n if n > most else marked(row, marks, found, held)


@compiled()
def marked(row, marks, found, held):  # type: ignore[no-untyped-def]
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
def ordered(held, n, order):  # type: ignore[no-untyped-def]
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
