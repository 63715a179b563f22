"""Word counts of the documents of an index; BM25 and TF-IDF of them without Java.

The folder `terms` holds `vocabulary.txt`, the sorted words, one a line, and the counts as postings.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnnreranker.base.command import cores, counted, say
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import file_digest, fingerprint, read_text
from rnnreranker.encode.words.analysis import Analyser, TermParams
from rnnreranker.parts.postings import Postings, arrays_in, best_products, matrix_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FOLDER = "terms"
VOCABULARY = "vocabulary.txt"


class Counted(NamedTuple):
    """The sorted words of n documents, and (n, V) CSR counts."""

    vocabulary: list[str]
    counts: csr_matrix


def count_words(documents: Iterable[Sequence[str]]) -> Counted:
    """Counts of the words of documents.

    >>> counted = count_words([["b", "a", "b"], []])
    >>> counted.vocabulary, counted.counts.toarray().tolist()
    (['a', 'b'], [[1, 2], [0, 0]])
    """
    documents = list(documents)
    vocabulary = sorted(set(itertools.chain.from_iterable(documents)))
    number = dict(zip(vocabulary, itertools.count(), strict=False))
    return Counted(vocabulary, _counts([[number[word] for word in own] for own in documents], len(vocabulary)))


def _counts(documents: Sequence[Sequence[int]], size: int) -> csr_matrix:
    """(n, size) CSR, ascending: counts of the numbers of each document."""
    from scipy.sparse import csr_matrix

    numbers = np.fromiter(itertools.chain.from_iterable(documents), dtype=np.int32)
    offsets = np.cumsum([0, *map(len, documents)])
    counts = csr_matrix((np.ones(len(numbers), dtype=np.int64), numbers, offsets), (len(documents), size))
    counts.sum_duplicates()
    return counts


def arrays_of(block: Counted) -> dict[str, np.ndarray]:
    """The arrays of a block, for a file."""
    return {"words": np.frombuffer("\n".join(block.vocabulary).encode(), np.uint8), **arrays_in(block.counts)}


def load_counted(file: Path) -> Counted:
    with np.load(file, allow_pickle=False) as block:
        words = block["words"].tobytes().decode()
        vocabulary = words.split("\n") if words else []
        return Counted(vocabulary, matrix_of(block, len(vocabulary)))


def joined(files: Sequence[Path]) -> tuple[list[str], Callable[[], Iterator[csr_matrix]]]:
    """The sorted words of all blocks, and a function that gives the (n, V) CSR counts of each block.

    files: blocks of `arrays_of`, in the order of the documents.
    """
    words = sorted({word for file in files for word in load_counted(file).vocabulary})
    number = {word: rank for rank, word in enumerate(words)}

    def matrices() -> Iterator[csr_matrix]:
        for vocabulary, counts in map(load_counted, files):
            counts.indices = np.array([number[word] for word in vocabulary], dtype=np.int32)[counts.indices]
            counts.resize(counts.shape[0], len(words))
            yield counts

    return words, matrices


class TermSource(Postings):
    """Counts of V words in N documents of an index. `params`: the settings of the analyser."""

    part, files = "terms", FOLDER

    def _take(self, described: Mapping[str, Any]) -> None:
        self.params, self._analysis = TermParams(**described["settings"]), str(described["analysis"])
        self.words_count = int(described["words"])
        self._weighed: dict[tuple[Any, ...], csr_matrix] = {}

    @cached_property
    def fingerprint(self) -> str:
        files = sorted([*self.folder.glob("*.npy"), self.folder / VOCABULARY])
        return fingerprint("terms", self._analysis, *map(file_digest, files))

    @cached_property
    def vocabulary(self) -> list[str]:
        """The sorted words; InputError: no such file."""
        return read_text(self.folder / VOCABULARY, "file of words, one a line").split("\n")[:-1]

    @cached_property
    def _number(self) -> dict[str, int]:
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

    def counted(self, rows: np.ndarray) -> Counted:
        counts = self.fetch(rows).astype(np.int64)
        used = np.unique(counts.indices)
        return Counted([self.vocabulary[term] for term in used.tolist()], counts[:, used])

    def queries(self, texts: Sequence[str]) -> csr_matrix:
        """(Q, V) float64 CSR, words ascending: counts of each text's known words; one line says how many texts have
        none.
        """
        number = self._number
        known = [[number[word] for word in own if word in number] for own in self.analyser.words(texts)]
        if lacking := known.count([]):
            said = "has no word" if lacking == 1 else "have no word"
            say(f"{counted(lacking, 'query', 'queries')} of {len(texts)} {said} that a document has: nothing is found")
        return _counts(known, len(number)).astype(np.float64)

    def weighed(self, name: tuple[Any, ...], weights: Callable[[], csr_matrix]) -> csr_matrix:
        """(V, N) float64 CSR: the postings lists of `weights()`, (N, V); those of the last name are kept."""
        if name not in self._weighed:
            self._weighed = {name: weights().T.tocsr()}
        return self._weighed[name]

    def search(
        self, queries: csr_matrix, postings: csr_matrix, hits: int, threads: int | None = None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Scores (float64, non-increasing, ties by docid) and rows (int64) of the best documents of every query.

        The score is the inner product, summed by ascending word; it does not depend on other queries or threads.
        Documents that share no word with a query are left out.

        Args:
            queries: (Q, V) float64 CSR with ascending words; postings: (V, N) float64 CSR.
            hits: documents a query, at most; threads: None = one per core.
        """
        return best_products(queries, [(0, postings)], hits, self.docid_ranks, threads or cores())


