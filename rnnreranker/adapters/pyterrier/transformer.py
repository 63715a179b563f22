"""A transformer that reranks what stands in front of it, by the vectors of its frame or by a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyterrier

from rnnreranker.adapters.pyterrier.frames import COLUMNS, VECTORS, FrameReranker, with_scores
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.hits import params_of

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.neighbours import NeighbourGraph


class RnnTransformer(pyterrier.Transformer):
    """Reranks results by reciprocal nearest neighbours.

    Behind what adds `query_vec` and `doc_vec`, such as the retriever and `vec_loader()` of a dense index of
    pyterrier_dr: `retriever >> index.vec_loader() >> RnnTransformer()`; with a graph, behind any retriever.

    Args:
        params: rNN parameters, or a mapping; the first `params.context` rows of a query, by score, are reranked.
        graph: of `open_neighbours`: similarities come from it, no vectors are needed, and the inner products of query
            and documents are not known (`RnnParams.without_query`).
        threads: None = one per core; results do not depend on it.
    """

    def __init__(
        self,
        params: RnnParams | Mapping[str, Any] | None = None,
        *,
        graph: NeighbourGraph | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        self.params = params_of(params)
        self.graph = graph
        self.threads = threads

    def transform_inputs(self) -> list[str]:
        """The columns that are needed: qid, docno and, without a graph, query_vec (d,) and doc_vec (d,).

        And score, unless `params` take nothing from the first stage, as the preset "vectors".
        """
        columns = COLUMNS if self.params.uses_run else COLUMNS[:2]
        return [*columns, *(VECTORS if self.graph is None else ())]

    def __repr__(self) -> str:
        usual, own = RnnParams().to_dict(), self.params.to_dict()
        shown = [f"{name}={value!r}" for name, value in own.items() if value != usual[name]]
        shown += [] if self.graph is None else [f"graph={str(self.graph.path)!r}"]
        return f"RnnTransformer({', '.join(shown)})"

    def transform(self, inp: pandas.DataFrame) -> pandas.DataFrame:
        """The frame in its new order, query after query as they come, with new `score` and `rank` (from 0).

        Raises:
            pyterrier.validate.InputValidationError: a column of `transform_inputs` is missing.
            InputError: without scores more candidates than take part; a value of qid, docno or score is missing; a
                docno is there twice for a query, or is not in the graph; vectors of different lengths, or not finite.
        """
        pyterrier.validate.columns(inp, includes=self.transform_inputs(), context=self)
        frame = with_scores(inp, self.params.context)
        return FrameReranker(self.params, self.graph, self.threads).reranked(frame)
