"""How often words stand in documents: counted block by block, put together, and written in the files of impacts.

A folder `terms` holds `vocabulary.txt`, the words in the order of their characters, one a line, and the counts as a CSR
matrix in `offsets.npy`, `terms.npy` and `weights.npy`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from rnnreranker.impacts.impact_files import write_impacts
from rnnreranker.runs.columns import encode

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FOLDER = "terms"
VOCABULARY = "vocabulary.txt"


@dataclass(frozen=True)
class Counted:
    """The words of n documents.

    Attributes:
        words: those of the first document, ascending, each once, then those of the next.
        counts: (p,) int64, how often each stands there; lengths: (n,) int64, how many different words a document has.
    """

    words: list[str]
    counts: np.ndarray
    lengths: np.ndarray


def count_words(documents: Iterable[Sequence[str]]) -> Counted:
    """How often each word stands in each document.

    >>> count_words([["b", "a", "b"], []])
    Counted(words=['a', 'b'], counts=array([1, 2]), lengths=array([2, 0]))
    """
    found = [sorted(Counter(own).items()) for own in documents]
    return Counted(
        [word for own in found for word, _ in own],
        np.array([count for own in found for _, count in own], dtype=np.int64),
        np.array([len(own) for own in found], dtype=np.int64),
    )


def save_counted(stream: IO[bytes], counted: Counted) -> None:
    """Write a block as `.npz`."""
    words = np.frombuffer("\n".join(counted.words).encode(), dtype=np.uint8)
    np.savez(stream, words=words, counts=counted.counts, lengths=counted.lengths)


def load_counted(file: Path) -> Counted:
    """A block that `save_counted` wrote."""
    with np.load(file, allow_pickle=False) as block:
        words = block["words"].tobytes().decode()
        return Counted(words.split("\n") if words else [], block["counts"], block["lengths"])


def write_counts(folder: Path, blocks: Callable[[], Iterable[Counted]]) -> tuple[int, int]:
    """Write the folder; how many different words there are, and how many counts.

    Args:
        folder: made here.
        blocks: gives all documents in their order, whenever it is called.
    """
    from scipy.sparse import csr_matrix

    known: set[str] = set()
    large = False
    for block in blocks():
        known.update(encode(block.words, "words")[0])
        large |= bool(block.counts.max(initial=0) >= 2**16)
    words = sorted(known)
    number = {word: place for place, word in enumerate(words)}

    def matrices() -> Iterator[csr_matrix]:
        for block in blocks():
            distinct, codes = encode(block.words, "words")
            terms = np.array([number[word] for word in distinct], dtype=np.int32)[codes]
            offsets = np.concatenate([[0], np.cumsum(block.lengths)])
            yield csr_matrix((block.counts, terms, offsets), (len(block.lengths), max(len(words), 1)))

    documents = write_impacts(folder, matrices, max(len(words), 1), exact=large)
    (folder / VOCABULARY).write_text("".join(f"{word}\n" for word in words), encoding="utf-8", newline="\n")
    return len(words), int(documents.sum())
