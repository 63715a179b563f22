"""BM25 weights of counted words, as Lucene has them but for its rounded lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def bm25_weights(counts: csr_matrix, k1: float, b: float) -> csr_matrix:
    """ln(1 + (N - n_w + .5) / (n_w + .5)) times tf / (tf + k1 (1 - b + b |d| / avgdl)), as Lucene has it.

    Lucene keeps |d| in one byte and so rounded, here it is exact: scores differ by a little. N and avgdl also count
    documents without a word.

    Args:
        counts: (N, V) float64 CSR, tf; words ascending.
        k1, b: of BM25.

    Returns:
        (N, V) float64 CSR, words ascending.
    """
    from scipy.sparse import csr_matrix

    documents, vocabulary = counts.shape
    have = np.bincount(counts.indices, minlength=vocabulary)
    rarity = np.log(1.0 + (documents - have + 0.5) / (have + 0.5))
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    damped = k1 * (1.0 - b + b * lengths / max(lengths.mean(), 1e-300))
    weights = rarity[counts.indices] * (counts.data / (counts.data + np.repeat(damped, np.diff(counts.indptr))))
    return csr_matrix((weights, counts.indices, counts.indptr), counts.shape)
