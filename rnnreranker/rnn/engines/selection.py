"""The highest values of a row of similarities, compiled: by counting and bisection, not by sorting it."""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.engines.compiled import (
    compiled,
    float_of,
    ones,
    raise_sixteen,
    sixteen,
    standing_of_32,
    standing_of_64,
)

LANES = 64  # of a long row
RANKED = 64  # so many values are put in order by comparing all; bounds of longer lists are found by bisection


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
def others(flat, m, first, last):  # type: ignore[no-untyped-def]
    """The lowest and highest of rows first to last of a matrix, (m, m) in a row, but for its diagonal."""
    own = np.empty(last - first, dtype=np.float32)
    for i in range(first, last):
        at = i * (m + 1)
        own[i - first] = flat[at]
        flat[at] = flat[at - 1 if i else at + 1]  # anything but the diagonal
    bounds = extremes(flat[first * m :], (last - first) * m)
    for i in range(first, last):
        flat[i * (m + 1)] = own[i - first]
    return bounds


@compiled()
def _count(row, n, floor):  # type: ignore[no-untyped-def]
    count = 0
    for j in range(n):
        count += row[j] >= floor
    return count


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
        count = _count(row, n, middle)
        if count == size:
            return middle, n
        if count > size:
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
        count = _count(row, n, value)
        if least <= count <= most:
            return value
        if count > most:
            low = value
        else:
            high = value
        value = np.float32((low + high) * np.float32(0.5))
    return np.float32(np.nan)


@compiled()
def reaching(row, m, floor, most, marks, elements, held):  # type: ignore[no-untyped-def]
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
        word, shift = (m - 16) >> 6, np.uint64((m - 16) & 63)
        bits = sixteen(row, m - 16, floor)
        marks[word] |= bits << shift
        if shift > 48:
            marks[word + 1] |= bits >> (np.uint64(64) - shift)
    for w in range(len(marks)):
        n += np.int64(ones(marks[w]))
    return n if n > most else marked(row, marks, elements, held)


@compiled()
def marked(row, marks, elements, held):  # type: ignore[no-untyped-def]
    """How many elements of a row are marked, their positions and values."""
    n = 0
    for w in range(len(marks)):
        rest = marks[w]
        while rest:
            bit = rest & (~rest + np.uint64(1))
            rest ^= bit
            j = np.uint64(w << 6) + ones(bit - np.uint64(1))
            elements[n], held[n] = j, row[j]
            n += 1
    return n


@compiled()
def entries(bits, into):  # type: ignore[no-untyped-def]
    """The elements whose bits a bit row has, ascending."""
    n = 0
    for w in range(len(bits)):
        rest = bits[w]
        while rest:
            bit = rest & (~rest + np.uint64(1))
            rest ^= bit
            into[n] = np.uint64(w << 6) + ones(bit - np.uint64(1))
            n += 1


@compiled()
def ordered(values, n, standings):  # type: ignore[no-untyped-def]
    """Put values[:n], at most RANKED, in order: their standings, which `highest` reads."""
    if n <= RANKED // 2:
        standing_of_32(values, n, standings)
    else:
        standing_of_64(values, n, standings)


@compiled()
def highest(standings, n, size):  # type: ignore[no-untyped-def]
    """The bits of the `size` highest of n values that were put in order, of equal ones the first."""
    bits, floor = np.uint64(0), np.float32(n - size)
    for block in range((n + 15) // 16):
        bits |= sixteen(standings, 16 * block, floor) << np.uint64(16 * block)
    return bits & (~np.uint64(0) >> np.uint64(64 - n))


@compiled()
def spread(marks, inside, brief, close, listed, short):  # type: ignore[no-untyped-def]
    """Bits of the elements marked, one each, as bit rows: `inside` and `brief` into two, `close` into the marks."""
    for w in range(len(marks)):
        rest = marks[w]
        words = np.uint64(0), np.uint64(0), np.uint64(0)
        while rest:
            bit = rest & (~rest + np.uint64(1))
            rest ^= bit
            words = (
                words[0] | bit & (~(inside & np.uint64(1)) + np.uint64(1)),
                words[1] | bit & (~(brief & np.uint64(1)) + np.uint64(1)),
                words[2] | bit & (~(close & np.uint64(1)) + np.uint64(1)),
            )
            inside, brief, close = inside >> np.uint64(1), brief >> np.uint64(1), close >> np.uint64(1)
        listed[w], marks[w] = words[0], words[2]
        if len(short):
            short[w] = words[1]


@compiled()
def set_highest(held, elements, n, size, hint, row):  # type: ignore[no-untyped-def]
    """Set in a bit row the bits of those found whose values are the `size` highest of held[:n]; their bound.

    hint: see `cut`.
    """
    bound, stop = cut(held, n, size, hint)
    for e in range(n):
        j = np.uint64(elements[e])
        belongs = (held[e] > bound) | ((held[e] == bound) & (e <= stop))
        row[j >> np.uint64(6)] |= np.uint64(belongs) << (j & np.uint64(63))
    return bound
