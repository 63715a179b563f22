"""Postings: the weights of words in documents, in three memory-mapped arrays, and exact search over them without Java.

A folder holds `offsets.npy`, `terms.npy` and `weights.npy`: a CSR matrix of documents and words. Products are summed in
float64 by ascending word: a score does not depend on blocks, threads or other queries. `impacts` has the weights of an
encoder; `terms` has counts, and `vocabulary.txt`, the sorted words, one a line.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnnreranker.base.command import cores, counted, say
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import read_text
from rnnreranker.encode.words.analysis import Analyser, TermParams
from rnnreranker.parts.ragged import Hits, RaggedSource, best_first, positions_of, write_ragged
from rnnreranker.parts.vectors.ids import HasDocids, Ids

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

TERMS, WEIGHTS, VOCABULARY = "terms.npy", "weights.npy", "vocabulary.txt"
BLOCK = 2**23  # postings that are turned into postings lists together, 100 MB
KEPT = 2**25  # postings up to which the lists of all documents stay in memory
QUERIES = 16  # multiplied together
LARGEST = 2**16 - 1  # whole weight
Found = tuple[list[np.ndarray], list[np.ndarray]]  # scores (float64, non-increasing, ties by docid) and rows (int64)


def arrays_in(matrix: csr_matrix) -> dict[str, np.ndarray]:
    """The arrays of an (n, V) CSR matrix, for a file."""
    return {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}


def matrix_of(arrays: Mapping[str, np.ndarray], width: int) -> csr_matrix:
    """The (n, width) CSR matrix of `arrays_in`."""
    from scipy.sparse import csr_matrix

    data, indices, indptr = (arrays[name] for name in ("data", "indices", "indptr"))
    return csr_matrix((data, indices, indptr), (len(indptr) - 1, width))


def write_postings(
    folder: Path, blocks: Callable[[], Iterable[csr_matrix]], vocabulary: int, exact: bool
) -> np.ndarray:
    """Write the three files; returns (V,) int64 document frequencies.

    Args:
        blocks: each call gives the weights of all documents, (n_i, vocabulary) CSR with ascending columns.
        vocabulary: number of words; up to 65,536 have 16-bit numbers.
        exact: float32 weights; else whole numbers in 8 or 16 bits, and beyond these float32.
    """
    largest, documents, lengths = 0.0, np.zeros(vocabulary, dtype=np.int64), []
    for block in blocks():
        documents += np.bincount(block.indices, minlength=vocabulary)
        largest = max(largest, float(block.data.max(initial=0)))
        lengths.append(np.diff(block.indptr))
    of_weights = "<f4" if exact or largest > LARGEST else "|u1" if largest < 2**8 else "<u2"
    of_terms = "<u2" if vocabulary <= 2**16 else "<u4"
    arrays: dict[str, tuple[str, tuple[int, ...]]] = {TERMS: (of_terms, ()), WEIGHTS: (of_weights, ())}
    write_ragged(folder, lengths, arrays, ((block.indices, block.data) for block in blocks()))
    return documents


class Postings(RaggedSource):
    """The weights of words in the documents of an index. `words_count`: number of words V."""

    arrays = TERMS, WEIGHTS

    words_count: int
    _lists: Mapping[Any, list[tuple[int, csr_matrix]]] = MappingProxyType({})

    @cached_property
    def document_frequencies(self) -> np.ndarray:
        """(V,) int64: in how many documents each word has a weight."""
        blocks = (np.bincount(block.indices, minlength=self.words_count) for _, block in self.blocks())
        return sum(blocks, np.zeros(self.words_count, dtype=np.int64))

    def fetch(self, rows: np.ndarray) -> csr_matrix:
        """(n, V) float32 CSR: the stored numbers of (n,) int64 rows."""
        return self._matrix(*positions_of(self.offsets, rows)).astype(np.float32)

    def blocks(self) -> Iterator[tuple[int, csr_matrix]]:
        """First row and stored numbers, (n, V) float64 CSR, of each block of documents."""
        first, count = 0, len(self.docids)
        while first < count:
            last = int(np.searchsorted(self.offsets, self.offsets[first] + BLOCK, side="right")) - 1
            last = min(max(last, first + 1), count)
            own = self.offsets[first : last + 1]
            yield first, self._matrix(slice(own[0], own[-1]), own - own[0])
            first = last

    def postings_lists(
        self, weigh: Callable[[csr_matrix], csr_matrix] | None = None
    ) -> Iterable[tuple[int, csr_matrix]]:
        """First row and postings lists, (V, n) float64 CSR, of each block of documents.

        weigh: changes the (n, V) numbers of a block; the last lists of all documents are kept if they are small.
        """
        lists = ((start, (weigh(block) if weigh else block).T.tocsr()) for start, block in self.blocks())
        if len(self._arrays[0]) > KEPT:
            return lists
        if weigh not in self._lists:
            self._lists = {weigh: list(lists)}
        return self._lists[weigh]

    def _matrix(self, entries: slice | np.ndarray, offsets: np.ndarray) -> csr_matrix:
        terms, weights = (array[entries] for array in self._arrays)
        arrays: dict[str, Any] = {
            "data": weights.astype(np.float64),
            "indices": terms.astype(np.int32),
            "indptr": offsets,
        }
        return matrix_of(arrays, self.words_count)


class InMemory(Postings):
    """Postings of an (N, V) CSR matrix."""

    def __init__(self, matrix: csr_matrix, ids: Ids) -> None:
        HasDocids.__init__(self, ids)
        self.offsets, self._arrays = matrix.indptr, [matrix.indices, matrix.data]
        self.words_count = matrix.shape[1]


def best_products(
    queries: csr_matrix, blocks: Iterable[tuple[int, csr_matrix]], hits: int, docid_ranks: np.ndarray, threads: int
) -> Found:
    """Scores and rows of every query's best documents that share a word with it, descending, ties by docid.

    Args:
        queries: (Q, V) float64 CSR with ascending columns; threads: queries are divided among them.
        blocks: first row and postings lists, (V, n) float64 CSR, of each block of documents.
        hits: documents a query, at most; docid_ranks: (N,) the rank of each row among the sorted docids.
    """
    best: list[Hits] = [(np.empty(0), np.empty(0, dtype=np.int64))] * queries.shape[0]
    starts = range(0, len(best), QUERIES)
    parts = [queries[first : first + QUERIES] for first in starts]
    with ThreadPoolExecutor(threads) as pool:
        for first, postings in blocks:
            several = map if min(threads, len(parts)) == 1 else pool.map
            made = several(operator.matmul, parts, itertools.repeat(postings))
            for start, products in zip(starts, made, strict=True):
                for query, (begin, end) in enumerate(itertools.pairwise(products.indptr), start):
                    rows = products.indices[begin:end].astype(np.int64) + first
                    scores = np.concatenate([best[query][0], products.data[begin:end]])
                    best[query] = best_first(scores, np.concatenate([best[query][1], rows]), hits, docid_ranks)
    return [scores for scores, _ in best], [rows for _, rows in best]


class QueryImpacts(NamedTuple):
    """The weights of Q queries for V words, times a factor.

    Attributes:
        numbers: (Q, V) CSR float32, weight times `factor`; factor: above 0, 1 for exact weights and counts.
    """

    numbers: csr_matrix
    factor: float = 1.0

    @property
    def weights(self) -> csr_matrix:
        return divided(self.numbers, self.factor)


def divided(numbers: csr_matrix, factor: float) -> csr_matrix:
    """(n, V) CSR float32: numbers divided by a factor."""
    weights = numbers.astype(np.float64)
    weights.data /= factor
    return weights.astype(np.float32)


def whole(weights: csr_matrix, factor: float, of: str = "documents") -> csr_matrix:
    """(n, V) CSR of whole numbers as float32: weights times the factor, rounded half to even, without zeros.

    Args:
        weights: (n, V) CSR, not negative; of: whose weights, for the error.

    Raises:
        InputError: a product beyond 16 bits.
    """
    numbers = weights.astype(np.float64)
    numbers.data = np.rint(numbers.data * factor)
    if numbers.nnz and numbers.data.max() > LARGEST:
        largest = float(weights.data.max())
        raise InputError(
            f"{of}: a weight of {largest:g} times the factor {factor:g} is beyond {LARGEST}, what 16 bits hold; "
            f"give impact:factor={LARGEST / largest:.2g} or less, or impact:weights=float"
        )
    numbers.eliminate_zeros()
    return numbers.astype(np.float32)


class ImpactSource(Postings):
    """The weights of words in the documents of an index, in the folder `impacts`.

    Attributes:
        words: fingerprint of the words in order.
        factor: by which weights were multiplied before rounding; None = exact weights.
        encoder: name and settings, for `SparseEncoder.load(name, **settings)`.
    """

    files = "impacts"

    def _take(self, described: Mapping[str, Any]) -> None:
        self.words_count, self.words = int(described["vocabulary"]), str(described["words"])
        self.factor = None if described["factor"] is None else float(described["factor"])
        self.encoder: Mapping[str, Any] = {"name": described["encoder"]["name"], **described["encoder"]}
        self._marks = (self.words,)

    def weights(self, rows: np.ndarray) -> csr_matrix:
        """(n, V) float32 CSR: the weights of rows, divided by the factor."""
        return divided(self.fetch(rows), self.factor or 1.0)

    def search(self, queries: QueryImpacts, hits: int, threads: int | None = None) -> Found:
        """The best documents of every query; those that share no word with it are left out.

        The score is the inner product of the weights, exact for whole numbers.

        Args:
            queries: as in `as_stored`; hits: documents a query, at most; threads: None = one per core.

        Raises:
            InputError: queries of another vocabulary.
        """
        numbers = queries.numbers
        if numbers.shape[1] != self.words_count:
            raise InputError(
                f"queries have weights of {numbers.shape[1]} words, {self.folder} of {self.words_count}; "
                "encode the queries with the encoder that made the index"
            )
        numbers = numbers.astype(np.float64)
        numbers.sort_indices()
        scores, rows = best_products(numbers, self.postings_lists(), hits, self.docid_ranks, threads or cores())
        unit = queries.factor * (self.factor or 1.0)
        return [one / unit for one in scores], rows

    def as_stored(self, weights: csr_matrix) -> QueryImpacts:
        """Weights of queries, (Q, V) CSR, rounded as those of documents; InputError: as `whole`."""
        if self.factor is None:
            return QueryImpacts(weights)
        return QueryImpacts(whole(weights, self.factor, "queries"), self.factor)


def word_use(queries: csr_matrix, document_frequencies: np.ndarray, documents: int) -> dict[str, float]:
    """Mean numbers of words of a query and of a document with a weight, and FLOPS.

    `flops`: Σ_t p_q(t) p_d(t), p(t) the share of queries, or of documents, with a weight for word t (Paria et al.
    2020).

    Args:
        queries: (Q, V) CSR, Q >= 1; document_frequencies: (V,); documents: their number.

    >>> from scipy.sparse import csr_matrix
    >>> word_use(csr_matrix([[1.0, 0.0, 2.0]]), np.array([4, 2, 1]), 4)
    {'query_words': 2.0, 'document_words': 1.75, 'flops': 1.25}
    """
    used = queries.indices[queries.data != 0]
    shares = np.bincount(used, minlength=queries.shape[1]) / queries.shape[0]
    of_documents = document_frequencies / documents
    words = float(shares.sum()), float(of_documents.sum())
    return {"query_words": words[0], "document_words": words[1], "flops": float(shares @ of_documents)}


def count_words(documents: Sequence[Sequence[str]], number: Mapping[str, int]) -> csr_matrix:
    """(n, V) int32 CSR: counts of the words, ascending, of documents; number: word → its number.

    >>> count_words([["b", "a", "b"], []], {"a": 0, "b": 1}).toarray().tolist()
    [[1, 2], [0, 0]]
    """
    from scipy.sparse import csr_matrix

    offsets = np.cumsum([0, *map(len, documents)])
    words = itertools.chain.from_iterable(documents)
    numbers = np.fromiter(map(number.__getitem__, words), dtype=np.int32, count=int(offsets[-1]))
    ones = np.ones(len(numbers), dtype=np.int32)
    counts = csr_matrix((ones, numbers, offsets), (len(documents), len(number)))
    counts.sum_duplicates()
    return counts


class TermSource(Postings):
    """Counts of V words in N documents of an index. `params`: the settings of the analyser."""

    files = "terms"

    def _take(self, described: Mapping[str, Any]) -> None:
        self.params, self._analysis = TermParams(**described["settings"]), str(described["encoder"]["fingerprint"])
        self.words_count, self._marks = int(described["words"]), (self._analysis,)
        self._weighed: dict[Any, csr_matrix] = {}

    @cached_property
    def vocabulary(self) -> list[str]:
        """The sorted words; InputError: no such file."""
        return read_text(self.folder / VOCABULARY, "file of words, one a line").split("\n")[:-1]

    @cached_property
    def number(self) -> dict[str, int]:
        """Word → its number."""
        return {word: number for number, word in enumerate(self.vocabulary)}

    @cached_property
    def analyser(self) -> Analyser:
        """Splits queries into words.

        Raises:
            InputError, MissingDependencyError: another version of its package read the documents; it is not installed.
        """
        analyser = Analyser(self.params)
        if analyser.fingerprint != self._analysis:
            raise InputError(
                f"{self.folder}: another version of the analyser cut its words, so those of queries would differ; "
                "make the index again"
            )
        return analyser

    @cached_property
    def counts(self) -> csr_matrix:
        """(N, V) float64 CSR counts, words ascending."""
        return self._matrix(slice(None), self.offsets)

    def queries(self, texts: Sequence[str]) -> csr_matrix:
        """(Q, V) float64 CSR, words ascending: counts of each text's known words; one line says how many texts have
        none.
        """
        known = [[word for word in own if word in self.number] for own in self.analyser.words(texts)]
        counts = count_words(known, self.number)
        if lacking := int(np.count_nonzero(np.diff(counts.indptr) == 0)):
            said = "has no word" if lacking == 1 else "have no word"
            say(f"{counted(lacking, 'query', 'queries')} of {len(texts)} {said} that a document has: nothing is found")
        return counts.astype(np.float64)

    def search(
        self, queries: csr_matrix, hits: int, threads: int | None, name: Any, weigh: Callable[[csr_matrix], csr_matrix]
    ) -> Found:
        """The best documents of every query; those that share no word with it are left out.

        The score is the inner product, summed by ascending word; it does not depend on other queries or threads.

        Args:
            queries: (Q, V) float64 CSR with ascending words; hits: documents a query, at most.
            threads: None = one per core; weigh: weights of `counts`, kept for the last name.
        """
        if name not in self._weighed:
            self._weighed = {name: weigh(self.counts).T.tocsr()}
        return best_products(queries, [(0, self._weighed[name])], hits, self.docid_ranks, threads or cores())


def bm25_weights(counts: csr_matrix, k1: float = 0.9, b: float = 0.4) -> csr_matrix:
    """(N, V) float64 CSR: ln(1 + (N - n_w + .5) / (n_w + .5)) times tf / (tf + k1 (1 - b + b |d| / avgdl)), as in
    Lucene; documents without a word count.

    counts: (N, V) float64 CSR, tf; words ascending.
    """
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    have = np.bincount(counts.indices, minlength=counts.shape[1])
    rarity = np.log(1.0 + (counts.shape[0] - have + 0.5) / (have + 0.5))
    damped = k1 * (1.0 - b + b * lengths / max(lengths.mean(), 1e-300))
    weights = counts.copy()
    weights.data /= counts.data + np.repeat(damped, np.diff(counts.indptr))
    weights.data *= rarity[counts.indices]
    return weights


def bm25_postings(source: TermSource) -> Postings:
    """The BM25 weights of all words, in memory, with Pyserini's k1 and b."""
    return InMemory(bm25_weights(source.counts).astype(np.float32), source.table)


