"""The base of expanders."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.methods.base import SearchMethod
from rnnreranker.parts.vectors.exact import inner_products
from rnnreranker.runs.columns import encode
from rnnreranker.runs.head import joined_by

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run


@dataclass(frozen=True, eq=False)
class GraphCandidates:
    """The n >= 1 candidates of a query, in the order of the run."""

    rows: np.ndarray  # (n,) int64: rows of the graph, -1 where it does not have the document
    scores: np.ndarray  # (n,) float64
    query: Any = None  # (d,) float32 where the method needs query vectors

    @property
    def known(self) -> np.ndarray:
        return self.rows[self.rows >= 0]


class Expander(SearchMethod):
    """Adds documents of a graph of neighbours to every query; arguments as in `SearchMethod`.

    A subclass in its own file is a method: it sets `name`, `needs`, `Params` and implements `brought`. A setting `k` is
    the number of neighbours that the graph must have, `hits` that of the candidates of a query that come out.
    """

    kind = "expand"
    needs: ClassVar[frozenset[str]] = frozenset({"neighbours"})

    @property
    def above(self) -> int:
        """How many candidates of the run stay above the new documents: the setting `below`, or none."""
        return int(getattr(self.params, "below", 0))

    @abstractmethod
    def brought(self, candidates: GraphCandidates) -> tuple[np.ndarray, np.ndarray]:
        """Rows (j,) int64, distinct, and scores (j,) float64 of the documents below the first `above` candidates.

        They may be new or of the run; other candidates follow below.
        """

    def expand(self, run: Run, query_vectors: QueryVectors | None = None) -> Run:
        """The run with the new documents, every query best first.

        query_vectors: (d,) float32 of every query of the run; None = those of the inputs.

        Raises:
            InputError: as `rows_of`; a graph with fewer neighbours than asked for, a query without a vector.
        """
        from rnnreranker.runs import Run

        graph = self.graph
        if (wanted := getattr(self.params, "k", None)) is not None:
            graph.check_k("k", wanted)
        known, queries = self.rows_of(run), self.vectors_of(run, query_vectors)
        rows, scores = [np.empty(0, np.int64)], [np.empty(0)]
        for query, (first, last) in zip(queries, itertools.pairwise(run.offsets.tolist()), strict=True):
            of_query = rows[0], scores[0]
            if last > first:
                of_query = self.brought(GraphCandidates(known[run.rows[first:last]], run.scores[first:last], query))
            rows.append(of_query[0])
            scores.append(of_query[1])
        counts = np.array([len(one) for one in rows[1:]], dtype=np.int64)
        distinct, inverse = np.unique(np.concatenate(rows), return_inverse=True)
        names = [*run.docids.tolist(), *(graph.docids[row] for row in distinct.tolist())]
        docids, codes = encode(names, "docids")  # those of the run are the first
        whole = Run(run.qids, run.offsets, docids, run.rows, run.scores)
        brought = codes[len(run.docids) :][inverse]
        expanded = joined_by(whole, self.above, counts, brought, np.concatenate(scores))
        hits = getattr(self.params, "hits", None)
        return expanded if hits is None else expanded.head(hits)

    def products(self, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(n,) float64: the inner products of a query (d,) with documents by rows, (n,)."""
        return inner_products(query, self.vectors.fetch(rows))
