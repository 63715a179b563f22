"""The compiled engine: one context at a time, sparse rows, no matrix besides the Gram matrix it is given.

Neighbour lists are not sorted. The n-th highest similarity of a row is found by bisection (vector units are good at
counting), a list is everything above it, and "i is in the list of j" is one comparison with the bound of j. Sets are
bit rows, so that overlaps are counted 64 elements at a time. Weights are kept as compressed sparse rows in element
order, which fixes the order of every sum.

All compiled functions stay in this file: numba notices a change only in the file of the function it has cached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba.extending import intrinsic

if TYPE_CHECKING:
    from rnnreranker.rnn.contexts import Setting


def _compiled(**options: Any) -> Callable[[Any], Any]:
    """numba.njit, keeping the machine code on disk where there is a folder for it.

    numba takes NUMBA_CACHE_DIR, else the __pycache__ beside this file, else the user's cache folder; when none can be
    written it refuses to compile at all, which must not stop us.
    """

    def decorate(function: Any) -> Any:
        try:
            return numba.njit(nogil=True, error_model="numpy", cache=True, **options)(function)
        except RuntimeError:
            return numba.njit(nogil=True, error_model="numpy", **options)(function)

    return decorate


def score_contexts(
    gram: np.ndarray, sizes: np.ndarray, setting: Setting, probes: np.ndarray, out: np.ndarray, problem: np.ndarray
) -> None:
    """Fill `out` for a chunk of contexts; the contract is in `contexts.Engine`."""
    lengths = np.array([setting.lists.get(m, 0) for m in sizes.tolist()], dtype=np.int64)
    columns = np.array([setting.columns.get(m, -1) for m in sizes.tolist()], dtype=np.int64)
    _score_contexts(
        gram.reshape(-1),
        gram.shape[1],
        sizes,
        lengths,
        columns,
        setting.k_exp,
        setting.strict,
        setting.weight,
        setting.weight_scale,
        setting.exponent_limit,
        setting.normalize,
        setting.minmax,
        setting.lam,
        setting.mix,
        probes,
        out,
        problem,
    )


@intrinsic
def _ones(typingctx: Any, word: Any) -> Any:
    """The number of bits set in a word."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return word(word), generate


