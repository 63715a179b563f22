"""What labels by shared words (paper 004, eq. 5) find by themselves: all documents in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from rnnreranker.parts.terms.word_weights import Weights
    from rnnreranker.runs import Run


def run_by_words(
    queries: Mapping[str, Weights], documents: Mapping[str, Weights], products: Literal["mean", "sum"], hits: int
) -> Run:
    """The best documents of every query by eq. 5, whose scale and tanh change no order: the scores are those before.

    Words of weight below 0 are discarded, and a document that scores 0 is no hit.

    Args:
        queries, documents: id → word → weight.
        products: over the shared words.
        hits: documents a query, at most; ties by docid.
    """
    from rnnreranker.methods.retrieve.base import run_of_rows

    words = sorted({word for texts in (queries, documents) for weights in texts.values() for word in weights})
    numbers = {word: number for number, word in enumerate(words)}
    asked, stored = (_matrix(list(texts.values()), numbers) for texts in (queries, documents))
    docids = list(documents)
    docid_ranks = np.argsort(np.argsort(np.array(docids, dtype=object).astype(str)))
    present, one = stored.copy(), asked.copy()
    present.data[:] = one.data[:] = 1  # a word of weight 0 is shared, too
    turned, have = stored.T.tocsr(), present.T.tocsr()
    scores, rows = [], []
    for row in range(len(queries)):
        sums = (asked[row] @ turned).toarray().ravel()
        if products == "mean":
            sums /= np.maximum((one[row] @ have).toarray().ravel(), 1)
        best = np.lexsort((docid_ranks, -sums))[:hits]
        best = best[sums[best] > 0]
        scores.append(sums[best])
        rows.append(best)
    return run_of_rows(tuple(queries), docids, scores, rows)


def _matrix(texts: Sequence[Weights], numbers: Mapping[str, int]) -> csr_matrix:
    """(n, V) float64 CSR, words ascending: the weights of texts that are not below 0."""
    from scipy.sparse import csr_matrix

    pairs = [sorted((numbers[word], weight) for word, weight in text.items() if weight >= 0) for text in texts]
    offsets = np.cumsum([0, *map(len, pairs)])
    terms = np.array([number for own in pairs for number, _ in own], dtype=np.int32)
    weights = np.array([weight for own in pairs for _, weight in own], dtype=np.float64)
    return csr_matrix((weights, terms, offsets), shape=(len(texts), len(numbers)))
