"""The base of retrievers, expanders and rerankers."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.device import Devices, devices_of
from rnnreranker.base.errors import InputError, brief, count_of, instance_of
from rnnreranker.base.method import Inputs, settings_of
from rnnreranker.parts.vectors.of_run import check_dimension, check_missing, vector_rows
from rnnreranker.parts.vectors.together import notice_mismatch

if TYPE_CHECKING:
    from rnnreranker.methods.feedback.base import Feedback
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run

Missing = Literal["error", "skip"]


class SearchMethod(ABC):
    """A method that reads inputs and makes a run.

    Args:
        inputs: what `needs` names, with the same documents in the same rows; a VectorSource stands for
            `Inputs(vectors=it)`.
        params: of the class `Params`, or a mapping of its settings; None = the defaults.
        threads: None = one per core; batch_size: queries at a time. Results depend on neither.
        missing: for candidates without vector, graph row or text: "error", or "skip" = they stay below the others.
        device: of models, as in `devices_of`, if the method `takes_device`.
        feedback: makes the queries of a second search; None = one search.

    Raises:
        InputError: another `missing`, parameters of another method, unusable device.
    """

    kind: ClassVar[str]  # the verb, for messages
    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    over: ClassVar[str] = ""  # one of `Feedback.over`; "" = no second search
    Params: ClassVar[type[settings.Params]] = settings.Params
    takes_device: ClassVar[bool] = False

    def __init__(
        self,
        inputs: Inputs | VectorSource,
        params: Any = None,
        *,
        threads: int | None = None,
        missing: Missing = "error",
        device: str | Devices | None = None,
        batch_size: int = 256,
        feedback: Feedback | None = None,
    ) -> None:
        if not isinstance(missing, str) or missing not in ("error", "skip"):
            raise InputError(f"missing={brief(missing)}: expected 'error' or 'skip'")
        if not isinstance(inputs, Inputs) and not hasattr(inputs, "fetch"):
            raise InputError(f"vectors={brief(inputs)}: expected what open_vectors returns, a graph or Inputs")
        if device is not None and not self.takes_device:
            raise InputError(f"device={device}: {self.name} takes none, it computes on the processor")
        params = self.Params.of(params, "params") if isinstance(params, Mapping) else params
        self.inputs = inputs if isinstance(inputs, Inputs) else Inputs(vectors=inputs)
        self.params: Any = settings_of(self, self.kind, params)
        self.threads = None if threads is None else count_of(threads, "threads")
        self.missing, self.batch_size = missing, batch_size
        self.feedback: Any = feedback  # None, or a Feedback
        self.devices = devices_of(device)
        self.prepare()

    def prepare(self) -> None:  # noqa: B027  not every method has something to load
        """Load the method's model; the constructor calls it."""

    @property
    def vectors(self) -> VectorSource:
        return self.inputs.vectors

    @property
    def graph(self) -> NeighbourGraph:
        return self.inputs.neighbours

    def vectors_of(self, run: Run, given: QueryVectors | None = None) -> Any:
        """(Q, d) float32 of the queries of a run, Q None if not needed; a notice reports vectors that do not match.

        given: in place of those of the inputs. InputError: another dimension, a query without a vector.
        """
        from rnnreranker.parts.vectors.source import QueryVectors

        if "query vectors" not in self.needs:
            return [None] * len(run)
        queries = self.inputs.query_vectors if given is None else given
        instance_of(queries, QueryVectors, "query_vectors")
        if "vectors" in self.needs:
            check_dimension(queries, self.vectors.dimension)
            if self.inputs.compared is not queries:
                self.inputs.compared = queries
                notice_mismatch(run, queries, self.vectors)
        return queries.of(run.qids).vectors

    def rows_of(self, run: Run) -> np.ndarray:
        """(V,) int64: rows of the documents of a run, -1 for those that this method cannot use; 0 if it reads no rows.

        Raises:
            InputError: no Run, queries without a text, other rows in the graph than in the vectors; documents without
                vector, graph row or text (missing="error").
        """
        from rnnreranker.runs import Run

        instance_of(run, Run, "run")
        if "topics" in self.needs and (lost := [qid for qid in run if qid not in self.inputs.topics]):
            raise InputError(
                f"{len(lost)} of {len(run)} queries of the run have no text in the topics (first: "
                f"{', '.join(lost[:3])}); give the topics that the run was made from"
            )
        rows, skip = np.zeros(len(run.docids), dtype=np.int64), self.name if self.missing == "skip" else ""
        sources = [getattr(self.inputs, one) for one in ("vectors", "neighbours", "tokens") if one in self.needs]
        if sources:
            rows = vector_rows(sources[0], run, skip=skip, beside=sources[1] if sources[1:] else None)
        if "texts" in self.needs:
            texts = self.inputs.texts
            rows[[docid not in texts for docid in run.docids.tolist()]] = -1
            check_missing(run, rows >= 0, "have no text", skip)
        return rows
