"""Weights of the words of texts, and the relevance that the shared words of two texts give (paper 004)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from rnnreranker.base.errors import ids_of, instance_of, numbers_of
from rnnreranker.base.settings import Params, setting

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from rnnreranker.parts.postings.source import TermSource

Weights = Mapping[str, float]  # word -> weight


@dataclass(frozen=True)
class SharedWords(Params):
    """How the weights of shared words become one number; the defaults are eq. 5 as printed."""

    products: Literal["mean", "sum"] = setting(
        "mean",
        "products of weights over the shared words: their mean, as eq. 5 prints it, or their sum",
        flag="term-products",
    )
    scale: float = setting(1.0, "factor of the mean or sum before tanh, so that d fills [0, 1]", above=0)


def label_distribution(
    query_weights: Weights, document_weights: Weights, products: Literal["mean", "sum"] = "mean", scale: float = 1.0
) -> float:
    """Eq. 5 of paper 004: the relevance of a document to a query, in (-1, 1).

        d = tanh(scale / |x ∩ y| Σ_{w in x ∩ y} t(w, y) t(w, x))

    The paper prints the mean and no scale; products="sum" leaves out |x ∩ y|. x and y are the words of query and
    document with weights t; words of weight below 0 are discarded first, as in the paper. Without a shared word d is 0.

    Raises:
        InputError: unknown products, a scale that is not above 0, weights that are no mapping of words to finite
            numbers.

    >>> round(label_distribution({"rain": 0.5, "in": 0.1, "the": -0.1}, {"rain": 0.8, "the": 0.3, "in": 0.0}), 4)
    0.1974
    """
    for name, weights in (("query_weights", query_weights), ("document_weights", document_weights)):
        numbers_of([*instance_of(weights, Mapping, name).values()], name, (len(weights),))
        ids_of(list(weights), name)
    way, total = SharedWords(products, scale), 0.0
    shared = [word for word in sorted(query_weights) if min(query_weights[word], document_weights.get(word, -1.0)) >= 0]
    for word in shared:
        total += document_weights[word] * query_weights[word]
    return math.tanh(way.scale * (total / (len(shared) or 1) if way.products == "mean" else total))


class CollectionWeights:
    """The static weights of words, from the counts of a collection: eq. 1 of paper 004.

        t(w, y) = η(w, y) / |y| ln(|Y| / (η(w, Y) + 1))

    η(w, y) is the count of w in the text y of |y| words; η(w, Y) of the |Y| documents have w. The paper prints no base
    of the logarithm and no weights of a query's own words, which eq. 5 needs: here eq. 1 with the query as y.
    """

    def __init__(self, source: TermSource) -> None:
        self._source = source

    def of_documents(self, rows: Sequence[int] | np.ndarray) -> list[dict[str, float]]:
        weights, words = self._matrix(rows), self._source.vocabulary
        pairs = [*zip((words[number] for number in weights.indices), weights.data.tolist(), strict=True)]
        return [dict(pairs[first:last]) for first, last in itertools.pairwise(weights.indptr)]

    def of_texts(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """The words of texts with their weights; a word in no document counts as rarest."""
        number, counted = self._source.number, [Counter(own) for own in self._source.analyser.words(texts)]
        return [
            {word: own[word] / own.total() * float(self._rarities[number.get(word, -1)]) for word in sorted(own)}
            for own in counted
        ]

    def distributions(self, query_weights: Weights, rows: Sequence[int] | np.ndarray, way: SharedWords) -> np.ndarray:
        """(n,) float64: `label_distribution` of the weights of a query and of each of n documents."""
        weights, number = self._matrix(rows), self._source.number
        of_query = np.full(len(number), -1.0)
        for word in query_weights.keys() & number.keys():
            of_query[number[word]] = query_weights[word]
        shared = (weights.data >= 0) & (of_query[weights.indices] >= 0)
        products = weights.data[shared] * of_query[weights.indices[shared]]
        row, count = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))[shared], weights.shape[0]
        totals = np.bincount(row, products, minlength=count).astype(np.float64)  # integers if nothing is shared
        if way.products == "mean":
            totals /= np.maximum(np.bincount(row, minlength=count), 1)
        return np.array([math.tanh(way.scale * total) for total in totals.tolist()])

    def _matrix(self, rows: Sequence[int] | np.ndarray) -> csr_matrix:
        """(n, V) float64 CSR: the weights of the words of n documents, words ascending."""
        weights = self._source.fetch(np.asarray(rows, dtype=np.int64)).astype(np.float64)
        words = np.diff(weights.indptr)
        lengths = np.bincount(np.repeat(np.arange(len(words)), words), weights.data, minlength=len(words))
        weights.data = weights.data / np.repeat(lengths, words) * self._rarities[weights.indices]
        return weights

    @cached_property
    def _rarities(self) -> np.ndarray:
        """Of every word by number, and last of a word in no document."""
        have = [*self._source.document_frequencies.tolist(), 0]
        return np.array([math.log(len(self._source.docids) / (one + 1)) for one in have])