def cosine_weights(documents: csr_matrix, queries: csr_matrix) -> tuple[Callable[[csr_matrix], csr_matrix], csr_matrix]:
    """The weights of scikit-learn's TfidfVectorizer: count times ln((1 + N) / (1 + n_w)) + 1, rows of length 1.

    Returns the function that weighs documents, and weighed queries; their inner products are cosines.

    Args:
        documents, queries: (n, V) float64 CSR counts.
    """
    text = require("sklearn.feature_extraction.text", "TF-IDF", "'rnnreranker[terms]'")
    weighting = text.TfidfTransformer().fit(documents)
    return weighting.transform, weighting.transform(queries)


def paper_weights(documents: csr_matrix) -> csr_matrix:
    """(N, V) float64 CSR: eq. 1 of paper 004, t = η(w, y) / |y| ln(|Y| / (η(w, Y) + 1)), weights above 0 only.

    η(w, y) is the count of word w in document y of |y| words; η(w, Y) of the |Y| documents have w. The paper discards
    words of negative weight, those of all documents.
    """
    weights = documents.copy()
    have = np.bincount(weights.indices, minlength=weights.shape[1])
    lengths = np.repeat(np.asarray(weights.sum(axis=1)).ravel(), np.diff(weights.indptr))
    weights.data *= np.log(weights.shape[0] / (have + 1.0))[weights.indices] / lengths
    weights.data[weights.data < 0] = 0
    weights.eliminate_zeros()
    return weights