def bm25_weights(counts: csr_matrix, k1: float, b: float) -> csr_matrix:
    """(N, V) float64 CSR: ln(1 + (N - n_w + .5) / (n_w + .5)) times tf / (tf + k1 (1 - b + b |d| / avgdl)), as in
    Lucene.

    Lucene rounds |d| to one byte, here it is exact. N and avgdl include documents without a word.

    Args:
        counts: (N, V) float64 CSR, tf; words ascending.
    """
    from scipy.sparse import csr_matrix

    documents, vocabulary = counts.shape
    have = np.bincount(counts.indices, minlength=vocabulary)
    rarity = np.log(1.0 + (documents - have + 0.5) / (have + 0.5))
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    damped = k1 * (1.0 - b + b * lengths / max(lengths.mean(), 1e-300))
    weights = rarity[counts.indices] * (counts.data / (counts.data + np.repeat(damped, np.diff(counts.indptr))))
    return csr_matrix((weights, counts.indices, counts.indptr), counts.shape)


def cosine_weights(documents: csr_matrix, queries: csr_matrix) -> tuple[csr_matrix, csr_matrix]:
    """The weights of scikit-learn's TfidfVectorizer: count times ln((1 + N) / (1 + n_w)) + 1, rows of length 1.

    Args:
        documents, queries: (n, V) float64 CSR counts; inner products of the results are cosines.
    """
    text = require("sklearn.feature_extraction.text", "TF-IDF", "'rnnreranker[terms]'")
    weighting = text.TfidfTransformer().fit(documents)
    return weighting.transform(documents), weighting.transform(queries)


def paper_weights(documents: csr_matrix) -> csr_matrix:
    """(N, V) float64 CSR: eq. 1 of paper 004, t = η(w, y) / |y| ln(|Y| / (η(w, Y) + 1)), weights above 0 only.

    η(w, y) is the count of word w in document y of |y| words; η(w, Y) of the |Y| documents have w. The paper discards
    words of negative weight, those of all documents.
    """
    weights = documents.astype(np.float64, copy=True)
    have = np.bincount(weights.indices, minlength=weights.shape[1])
    lengths = np.repeat(np.asarray(weights.sum(axis=1)).ravel(), np.diff(weights.indptr))
    weights.data *= np.log(weights.shape[0] / (have + 1.0))[weights.indices] / lengths
    weights.data[weights.data < 0] = 0
    weights.eliminate_zeros()
    return weights
