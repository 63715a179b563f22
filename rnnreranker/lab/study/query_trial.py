"""A trial of a query encoder: trained on labels against the vectors of an index, tested by searching them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.device import Devices
from rnnreranker.base.method import Inputs
from rnnreranker.lab.study.trial import Values, values_of

if TYPE_CHECKING:
    import pandas

    from rnnreranker.base.settings import Params
    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run
    from rnnreranker.train.fit import Trained


@dataclass(frozen=True, eq=False)
class QueryTrial:
    """What trials of a query encoder share, in studies and in `tune train`.

    source: the fixed vectors of the documents; queries: vectors of all topics by the encoder as it is; run: their
    candidates; pooling, normalize: where they differ from what the model's files say.
    """

    source: VectorSource
    topics: Mapping[str, str]
    queries: QueryVectors
    run: Run
    encoder: str
    pooling: str | None = None
    normalize: bool | None = None
    device: str = "cpu"

    def fit(
        self,
        labels: SoftLabels,
        judged: pandas.DataFrame,
        params: Any,
        loss: Params,
        output: Path,
        *,
        relevant: int = 1,
        other_index: bool = False,
        report: Callable[[int, dict[str, float]], None] | None = None,
    ) -> Trained:
        """Train on labels, and write the encoder.

        Args:
            labels: of the training queries; judged: judgements of the validation queries, positive from `relevant` on.
            params, loss, output, other_index: as of `train_encoder`; report: its `on_validation`.
        """
        from rnnreranker.labels.methods.base import make_labeler
        from rnnreranker.train.models.query import train_encoder

        hard = make_labeler("hard", Inputs(vectors=self.source, query_vectors=self.queries), relevant=relevant)
        return train_encoder(
            labels,
            self.source,
            self.topics,
            self.encoder,
            output,
            params,
            validation=hard.infer(self.run, judged),
            pooling=self.pooling,
            normalize=self.normalize,
            loss=loss,
            other_index=other_index,
            checkpoints=False,
            device=self.device,
            on_validation=report,
        )


@dataclass(frozen=True, eq=False)
class QueryTest:
    """Queries that took no part in a training, and what a search of the whole index is worth on them."""

    topics: Mapping[str, str]
    qrels: pandas.DataFrame
    measures: str
    protocol: str = "trec"
    threads: int | None = None
    devices: Devices | None = None

    @property
    def hits(self) -> int:
        """Documents retrieved: as many as the measures look at, 100 at least."""
        from rnnreranker.evaluate.measures import deepest_cutoff

        return deepest_cutoff(self.measures)

    def values_of(self, source: VectorSource, queries: QueryVectors) -> Values:
        """Measure → query → value of the search of the queries' vectors."""
        from rnnreranker.methods.retrieve.dense import dense_run

        run = dense_run(source, queries, self.hits, threads=self.threads, batch_size=256)
        return values_of(run, self.qrels, self.measures, self.protocol, tuple(self.topics))

    def encoded(self, model: Path) -> QueryVectors:
        """The vectors of the queries by the encoder of a folder."""
        from rnnreranker.encode.dense.encoder import Encoder
        from rnnreranker.parts.vectors import QueryVectors

        encoder = Encoder.load(str(model), devices=self.devices)
        vectors = encoder.encode(list(self.topics.values()), threads=self.threads, what="queries")
        return QueryVectors(tuple(self.topics), vectors)
