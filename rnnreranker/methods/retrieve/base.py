"""The base of retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.methods.base import SearchMethod

if TYPE_CHECKING:
    from rnnreranker.runs import Run

Hits = tuple[Sequence[np.ndarray], Sequence[np.ndarray]]  # scores and rows of every query, best first, ties by docid


class Retriever(SearchMethod):
    """Retrieves the best documents of every topic; arguments as in `SearchMethod`.

    A subclass in its own file is a method: it sets `name`, `needs`, `Params` and implements `retrieve`, or `queries`
    and `search`; one that can search again sets `over` and implements `queries_again`.
    """

    kind = "retrieve"
    takes_device = True

    def check(self) -> None:
        """Raise InputError or UnavailableError if the inputs cannot be used."""

    def retrieve(self, hits: int) -> Run:
        """The run of all topics, in their order, with at most `hits` documents each."""
        queries = self.queries()
        if self.feedback is not None:
            queries = self.queries_again(queries, self.search(queries, self.feedback.depth(self.over)))
        qids = queries.qids if hasattr(queries, "qids") else tuple(self.inputs.topics)
        return run_of_rows(qids, self.part.docids, *self.search(queries, hits))

    @property
    def part(self) -> Any:
        """The part of the index that is searched, with `docids`."""
        [need] = self.needs & {"vectors", "tokens", "impacts", "terms"}
        return getattr(self.inputs, need)

    def queries(self) -> Any:
        """The queries, as `search` takes them."""
        raise NotImplementedError

    def search(self, queries: Any, hits: int) -> Hits:
        """The best documents of every query, at most `hits`."""
        raise NotImplementedError

    def queries_again(self, queries: Any, hits: Hits) -> Any:
        """The queries that feedback makes of queries and their hits; one without hits stays unchanged."""
        raise NotImplementedError


def run_of_rows(
    qids: tuple[str, ...], docids: Sequence[str], scores: Sequence[np.ndarray], rows: Sequence[np.ndarray]
) -> Run:
    """A run of Q queries; docids: row -> docid; scores, rows: of each query, best first, ties by docid."""
    from rnnreranker.runs import Run

    offsets = np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64)
    every = np.concatenate(rows)
    used, numbers = np.unique(every), np.zeros(len(docids), dtype=np.int32)
    numbers[used] = np.arange(len(used))  # only what is used takes memory
    names = np.array([docids[row] for row in used.tolist()], dtype=object)
    return Run(qids, offsets, names, numbers[every], np.concatenate(scores).astype(np.float64))
