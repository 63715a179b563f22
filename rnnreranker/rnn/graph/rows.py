"""Rows of the known similarities of a context, compiled: those of a few documents to all of its documents."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnreranker.rnn.engines.compiled import checksum, compiled, kept
from rnnreranker.rnn.graph.pairs import named, room


@compiled()
def _larger(row, at, value):  # type: ignore[no-untyped-def]
    row[at] = max(row[at], value)


@compiled()
def _largest_of(i, j, value, k, neighbours, held, ends):  # type: ignore[no-untyped-def]
    """Whether neither row of a pair says more of it; one may name the other twice."""
    for _ in range(2):
        for e in range((i - 1) * k, ends[i]):
            if neighbours[e] == j and held[e] > value:
                return False
        i, j = j, i
    return True


def _filed_under(stamp: int) -> Any:
    """The compiled entry; numba files its machine code under the stamp, see `checksum`."""

    def fill_rows(edges, weights, rows, lengths, probes, out, problem):  # type: ignore[no-untyped-def]
        """Fill the rows of real probes; the contract is in `graph_probes.probe_similarities`."""
        k, widest = edges.shape[1], rows.shape[1] + 1
        given = room(widest if stamp >= 0 else 0, k)
        neighbours, held, ends = given[2:]
        line = np.empty(widest, dtype=np.int64)
        for c in range(len(rows)):
            n = lengths[c]
            if not named(edges, weights, rows[c], n, given):
                problem[c] = True
                continue
            line[:] = -1
            for r in range(probes.shape[1]):
                if 1 <= probes[c, r] <= n:
                    line[probes[c, r]] = r
                    out[c, r, :n] = -np.inf
            low, high = np.float32(np.inf), np.float32(-np.inf)
            for i in range(1, n + 1):
                for e in range((i - 1) * k, ends[i]):
                    j, value = np.int64(neighbours[e]), held[e]
                    high = max(high, value)
                    if value < low and _largest_of(i, j, value, k, neighbours, held, ends):
                        low = value
                    if line[i] >= 0:
                        _larger(out[c, line[i]], j - 1, value)
                    if line[j] >= 0:
                        _larger(out[c, line[j]], i - 1, value)
            if low > high:  # nothing is known
                low, high = np.float32(0.0), np.float32(0.0)
            for i in range(1, n + 1):
                if line[i] >= 0:
                    row = out[c, line[i]]
                    row[i - 1] = high
                    for j in range(n):
                        if row[j] == -np.inf:
                            row[j] = low

    return kept(fill_rows)


fill_rows = _filed_under(checksum())
