"""TF-IDF weights of counted words: scikit-learn's, and eq. 1 of paper 004."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import require

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def cosine_weights(documents: csr_matrix, queries: csr_matrix) -> tuple[csr_matrix, csr_matrix]:
    """The weights of scikit-learn's TfidfVectorizer: count times ln((1 + N) / (1 + n_w)) + 1, rows of length 1.

    Inner products of the two are cosines. N documents, n_w of them with the word w.

    Args:
        documents, queries: (n, V) float64 CSR, counts.

    Raises:
        MissingDependencyError: scikit-learn is not installed.
    """
    text = require("sklearn.feature_extraction.text", "TF-IDF", "'rnnreranker[terms]'")
    weighting = text.TfidfTransformer().fit(documents)
    return weighting.transform(documents), weighting.transform(queries)


def paper_weights(documents: csr_matrix) -> csr_matrix:
    """Eq. 1 of paper 004: t = η(w, y) / |y| ln(|Y| / (η(w, Y) + 1)); what is not above 0 is left out.

    η(w, y) is how often the word w stands in the document y of |y| words, η(w, Y) how many of the |Y| documents have
    it. The paper calls words of negative weight, those that all documents have, insignificant and discards them.

    Args:
        documents: (N, V) float64 CSR, counts.

    Returns:
        (N, V) float64 CSR.
    """
    weights = documents.astype(np.float64, copy=True)
    have = np.bincount(weights.indices, minlength=weights.shape[1])
    lengths = np.repeat(np.asarray(weights.sum(axis=1)).ravel(), np.diff(weights.indptr))
    weights.data *= np.log(weights.shape[0] / (have + 1.0))[weights.indices] / lengths
    weights.data[weights.data < 0] = 0
    weights.eliminate_zeros()
    return weights
