"""The nearest other documents by exact cosines of word weights, as products of sparse matrices.

Documents without a common word are no neighbours.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import folder_written_whole, write_json
from rnnreranker.base.java import start_java
from rnnreranker.base.strict import read_json
from rnnreranker.parts.impacts import ImpactSource
from rnnreranker.parts.neighbours.nearest import GraphSource, Nearest, no_neighbours
from rnnreranker.parts.postings import best_products, write_postings
from rnnreranker.parts.terms.source import arrays_of, count_words, joined
from rnnreranker.parts.vectors.ids import read_ids
from rnnreranker.parts.vectors.npy_files import put_arrays

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

K1, B = 0.9, 0.4  # Pyserini's
BLOCK = 1024  # documents read together
DESCRIBED = "words.json"


class WordNeighbours(GraphSource):
    """N documents with weights of words, summed in float64 by ascending word; mark: their fingerprint."""

    similarity = "cosine"

    def __init__(self, words: ImpactSource, of: str, mark: str) -> None:
        self.words, self.docids, self.of, self.fingerprint = words, words.docids, of, mark
        self._ranks = np.arange(len(self.docids))  # ties go to the lower row

    def nearest(self, rows: np.ndarray, k: int, first: int = 0) -> Nearest:
        edges, scores = no_neighbours(rows, k)
        lists = self.words.postings_lists(first, _normalised)
        best = best_products(self._unit(rows), lists, k + 1, self._ranks, 1)
        for line, (values, documents) in enumerate(zip(*best, strict=True)):
            others = np.flatnonzero(documents != rows[line])[:k]
            edges[line, : len(others)], scores[line, : len(others)] = documents[others], values[others]
        return edges, scores

    def similarities(self, rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
        similarities = np.zeros(edges.shape)
        for line, row in enumerate(rows.tolist()):
            product = self._unit(np.array([row])) @ self._unit(edges[line]).T.tocsr()
            similarities[line, product.indices] = product.data
        return similarities

    def _unit(self, rows: np.ndarray) -> csr_matrix:
        """(n, V) float64 CSR: the weights of rows, scaled to length 1."""
        return _normalised(self.words.fetch(rows).astype(np.float64))


def _normalised(matrix: csr_matrix) -> csr_matrix:
    owners = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    matrix.data = matrix.data / np.sqrt(np.bincount(owners, matrix.data * matrix.data, matrix.shape[0]))[owners]
    return matrix


def bm25_words(index: Path, folder: Path) -> ImpactSource:
    """The BM25 weights of the words of an index's documents, from its Lucene index.

    Word t of document d weighs idf(t) tf / (tf + k1 (1 - b + b |d| / avgdl)), with idf(t) = ln(1 + (N - n_t + .5) /
    (n_t + .5)) and |d| rounded to one byte, as in Lucene.

    Args:
        folder: of the float32 weights, made on first use; a killed run resumes.

    Raises:
        InputError, UnavailableError: an index without document vectors, or of other documents; no Java 21 or newer.
    """
    if not folder.is_dir():
        start_java()
        from pyserini.index.lucene import LuceneIndexReader

        docids, reader = read_ids(index / "docid").names, LuceneIndexReader(str((index / "bm25").absolute()))
        blocks = folder.with_name(folder.name + ".blocks")
        blocks.mkdir(parents=True, exist_ok=True)
        files = [blocks / f"{first:010d}.npz" for first in range(0, len(docids), BLOCK)]
        missing = [file for file in files if not file.is_file()]
        for file in progress(missing, unit="blocks", what="words of documents"):
            first = int(file.stem)
            counts = [reader.get_document_vector(docid) or {} for docid in docids[first : first + BLOCK]]
            words = [[word for word, count in own.items() for _ in range(count)] for own in counts]
            put_arrays(file, arrays_of(count_words(words)))
        with folder_written_whole(folder) as whole:
            about = {"vocabulary": _write(whole / ImpactSource.files, files, index), "words": "", "factor": None}
            shutil.copy(index / "docid", whole / "docid")
            write_json(whole / DESCRIBED, {**about, "encoder": {"name": "bm25"}})
        shutil.rmtree(blocks)
    return ImpactSource(folder, read_json(folder / DESCRIBED))


def _write(folder: Path, files: list[Path], index: Path) -> int:
    words, matrices = joined(files)
    if not words:
        raise InputError(f"{index / 'bm25'}: has no words of these documents; make it again with index --parts bm25")
    lengths = np.concatenate([np.asarray(counts.sum(axis=1)).ravel() for counts in matrices()])
    frequencies = sum(np.bincount(counts.indices, minlength=len(words)) for counts in matrices())
    documents = int(np.count_nonzero(lengths))
    idf = np.log(1 + (documents - frequencies + 0.5) / (frequencies + 0.5))
    damped = K1 * (1 - B + B * _as_lucene(lengths) / (lengths.sum() / documents))

    def weights() -> Iterator[csr_matrix]:
        first = 0
        for counts in matrices():
            own = np.repeat(damped[first : first + counts.shape[0]], np.diff(counts.indptr))
            weights = counts.astype(np.float64)
            weights.data = idf[counts.indices] * counts.data / (counts.data + own)
            yield weights
            first += counts.shape[0]

    write_postings(folder, weights, len(words), exact=True)
    return len(words)


def _as_lucene(lengths: np.ndarray) -> np.ndarray:
    import jnius

    byte = jnius.autoclass("org.apache.lucene.util.SmallFloat")
    distinct, inverse = np.unique(lengths, return_inverse=True)
    return np.array([byte.byte4ToInt(byte.intToByte4(int(length))) for length in distinct], dtype=np.float64)[inverse]
