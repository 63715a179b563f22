"""Impacts on disk, found by docid and searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import cores
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import file_digest, fingerprint
from rnnreranker.base.files.checksums import check_files
from rnnreranker.parts.impacts.exact import best_impacts
from rnnreranker.parts.impacts.files import FOLDER, OFFSETS, check_postings, document_blocks, map_impacts, positions_of
from rnnreranker.parts.impacts.quantization import whole
from rnnreranker.parts.impacts.queries import QueryImpacts, divided
from rnnreranker.parts.vectors.ids import ids_of_documents

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BLOCK = 2**23  # postings that are turned into postings lists together, 100 MB
KEPT = 2**25  # postings up to which the lists of all documents stay in memory


class ImpactSource:
    """The weights of words in the documents of an index.

    Args:
        index: the folder of the index, with `docid` and a folder `impacts`.
        described: what rnnreranker.json says of this part.

    Attributes:
        index: the folder of the index.
        docids: row -> docid; vocabulary: number of words; words: fingerprint of the words in their order.
        factor: what weights were multiplied by before rounding; None = they are kept as they were.
        encoder: its name and settings, for `SparseEncoder.load(name, **settings)`.

    Raises:
        InputError: files that are missing, cut short or do not fit together, a description that is not one.
    """

    def __init__(self, index: Path, described: Mapping[str, Any]) -> None:
        check_files(index, "impact")
        self.index = index
        self._folder = index / FOLDER
        self._offsets, self._terms, self._weights = map_impacts(self._folder)
        self._ids = ids_of_documents(index, self._offsets, self._folder / OFFSETS)
        self.docids: Sequence[str] = self._ids.names
        try:
            self.vocabulary = int(described["vocabulary"])
            self.words = str(described["words"])
            self.factor = None if described["factor"] is None else float(described["factor"])
            self.encoder: Mapping[str, Any] = {"name": described["encoder"]["name"], **described["encoder"]}
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{index / 'rnnreranker.json'}: does not describe impacts as this version does; make the index again"
            ) from None

    @cached_property
    def fingerprint(self) -> str:
        """What tells these impacts from others."""
        return fingerprint("impacts", *(file_digest(path) for path in sorted(self._folder.glob("*.npy"))), self.words)

    @property
    def postings(self) -> int:
        """The number of non-zero weights."""
        return len(self._terms)

    @cached_property
    def largest(self) -> float:
        """The largest weight, 0 where there is none."""
        blocks = range(0, self.postings, BLOCK)
        return max((float(self._weights[first : first + BLOCK].max()) for first in blocks), default=0.0)

    @cached_property
    def document_frequencies(self) -> np.ndarray:
        """(V,) int64: in how many documents each word has a weight."""
        frequencies = np.zeros(self.vocabulary, dtype=np.int64)
        for first in range(0, self.postings, BLOCK):
            terms = self._terms[first : first + BLOCK]
            check_postings(terms, self._weights[first : first + BLOCK], self.vocabulary, self._folder)
            frequencies += np.bincount(terms, minlength=self.vocabulary)
        return frequencies

    def rows(self, docids: Sequence[str]) -> np.ndarray:
        """(n,) int64: the row of each docid, -1 where the docid is unknown."""
        return self._ids.rows(docids)

    def fetch(self, rows: np.ndarray) -> csr_matrix:
        """(n, V) float32 CSR: the numbers that are stored of the given rows, weight times `factor` where there is one.

        Raises:
            InputError: a row out of range.
        """
        from scipy.sparse import csr_matrix

        rows = np.asarray(rows, dtype=np.int64)
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self.docids)):
            raise InputError(f"rows {rows.min()} to {rows.max()}: expected 0..{len(self.docids) - 1}")
        positions, ends = positions_of(self._offsets, rows)
        terms, weights = self._terms[positions].astype(np.int32), self._weights[positions].astype(np.float32)
        check_postings(terms, weights, self.vocabulary, self._folder)
        return csr_matrix((weights, terms, ends), (len(rows), self.vocabulary))

    def weights(self, rows: np.ndarray) -> csr_matrix:
        """(n, V) float32 CSR: the weights of the given rows, whatever numbers are stored of them.

        Raises:
            InputError: a row out of range.
        """
        return divided(self.fetch(rows), self.factor or 1.0)

    def search(
        self, queries: QueryImpacts, hits: int, threads: int | None = None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Scores (float64, non-increasing, ties by docid) and rows (int64) of the best documents of every query.

        Exact: the score is the inner product of the weights, the same from whole numbers and from floats up to their
        rounding; of whole numbers it is that of the numbers, without error, divided by their factors. Documents that
        share no word with a query are not found. The result does not depend on the number of queries or threads.

        Args:
            queries: of Q queries; see `as_stored` for queries in the numbers of the stored weights.
            hits: documents per query, at most.
            threads: None = one per core.

        Raises:
            InputError: queries of another vocabulary, hits < 1, NaN or infinite weights.
        """
        numbers = queries.numbers
        if numbers.shape[1] != self.vocabulary:
            raise InputError(
                f"queries have weights of {numbers.shape[1]} words, {self._folder} of {self.vocabulary}; "
                "encode the queries with the encoder that made the index"
            )
        if hits < 1:
            raise InputError(f"hits={hits}: expected an integer >= 1")
        if not np.isfinite(numbers.data).all():
            raise InputError("queries have NaN or infinite weights; encode them again")
        numbers = numbers.astype(np.float64)
        numbers.sort_indices()
        best = best_impacts(numbers, self._postings(), hits, self.docid_ranks, threads or cores())
        return [scores / self.unit(queries) for scores, _ in best], [rows for _, rows in best]

    def unit(self, queries: QueryImpacts) -> float:
        """What the inner product of a query's numbers and stored ones is divided by, to be that of the weights."""
        return queries.factor * (self.factor or 1.0)

    def as_stored(self, weights: csr_matrix) -> QueryImpacts:
        """Weights of queries, (Q, V) CSR, as the documents' are kept: times the factor and rounded, or as they are.

        Raises:
            InputError: a weight that 16 bits cannot hold after the factor.
        """
        if self.factor is None:
            return QueryImpacts(weights)
        return QueryImpacts(whole(weights, self.factor, "queries"), self.factor)

    def _postings(self) -> Iterator[tuple[int, csr_matrix]]:
        """First row and words' documents, (V, n) float64 CSR, of each block of documents."""
        return iter(self._kept) if self.postings <= KEPT else self._read()

    @cached_property
    def _kept(self) -> list[tuple[int, csr_matrix]]:
        return list(self._read())

    def _read(self) -> Iterator[tuple[int, csr_matrix]]:
        from scipy.sparse import csr_matrix

        for first, last in document_blocks(self._offsets, BLOCK):
            own = slice(self._offsets[first], self._offsets[last])
            terms = self._terms[own].astype(np.int32)
            offsets = (self._offsets[first : last + 1] - self._offsets[first]).astype(np.int32)
            weights = self._weights[own].astype(np.float64)
            check_postings(terms, weights, self.vocabulary, self._folder)
            block = csr_matrix((weights, terms, offsets), (last - first, self.vocabulary))
            yield first, block.T.tocsr()

    @cached_property
    def docid_ranks(self) -> np.ndarray:
        """(N,) int64: the place of each row among the docids in their order, for ties."""
        return self._ids.docid_ranks
