"""Labelers: a run and sparse judgements in, soft labels out; one class a method, one method a class has to write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from rnnreranker.errors import InputError, nearest
from rnnreranker.labels import smooth, targets
from rnnreranker.labels.judged import (
    Judged,
    JudgedBatch,
    JudgedContext,
    batches,
    check_queries,
    contexts_of,
    positives_of,
)
from rnnreranker.labels.params import LabelParams
from rnnreranker.labels.soft import SoftLabels
from rnnreranker.rnn import RnnParams

if TYPE_CHECKING:
    import pandas

    from rnnreranker.runs import Run
    from rnnreranker.vectors import QueryVectors, VectorSource


class Labeler(Protocol):
    """What makes soft labels."""

    name: str

    def infer(self, run: Run, qrels: pandas.DataFrame) -> SoftLabels:
        """The labels of the queries of a run that have a positive, in the order of the run."""
        ...


class HardLabeler:
    """The judgements as they are: the positives share all probability in proportion to their grades.

    Needs no vectors.
    """

    name = "hard"

    def __init__(self, *, relevant: int = 1) -> None:
        self.relevant = relevant

    def infer(self, run: Run, qrels: pandas.DataFrame) -> SoftLabels:
        """Labels whose scores are the grades; see `Labeler`."""
        return self.infer_from(run, positives_of(qrels, self.relevant))[0]

    def infer_from(self, run: Run, judged: Judged) -> tuple[SoftLabels, int]:
        """The labels, and 0: no positive is left out."""
        contexts, without = contexts_of(run, judged, 2**31 - 1, None)
        scores = [context.grades.astype(np.float32) for context in contexts]
        found = [(context.grades / context.grades.sum()).astype(np.float32) for context in contexts]
        return assembled(contexts, scores, found, self.describe()), without

    def describe(self) -> dict[str, Any]:
        """What goes into the metadata of the labels."""
        return {"method": self.name, "relevant": self.relevant}


class VectorLabeler(ABC):
    """Base of the labelers that look at vectors; a subclass says how like the positives a candidate is.

    Args:
        vectors: where candidate vectors come from.
        queries: a vector for every query to label.
        params: rNN parameters; `params.context` is the number of candidates that take part, positives included.
        label_params: from scores to targets.
        relevant: grades from here on are positive.
        threads: None = one per core; results do not depend on it.
    """

    name: ClassVar[str]
    control: ClassVar[bool] = False  # has no notion of the positives' mass of its own: takes that of evidence

    def __init__(
        self,
        vectors: VectorSource,
        queries: QueryVectors,
        params: RnnParams | None = None,
        label_params: LabelParams | None = None,
        *,
        relevant: int = 1,
        threads: int | None = None,
    ) -> None:
        self.vectors = vectors
        self.queries = queries
        self.params = params if params is not None else RnnParams()
        self.label_params = label_params if label_params is not None else LabelParams()
        self.relevant = relevant
        self.threads = threads

    def infer(self, run: Run, qrels: pandas.DataFrame) -> SoftLabels:
        """The labels of the queries of a run that have a positive, in the order of the run.

        Candidates beyond the context follow with score -inf and target 0.

        Raises:
            InputError: queries or candidates without a vector, vectors of another dimension, no positives at all.
        """
        return self.infer_from(run, positives_of(qrels, self.relevant))[0]

    def infer_from(self, run: Run, judged: Judged) -> tuple[SoftLabels, int]:
        """The labels, and how many positives were left out for want of a vector."""
        check_queries(run, judged, self.vectors, self.queries)
        contexts, without = contexts_of(run, judged, self.params.context, self.vectors)
        scores: list[Any] = [None] * len(contexts)
        found: list[Any] = [None] * len(contexts)
        for batch in batches(contexts, self.vectors, self.queries):
            raw, given = self.label(batch)
            for row, (place, length) in enumerate(zip(batch.places, batch.lengths.tolist(), strict=True)):
                scores[place], found[place] = raw[row, :length], given[row, :length]
        return assembled(contexts, scores, found, self.describe()), without

    def describe(self) -> dict[str, Any]:
        """What goes into the metadata of the labels."""
        return {
            "method": self.name,
            "relevant": self.relevant,
            "rnn": self.params.to_dict(),
            "labels": self.label_params.to_dict() | {"mass": "evidence" if self.takes_mass else "own"},
            "index": self.vectors.fingerprint,
        }

    @property
    def takes_mass(self) -> bool:
        """Whether positives get the share of probability that evidence would give them."""
        mass = self.label_params.mass
        return self.name != "evidence" and (self.control if mass is None else mass == "evidence")

    def label(self, batch: JudgedBatch) -> tuple[np.ndarray, np.ndarray]:
        """Scores and targets of a batch: (B, N) float32 each."""
        raw, found = self._targets(batch)
        if self.takes_mass:
            whole = smooth.mixed(batch.vectors, batch.grades.shape[1], self.params, batch.lengths, threads=self.threads)
            _, evidence = smooth.from_scores(whole, batch.grades, batch.real, self.label_params)
            found = targets.with_mass_of(found, evidence, batch.positive & batch.real)
        return raw, found

    def _targets(self, batch: JudgedBatch) -> tuple[np.ndarray, np.ndarray]:
        return smooth.from_scores(self._similarities(batch), batch.grades, batch.real, self.label_params)

    @abstractmethod
    def _similarities(self, batch: JudgedBatch) -> np.ndarray:
        """(B, R, N) float32: every candidate against every positive."""


class EvidenceLabeler(VectorLabeler):
    """s* = lambda s + (1 - lambda) J of candidate and positive (paper 000, Algorithm 1)."""

    name = "evidence"

    def _similarities(self, batch: JudgedBatch) -> np.ndarray:
        return smooth.mixed(batch.vectors, batch.grades.shape[1], self.params, batch.lengths, self.threads)


class JaccardLabeler(VectorLabeler):
    """The Jaccard similarity of candidate and positive alone."""

    name = "jaccard"

    def _similarities(self, batch: JudgedBatch) -> np.ndarray:
        probes = np.arange(1, batch.grades.shape[1] + 1)
        return smooth.jaccard(batch.vectors, probes, self.params, batch.lengths, self.threads)


class GeometricLabeler(VectorLabeler):
    """The inner product of candidate and positive alone."""

    name = "geometric"

    def _similarities(self, batch: JudgedBatch) -> np.ndarray:
        return smooth.geometric(batch.vectors, np.arange(1, batch.grades.shape[1] + 1), self.params, batch.lengths)


class QueryLabeler(VectorLabeler):
    """The inner product of candidate and query: what distilling the encoder into itself would teach."""

    name = "query"
    control = True

    def _similarities(self, batch: JudgedBatch) -> np.ndarray:
        """The same for every positive; grades weigh it as they weigh evidence."""
        near = smooth.geometric(batch.vectors, np.zeros(1, dtype=np.int64), self.params, batch.lengths)
        return np.broadcast_to(near, (len(near), batch.grades.shape[1], near.shape[2]))


class UniformLabeler(VectorLabeler):
    """Uniform smoothing (paper 000, eq. 2): what evidence takes from the positives, alike on all other candidates."""

    name = "uniform"
    control = True

    def _targets(self, batch: JudgedBatch) -> tuple[np.ndarray, np.ndarray]:
        scores = np.zeros(batch.real.shape)
        scores[:, : batch.grades.shape[1]] = batch.grades
        mass = np.where(batch.positive & batch.real, scores, 1.0) * batch.real
        share = mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-12)
        return np.where(batch.real, scores, -np.inf).astype(np.float32), share.astype(np.float32)

    def _similarities(self, batch: JudgedBatch) -> np.ndarray:
        return np.zeros((*batch.grades.shape, batch.real.shape[1]), dtype=np.float32)


LABELERS: dict[str, type[VectorLabeler]] = {
    labeler.name: labeler
    for labeler in (EvidenceLabeler, JaccardLabeler, GeometricLabeler, UniformLabeler, QueryLabeler)
}
METHODS = (*LABELERS, HardLabeler.name)


def make_labeler(
    method: str,
    vectors: VectorSource | None,
    queries: QueryVectors | None,
    params: RnnParams | None = None,
    label_params: LabelParams | None = None,
    *,
    relevant: int = 1,
    threads: int | None = None,
) -> VectorLabeler | HardLabeler:
    """The labeler of a method; `hard` takes no vectors.

    Raises:
        InputError: no such method, or a method that needs vectors without them.
    """
    if method == HardLabeler.name:
        return HardLabeler(relevant=relevant)
    if method not in LABELERS:
        raise InputError(f"method {method}: not known; {nearest(method, METHODS)}")
    if vectors is None or queries is None:
        raise InputError(f"method {method}: needs the vectors of documents and queries; only hard does without")
    return LABELERS[method](vectors, queries, params, label_params, relevant=relevant, threads=threads)


def assembled(
    contexts: Sequence[JudgedContext],
    scores: Sequence[np.ndarray],
    found: Sequence[np.ndarray],
    metadata: dict[str, Any],
) -> SoftLabels:
    """Labels over all candidates: those that took no part get score -inf and target 0."""
    lengths = [len(context.docids) for context in contexts]
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    all_scores = np.full(offsets[-1], -np.inf, dtype=np.float32)
    all_targets = np.zeros(offsets[-1], dtype=np.float32)
    for start, one, given in zip(offsets[:-1].tolist(), scores, found, strict=True):
        all_scores[start : start + len(one)] = one
        all_targets[start : start + len(given)] = given
    docids = np.empty(offsets[-1], dtype=object)
    docids[:] = [docid for context in contexts for docid in context.docids]
    positive = np.concatenate([np.zeros(0, dtype=bool), *(context.positive for context in contexts)])
    qids = tuple(context.qid for context in contexts)
    return SoftLabels(qids, offsets, docids, all_scores, all_targets, positive, metadata)
