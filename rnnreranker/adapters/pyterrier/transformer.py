"""A transformer that reranks results by the vectors of their frame or by a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyterrier

from rnnreranker.adapters.pyterrier.frames import COLUMNS, VECTORS, in_order_of, run_of, vectors_of, with_scores
from rnnreranker.methods.rerank import RnnReranker
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.hits import params_of
from rnnreranker.runs import Run

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.neighbours import NeighbourGraph


class RnnTransformer(pyterrier.Transformer):
    """Reranks results by reciprocal nearest neighbours.

    Follows transformers that add `query_vec` and `doc_vec`, such as those of pyterrier_dr's dense indexes:
    `retriever >> index.vec_loader() >> RnnTransformer()`; with a graph, any retriever.

    Args:
        params: rNN parameters, or a mapping; reranks the first `params.context` rows of a query, by score.
        graph: of `open_neighbours`, in place of vectors.
        threads: None = one per core.
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
        """The needed columns; a score only if `params` use it."""
        columns = COLUMNS if self.params.uses_run else COLUMNS[:2]
        return [*columns, *(VECTORS if self.graph is None else ())]

    def __repr__(self) -> str:
        usual, own = RnnParams().to_dict(), self.params.to_dict()
        shown = [f"{name}={value!r}" for name, value in own.items() if value != usual[name]]
        shown += [] if self.graph is None else [f"graph={str(self.graph.path)!r}"]
        return f"RnnTransformer({', '.join(shown)})"

    def transform(self, inp: pandas.DataFrame) -> pandas.DataFrame:
        """The frame in its new order, queries in the order they come, with new `score` and `rank` (from 0).

        Raises:
            pyterrier.validate.InputValidationError: a column of `transform_inputs` is missing.
            InputError: as `with_scores`, `run_of` and `vectors_of`; a docno that is not in the graph.
        """
        pyterrier.validate.columns(inp, includes=self.transform_inputs(), context=self)
        frame = with_scores(inp, self.params.context)
        if not len(frame):
            return in_order_of(Run.from_dict({}), frame)
        source, queries = vectors_of(frame) if self.graph is None else (self.graph, None)
        reranker = RnnReranker(source, self.params, threads=self.threads)
        return in_order_of(reranker.rerank(run_of(frame), queries), frame)
