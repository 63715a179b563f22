"""BM25 weights of counted words, by the library bm25s."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.errors import require

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def bm25_weights(documents: csr_matrix, k1: float, b: float) -> csr_matrix:
    """ln(1 + (N - n_w + .5) / (n_w + .5)) times tf / (tf + k1 (1 - b + b |d| / avgdl)), as Lucene has it.

    Lucene keeps |d| in one byte and so rounded, bm25s does not: scores differ by a little. N and avgdl count documents
    without a word, too.

    Args:
        documents: (N, V) float64 CSR, counts.
        k1, b: of BM25.

    Returns:
        (N, V) float64 CSR, words ascending.

    Raises:
        MissingDependencyError: bm25s is not installed.
    """
    from scipy.sparse import csr_matrix

    bm25s = require("bm25s", "BM25 without Java", "'rnnreranker[terms]'")
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets its own to DEBUG
    count, vocabulary = documents.shape
    words = np.repeat(documents.indices, documents.data.astype(np.int64))
    lengths = np.asarray(documents.sum(axis=1)).ravel().astype(np.int64)
    texts = [part.tolist() for part in np.split(words, np.cumsum(lengths)[:-1])]
    made = bm25s.BM25(k1=k1, b=b, method="lucene", dtype="float64")
    made.index((texts, {word: word for word in range(vocabulary)}), create_empty_token=False, show_progress=False)
    scores = made.scores
    postings = csr_matrix((scores["data"], scores["indices"], scores["indptr"]), (vocabulary, count))
    return postings.T.tocsr()
