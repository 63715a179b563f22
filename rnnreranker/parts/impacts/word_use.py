"""How many words texts use of a vocabulary, and how many products of weights a search takes for that."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class WordUse:
    """What some queries and the documents that they search use of a vocabulary of V words.

    Attributes:
        query_words, document_words: words with a weight, in the mean.
        flops: FLOPS, the products of weights that the score of a query and a document takes in the mean: the sum over
            words t of p_q(t) p_d(t), where p(t) is the share of queries, or of documents, with a weight for t
            (Paria et al. 2020; measured so by Formal et al. 2021).
    """

    query_words: float
    document_words: float
    flops: float

    def to_dict(self) -> dict[str, float]:
        """Plain values by name."""
        return asdict(self)


def word_use(queries: csr_matrix, document_frequencies: np.ndarray, documents: int) -> WordUse:
    """The use of words by queries and documents.

    Args:
        queries: (Q, V) CSR, Q >= 1; weights of 0 do not count.
        document_frequencies: (V,) in how many documents each word has a weight.
        documents: their number, at least 1.

    >>> from scipy.sparse import csr_matrix
    >>> word_use(csr_matrix([[1.0, 0.0, 2.0]]), np.array([4, 2, 1]), 4)
    WordUse(query_words=2.0, document_words=1.75, flops=1.25)
    """
    used = queries.indices[queries.data != 0]
    shares = np.bincount(used, minlength=queries.shape[1]) / queries.shape[0]
    of_documents = document_frequencies / documents
    return WordUse(float(shares.sum()), float(of_documents.sum()), float(shares @ of_documents))
