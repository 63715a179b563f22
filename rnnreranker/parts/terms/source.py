"""The words of an index's documents on disk, counted, and found by the words of queries."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import cores, counted, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, fingerprint, read_text
from rnnreranker.base.files.checksums import check_files
from rnnreranker.encode.words.analysis import Analyser
from rnnreranker.encode.words.params import TermParams
from rnnreranker.parts.impacts.exact import best_impacts
from rnnreranker.parts.impacts.files import OFFSETS, REPAIR, TERMS, WEIGHTS, check_postings, map_impacts, positions_of
from rnnreranker.parts.terms.counts import FOLDER, VOCABULARY, Counted, count_words
from rnnreranker.parts.vectors.ids import ids_of_documents

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class TermSource:
    """How often each of V words stands in each of N documents of an index.

    Args:
        index: the folder of the index, with `docid` and a folder `terms`.
        described: what rnnreranker.json says of this part.

    Attributes:
        index: the folder of the index.
        docids: row → docid; vocabulary: number → word, ascending; params: what counts as a word.

    Raises:
        InputError: files that are missing, cut short or do not fit together, a description that is not one.
    """

    def __init__(self, index: Path, described: Mapping[str, Any]) -> None:
        check_files(index, "terms")
        self.index = index
        self._folder = index / FOLDER
        self._kept: dict[tuple[Any, ...], csr_matrix] = {}
        self._offsets, self._terms, self._counts = map_impacts(self._folder)
        self._ids = ids_of_documents(index, self._offsets, self._folder / OFFSETS)
        self.docids: Sequence[str] = self._ids.names
        try:
            self.params = TermParams(**described["settings"])
            self._analysis = str(described["analysis"])
        except (KeyError, TypeError, InputError):
            raise InputError(
                f"{index / 'rnnreranker.json'}: does not describe terms as this version does; make the index again"
            ) from None

    @cached_property
    def fingerprint(self) -> str:
        """What tells these counted words from others."""
        files = (self._folder / name for name in (OFFSETS, TERMS, WEIGHTS, VOCABULARY))
        return fingerprint("terms", self._analysis, *(file_digest(path) for path in files))

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        """(n,) int64: the row of each docid, -1 where it is unknown."""
        return self._ids.rows(docids)

    @cached_property
    def vocabulary(self) -> list[str]:
        """The words, ascending.

        Raises:
            InputError: a file without words, with a word twice, or with words that are not in their order.
        """
        file = self._folder / VOCABULARY
        words = read_text(file, "file of words, one a line").split("\n")[:-1]
        if any(one >= other for one, other in itertools.pairwise(words)):
            raise InputError(f"{file}: its words do not ascend; build the index again")
        if not words:
            raise InputError(f"{file}: no document has a word; expected texts in the language {self.params.language}")
        return words

    @cached_property
    def _number(self) -> dict[str, int]:
        """Word → its number."""
        return {word: number for number, word in enumerate(self.vocabulary)}

    @cached_property
    def analyser(self) -> Analyser:
        """What gives queries their words.

        Raises:
            MissingDependencyError: a package that it needs is not installed.
            InputError: that package was another version when the documents were read.
        """
        analyser = Analyser(self.params)
        if analyser.fingerprint != self._analysis:
            raise InputError(
                f"{self._folder}: its words are those of another version of what reads them, so those of queries would "
                "be others; make the index again"
            )
        return analyser

    @cached_property
    def counts(self) -> csr_matrix:
        """(N, V) float64 CSR, words ascending: how often each document has each word.

        Raises:
            InputError: counts that are no whole numbers from 1, a word beyond the vocabulary or twice in a document.
        """
        matrix = self._matrix(self._terms, self._counts, self._offsets)
        first = np.zeros(matrix.nnz + 1, dtype=bool)
        first[matrix.indptr] = True
        if not (matrix.data >= 1).all() or (matrix.data != np.floor(matrix.data)).any():
            raise InputError(f"{self._folder / WEIGHTS}: has counts that are no whole numbers from 1; {REPAIR}")
        if ((np.diff(matrix.indices) <= 0) & ~first[1:-1]).any():
            raise InputError(f"{self._folder / TERMS}: words of a document do not ascend; {REPAIR}")
        return matrix

    @cached_property
    def docid_ranks(self) -> np.ndarray:
        """(N,) int64: the place of each row among the docids in their order, for ties."""
        return self._ids.docid_ranks

    def counted(self, rows: np.ndarray) -> Counted:
        """The words of some documents."""
        positions, ends = positions_of(self._offsets, rows)
        used, words = np.unique(self._terms[positions], return_inverse=True)
        vocabulary = [self.vocabulary[term] for term in used.tolist()]
        return Counted(vocabulary, words.astype(np.int32), self._counts[positions].astype(np.int64), np.diff(ends))

    def queries(self, texts: Sequence[str]) -> csr_matrix:
        """(Q, V) float64 CSR, words ascending: how often each text has each word that a document has.

        Says how many texts have none.

        Raises:
            InputError, MissingDependencyError: as `vocabulary` and `analyser`.
        """
        number = self._number
        counts = count_words([word for word in own if word in number] for own in self.analyser.words(texts))
        terms = np.array([number[word] for word in counts.vocabulary], dtype=np.int32)[counts.words]
        if lacking := int((counts.lengths == 0).sum()):
            said = "has no word" if lacking == 1 else "have no word"
            say(f"{counted(lacking, 'query', 'queries')} of {len(texts)} {said} that a document has: nothing is found")
        return self._matrix(terms, counts.counts, np.concatenate([[0], np.cumsum(counts.lengths)]))

    def weighed(self, name: tuple[Any, ...], weights: Callable[[], csr_matrix]) -> csr_matrix:
        """(V, N) float64 CSR: the documents of each word with the word's weights there; the last ones are kept.

        name: of the weights; weights: gives them, (N, V), where they are not kept.
        """
        if name not in self._kept:
            self._kept = {name: weights().T.tocsr()}
        return self._kept[name]

    def search(
        self, queries: csr_matrix, postings: csr_matrix, hits: int, threads: int | None = None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Scores (float64, non-increasing, ties by docid) and rows (int64) of the best documents of every query.

        The score is the inner product, summed by ascending word; documents without a word of a query are not found. The
        result does not depend on the number of queries or threads.

        Args:
            queries: (Q, V) float64 CSR with ascending words; postings: (V, N) float64 CSR.
            hits: documents per query, at most.
            threads: None = one per core.
        """
        best = best_impacts(queries, [(0, postings)], hits, self.docid_ranks, threads or cores())
        return [scores for scores, _ in best], [rows for _, rows in best]

    def _matrix(self, terms: np.ndarray, counts: np.ndarray, offsets: np.ndarray) -> csr_matrix:
        from scipy.sparse import csr_matrix

        check_postings(terms, counts, len(self.vocabulary), self._folder)
        shape = (len(offsets) - 1, len(self.vocabulary))
        return csr_matrix((counts.astype(np.float64), terms.astype(np.int32), offsets), shape)
