"""What impacts are searched with: the weights of queries' words, in whole numbers where those of documents are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class QueryImpacts(NamedTuple):
    """The weights of Q queries for V words, times a factor.

    Attributes:
        numbers: (Q, V) CSR float32, weight times `factor`; whole numbers where products are to be exact.
        factor: above 0; 1 of weights that are kept as they are, and of counts.
    """

    numbers: csr_matrix
    factor: float = 1.0

    @property
    def weights(self) -> csr_matrix:
        """(Q, V) CSR float32: the weights themselves."""
        return divided(self.numbers, self.factor)


def divided(numbers: csr_matrix, factor: float) -> csr_matrix:
    """(n, V) CSR float32: numbers divided by a factor, as they are where it is 1."""
    from scipy.sparse import csr_matrix

    if factor == 1.0:
        return numbers
    weights = (numbers.data.astype(np.float64) / factor).astype(np.float32)
    return csr_matrix((weights, numbers.indices, numbers.indptr), numbers.shape)
