"""Labelers that compare vectors, or documents by a graph: several queries at once, with a mass that can be chosen."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rnnreranker.labels import smooth, targets
from rnnreranker.labels.graph_similarity import BYTES, GraphSimilarity
from rnnreranker.labels.judged import Judged, JudgedBatch, JudgedContext, batches, check_queries, stacked
from rnnreranker.labels.methods.base import Labeler, Labelled, Source
from rnnreranker.labels.params import SHARED
from rnnreranker.labels.similarity import Similarity, VectorSimilarity
from rnnreranker.parts.vectors.of_run import vector_rows
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import OF_THE_MIXTURE

if TYPE_CHECKING:
    from rnnreranker.labels.soft import SoftLabels
    from rnnreranker.runs import Run


class VectorLabeler(Labeler):
    """Base of the labelers that look at vectors, several queries at once; a subclass writes `similarities`.

    The first `params.context` candidates take part, positives included. From a graph of the collection neither vectors
    nor queries are read, by those that ask nothing of the query itself (`of_documents`).
    """

    needs = frozenset({"vectors", "query vectors"})
    Params = RnnParams
    defaults: ClassVar[RnnParams] = RnnParams.preset("vectors")
    without: ClassVar[frozenset[str]] = OF_THE_MIXTURE
    compares = True
    of_documents: ClassVar[bool] = True
    params: RnnParams

    @classmethod
    def needs_from(cls, source: Source, params: Any) -> frozenset[str]:
        if source == "neighbours" and cls.of_documents:
            return frozenset({"neighbours"})
        return super().needs_from(source, params)

    @property
    def takes_mass(self) -> bool:
        """Whether positives get the share of probability that evidence would give them."""
        return self.label_params.mass == "evidence"

    @abstractmethod
    def similarities(self, batch: JudgedBatch) -> np.ndarray:
        """(B, R, N) float32: every candidate against every positive."""

    def similarity(self, batch: JudgedBatch) -> Similarity:
        """Of the candidates of a batch to its elements."""
        if self.source == "neighbours":
            return GraphSimilarity(batch.lengths, self.params, self.threads, self.inputs.neighbours, batch.rows)
        return VectorSimilarity(batch.lengths, self.params, self.threads, batch.vectors)

    def infer_from(self, run: Run, judged: Judged) -> tuple[SoftLabels, int]:
        """The labels, and how many positives were left out for want of a vector.

        Raises:
            InputError: queries or candidates without a vector, vectors of another dimension, or in other rows than in
                the graph.
        """
        self.check(run, judged)
        return super().infer_from(run, judged)

    def check(self, run: Run, judged: Judged) -> None:
        """Look that queries with positives have vectors where they are read, and that a graph has the rows of vectors.

        Raises:
            InputError: as `infer_from`.
        """
        if "query vectors" in self.needs_from(self.source, self.params):
            check_queries(run, judged, self.inputs.vectors, self.inputs.query_vectors)
        if self._reads_both:
            vector_rows(self.inputs.neighbours, run, skip=True, beside=self.inputs.vectors)

    def describe(self) -> dict[str, Any]:
        metadata = super().describe()
        if vectors := self._vectors():
            metadata["vectors"] = vectors
        metadata["labels"]["mass"] = "evidence" if self.takes_mass else self.label_params.mass or "own"
        return metadata

    def _vectors(self) -> str:
        """The fingerprint of the vectors beside a graph, else of those that it was made from; empty where none are."""
        if self._reads_both:
            return str(self.inputs.vectors.fingerprint)
        if self.source == "vectors":
            return ""
        origin = self.inputs.neighbours.origin
        return str(origin.source) if origin.of == "dense" else ""

    @property
    def _reads_both(self) -> bool:
        """Whether vectors are read beside a graph, by the same rows."""
        return self.source == "neighbours" and "vectors" in self.needs_from(self.source, self.params)

    def label(self, batch: JudgedBatch) -> tuple[np.ndarray, np.ndarray]:
        """Scores and targets of a batch: (B, N) float32 each."""
        similarities = self.similarities(batch)
        raw, own = self.own_targets(batch, similarities)
        known = batch.positive & batch.real
        if self.takes_mass:
            mixed = self.similarity(batch).mixed(batch.positives)
            _, evidence = smooth.from_scores(mixed, batch.grades, batch.real, self.label_params)
            return raw, targets.with_mass_of(own, evidence, known)
        if self.label_params.mass not in SHARED:
            return raw, own
        takers = batch.real & ~known
        if self.label_params.mass == "confident":
            takers = takers & (self._to_positives(similarities) >= self.label_params.threshold)
        hard = np.zeros(own.shape)
        hard[:, : batch.grades.shape[1]] = targets.of_grades(batch.grades)
        return raw, targets.with_share(own, hard, takers, self.label_params.share or 0.0)

    def own_targets(self, batch: JudgedBatch, similarities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores and targets of a batch, (B, N) float32 each, with the mass that the method itself gives.

        similarities: (B, R, N), those of the batch.
        """
        return smooth.from_scores(similarities, batch.grades, batch.real, self.label_params)

    def similar(self, contexts: Sequence[JudgedContext]) -> Labelled:
        """The index of every context with similarities to its positives and the method's own targets, (n,) each.

        Similarities are the mean over the positives, or the highest where `aggregate` says so; grades do not weigh.
        """
        for batch in self.batches(contexts):
            similarities = self.similarities(batch)
            near, (_, given) = self._to_positives(similarities), self.own_targets(batch, similarities)
            for row, (index, length) in enumerate(zip(batch.indices, batch.lengths.tolist(), strict=True)):
                yield index, near[row, :length], given[row, :length]

    def labelled(self, contexts: Sequence[JudgedContext]) -> Labelled:
        for batch in self.batches(contexts):
            raw, given = self.label(batch)
            for row, (index, length) in enumerate(zip(batch.indices, batch.lengths.tolist(), strict=True)):
                yield index, raw[row, :length], given[row, :length]

    def _to_positives(self, similarities: np.ndarray) -> np.ndarray:
        """(B, N) float64, of (B, R, N)."""
        how = "max" if self.label_params.aggregate == "max" else "mean"
        return targets.aggregated(similarities, np.ones(similarities.shape[:2]), how)

    def batches(self, contexts: Sequence[JudgedContext]) -> Iterator[JudgedBatch]:
        """The contexts in batches, with vectors where the method reads them."""
        if "vectors" in self.needs_from(self.source, self.params):
            return batches(contexts, self.inputs.vectors, self.inputs.query_vectors)
        return stacked(contexts, BYTES * self.source_of_rows.k)

    @property
    def source_of_rows(self) -> Any:
        return self.inputs.vectors if self.source == "vectors" else self.inputs.neighbours
