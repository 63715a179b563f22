"""The candidates of queries as rows of one float16 table, and the table's vectors gathered for a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.errors import InputError

if TYPE_CHECKING:
    from rnnreranker.labels import SoftLabels
    from rnnreranker.vectors import VectorSource

BLOCK = 8192  # rows fetched at a time
PAD = -1


@dataclass(frozen=True, eq=False)
class Sample:
    """One query with its n candidates.

    Args:
        qid: the query's id.
        rows: (n,) int64, rows of the table.
        targets: (n,) float32, probabilities that sum to 1.
        positive: (n,) bool, judged relevant.
    """

    qid: str
    rows: np.ndarray
    targets: np.ndarray
    positive: np.ndarray


SPARSE = 16  # a table that many times longer than a batch has rows is not scanned


class VectorTable:
    """Vectors of documents in memory, (D, d) float16 (or float32), and a buffer that gathered vectors go to."""

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors = np.ascontiguousarray(vectors)
        self._buffer = np.empty((0, self.vectors.shape[1]), dtype=self.vectors.dtype)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dimension(self) -> int:
        """d, the length of a vector."""
        return int(self.vectors.shape[1])

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """(n, d) in the table's dtype: the vectors of rows, in a buffer that the next call overwrites.

        Args:
            rows: (n,) or (B, N) integers in [0, D); of another shape than (n,) they give (B * N, d).
        """
        flat = np.ravel(rows)
        if len(flat) > len(self._buffer):
            self._buffer = np.empty((len(flat), self.dimension), dtype=self.vectors.dtype)
        return np.take(self.vectors, flat, axis=0, out=self._buffer[: len(flat)], mode="clip")  # clip: no copy made

    def gather_distinct(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The vectors of the distinct rows, (U, d), and the place of every row among them, shape of `rows`.

        Padding (-1) points at place 0.
        """
        if SPARSE * rows.size < len(self):  # sorting the few is quicker than a look at the whole table
            found, places = np.unique(rows, return_inverse=True)
            padded = int(len(found) > 0 and found[0] == PAD)
            return self.gather(found[padded:]), np.maximum(places.reshape(rows.shape) - padded, 0)
        seen = np.zeros(len(self), dtype=bool)
        seen[rows[rows != PAD]] = True
        distinct = np.flatnonzero(seen)
        place = np.zeros(len(self) + 1, dtype=np.int64)  # the last entry is what PAD = -1 finds
        place[distinct] = np.arange(len(distinct))
        return self.gather(distinct), place[rows]


def check_index(
    labels: SoftLabels, source: VectorSource, labels_name: str = "the labels", index_name: str = "the index"
) -> None:
    """Look that labels were made from the vectors they are to be trained on; labels that name no index pass.

    Args:
        labels: their metadata say which index their targets were computed from; those of the method `hard` do not.
        source: vectors to train against.
        labels_name, index_name: what the two are called in the message.

    Raises:
        InputError: two different indexes.
    """
    made_from = labels.metadata.get("index")
    if made_from is not None and made_from != source.fingerprint:
        raise InputError(
            f"{labels_name}: made from index {str(made_from)[:8]}..., {index_name} is {source.fingerprint[:8]}...; "
            "give the index of the labels, or --other-index to train on labels of another one"
        )


def read_samples(
    labels: SoftLabels, source: VectorSource, candidates: int | None, *, qids: Iterable[str] | None = None
) -> tuple[list[Sample], np.ndarray, int]:
    """Samples whose rows are rows of the source, the distinct rows in use, and how many candidates had no vector.

    A query keeps every candidate that is positive or has probability, and fills up with the others in the order of the
    label file until there are `candidates`; None = all of them. Candidates without a vector are left out and
    probabilities scaled to 1; queries that lose all probability are left out.

    Raises:
        InputError: no query is left.
    """
    wanted = None if qids is None else set(qids)
    samples, lost = [], 0
    for one in labels:
        if wanted is not None and one.qid not in wanted:
            continue
        rows = np.asarray(source.rows(one.docids), dtype=np.int64)
        known = rows >= 0
        lost += int((~known).sum())
        first = known & (one.positive | (one.targets > 0))
        room = None if candidates is None else max(candidates - int(first.sum()), 0)
        others = np.flatnonzero(known & ~first)[:room]
        kept = np.sort(np.concatenate([np.flatnonzero(first), others]))
        targets = one.targets[kept].astype(np.float32)
        total = float(targets.sum())
        if total > 0:
            samples.append(Sample(one.qid, rows[kept], targets / np.float32(total), one.positive[kept].copy()))
    if not samples:
        raise InputError(
            "no query with labels has a candidate with a vector in the index; expected labels of this index's documents"
        )
    return samples, np.unique(np.concatenate([sample.rows for sample in samples])), lost


def load_table(source: VectorSource, rows: np.ndarray, dtype: str = "float16") -> VectorTable:
    """The table of the given rows of a source, in their order.

    Raises:
        InputError: a vector too large for float16.
    """
    vectors = np.empty((len(rows), source.dimension), dtype=dtype)
    for start in range(0, len(rows), BLOCK):
        fetched = source.fetch(rows[start : start + BLOCK])
        if dtype == "float16" and np.abs(fetched).max(initial=0) > np.finfo(np.float16).max:
            raise InputError("document vectors have values beyond 65504, too large for float16; scale them down")
        vectors[start : start + BLOCK] = fetched
    return VectorTable(vectors)


def renumber(samples: Sequence[Sample], rows: np.ndarray) -> list[Sample]:
    """The samples with rows of the table that `load_table(source, rows)` made; `rows` ascending."""
    return [
        Sample(sample.qid, np.searchsorted(rows, sample.rows), sample.targets, sample.positive) for sample in samples
    ]
