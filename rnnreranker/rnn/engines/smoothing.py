"""The compiled way to add up the scores of the nearest candidates; `smoothing` has numpy's, and what the bits are."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnreranker.rnn.engines.compiled import checksum, kept, ones


def smooth_chunk(scores: np.ndarray, bits: np.ndarray, share: float) -> np.ndarray:
    out = np.empty(scores.shape)
    _smooth_chunk(np.ascontiguousarray(scores), bits, share, out)
    return out


def _filed_under(stamp: int) -> Any:
    """The compiled entry; numba files its machine code under the stamp, see `checksum`."""

    def smooth(scores, bits, share, out):  # type: ignore[no-untyped-def]
        for c in range(len(scores) if stamp >= 0 else 0):
            row = scores[c]
            for i in range(scores.shape[1]):
                total, count = 0.0, np.uint64(0)
                for w in range(bits.shape[2]):
                    rest, before = bits[c, i, w], np.uint64(w << 6) - np.uint64(1)
                    count += ones(rest)
                    while rest:
                        total += row[before + ones(~rest & (rest - np.uint64(1)))]
                        rest &= rest - np.uint64(1)
                held = np.float64(count)
                out[c, i] = (1.0 - share) * row[i] + share * (total / held) if count else row[i]

    return kept(smooth)


_smooth_chunk = _filed_under(checksum())
