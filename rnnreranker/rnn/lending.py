"""The compiled way to add up the scores of the nearest candidates; `smoothing` has numpy's, and what the bits are."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnreranker.rnn.compiled import checksum, kept, ones


def smooth_chunk(scores: np.ndarray, bits: np.ndarray, share: float) -> np.ndarray:
    """As `smoothing.smoothed`."""
    out = np.empty(scores.shape)
    _smooth_chunk(np.ascontiguousarray(scores), bits, share, out)
    return out


def _filed_under(stamp: int) -> Any:
    """The compiled entry; numba files its machine code under the stamp, see `checksum`."""

    def smooth(scores, bits, share, out):  # type: ignore[no-untyped-def]
        for c in range(len(scores) if stamp >= 0 else 0):
            for i in range(scores.shape[1]):
                total, count = 0.0, 0
                for w in range(bits.shape[2]):
                    rest = bits[c, i, w]
                    while rest:
                        bit = rest & (~rest + np.uint64(1))
                        rest ^= bit
                        total += scores[c, np.int64(np.uint64(w << 6) + ones(bit - np.uint64(1))) - 1]
                        count += 1
                out[c, i] = (1.0 - share) * scores[c, i] + share * (total / count) if count else scores[c, i]

    return kept(smooth)


_smooth_chunk = _filed_under(checksum())
