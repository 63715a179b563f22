"""How alike two rankings are: rank-biased overlap and displacement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnreranker.base.errors import InputError

PERSISTENCE = 0.9  # p: about 86% of the weight is on the first ten ranks


def rank_biased_overlap(first: Sequence[str], second: Sequence[str], p: float = PERSISTENCE) -> float:
    """RBO_ext of two rankings of the same length, in [0, 1]: 1 = identical, 0 = disjoint.

    With X_d the number of entries that the first d of both have in common, and n the length,

        RBO_ext = (X_n / n) p^n + (1 - p) / p * sum_{d=1..n} (X_d / d) p^d

    which takes the agreement at depth n to go on for ever (Webber, Moffat and Zobel 2010, equation 32, whose case of
    two lengths is not needed here).

    Args:
        first, second: n >= 1 distinct names each, best first.
        p: in (0, 1); the larger, the deeper the ranks that count.

    Raises:
        InputError: other lengths, no entries, an entry twice, p out of range.

    >>> rank_biased_overlap("ab", "ab"), rank_biased_overlap("ab", "cd")
    (1.0, 0.0)
    >>> round(rank_biased_overlap("ab", "ba", p=0.5), 12)  # X = 0, 2: 1 * .25 + 1 * (0 + .25)
    0.5
    """
    if not 0 < p < 1:
        raise InputError(f"p={p!r}: expected a number between 0 and 1, neither included")
    if len(first) != len(second) or not len(first):
        raise InputError(f"rankings of {len(first)} and {len(second)} entries: expected two of the same length >= 1")
    for name, entries in (("first", first), ("second", second)):
        if len(set(entries)) != len(entries):
            raise InputError(f"the {name} ranking has an entry twice: expected distinct names")
    n = len(first)
    rank_of = {entry: rank for rank, entry in enumerate(second)}
    common = np.zeros(n, dtype=np.int64)
    for rank, entry in enumerate(first):
        if entry in rank_of:
            common[max(rank, rank_of[entry])] += 1  # from that depth on both have it
    depths = np.arange(1, n + 1)
    agreement = np.cumsum(common) / depths
    value = agreement[-1] * p**n + (1 - p) / p * float((agreement * p**depths).sum())
    return float(min(max(value, 0.0), 1.0))
