"""A transformer that reranks what stands in front of it, by the vectors of its frame or by a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyterrier

from rnnreranker.adapters.pyterrier.frames import COLUMNS, VECTORS, FrameReranker
from rnnreranker.rnn import RnnParams

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.neighbours import NeighbourGraph


class RnnTransformer(pyterrier.Transformer):
    """Reranks results by reciprocal nearest neighbours.

    Behind what adds `query_vec` and `doc_vec`, such as the retriever and `vec_loader()` of a dense index of
    pyterrier_dr: `retriever >> index.vec_loader() >> RnnTransformer()`; with a graph, behind any retriever.

    Args:
        params: rNN parameters; the first `params.context` rows of a query, by score, are reranked.
        graph: of `open_neighbours`: similarities come from it, no vectors are needed, and the inner products of query
            and documents are not known (`RnnParams.without_query`).
        threads: None = one per core; results do not depend on it.
    """

    def __init__(
        self, params: RnnParams | None = None, *, graph: NeighbourGraph | None = None, threads: int | None = None
    ) -> None:
        super().__init__()
        self.params = params if params is not None else RnnParams()
        self.graph = graph
        self.threads = threads

    def transform_inputs(self) -> list[str]:
        """The columns that are needed: qid, docno, score and, without a graph, query_vec (d,) and doc_vec (d,)."""
        return [*COLUMNS, *(VECTORS if self.graph is None else ())]

    def transform(self, inp: pandas.DataFrame) -> pandas.DataFrame:
        """The frame in its new order, query after query as they come, with new `score` and `rank` (from 0).

        Raises:
            pyterrier.validate.InputValidationError: a column of `transform_inputs` is missing.
            InputError: a value of qid, docno or score is missing, a docno stands twice for a query or is not in the
                graph, vectors are of different lengths or not finite.
        """
        pyterrier.validate.columns(inp, includes=self.transform_inputs(), context=self)
        return FrameReranker(self.params, self.graph, self.threads).reranked(inp)
