"""What a labeler is: a run and sparse judgements in, soft labels out; a subclass says how relevant candidates are."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import Inputs, defaults_of, find
from rnnreranker.labels import smooth
from rnnreranker.labels.judged import Judged, JudgedContext, assembled, contexts_of, positives_of
from rnnreranker.labels.params import LabelParams, unlearnt
from rnnreranker.labels.soft import SoftLabels

if TYPE_CHECKING:
    import pandas

    from rnnreranker.runs import Run

Source = Literal["vectors", "neighbours"]
Labelled = Iterator[tuple[int, np.ndarray, np.ndarray]]  # index of a context, its scores, its targets


class Labeler(ABC):
    """Makes labels of every query's positives and first candidates: `params.context` in all, or all without such.

    Args:
        inputs: what `needs` names.
        params: of the class `Params`; None = the defaults.
        label_params: from scores to targets; None = the defaults.
        relevant: grades from here on are positive.
        threads: worker threads of a method that has several; None = one per core. Results do not depend on it.
        source: where similarities of documents come from, "vectors" or "neighbours", the graph of the collection.

    Raises:
        InputError: parameters of another method, inputs that lack what the method needs, the mass of evidence asked of
            a method without vectors, a graph given to a method that cannot do with it.

    A subclass in a file of its own is a method: it sets `name`, `needs`, `Params` and derives from `ContextLabeler` or
    `rnnreranker.labels.vector_labeler.VectorLabeler`, or writes `labelled` itself.
    """

    name: ClassVar[str]
    inner: ClassVar[tuple[str, str] | None] = None  # see `rnnreranker.base.method.with_inner`
    needs: ClassVar[frozenset[str]] = frozenset()
    Params: ClassVar[type[settings.Params]] = settings.Params
    Beside: ClassVar[type[LabelParams]] = LabelParams  # settings that its written form takes too
    compares: ClassVar[bool] = False  # whether it has similarities, so that its mass may be chosen
    whole: ClassVar[bool] = False  # whether all positives of a query take part, also where the context is smaller

    def __init__(
        self,
        inputs: Inputs,
        params: Any = None,
        label_params: LabelParams | None = None,
        *,
        relevant: int = 1,
        threads: int | None = None,
        source: Source = "vectors",
    ) -> None:
        if params is not None and not isinstance(params, self.Params):
            raise InputError(f"method {self.name}: got {type(params).__name__}, expected {self.Params.__name__}")
        self.params = params if params is not None else defaults_of(type(self))
        if lost := sorted(need for need in self.needs_from(source, self.params) if not inputs.has(need)):
            raise InputError(f"method {self.name}: needs {' and '.join(lost)}, which were not given")
        self.inputs = inputs
        self.label_params = label_params if label_params is not None else LabelParams()
        self.relevant = relevant
        self.threads = threads
        self.source = source
        mass = self.label_params.mass
        if mass not in (None, "own") and not self.compares:
            raise InputError(f"mass={mass}: takes rNN similarities, which the method {self.name} has not; expected own")
        if unknown := unlearnt(self.label_params):
            raise InputError(f"mass={mass}: {' and '.join(unknown)} not known; give it, or learn it from judgements")

    @classmethod
    def needs_from(cls, source: Source, params: Any) -> frozenset[str]:
        """What the method needs with these parameters where similarities of documents come from a source.

        Raises:
            InputError: no such source, or not for this method or these parameters.
        """
        if source not in get_args(Source):
            raise InputError(f"from {source}: {nearest(str(source), get_args(Source))}")
        if source == "neighbours":
            raise InputError(
                f"method {cls.name}: not from neighbours, which are for those that compare documents alone"
            )
        return cls.needs

    @abstractmethod
    def labelled(self, contexts: Sequence[JudgedContext]) -> Labelled:
        """The index of every context with the scores and targets, (n,) float32 each, of its n = `size` candidates."""

    def infer(self, run: Run, qrels: pandas.DataFrame) -> SoftLabels:
        """The labels of the queries of a run that have a positive, in the order of the run.

        Candidates beyond the context follow with score -inf and target 0.

        Raises:
            InputError: no positives at all, and what the inputs raise that lack a query or candidate.
        """
        return self.infer_from(run, positives_of(qrels, self.relevant))[0]

    def infer_from(self, run: Run, judged: Judged) -> tuple[SoftLabels, int]:
        """The labels, and how many positives were left out for want of a vector."""
        size = getattr(self.params, "context", 2**31 - 1)
        contexts, without = contexts_of(run, judged, size, self.source_of_rows, whole=self.whole)
        scores: list[Any] = [None] * len(contexts)
        target_lists: list[Any] = [None] * len(contexts)
        for index, raw, given in self.labelled(contexts):
            scores[index], target_lists[index] = raw, given
        return assembled(contexts, scores, target_lists, self.describe()), without

    def describe(self) -> dict[str, Any]:
        """What goes into the metadata of the labels."""
        metadata: dict[str, Any] = {"method": self.name, "relevant": self.relevant}
        if self.params.to_dict():
            metadata[self.Params.section or "params"] = self.params.to_dict()
        if (source := self.source_of_rows) is not None:
            metadata["index"] = source.fingerprint
            if self.source != "vectors":
                metadata["from"] = self.source
        return metadata | {"labels": self.label_params.to_dict() | {"mass": "own"}}

    @property
    def source_of_rows(self) -> Any:
        """Where the vectors of positives and candidates must be; None where the method looks at none."""
        return self.inputs.vectors if "vectors" in self.needs else None


class ContextLabeler(Labeler):
    """Base of the labelers that look at one query at a time; a subclass says how relevant its candidates are."""

    @abstractmethod
    def scores(self, one: JudgedContext) -> np.ndarray:
        """(n,): how relevant each of the n = `one.size` candidates of a query is, larger = more."""

    def labelled(self, contexts: Sequence[JudgedContext]) -> Labelled:
        for index, one in enumerate(contexts):
            scores = np.asarray(self.scores(one), dtype=np.float64)
            if scores.shape != (one.size,) or not np.isfinite(scores).all():
                shape = f"scores of shape {scores.shape}, expected {one.size} finite ones"
                raise InputError(f"method {self.name}: query {one.qid}: {shape}")
            real = np.ones((1, one.size), dtype=bool)
            raw, given = smooth.of_candidates(scores[None], one.grades[None], real, self.label_params)
            yield index, raw[0], given[0]


def make_labeler(
    name: str,
    inputs: Inputs,
    params: Any = None,
    label_params: LabelParams | None = None,
    *,
    relevant: int = 1,
    threads: int | None = None,
    source: Source = "vectors",
) -> Labeler:
    """The labeler of a name, of this package or of another one; the arguments are those of `Labeler`.

    Parameters of another class are left out: so the rNN parameters of a study go to all labelers that have such, and
    those of a labeler that has more settings are completed by its defaults.

    Raises:
        InputError: no such method, and what its constructor raises.
    """
    kind = find("labeler", name)
    own = params if isinstance(params, kind.Params) else None
    if own is None and params is not None and issubclass(kind.Params, type(params)):
        own = dataclasses.replace(defaults_of(kind), **params.to_dict())
    made: Labeler = kind(inputs, own, label_params, relevant=relevant, threads=threads, source=source)
    return made


def needs_of(name: str, params: Any, source: Source = "vectors") -> frozenset[str]:
    """What must be opened for a labeler with these parameters: with a teacher, what the teacher needs in its place.

    Raises:
        InputError: as `Labeler.needs_from`.
    """
    needs: frozenset[str] = find("labeler", name).needs_from(source, params)
    if "teacher" not in needs:
        return needs
    teacher: frozenset[str] = params.chosen.needs
    return needs - {"teacher"} | teacher


def takes_device(name: str, params: Any) -> bool:
    """Whether a labeler with these parameters can compute elsewhere than on the processor: with a teacher that can."""
    return "teacher" in find("labeler", name).needs and bool(params.chosen.method.takes_device)


def with_teacher(inputs: Inputs, params: Any, threads: int | None = None, devices: Devices | None = None) -> Any:
    """The reranker that the parameters of a labeler name as its teacher, on the same inputs.

    Raises:
        InputError: what the constructor of the reranker raises.
    """
    return params.chosen.method(inputs, params.chosen.params, threads=threads, device=devices)
