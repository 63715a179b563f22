"""How a kind of model is studied: what all trials share, and the model as it is, trained and tested."""

from __future__ import annotations

import functools
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rnnreranker.base import settings
from rnnreranker.base.chosen_method import needs_together
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import Inputs, find
from rnnreranker.lab.study.arm import BASE, Arm, ArmParams
from rnnreranker.lab.study.request import StudyRequest
from rnnreranker.lab.study.retrieved import inputs_of, opened, retrieved
from rnnreranker.lab.study.tasks import Task
from rnnreranker.lab.study.trial import VERSION, Values, values_of

if TYPE_CHECKING:
    import pandas

    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.labels.soft import SoftLabels
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run
    from rnnreranker.train.fit import Trained

RERANKED = 100  # candidates of the test, where nothing is said
MODEL = "model"  # folder of what was trained
OF_INPUTS = frozenset({"topics", "texts", "query vectors"})  # what labels read that is no part of an index


class StudiedModel(ABC):
    """A kind of model that `python -m rnnreranker.study --model NAME` trains; an object is what all trials share.

    A subclass writes `tested`, and what it does otherwise.

    Args:
        request: what is asked for.
        arms: what is trained.
        index: that was opened with the parts of `needs_of`.
        topics: texts of all queries.
        qrels: judgements of the test.

    Attributes:
        index_name: by which every process opens the index; index: fingerprint of the documents.
        runs: first stage → the candidates of all topics, of which `over` is the last.
        documents: docid → text; queries: vectors of topics by the encoder of the index, None where no arm reads any.
        hits: documents of a test query that count.
        work: folder of what is kept.
    """

    name: ClassVar[str]  # of the kind of model, as `train --model` has it
    needs: ClassVar[frozenset[str]] = frozenset()
    Params: ClassVar[type[settings.Params]] = ArmParams  # of an arm, beside those of its training
    usual: ClassVar[Mapping[str, Any]] = {}  # settings of its trainings, where those of the model are others
    of_index: ClassVar[bool] = False  # whether trainings begin with the encoder of the index, where none is given
    takes: ClassVar[tuple[str, ...]] = ()  # settings of an arm that it has, but for those that every kind has
    labels: ClassVar[Mapping[str, type[settings.Params]]] = {}  # that arms learn from, besides those of labelers
    own_negatives: ClassVar[bool] = False  # whether an arm may take those that another arm finds
    brings: ClassVar[frozenset[str]] = frozenset()  # what labels read that a trial makes itself
    unread: ClassVar[tuple[str, ...]] = ("context",)  # arguments of a study that mean nothing to it
    reads: ClassVar[frozenset[str]] = frozenset({"topics", "texts", "vectors", "query vectors", "terms"})

    @classmethod
    def context_of(cls, params: Any, context: int) -> int:
        """The candidates that labels are made of, where these do not say: all that negatives are drawn from."""
        return int(getattr(params, "depth", context - 1)) + 1

    @classmethod
    def needs_of(cls, request: StudyRequest) -> frozenset[str]:
        """What first stages, labels and filters read."""
        read = needs_together(request.stages.values())
        for arm in request.chosen:
            read |= arm.labels.needs - cls.brings if arm.labels.name not in cls.labels else frozenset[str]()
            read |= frozenset({"vectors", "query vectors"} if arm.own.filter != "none" else ())
        return read

    def __init__(
        self,
        request: StudyRequest,
        arms: Sequence[Arm],
        index: IndexOnDisk,
        topics: Mapping[str, str],
        qrels: pandas.DataFrame,
    ) -> None:
        from rnnreranker.evaluate.measures import deepest_cutoff
        from rnnreranker.evaluate.protocols import protocol_of
        from rnnreranker.parts.texts import documents_of

        if index.texts is None:
            raise InputError(f"{index.name}: no texts in this index; make it with python -m rnnreranker.index")
        self.arms = {arm.name: arm for arm in arms}
        self.index_name, self.work = request.index_name, Path(str(request.work))
        self.qrels, self.measures, self.protocol = qrels, request.measures, protocol_of(qrels, request.protocol)
        self.encoder = str(request.encoder)
        self.params: Any = request.training.params
        self.reranks = request.test_candidates
        self.devices, self.trained_on = request.devices, request.trained_on
        first = request.test_candidates or RERANKED
        self.hits = max(first, deepest_cutoff(request.measures))
        self.queries = self.query_vectors(request, index, topics) if "query vectors" in self.needs_of(request) else None
        inputs = inputs_of(index, topics, self.queries, self.devices)
        depths = [getattr(self.params, name, 0) for name in ("depth", "validation_candidates")]
        depth = max(first, *depths, *(getattr(arm.params, "depth", 0) for arm in arms))
        self.runs = {name: retrieved(one, inputs, depth, request.jobs) for name, one in request.stages.items()}
        self.over = list(self.runs)[-1]
        self.documents = {document.docid: document.text for document in documents_of(index.texts)}
        self.index = fingerprint(list(self.documents.items()))

    @staticmethod
    def query_vectors(request: StudyRequest, index: IndexOnDisk, topics: Mapping[str, str]) -> QueryVectors:
        """The vectors of all topics by the encoder that made the index: that of the request is trained."""
        from rnnreranker.search.queries import QueryEncoding, query_vectors

        how = QueryEncoding.of(None, None, request.topics, request.devices)
        return query_vectors(how, index, topics, threads=request.jobs)

    @functools.cached_property
    def identity(self) -> str:
        """16 hexadecimal digits that name all that trials share."""
        packages = [version(name) for name in ("torch", "transformers", "sentence-transformers")]
        return fingerprint(
            *(VERSION, self.name, packages, self.encoder, self.index, self.over, self.hits, self.reranks),
            *(self.measures, self.protocol, {name: run.to_dict() for name, run in self.runs.items()}),
            self.qrels[["query_id", "doc_id", "relevance"]].to_numpy().tolist(),
            None if self.queries is None else self.queries.vectors.tolist(),
            *self.own_identity(),
            *([str(self.devices)] if self.devices is not None else []),
        )

    def own_identity(self) -> list[Any]:
        """What else results depend on."""
        return []

    def described(self, task: Task, arm: Arm) -> list[Any]:
        """Everything that an arm trains with on a task, the arms that it refers to among it."""
        others = [self.described(task, self.arms[name]) for name in arm.refers if name in self.arms]
        return [*arm.described(task), *others]

    def untrained(self, task: Task) -> dict[str, Any]:
        """What the model as it is is worth: `values`, and what else a record has."""
        return self.tested(self.encoder, task)

    @abstractmethod
    def tested(self, model: str, task: Task) -> dict[str, Any]:
        """What a model is worth: `values` (measure → test query → value), and what else a record has."""

    def trained(self, task: Task, arm: Arm) -> dict[str, Any]:
        """What the model that an arm trains is worth, and what its training came to."""
        with tempfile.TemporaryDirectory(prefix="rnnreranker-study-") as folder:
            out = Path(folder) / MODEL
            made = self.fitted(task, arm, out)
            return self.tested(str(out), task) | training_record(made)

    def fitted(self, task: Task, arm: Arm, out: Path) -> Trained:
        """Train as an arm says, as `train_model` does."""
        from rnnreranker.train.request import TrainRequest

        model = find("trained-model", self.name)()
        hard = find("labeler", "hard")(Inputs()).infer(self.runs[self.over], task.part(validation=True))
        request = TrainRequest(
            out,
            {self.name: {}},
            self.labels_of(task, arm, self.head(task, self.hits)),
            index=self.index_name,
            topics=task.topics,
            encoder=arm.own.start or self.encoder,
            validation_labels=hard,
            checkpoints=False,
            device=self.trained_on,
        )
        trained: Trained = model.train(request, arm.params_of(task), arm.loss, self.trained_on)
        return trained

    def labels_of(self, task: Task, arm: Arm, run: Run) -> SoftLabels:
        """The labels of the training queries by the labeler of an arm."""
        from rnnreranker.labels.methods.base import make_labeler

        inputs = Inputs(
            topics=task.topics,
            texts=self.documents,
            query_vectors=self.queries,
            vectors=lambda: opened(self.index_name).vectors,
            terms=lambda: opened(self.index_name).term_source,
        )
        labels = arm.labels
        labeler = make_labeler(labels.name, inputs, labels.params, labels.label_params, threads=1)
        return labeler.infer(run, task.part(validation=False))

    def head(self, task: Task, depth: int, stage: str = "") -> Run:
        """The first candidates of the training queries of a task, by a first stage, "" = the last of them."""
        from rnnreranker.runs import Run as RunOf

        run, wanted = self.runs[stage or self.over].head(depth), dict.fromkeys(task.part(validation=False)["query_id"])
        return RunOf.from_dict({qid: dict(run[qid]) for qid in wanted if qid in run})

    def values(self, run: Run, task: Task) -> Values:
        """Measure → test query → value of a run."""
        return values_of(run, self.qrels, self.measures, self.protocol, task.test)

    def about(self, request: StudyRequest, arms: Sequence[Arm]) -> dict[str, Any]:
        """What the outcome of a study says of the model and its trainings."""
        return {
            "model": self.name,
            "encoder": request.encoder,
            "first_stages": list(request.stages),
            "test_candidates": request.test_candidates,
            "params": request.training.params.to_dict() | request.training.loss.to_dict(),
        }

    def observations(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What else the outcome of a study says of its trials: words, and what there is of costs, labels, distances."""
        from rnnreranker.lab.study.chosen import by_degrees
        from rnnreranker.lab.study.comparisons import costs, words
        from rnnreranker.lab.study.distances import mean_distances

        others = {
            "costs": costs(records),
            "distances": mean_distances(records, BASE),
            "by_degrees": by_degrees(records),
        }
        return {"words": words(records)} | {name: own for name, own in others.items() if own}

    def shown(self, rates: Mapping[str, Any]) -> dict[str, Any]:
        """The chosen learning rates by what pages call the trainings."""
        return dict(rates)


def training_record(made: Trained) -> dict[str, Any]:
    """What a record says of a training."""
    about = {"best_step": made.best_step, "steps": made.steps, "validation": made.measures}
    return about | {"history": list(made.history)}
