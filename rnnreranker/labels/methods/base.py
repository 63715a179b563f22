"""Labelers: from a run and sparse judgements to soft labels; contexts: positives, then other candidates.

`ContextLabeler` scores one query at a time; `VectorLabeler` compares vectors, or documents of a graph, in batches.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.command import say
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import Inputs, defaults_of, find
from rnnreranker.evaluate.protocols import grades_of
from rnnreranker.labels import targets
from rnnreranker.labels.params import READ, LabelParams, unlearnt
from rnnreranker.labels.similarity import BYTES, Asked, GraphSimilarity, Similarity, VectorSimilarity, padded
from rnnreranker.labels.soft import SoftLabels
from rnnreranker.parts.neighbours import NeighbourGraph
from rnnreranker.rnn import RnnParams
from rnnreranker.rnn.params import OF_THE_MIXTURE

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.vectors.ids import HasDocids
    from rnnreranker.runs import Run

BATCH_BYTES = 8 * 2**20  # of vectors held at a time, or of rows of a graph and what is made of them
Source = Literal["vectors", "neighbours"]
BOTH = {"vectors", "neighbours"}  # read by the same rows
Pair = tuple[np.ndarray, np.ndarray]
Judged = Mapping[str, Mapping[str, int]]  # query id → docid of a positive → its grade


def positives_of(qrels: pandas.DataFrame, relevant: int = 1, source: str = "") -> dict[str, dict[str, int]]:
    """Positives of every query with their grades, in the order of the judgements.

    Args:
        qrels: columns query_id, doc_id, relevance.
        relevant: lowest positive grade, 1 or more; source: name of the judgements, for messages.

    Raises:
        InputError: no judgement reaches it.
    """
    chosen = qrels[qrels["relevance"] >= relevant]
    if not len(chosen):
        raise InputError(
            f"{source or 'qrels'}: no judgement has a grade of {relevant} or more (the highest is "
            f"{qrels['relevance'].max()}); there is nothing to make labels from"
        )
    return grades_of(chosen)


@dataclass(frozen=True, eq=False)
class JudgedContext:
    """One query's n candidates: positives, then the others in the order of the run.

    Positives are in the order of the judgements; from a graph, or if there are more than `size`, in that of the run.

    docids: n, the first `size` are the context; rows: (size,) int64; grades: (R,) float64, of the first R candidates;
    positive: (n,) bool; ranks: (size,) int64 in the run from 0, distinct; scores: (size,) float64 of the run, of
    positives that it lacks the lowest of the context.
    """

    qid: str
    docids: list[str]
    rows: np.ndarray
    grades: np.ndarray
    positive: np.ndarray
    ranks: np.ndarray
    scores: np.ndarray

    @property
    def size(self) -> int:
        """Candidates in the context."""
        return len(self.rows)


def contexts_of(
    run: Run, judged: Judged, size: int, vectors: HasDocids | None, apart: bool = False, whole: bool = False
) -> tuple[list[JudgedContext], int]:
    """Contexts of the run's queries with positives, and the number of positives without a vector.

    A positive that the run lacks displaces the last candidate; one without a vector is dropped. Without `vectors`,
    which may be a graph, rows are 0.

    Args:
        size: candidates of a context.
        apart: a context for every positive alone.
        whole: all positives take part, however many.

    Raises:
        InputError: a candidate of the run has no vector.
    """
    every = [docid for qid in run for docid in judged.get(qid, ())]
    lists = run.docids.tolist(), every
    of_run, known = (np.zeros(len(one), np.int64) if vectors is None else vectors.rows(one) for one in lists)
    if len(lost := run.docids[of_run < 0]):
        raise InputError(
            f"{len(lost)} of {len(run.docids)} docids in the run are not in the index (first: "
            f"{', '.join(map(str, lost[:3]))}); use the index that the run was made from"
        )
    row_of = dict(zip(every, known.tolist(), strict=True))
    contexts = list[JudgedContext]()
    for qid, first, last in zip(run.qids, run.offsets[:-1], run.offsets[1:], strict=True):
        part = slice(first, last)
        docids, rows, scores = run.docids[run.rows[part]].tolist(), of_run[run.rows[part]], run.scores[part]
        pairs = [pair for pair in judged.get(qid, {}).items() if row_of[pair[0]] >= 0]
        rank_of = {docid: rank for rank, docid in enumerate(docids)} if pairs else {}
        if len(pairs) > size or isinstance(vectors, NeighbourGraph):  # the first lends its neighbours
            pairs.sort(key=lambda pair: (rank_of.get(pair[0], len(docids)), pair[0]))
        for visible in ([pair] for pair in pairs) if apart else [pairs] if pairs else []:
            taken = max(size, len(visible)) if whole else size
            names = [docid for docid, _ in visible]
            ranks = np.array([rank_of.get(docid, -1) for docid in names], dtype=np.int64)
            others = np.delete(np.arange(len(docids)), ranks[ranks >= 0])
            of_context = np.concatenate([ranks, others])[:taken]
            lacking = of_context < 0  # positives that the run does not have
            values = np.append(scores, 0.0)[of_context]
            values[lacking] = min(values[~lacking].tolist(), default=0.0)
            of_context[lacking] = len(scores) + np.arange(np.count_nonzero(lacking))
            contexts.append(
                JudgedContext(
                    qid,
                    [*names, *(docids[rank] for rank in others.tolist())],
                    np.concatenate([[row_of[docid] for docid in names], rows[others]])[:taken].astype(np.int64),
                    np.array([grade for _, grade in visible[:taken]], dtype=np.float64),
                    np.arange(len(names) + len(others)) < len(names),
                    of_context,
                    values,
                )
            )
    return contexts, int((known < 0).sum())


class Labeler(ABC):
    """Makes labels of every query's positives and first `params.context` candidates, or of all without such a setting.

    Args:
        inputs: what the method needs.
        params: of the class `Params`; label_params: from scores to targets; None = the defaults.
        threads: None = one per core; results do not depend on it.
        devices: of a teacher; None = its own.
        source: of similarities, "vectors" or "neighbours", the graph of the collection.

    Raises:
        InputError: other parameters, missing inputs, a mass or source that the method does not take.

    A subclass sets `name`, `needs` and `Params`, and writes `labelled` or derives from `ContextLabeler` or
    `VectorLabeler`.
    """

    name: ClassVar[str]
    inner: ClassVar[tuple[str, str] | None] = None  # see `base.method.with_inner`: the setting that names a teacher
    needs: ClassVar[frozenset[str]] = frozenset()
    Params: ClassVar[type[settings.Params]] = settings.Params
    Beside: ClassVar[type[settings.Params]] = LabelParams  # settings that its written form takes too
    alike: ClassVar[bool] = False  # whether its similarities tell no candidates apart
    of_documents: ClassVar[bool] = False  # whether it compares documents alone, which a graph has, too
    whole: ClassVar[bool] = False  # whether all positives of a query take part, also where the context is smaller

    def __init__(
        self,
        inputs: Inputs,
        params: Any = None,
        label_params: LabelParams | None = None,
        *,
        threads: int | None = None,
        devices: Devices | None = None,
        source: Source = "vectors",
    ) -> None:
        self.params = defaults_of(type(self)) if params is None else params
        self.reads = self.needs_from(source, self.params)
        if lost := sorted(need for need in self.reads if not inputs.has(need)):
            raise InputError(f"method {self.name}: needs {' and '.join(lost)}, which were not given")
        self.inputs = inputs
        self.label_params = label_params or LabelParams()
        self.threads, self.devices, self.source = threads, devices, source
        mass = self.label_params.mass
        if mass not in (None, "own") and not isinstance(self, VectorLabeler):
            raise InputError(f"mass={mass}: takes rNN similarities, which the method {self.name} has not; expected own")
        if mass == "confident" and self.alike:
            raise InputError(f"mass=confident: {self.name} has one similarity for all; expected evidence, share or own")

    @classmethod
    def needs_from(cls, source: Source, params: Any) -> frozenset[str]:
        """Needed inputs with these parameters and a source. InputError: unknown or unsuitable source."""
        if source not in get_args(Source):
            raise InputError(f"from {source}: {nearest(str(source), get_args(Source))}")
        if source == "vectors":
            return cls.needs
        if not cls.of_documents:
            raise InputError(
                f"method {cls.name}: not from neighbours, which are for those that compare documents alone"
            )
        return frozenset({"neighbours"})

    @abstractmethod
    def labelled(self, contexts: Sequence[JudgedContext]) -> Iterator[tuple[int, Pair]]:
        """The number of every context with scores and targets, (n,) float32 each, of its n = `size` candidates."""

    def infer(self, run: Run, qrels: pandas.DataFrame) -> SoftLabels:
        """The labels of the run's queries with positives, in the order of the run.

        Candidates beyond the context follow with score -inf and target 0.

        Raises:
            InputError: no positives, or inputs that lack a query or candidate.
        """
        return self.infer_from(run, positives_of(qrels))[0]

    def infer_from(self, run: Run, judged: Judged) -> tuple[SoftLabels, int]:
        """The labels, and the number of positives without a vector; prints the remark."""
        size = getattr(self.params, "context", 2**31 - 1)
        contexts, without = contexts_of(run, judged, size, self.source_of_rows, whole=self.whole)
        offsets = np.cumsum([0, *(len(one.docids) for one in contexts)], dtype=np.int64)
        docids = np.array([docid for one in contexts for docid in one.docids], dtype=object)
        positive = np.concatenate([np.zeros(0, dtype=bool), *(one.positive for one in contexts)])
        columns = np.full(len(docids), -np.inf, dtype=np.float32), np.zeros(len(docids), dtype=np.float32)
        for number, pair in self.labelled(contexts):
            for column, own in zip(columns, pair, strict=True):
                column[offsets[number] : offsets[number] + len(own)] = own
        if remark := self.remark():
            say(remark)
        qids = tuple(one.qid for one in contexts)
        return SoftLabels(qids, offsets, docids, *columns, positive, self.describe()), without

    def remark(self) -> str:
        """A remark on the queries labelled since the last call, or ""."""
        return ""

    def describe(self) -> dict[str, Any]:
        metadata: dict[str, Any] = {"method": self.name}
        if self.params.to_dict():
            metadata[self.Params.section or "params"] = self.params.to_dict()
        if (source := self.source_of_rows) is not None:
            metadata["index"] = source.fingerprint
            if self.source != "vectors":
                metadata["from"] = self.source
        return metadata | {"labels": self.label_params.to_dict() | {"mass": "own"}}

    @property
    def source_of_rows(self) -> Any:
        """The input that numbers documents, or None."""
        by_rows = ("neighbours",) if self.source == "neighbours" else ("vectors", "tokens", "terms")
        need = next((need for need in by_rows if need in self.reads), None)
        return None if need is None else getattr(self.inputs, need)


class ContextLabeler(Labeler):
    @abstractmethod
    def scores(self, one: JudgedContext) -> np.ndarray:
        """(n,): relevance of the n = `one.size` candidates, larger = more."""

    def labelled(self, contexts: Sequence[JudgedContext]) -> Iterator[tuple[int, Pair]]:
        for number, one in enumerate(contexts):
            scores = np.asarray(self.scores(one), dtype=np.float64)
            if scores.shape != (one.size,) or not np.isfinite(scores).all():
                shape = f"scores of shape {scores.shape}, expected {one.size} finite ones"
                raise InputError(f"method {self.name}: query {one.qid}: {shape}")
            yield number, targets.labels_of(scores, one.grades, self.label_params)


class VectorLabeler(Labeler):
    """A labeler of similarities to positives, in batches; from a graph it reads neither vectors nor queries.

    by: the method of `Similarity` that it goes by.
    """

    needs = frozenset({"vectors", "query vectors"})
    Params = RnnParams
    defaults: ClassVar[RnnParams] = RnnParams.preset("vectors")
    without: ClassVar[frozenset[str]] = OF_THE_MIXTURE
    of_documents = True
    by: ClassVar[str]
    params: RnnParams

    @property
    def takes_mass(self) -> bool:
        """Whether positives get the share of probability that evidence gives them."""
        return self.label_params.mass == "evidence"

    def similarities(self, near: Similarity, positives: np.ndarray) -> np.ndarray:
        """(B, R, N) float32: every candidate against every positive; positives: (R,) elements of the contexts."""
        return getattr(near, self.by)(positives)

    def describe(self) -> dict[str, Any]:
        metadata = super().describe()
        if self.reads >= BOTH:
            metadata["vectors"] = str(self.inputs.vectors.fingerprint)
        elif self.source == "neighbours" and (origin := self.inputs.neighbours.origin).of == "dense" and origin.source:
            metadata["vectors"] = str(origin.source)  # that the graph was made from
        metadata["labels"]["mass"] = "evidence" if self.takes_mass else self.label_params.mass or "own"
        return metadata

    def compared(self, contexts: Sequence[JudgedContext]) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """The number of every context with similarities to its positives, the method's and those that set its mass.

        Both are (R, n) float32. Batches have contexts with equally many positives.
        """
        each = 4 * self.inputs.vectors.dimension if "vectors" in self.reads else BYTES * self.source_of_rows.k
        counts = [len(one.grades) for one in contexts]
        for count, same in itertools.groupby(sorted(range(len(counts)), key=counts.__getitem__), counts.__getitem__):
            members, positives = list(same), np.arange(1, count + 1)
            at_once = max(1, BATCH_BYTES // (each * (1 + max(contexts[number].size for number in members))))
            for first in range(0, len(members), at_once):
                numbers = members[first : first + at_once]
                near = self.similarity([contexts[number] for number in numbers])
                own = self.similarities(near, positives)
                others = near.mixed(positives) if self.takes_mass else own
                for row, number in enumerate(numbers):
                    size = contexts[number].size
                    yield number, own[row, :, :size], others[row, :, :size]

    def similarity(self, contexts: Sequence[JudgedContext]) -> Similarity:
        """The similarities of the elements of some contexts."""
        lengths = np.array([one.size for one in contexts])
        if self.source == "neighbours":
            rows, graph = padded([one.rows for one in contexts]), self.inputs.neighbours
            return GraphSimilarity(lengths, self.params, self.threads, graph, rows, self.asked(contexts))
        source = self.inputs.vectors
        vectors = np.empty((len(contexts), lengths.max() + 1, source.dimension), dtype=np.float32)
        for own, one in zip(vectors, contexts, strict=True):
            own[0] = self.of_query[one.qid]
            source.fetch(one.rows, own[1 : one.size + 1])
        return VectorSimilarity(lengths, self.params, self.threads, vectors)

    def asked(self, contexts: Sequence[JudgedContext]) -> Asked | None:
        """What is known of queries and candidates, beside a graph."""
        return None

    @cached_property
    def of_query(self) -> dict[str, np.ndarray]:
        """Query id → vector, (d,) float32."""
        queries = self.inputs.query_vectors
        return dict(zip(queries.qids, queries.vectors, strict=True))

    def labelled(self, contexts: Sequence[JudgedContext]) -> Iterator[tuple[int, Pair]]:
        params = self.label_params
        if unknown := unlearnt(params):
            raise InputError(
                f"mass={params.mass}: {' and '.join(unknown)} not known; give it, or learn it from judgements"
            )
        for number, similarities, others in self.compared(contexts):
            grades = contexts[number].grades
            scores, own = self.own_targets(grades, similarities)
            positive = np.arange(len(own)) < len(grades)
            if self.takes_mass:
                own = targets.with_mass_of(own, VectorLabeler.own_targets(self, grades, others)[1], positive)
            elif params.mass in READ["share"]:
                confident = params.mass != "confident" or self.to_positives(similarities) >= params.threshold
                hard = np.append(targets.of_grades(grades), np.zeros(len(own) - len(grades)))
                own = targets.with_share(own, hard, ~positive & confident, params.share or 0.0)
            yield number, (scores, own)

    def own_targets(self, grades: np.ndarray, similarities: np.ndarray) -> Pair:
        """Scores and targets, (n,) float32 each, with the method's own mass; similarities: (R, n)."""
        scores = targets.aggregated(similarities, grades, self.label_params.aggregate)
        return targets.labels_of(scores, grades, self.label_params)

    def to_positives(self, similarities: np.ndarray) -> np.ndarray:
        """(n,) float64: the mean of (R, n) similarities, or the maximum if `aggregate` says so, without grades."""
        how = "max" if self.label_params.aggregate == "max" else "mean"
        return targets.aggregated(similarities, np.ones(len(similarities)), how)


def labeler_of(metadata: Mapping[str, Any], inputs: Inputs) -> Any:
    """The labeler that made labels with this metadata. InputError: the metadata does not say it."""
    try:
        kind = find("labeler", metadata["method"])
        params = kind.Params(**metadata.get(kind.Params.section or "params", {}))
        labels = LabelParams(**metadata.get("labels", {}))
        return kind(inputs, params, labels, source=metadata.get("from", "vectors"))
    except (InputError, KeyError, TypeError) as error:
        raise InputError(
            f"the labels do not say how they were made, or need other inputs than a training has ({error}); make them "
            "again with python -m rnnreranker.labels, from vectors, or train without what makes labels again"
        ) from None
