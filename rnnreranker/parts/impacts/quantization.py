"""Weights as whole numbers: times a factor, rounded, and refused where 16 bits cannot hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LARGEST = 2**16 - 1


def whole(weights: csr_matrix, factor: float, of: str = "documents") -> csr_matrix:
    """(n, V) CSR of whole numbers as float32: the weights times the factor, rounded, halves to even; zeros left out.

    Args:
        weights: (n, V) CSR, not negative.
        factor: above 0.
        of: whose weights, for the error.

    Raises:
        InputError: a weight that 16 bits cannot hold after the factor.
    """
    from scipy.sparse import csr_matrix

    rounded = np.rint(weights.data.astype(np.float64) * factor)
    if len(rounded) and rounded.max() > LARGEST:
        largest = float(weights.data.max())
        raise InputError(
            f"{of}: a weight of {largest:g} times the factor {factor:g} is beyond {LARGEST}, what 16 bits hold; "
            f"give impact:factor={LARGEST / largest:.2g} or less, or impact:weights=float"
        )
    rounded_weights = csr_matrix(
        (rounded.astype(np.float32), weights.indices, weights.indptr), weights.shape, copy=True
    )
    rounded_weights.eliminate_zeros()
    return rounded_weights
