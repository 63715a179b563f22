"""How functions are compiled by numba, and the pairs that a graph knows.

numba looks for changes in the file of a kept function alone: what it calls is in the same file.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

NONE = np.float32(-np.inf)  # the similarity of a pair that is not known
OPTIONS: Any = {"nogil": True, "error_model": "numpy"}  # without the interpreter's lock; floats divided as NumPy does
compiled = numba.njit(**OPTIONS)


def kept(signature: str) -> Any:
    """`compiled` for types now, with the machine code kept on disk where numba finds a folder for it."""

    def compile_now(function: Any) -> Any:
        try:
            return numba.njit(signature, cache=True, **OPTIONS)(function)
        except RuntimeError:  # no folder can be written
            return numba.njit(signature, **OPTIONS)(function)

    return compile_now


@compiled
def slot_of(slots, bits, rows, row):  # type: ignore[no-untyped-def]
    """The slot of an element by its row, or the free one where it would be."""
    at = np.uint32(np.uint32(row) * np.uint32(0x9E3779B9)) >> np.uint32(32 - bits)
    while slots[at] and rows[slots[at] - 1] != row:
        at = np.uint32(at + np.uint32(1)) & np.uint32(len(slots) - 1)
    return at


@kept("void(u4[:,:,::1], f4[:,:,::1], i8[:,::1], f4[:,::1], i8[::1], f4[:,:,::1])")
def known_pairs(near, similar, rows, query, sizes, gram):  # type: ignore[no-untyped-def]
    """Fill `gram` as `dense.known_pairs` does."""
    bits = 3
    while 1 << bits < 8 * rows.shape[1]:
        bits += 1
    slots = np.empty(1 << bits, dtype=np.int32)  # elements by their rows, 0 = free
    for c in range(len(sizes)):
        m = sizes[c]
        if m < 2:
            continue
        sims, sound = gram[c, :m, :m], True
        sims[:], slots[:] = NONE, 0
        for i in range(1, m):
            at = slot_of(slots, bits, rows[c], rows[c, i - 1])
            slots[at] = slots[at] if slots[at] else i
        for i in range(1, m):
            for t in range(near.shape[2]):
                j = slots[slot_of(slots, bits, rows[c], near[c, i - 1, t])]
                if j > 0 and j != i:
                    value = similar[c, i - 1, t]
                    sound &= np.isfinite(value)
                    if value > sims[i, j]:
                        sims[i, j] = sims[j, i] = value
        sims[0, 1:] = query[c, : m - 1] if query.shape[1] else -np.sort(-sims[1, 1:])
        for i in range(m):
            sims[i, 0], sims[i, i] = sims[0, i], -NONE if sound else np.float32(np.nan)
