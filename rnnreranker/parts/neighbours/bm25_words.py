"""The BM25 weights of the words of documents, out of a Lucene index, in the files of impacts.

A word t of a document d weighs idf(t) tf / (tf + k1 (1 - b + b |d| / avgdl)), with idf(t) = ln(1 + (N - n_t + .5) /
(n_t + .5)): what Lucene adds to the score of d for a query with t. |d| is kept by Lucene in one byte, and rounded so.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import put_folder, write_atomically
from rnnreranker.base.java import start_java
from rnnreranker.parts.impacts.files import write_impacts

K1, B = 0.9, 0.4  # Pyserini's
BLOCK = 1024  # documents read together


def write_bm25_words(lucene: Path, docids: Sequence[str], output: Path) -> None:
    """Write the folder of the documents' weights, float32; one that is there stays, and a killed work goes on.

    Args:
        lucene: the folder of a Lucene index with document vectors.
        docids: in the order of the rows; those that Lucene left out, for they have no text, have no words.

    Raises:
        InputError: an index without document vectors, or of none of these documents.
        UnavailableError: no Java 21 or newer.
    """
    if output.is_dir():
        return
    start_java()
    blocks = output.with_name(output.name + ".blocks")
    blocks.mkdir(parents=True, exist_ok=True)
    files = [blocks / f"{first:010d}.npz" for first in range(0, len(docids), BLOCK)]
    if missing := [file for file in files if not file.is_file()]:
        from pyserini.index.lucene import LuceneIndexReader

        reader = LuceneIndexReader(str(lucene.absolute()))
        for file in progress(missing, unit="blocks", what="words of documents"):
            first = int(file.stem)
            _count(reader, docids[first : first + BLOCK], file)
    counts = list(_counted(files))
    if not sum(len(words) for words, _, _ in counts):
        raise InputError(f"{lucene}: has no words of these documents; make it again with index --parts bm25")
    whole = blocks / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    _write(whole, counts)
    put_folder(whole, output)
    shutil.rmtree(blocks)


def _count(reader: Any, docids: Sequence[str], file: Path) -> None:
    """Write how often each word stands in each of some documents."""
    counted = [sorted((reader.get_document_vector(docid) or {}).items()) for docid in docids]
    words = "\n".join(word for pairs in counted for word, _ in pairs).encode()
    with write_atomically(file) as stream:
        np.savez(
            stream,
            words=np.frombuffer(words, dtype=np.uint8),
            counts=np.array([count for pairs in counted for _, count in pairs], dtype=np.int64),
            lengths=np.array([len(pairs) for pairs in counted], dtype=np.int64),
        )
        stream.flush()
        os.fsync(stream.fileno())


def _counted(files: Sequence[Path]) -> Iterator[tuple[list[str], np.ndarray, np.ndarray]]:
    """Words and how often they stand there, document after document, and how many words each document has."""
    for file in files:
        with np.load(file, allow_pickle=False) as block:
            words = block["words"].tobytes().decode()
            yield words.split("\n") if words else [], block["counts"], block["lengths"]


def _write(folder: Path, counted: Sequence[tuple[list[str], np.ndarray, np.ndarray]]) -> None:
    from scipy.sparse import csr_matrix

    known = {word: number for number, word in enumerate(sorted({word for words, _, _ in counted for word in words}))}
    numbers = [np.array([known[word] for word in words], dtype=np.int64) for words, _, _ in counted]
    lengths = np.concatenate([one for _, _, one in counted])
    spread = np.rint(np.concatenate([np.bincount(_owners(one), counts, len(one)) for _, counts, one in counted]))
    documents = int(np.count_nonzero(lengths))
    frequencies = np.bincount(np.concatenate(numbers), minlength=len(known))
    idf = np.log(1 + (documents - frequencies + 0.5) / (frequencies + 0.5))
    held = K1 * (1 - B + B * _as_lucene(spread) / (spread.sum() / documents))

    def blocks() -> Iterator[csr_matrix]:
        first = 0
        for own_numbers, (_, counts, own) in zip(numbers, counted, strict=True):
            weights = idf[own_numbers] * counts / (counts + held[first : first + len(own)][_owners(own)])
            offsets = np.concatenate([[0], np.cumsum(own)])
            made = csr_matrix((weights, own_numbers.astype(np.int32), offsets), (len(own), len(known)))
            made.sort_indices()
            yield made
            first += len(own)

    write_impacts(folder, blocks, len(known), exact=True)


def _owners(lengths: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(lengths)), lengths)


def _as_lucene(lengths: np.ndarray) -> np.ndarray:
    """Numbers of words as they come out of the byte that Lucene keeps them in."""
    import jnius

    byte = jnius.autoclass("org.apache.lucene.util.SmallFloat")
    distinct, inverse = np.unique(lengths, return_inverse=True)
    return np.array([byte.byte4ToInt(byte.intToByte4(int(length))) for length in distinct], dtype=np.float64)[inverse]
