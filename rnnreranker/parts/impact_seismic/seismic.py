"""Approximate search of impacts for large collections, by Seismic (the package pyseismic-lsr), and what it misses.

Seismic skips blocks of a word's documents whose summary promises too little. What it finds is scored again, exactly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files.checksums import check_files
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.java import library_output
from rnnreranker.parts.impacts.exact import Hits, in_order

if TYPE_CHECKING:
    from rnnreranker.parts.impacts.queries import QueryImpacts
    from rnnreranker.parts.impacts.source import ImpactSource

PART = "impact-seismic"  # the folder, and the part
INDEX, ABOUT = "impacts.index.seismic", "impacts.json"  # {"impacts": fingerprint of the stored weights}
HOW = "make it with index --parts impact,impact-seismic"
SMALL_VOCABULARY = 2**16  # words that its index of 16-bit numbers holds
BLOCK = 2**14  # documents handed over together


def write_seismic(source: ImpactSource, folder: Path, threads: int) -> None:
    """Seismic's index of stored weights in a folder that is there; weights are divided by the largest, for float16.

    Raises:
        MissingDependencyError: Seismic is not installed.
    """
    package = _package()
    large = source.vocabulary > SMALL_VOCABULARY
    data = (package.SeismicDatasetLV if large else package.SeismicDataset)(dim=source.vocabulary)
    largest = source.largest or 1.0
    for first in range(0, len(source.docids), BLOCK):
        rows = np.arange(first, min(first + BLOCK, len(source.docids)))
        impacts = source.fetch(rows)
        words, offsets = impacts.indices.astype(np.int64), impacts.indptr.astype(np.int64)
        data.add_documents_by_id([str(row) for row in rows], words, impacts.data / np.float32(largest), offsets)
    with library_output():
        kind = package.SeismicIndexLV if large else package.SeismicIndex
        made = kind.build_from_dataset(data, num_threads=threads)
        made.save(str(folder / INDEX.removesuffix(".index.seismic")))


def check_seismic(source: ImpactSource) -> None:
    """Look that Seismic's index stands beside stored weights, and is of them.

    Raises:
        InputError: none there, or one of other weights.
        MissingDependencyError: Seismic is not installed.
    """
    _package()
    folder = source.index / PART
    if not (folder / INDEX).is_file():
        raise InputError(f"{source.index}: no index of Seismic in this index; {HOW}")
    check_files(source.index, PART)
    about = read_json(folder / ABOUT, repair=HOW)
    if not isinstance(about, dict) or about.get("impacts") != source.fingerprint:
        raise InputError(f"{folder}: is of other impacts than those of {source.index}; {HOW}")


def search_seismic(
    source: ImpactSource, queries: QueryImpacts, hits: int, threads: int, query_cut: int, heap_factor: float
) -> list[Hits]:
    """Scores and rows of about the best documents of every query; a score is that of the exact search.

    Args:
        queries: their numbers with ascending columns; hits: documents per query; threads: of Seismic.
        query_cut: words of a query that are looked up, the heaviest.
        heap_factor: blocks that promise less than the worst hit so far times about this are skipped.

    Raises:
        InputError: as `check_seismic`; a file that Seismic cannot read.
    """
    check_seismic(source)
    package, path = _package(), source.index / PART / INDEX
    kind = package.SeismicIndexLV if source.vocabulary > SMALL_VOCABULARY else package.SeismicIndex
    word = package.get_seismic_string()
    try:
        with library_output():
            index = kind.load(str(path))
    except Exception as error:  # what its reader raises has no bounds
        raise InputError(f"{path}: cannot be read ({str(error).splitlines()[0][:200]}); {HOW}") from None
    numbers = queries.numbers
    asked = [number for number in range(numbers.shape[0]) if numbers.indptr[number] < numbers.indptr[number + 1]]
    slices = [slice(numbers.indptr[number], numbers.indptr[number + 1]) for number in asked]
    with library_output():
        answers = index.batch_search(
            np.array([str(number) for number in asked], dtype=word),
            [numbers.indices[own].astype(str).astype(word) for own in slices],
            [numbers.data[own].astype(np.float32) for own in slices],
            k=hits,
            query_cut=query_cut,
            heap_factor=heap_factor,
            num_threads=threads,
        )
    result: list[Hits] = [(np.empty(0), np.empty(0, dtype=np.int64))] * numbers.shape[0]
    for own in filter(None, answers):  # they come in any order, each with the name of its query
        number = int(own[0][0])
        rows = np.array([int(row) for _, _, row in own], dtype=np.int64)
        scores = (source.fetch(rows).astype(np.float64) @ numbers[number].astype(np.float64).T).toarray()[:, 0]
        result[number] = in_order(scores / source.unit(queries), rows, source.docid_ranks)
    return result


def sample_of(names: Sequence[str], count: int) -> list[int]:
    """The numbers of `count` queries whose SHA-256 is lowest, ascending: the same choice everywhere."""
    by_hash = sorted(range(len(names)), key=lambda number: hashlib.sha256(names[number].encode()).digest())
    return sorted(by_hash[:count])


def recall(rows: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> float:
    """The share of the exact rows among those of a search, mean over queries that have some.

    >>> recall([np.array([1, 2]), np.array([])], [np.array([2, 3]), np.array([])])
    0.5
    """
    shares = [np.isin(best, own).mean() for own, best in zip(rows, exact, strict=True) if len(best)]
    return float(np.mean(shares)) if shares else 1.0


def _package() -> Any:
    return require("seismic", "approximate search of impacts", "'rnnreranker[seismic]'")
