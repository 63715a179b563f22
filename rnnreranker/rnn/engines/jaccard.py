"""Members' weights and the Jaccard similarity of expanded rows, compiled, of sparse rows in element order."""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.engines.compiled import compiled, sum_of_minima

DENSE = 256  # elements of contexts whose expanded rows are compared whole
TABLED = 64  # elements of contexts of which a table of all weights stays in the first-level cache


@compiled()
def clipped(value):  # type: ignore[no-untyped-def]
    return (value if value < 1.0 else 1.0) if value > 0.0 else 0.0


@compiled()
def weighed(starts, ends, values, low, span, minmax, divisor, weight, weight_scale, authors):  # type: ignore[no-untyped-def]
    """Similarities of members made their weights, in place; what each row sums to, and whether any is negative.

    The authors' rows sum to 1 or become empty.
    """
    m, n = len(starts), ends[-1]
    sums, signed = np.empty(m), False
    inverse = 1.0 / span if span > 0.0 else 0.0
    if weight == 2:
        values[:n] = 1.0
    elif minmax:
        for e in range(n):
            values[e] = clipped((values[e] - low) * inverse)
    for i in range(m if weight != 2 else 0):
        factor = 1.0 / divisor[i]
        if factor != 1.0:
            for e in range(starts[i], ends[i]):
                values[e] *= factor
    if weight == 1:
        for e in range(n):
            values[e] = np.exp(weight_scale * values[e]) - (1.0 if authors else 0.0)
    for e in range(n):
        signed |= values[e] < 0.0
    for i in range(m):
        total = 0.0
        for e in range(starts[i], ends[i]):
            total += values[e]
        sums[i] = total
        if authors:
            if total == 0.0 or not np.isfinite(total):
                ends[i] = starts[i]
            factor = 1.0 / total
            for e in range(starts[i], ends[i]):
                values[e] *= factor
            sums[i] = ends[i] > starts[i]
    return sums, signed


@compiled()
def jaccard(rows, nearest, m, probes, similarities):  # type: ignore[no-untyped-def]
    """Sum of minima over sum of maxima of expanded rows, for each probe that is an element against all.

    Rows are sums over the k_exp nearest, not means: the factor cancels. With weights >= 0 what the rows sum to gives
    the sum of maxima, and the minima are 0 outside the probe's support; else all columns are read for both.
    """
    starts, ends, members, values, sums, signed = rows
    top = nearest.shape[1]
    chosen, blocks = len(probes), (m + 7) // 8
    width = 8 * blocks
    dense = m <= DENSE and not signed
    row, probe_rows = np.zeros(width), np.zeros(chosen * width)
    supports = np.empty((0 if dense else chosen, m), dtype=np.uint32)
    widths, totals = np.zeros(chosen, dtype=np.int64), np.zeros(chosen)
    tabled = dense and m <= TABLED
    table = np.zeros(m * width if tabled else 0)
    for i in range(m if tabled else 0):
        for e in range(starts[i], ends[i]):
            table[i * width + members[e]] = values[e]
    for r in range(chosen):
        first = r * width
        for t in range(top if 0 <= probes[r] < m else 0):
            near = nearest[probes[r], t]
            totals[r] += sums[near]
            for e in range(starts[near], ends[near]):
                probe_rows[first + members[e]] += values[e]
        for j in range(0 if dense else m):
            supports[r, widths[r]] = j
            widths[r] += signed or probe_rows[first + j] != 0.0
    for i in range(m):
        total = 0.0
        for t in range(top):
            near = np.int64(nearest[i, t])
            total += sums[near]
            if tabled:
                for j in range(width):
                    row[j] = (row[j] if t else 0.0) + table[near * width + j]
            else:
                for e in range(starts[near], ends[near]):
                    row[members[e]] += values[e]
        for r in range(chosen):
            if not 0 <= probes[r] < m:
                continue
            first = r * width
            below, above = 0.0, 0.0
            if dense:
                below = sum_of_minima(row, probe_rows, first, blocks)
            for s in range(widths[r]):
                a, b = row[supports[r, s]], probe_rows[first + supports[r, s]]
                below += a if a < b else b
                above += a if a > b else b
            if not signed:
                above = totals[r] + total - below
            usable = above != 0.0 and abs(below) < abs(above) * 3e38
            similarities[r, i] = below / above if usable else 0.0
        if dense and not tabled:
            row[:] = 0.0
        for t in range(0 if dense else top):
            near = nearest[i, t]
            for e in range(starts[near], ends[near]):
                row[members[e]] = 0.0
