"""Extended sets, compiled: a reciprocal set grows by the short sets of its members that overlap it by two thirds."""

from __future__ import annotations

import numpy as np

from rnnreranker.rnn.engines.compiled import compiled, ones


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
                enough = np.uint64(0) - np.uint64(3 * shared >= 2 * size[q] + authors)  # all bits, without a branch
                for w in range(words):
                    result[i, w] |= short[q, w] & enough
    return result
