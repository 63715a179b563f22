"""The base of feedback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find, methods, settings_of


class Feedback:
    """Makes a second query of a first one and of its first n >= 1 documents, best first.

    params: of the class `Params`, None = the defaults; InputError for those of another method.

    A subclass in its own file is a method: it sets `name`, `over` and `Params`, implements what `over` names, and
    `depth` if that is not its setting `fb_docs`:

    - `of_vectors(query, documents)`: the new query, (d,) float32, of (d,) and (n, d) float32
    - `of_impacts(query, documents, scores)`: the new query, (1, V) CSR float32, of (1, V), (n, V) and (n,) float64
    - `of_tokens(query, rows, lexicon)`: tokens of the new query, (p, d) float32, and their weights, (p,) float64, of
      (q, d) float32, q >= 1, and (n,) int64, documents with tokens in `lexicon.source`
    - `set_words(searcher)`: makes a LuceneSearcher, ours or Pyserini's, search with Anserini's feedback
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    over: ClassVar[frozenset[str]]  # vectors, impacts, words, tokens: what queries and documents are to a retriever
    Params: ClassVar[type[settings.Params]] = settings.Params

    def __init__(self, params: Any = None) -> None:
        self.params: Any = settings_of(self, "prf", params)

    def depth(self, over: str) -> int:
        """How many documents of the first search are read."""
        return self.params.fb_docs


def heaviest(rows: Any, count: int) -> Any:
    """A CSR matrix with the `count` largest values of every row, ties: the first."""
    from scipy.sparse import csr_matrix

    rows = csr_matrix(rows, copy=True)
    rows.sort_indices()
    numbers = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    order = np.lexsort((-rows.data, numbers))  # stable; query by query, as the values stand
    rows.data[order[np.arange(len(order)) - rows.indptr[numbers] >= count]] = 0
    rows.eliminate_zeros()
    return rows


def of_norm_1(rows: Any, norm: str) -> Any:
    """Rows of a CSR matrix divided by their norm, "l1" of values >= 0 or "l2"; zero rows stay."""
    from scipy.sparse import csr_matrix, diags

    norms = np.asarray((rows if norm == "l1" else rows.multiply(rows)).sum(axis=1)).ravel()
    norms = norms if norm == "l1" else np.sqrt(norms)
    return csr_matrix(diags(1 / np.where(norms > 0, norms, 1)) @ rows)


def check_feedback(name: str, retrievers: Sequence[str]) -> None:
    """Raise InputError unless the method exists and all these retrievers can search again with it."""
    over = find("feedback", name).over
    lacking = [one for one in retrievers if find("retriever", one).over not in over]
    if lacking:
        fitting = [one for one, method in methods("retriever").items() if method.over in over]
        raise InputError(f"prf {name}: is for retriever {' or '.join(fitting)}, not for {' and '.join(lacking)}")
