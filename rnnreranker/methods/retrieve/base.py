"""The base of retrievers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.methods.base import SearchMethod

if TYPE_CHECKING:
    from rnnreranker.runs import Run


class Retriever(SearchMethod):
    """Retrieves the best documents of every topic; arguments as in `SearchMethod`.

    A subclass in its own file is a method: it sets `name`, `needs`, `Params` and implements `retrieve`; one that can
    search again sets `over`.
    """

    kind = "retrieve"
    takes_device = True

    def check(self) -> None:
        """Raise InputError or UnavailableError if the inputs cannot be used."""

    @abstractmethod
    def retrieve(self, hits: int) -> Run:
        """The run of all topics, in their order, with at most `hits` documents each."""


def run_of_rows(
    qids: tuple[str, ...], docids: Sequence[str], scores: Sequence[np.ndarray], rows: Sequence[np.ndarray]
) -> Run:
    """A run of Q queries; docids: row -> docid; scores, rows: of each query, best first, ties by docid."""
    from rnnreranker.runs import Run

    offsets = np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64)
    used, numbers = np.unique(np.concatenate(rows), return_inverse=True)
    names = np.array([docids[row] for row in used.tolist()], dtype=object)
    return Run(qids, offsets, names, numbers.astype(np.int32), np.concatenate(scores).astype(np.float64))
