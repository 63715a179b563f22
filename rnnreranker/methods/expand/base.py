"""The base of expanders."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import settings_of
from rnnreranker.parts.vectors.exact import inner_products
from rnnreranker.parts.vectors.of_run import notice_missing, query_rows, vector_rows
from rnnreranker.runs.columns import encode
from rnnreranker.runs.head import joined_by

if TYPE_CHECKING:
    from rnnreranker.base.method import Inputs
    from rnnreranker.parts.neighbours import NeighbourGraph
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


class Expander(ABC):
    """Adds documents of a graph of neighbours to every query.

    Args:
        inputs: what `needs` names.
        params: of the class `Params`; None = the defaults.
        missing: for candidates that the graph lacks: "error", or "skip" = they bring nothing.

    Raises:
        InputError: parameters of another method, another `missing`.

    A subclass in its own file is a method: it sets `name`, `needs`, `Params` and implements `brought`.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"neighbours"})
    Params: ClassVar[type[settings.Params]] = settings.Params

    def __init__(self, inputs: Inputs, params: Any = None, *, missing: str = "error") -> None:
        if missing not in ("error", "skip"):
            raise InputError(f"missing={missing!r}: expected 'error' or 'skip'")
        self.inputs = inputs
        self.params: Any = settings_of(self, "expand", params)
        self.missing = missing

    @property
    def graph(self) -> NeighbourGraph:
        graph: NeighbourGraph = self.inputs.neighbours
        return graph

    @property
    def above(self) -> int:
        """How many candidates of the run stay above the new documents."""
        return 0

    @property
    def hits(self) -> int | None:
        """How many candidates of a query come out; None = all."""
        return None

    @abstractmethod
    def brought(self, candidates: GraphCandidates) -> tuple[np.ndarray, np.ndarray]:
        """Rows (j,) int64, distinct, and scores (j,) float64 of the documents below the first `above` candidates.

        They may be new or of the run; other candidates follow below.
        """

    def check(self, run: Run) -> None:
        """Raise InputError if the graph lacks candidates of a run, or vectors have other rows than it."""
        self._rows(run)

    def _rows(self, run: Run) -> np.ndarray:
        beside = self.inputs.vectors if "vectors" in self.needs else None
        return vector_rows(self.graph, run, skip=self.missing == "skip", beside=beside)

    def expand(self, run: Run, query_vectors: QueryVectors | None = None) -> Run:
        """The run with the new documents, every query best first.

        query_vectors: (d,) float32 of every query of the run; None = those of the inputs.

        Raises:
            InputError: as `check`; a graph with fewer neighbours than asked for, a query without a vector.
        """
        from rnnreranker.runs import Run

        graph = self.graph
        if (wanted := getattr(self.params, "k", None)) is not None:
            graph.check_k("k", wanted)
        queries = None
        if "query vectors" in self.needs:
            given = self.inputs.query_vectors if query_vectors is None else query_vectors
            queries = query_rows(run, given, self.inputs.vectors.dimension)
        rows = self._rows(run)
        notice_missing(run, rows >= 0, self.name)
        nothing = np.empty(0, np.int64), np.empty(0)
        brought_by_query = []
        for number, (first, last) in enumerate(itertools.pairwise(run.offsets.tolist())):
            query = None if queries is None else queries[number]
            candidates = GraphCandidates(rows[run.rows[first:last]], run.scores[first:last], query)
            brought_by_query.append(self.brought(candidates) if last > first else nothing)
        counts = np.array([len(one) for one, _ in brought_by_query], dtype=np.int64)
        brought = np.concatenate([np.empty(0, np.int64), *(one for one, _ in brought_by_query)])
        distinct, inverse = np.unique(brought, return_inverse=True)
        names = [*run.docids.tolist(), *(graph.docids[row] for row in distinct.tolist())]
        docids, codes = encode(names, "docids")  # those of the run are the first
        scores = np.concatenate([np.empty(0), *(one for _, one in brought_by_query)])
        whole = Run(run.qids, run.offsets, docids, run.rows, run.scores)
        expanded = joined_by(whole, self.above, counts, codes[len(run.docids) :][inverse], scores)
        return expanded if self.hits is None else expanded.head(self.hits)

    def products(self, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(n,) float64: the inner products of a query (d,) with documents by rows, (n,)."""
        return inner_products(query, self.inputs.vectors.fetch(rows))
