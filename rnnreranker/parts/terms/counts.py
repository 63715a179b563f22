"""How often words stand in documents: counted block by block, put together, and written in the files of impacts.

A folder `terms` holds `vocabulary.txt`, the words in the order of their characters, one a line, and the counts as a CSR
matrix in `offsets.npy`, `terms.npy` and `weights.npy`.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from rnnreranker.parts.impacts.files import write_impacts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FOLDER = "terms"
VOCABULARY = "vocabulary.txt"


@dataclass(frozen=True)
class Counted:
    """The words of n documents.

    Attributes:
        vocabulary: the different words, ascending.
        words: (p,) int32, numbers of the words of the first document, ascending, each once, then those of the next.
        counts: (p,) int64, how often each stands there; lengths: (n,) int64, how many different words a document has.
    """

    vocabulary: list[str]
    words: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray


def count_words(documents: Iterable[Sequence[str]]) -> Counted:
    """How often each word stands in each document.

    >>> counted = count_words([["b", "a", "b"], []])
    >>> counted.vocabulary, counted.words.tolist(), counted.counts.tolist(), counted.lengths.tolist()
    (['a', 'b'], [0, 1], [1, 2], [2, 0])
    """
    documents = list(documents)
    numbers: dict[str, int] = defaultdict(itertools.count().__next__)  # a word that is new gets the next
    every = np.fromiter(map(numbers.__getitem__, itertools.chain.from_iterable(documents)), dtype=np.int64)
    vocabulary = sorted(numbers)
    rank_of = np.empty(len(vocabulary), dtype=np.int64)
    rank_of[[numbers[word] for word in vocabulary]] = np.arange(len(vocabulary))
    bits = len(vocabulary).bit_length()
    owners = np.repeat(np.arange(len(documents)) << bits, [len(own) for own in documents])
    pairs, counts = np.unique(owners | rank_of[every], return_counts=True)
    words = (pairs & ((1 << bits) - 1)).astype(np.int32)
    return Counted(vocabulary, words, counts, np.bincount(pairs >> bits, minlength=len(documents)))


def save_counted(stream: IO[bytes], counted: Counted) -> None:
    """Write a block as `.npz`."""
    vocabulary = np.frombuffer("\n".join(counted.vocabulary).encode(), dtype=np.uint8)
    np.savez(stream, vocabulary=vocabulary, words=counted.words, counts=counted.counts, lengths=counted.lengths)


def load_counted(file: Path) -> Counted:
    """A block that `save_counted` wrote."""
    with np.load(file, allow_pickle=False) as block:
        words = block["vocabulary"].tobytes().decode()
        return Counted(words.split("\n") if words else [], block["words"], block["counts"], block["lengths"])


def write_counts(folder: Path, blocks: Callable[[], Iterable[Counted]]) -> tuple[int, int, int]:
    """Write the folder; how many different words there are, how many counts, and how many documents without a word.

    Args:
        folder: made here.
        blocks: gives all documents in their order, whenever it is called.
    """
    from scipy.sparse import csr_matrix

    known: set[str] = set()
    large, empty = False, 0
    for block in blocks():
        known.update(block.vocabulary)
        empty += int((block.lengths == 0).sum())
        large |= bool(block.counts.max(initial=0) >= 2**16)
    words = sorted(known)
    number = {word: rank for rank, word in enumerate(words)}

    def matrices() -> Iterator[csr_matrix]:
        for block in blocks():
            terms = np.array([number[word] for word in block.vocabulary], dtype=np.int32)[block.words]
            offsets = np.concatenate([[0], np.cumsum(block.lengths)])
            yield csr_matrix((block.counts, terms, offsets), (len(block.lengths), max(len(words), 1)))

    documents = write_impacts(folder, matrices, max(len(words), 1), exact=large)
    (folder / VOCABULARY).write_text("".join(f"{word}\n" for word in words), encoding="utf-8", newline="\n")
    return len(words), int(documents.sum()), empty