@intrinsic
def _float_of(typingctx: Any, word: Any) -> Any:
    """The float32 that has the bits of an int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(numba.types.float32))

    return numba.types.float32(word), generate


@_compiled()
def _score_contexts(  # type: ignore[no-untyped-def]
    gram,
    stride,
    sizes,
    lengths,
    columns,
    k_exp,
    strict,
    weight,
    weight_scale,
    exponent_limit,
    normalize,
    minmax,
    lam,
    mix,
    probes,
    out,
    problem,
):
    for c in range(len(sizes)):
        m = sizes[c]
        if m < 2:
            continue
        sims = gram[c * stride : c * stride + m * m].reshape((m, m))
        finite = True
        for i in range(m):
            finite &= np.isfinite(sims[i, i])
        if not finite:  # a vector with NaN or infinity shows on the diagonal
            problem[c] = np.nan
            continue
        divisor = np.ones(m)
        low, span = 0.0, 1.0
        if minmax:
            low, span = _range(sims, m)
            if normalize:
                for i in range(m):
                    divisor[i] = _divisor(sims, i, m, low, span, minmax, normalize)
        elif normalize:
            for i in range(m):
                d = _divisor(sims, i, m, low, span, minmax, normalize)
                for j in range(m):
                    sims[i, j] = np.float32(np.float64(sims[i, j]) / d)
        symmetric = minmax or not normalize
        if weight == 1:
            largest = -np.inf
            for i in range(m):
                for j in range(m):
                    s = _mapped(sims[i, j], low, span, minmax) / divisor[i]
                    largest = max(largest, s)
            if weight_scale * largest > exponent_limit:
                problem[c] = weight_scale * largest
                continue
        top = max(1, min(k_exp, lengths[c]))
        lists, nearest, bound, last, short_bound, short_last = _neighbours(sims, m, lengths[c], columns[c], top, k_exp)
        words = (m + 63) // 64
        sets = np.zeros((m, words), dtype=np.uint64)
        _reciprocal(sims, m, lists, bound, last, symmetric, sets)
        if columns[c] >= 0:
            short = np.zeros((m, words), dtype=np.uint64)
            _reciprocal(sims, m, lists, short_bound, short_last, symmetric, short)
            sets = _extended(sets, short, m, strict)
        starts, ends, members, values, signed = _weights(
            sims, sets, m, low, span, minmax, divisor, weight, weight_scale
        )
        if mix:
            jaccard = np.empty((1, m))
            _jaccard(starts, ends, members, values, nearest, m, np.zeros(1, dtype=np.int64), signed, jaccard)
            first, spread = 0.0, 1.0
            if minmax:
                first = np.float64(sims[0, 1])
                highest = first
                for j in range(2, m):
                    first = min(first, np.float64(sims[0, j]))
                    highest = max(highest, np.float64(sims[0, j]))
                spread = highest - first
                if spread == 0.0:
                    spread = 1.0
            for j in range(1, m):
                geometric = (np.float64(sims[0, j]) - first) / spread
                out[c, 0, j - 1] = lam * geometric + (1.0 - lam) * jaccard[0, j]
        else:
            real = 0
            for r in range(len(probes)):
                real += probes[r] < m
            chosen = np.empty(real, dtype=np.int64)
            real = 0
            for r in range(len(probes)):
                if probes[r] < m:
                    chosen[real] = probes[r]
                    real += 1
            jaccard = np.empty((real, m))
            _jaccard(starts, ends, members, values, nearest, m, chosen, signed, jaccard)
            real = 0
            for r in range(len(probes)):
                if probes[r] < m:
                    for j in range(m):
                        out[c, r, j] = jaccard[real, j]
                    real += 1


@_compiled()
def _extremes(row, n):  # type: ignore[no-untyped-def]
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
    return _float_of(low), _float_of(high)


@_compiled()
def _range(sims, m):  # type: ignore[no-untyped-def]
    """The lowest off-diagonal similarity and the distance to the highest; a span of 0 makes all mapped values 0."""
    low, high = sims[0, 1], sims[0, 1]
    for i in range(m - 1):  # symmetric: the upper half is enough
        first, final = _extremes(sims[i, i + 1 :], m - i - 1)
        low, high = min(low, first), max(high, final)
    return np.float64(low), np.float64(high) - np.float64(low)


@_compiled()
def _mapped(similarity, low, span, minmax):  # type: ignore[no-untyped-def]
    value = np.float64(similarity)
    if minmax:
        value = min(max((value - low) / span, 0.0), 1.0) if span > 0.0 else 0.0
    return value


@_compiled()
def _divisor(sims, i, m, low, span, minmax, normalize):  # type: ignore[no-untyped-def]
    """The maximum of a row, or 1e-8 + its mean; 1 where it cannot divide the row."""
    highest, total, size = -np.inf, 0.0, 0.0
    for j in range(m):
        s = _mapped(sims[i, j], low, span, minmax)
        highest = max(highest, s)
        size = max(size, abs(s))
        total += s
    d = highest if normalize == 1 else 1e-8 + total / m
    return d if size < abs(d) * 3e38 else 1.0


@_compiled()
def _count(row, n, floor):  # type: ignore[no-untyped-def]
    found = 0
    for j in range(n):
        found += row[j] >= floor
    return found


@_compiled()
def _cut(row, n, size, hint):  # type: ignore[no-untyped-def]
    """(bound, last): the `size` highest of row[:n] are those above bound, and those equal to it up to position last.

    hint: where the bound may be, say that of the row before; it changes the number of steps, not which are chosen.
    """
    if size >= n:
        return np.float32(-np.inf), n
    if size <= 0:
        return np.float32(np.inf), -1
    low, high = _extremes(row, n)
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


@_compiled()
def _neighbours(sims, m, length, columns, top, k_exp):  # type: ignore[no-untyped-def]
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


@_compiled()
def _reciprocal(sims, m, lists, bound, last, symmetric, sets):  # type: ignore[no-untyped-def]
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


@_compiled()
def _extended(sets, short, m, strict):  # type: ignore[no-untyped-def]
    """Each set joined with the short sets of its members that overlap it by more than (or at least) two thirds."""
    words = sets.shape[1]
    result = sets.copy()
    size = np.zeros(m, dtype=np.int64)
    for i in range(m):
        for w in range(words):
            size[i] += np.int64(_ones(short[i, w]))
    for i in range(m):
        for v in range(words):
            rest = sets[i, v]
            while rest:
                bit = rest & (~rest + np.uint64(1))
                rest ^= bit
                q = (v << 6) + np.int64(_ones(bit - np.uint64(1)))
                shared = np.int64(0)
                for w in range(words):
                    shared += np.int64(_ones(short[q, w] & sets[i, w]))
                if 3 * shared > 2 * size[q] or (not strict and 3 * shared == 2 * size[q]):
                    for w in range(words):
                        result[i, w] |= short[q, w]
    return result


@_compiled()
def _weights(sims, sets, m, low, span, minmax, divisor, weight, weight_scale):  # type: ignore[no-untyped-def]
    """Compressed sparse rows of weights that sum to 1, or are empty; and whether any weight is negative."""
    words = sets.shape[1]
    count = 0
    for i in range(m):
        for w in range(words):
            count += np.int64(_ones(sets[i, w]))
    starts, ends = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    members, values = np.empty(count, dtype=np.int32), np.empty(count)
    signed = False
    n = 0
    for i in range(m):
        start, total = n, 0.0
        for v in range(words):
            rest = sets[i, v]
            while rest:
                bit = rest & (~rest + np.uint64(1))
                rest ^= bit
                j = (v << 6) + np.int64(_ones(bit - np.uint64(1)))
                value = 1.0
                if weight != 2:
                    value = _mapped(sims[i, j], low, span, minmax) / divisor[i]
                    if weight == 1:
                        value = np.exp(weight_scale * value) - 1.0
                signed |= value < 0.0
                members[n] = j
                values[n] = value
                total += value
                n += 1
        if total == 0.0 or not np.isfinite(total):
            n = start
        for e in range(start, n):
            values[e] /= total
        starts[i], ends[i] = start, n
    return starts, ends, members, values, signed


@_compiled()
def _jaccard(starts, ends, members, values, nearest, m, probes, signed, jaccard):  # type: ignore[no-untyped-def]
    """Sum of minima over sum of maxima of expanded rows, for each probe against all.

    Rows are sums over the k_exp nearest, not means: the factor cancels. With weights >= 0 the minima are 0 outside the
    probe's support and every row that is not empty sums to 1, which gives the sum of maxima; else all columns are read.
    """
    top = nearest.shape[1]
    chosen = len(probes)
    probe_rows = np.zeros((chosen, m))
    supports = np.empty((chosen, m), dtype=np.int32)
    widths, totals = np.zeros(chosen, dtype=np.int64), np.zeros(chosen)
    for r in range(chosen):
        for t in range(top):
            near = nearest[probes[r], t]
            totals[r] += ends[near] > starts[near]
            for e in range(starts[near], ends[near]):
                probe_rows[r, members[e]] += values[e]
        for j in range(m):
            supports[r, widths[r]] = j
            widths[r] += signed or probe_rows[r, j] != 0.0
    row = np.zeros(m)
    for i in range(m):
        total = 0.0
        for t in range(top):
            near = nearest[i, t]
            total += ends[near] > starts[near]
            for e in range(starts[near], ends[near]):
                row[members[e]] += values[e]
        for r in range(chosen):
            below, above = 0.0, 0.0
            if signed:
                for j in range(m):
                    below += min(row[j], probe_rows[r, j])
                    above += max(row[j], probe_rows[r, j])
            else:
                for s in range(widths[r]):
                    j = supports[r, s]
                    below += min(row[j], probe_rows[r, j])
                above = totals[r] + total - below
            usable = above != 0.0 and abs(below) < abs(above) * 3e38
            jaccard[r, i] = below / above if usable else 0.0
        if m <= 256:
            row[:] = 0.0
        else:
            for t in range(top):
                near = nearest[i, t]
                for e in range(starts[near], ends[near]):
                    row[members[e]] = 0.0
