"""What a study is asked for: a request, and the training, the arms and the first stages that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Chosen, Form, choose
from rnnreranker.base.device import EXACT, ComputesOnDevices, trained_on
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import find, names
from rnnreranker.base.process.backends import CLUSTERS, check_backend
from rnnreranker.base.request import Request
from rnnreranker.base.written_form import Written
from rnnreranker.data.splits import SETTINGS
from rnnreranker.evaluate.protocols import PROTOCOLS
from rnnreranker.lab.study.arm import Arm, arms_of
from rnnreranker.train.request import Training, training_of

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk

KIND = "studied-model"  # of method
WORKERS = ("loky", *CLUSTERS)  # no threads: libraries of training keep their state by process
EVERYDAY = {  # settings of every training that are flags and options of specs, too
    **{"learning_rate": "peak learning rate", "epochs": "passes over the training queries"},
    **{"max_steps": "steps, in place of epochs", "batch_size": "queries a step"},
}


@dataclass(frozen=True)
class StudyRequest(ComputesOnDevices, Request):
    """A study: the arguments of `run_study`, and the flags of the command.

    Attributes:
        index: a folder, `pydoc`, the name of a prebuilt index of Pyserini, or an opened index, which is opened again
            by its name.
        topics: of training, and without `test_topics` of the test: a name, a file, or qid → text.
        qrels: judgements of them: a name, a file, {qid: {docid: grade}} or a data frame.
        test_topics, test_qrels: of the test; None = every query is tested by an encoder trained on the other folds.
        model: what all arms train, with settings of the training in its written form,
            `query:candidates=100,warmup=0.1`.
        arms: of each its name and what it has otherwise, settings of the training and of `ArmParams`, in their written
            form, `soft:labels=evidence,epochs=2`, or a mapping of names to settings.
        against: the arm that the others are compared with, beside the model as it is; None = none.
        compares: what the arms differ in, as the page groups studies; None = the name of the model.
        title: of the page's section; None = that of the topics.
        loss: what training lowers where an arm does not say, in its written form, `distance:alpha=0.7`.
        encoder: what the trainings begin with; None = of queries, the one that made the index.
        learning_rates: one of these is chosen for every arm that takes no other's, in every fold by its validation
            queries; None = that of the training.
        first_stages: retrievers in their written form: where negatives come from, or what a run that teaches is fused
            of; cross-encoders rerank the last in the test.
        test_candidates: reranked in the test; None = 100, of late none: the collection is searched.
        folds: None = 5, with `splits` the first ones, 4.
        splits: in place of folds, paper 004's parts for training, validation and test: "standard" or "cold".
        seeds: trainings of every arm.
        labelled_queries: that a task trains on or holds out for validation, drawn by the seed; None = all.
        relevant: grade from which on a document is positive.
        protocol, measures: of the test, see `evaluate`; None = the protocol of the judgements.
        context: of query encoders: N of the labels.
        work: folder of the records of trials, for going on; None = they are not kept.
        jobs: trainings at a time; results do not depend on it.
        backend, address: who trains: processes of this machine, or the workers of a cluster, as `do_parts`, which must
            see `work` and the index under the same paths.
        device: where models are trained ("cpu", "cuda" or "auto"), encode and score; None = on the processor;
            compute_dtype: in which type they encode and score.
    """

    index: str | Path | IndexOnDisk
    topics: str | Path | Mapping[str, str]
    qrels: Qrels
    test_topics: str | Path | Mapping[str, str] | None = None
    test_qrels: Qrels | None = None
    model: Form = "query"
    arms: str | Sequence[Form] | Mapping[str, Mapping[str, Any] | None] = ("trained",)
    against: str | None = None
    compares: str | None = None
    title: str | None = None
    loss: Form | None = None
    encoder: str | None = None
    learning_rates: Sequence[float] | None = None
    first_stages: Sequence[Form] = ("bm25", "impact")
    test_candidates: int | None = None
    folds: int | None = None
    splits: str | None = None
    seeds: int = 3
    labelled_queries: int | None = None
    relevant: int = 1
    protocol: str | None = None
    measures: str = "nDCG@10 RR@10 R@100"
    context: int = 60
    work: str | Path | None = None
    jobs: int = 1
    backend: str = "loky"
    address: str | None = None
    device: str | None = None
    compute_dtype: str = EXACT

    @property
    def trained_on(self) -> str:
        """Where models are trained."""
        return trained_on(self.device or "cpu")

    @cached_property
    def written(self) -> Written:
        """The model in its written form.

        Raises:
            InputError: one that no study trains.
        """
        written = Written.read(self.model)
        if written.name not in names(KIND):
            shown = argument("model", written.name)
            raise InputError(f"{shown}: no study trains it; {nearest(written.name, names(KIND))}")
        return written

    @property
    def kind(self) -> Any:
        """How the model is trained and tested in a study: a subclass of `StudiedModel`."""
        return find(KIND, self.written.name)

    @cached_property
    def training(self) -> Training:
        """The model, the settings that its trainings have where an arm does not say, and those of the loss.

        Raises:
            InputError: settings that it does not have, values out of range.
        """
        usual = find("trained-model", self.written.name).Params(**self.kind.usual)
        return training_of(self.written, self.loss, usual)

    @cached_property
    def chosen(self) -> list[Arm]:
        """The arms.

        Raises:
            InputError: as `arms_of`.
        """
        return arms_of(self.arms, self.kind, self.written, self.loss, self.context, self.against)

    @cached_property
    def stages(self) -> dict[str, Chosen]:
        """The first stages by what they are written as.

        Raises:
            InputError: no such retriever, settings that it does not have, values out of range.
        """
        return {str(Written.read(form)): choose("retriever", form, of="first_stages") for form in self.first_stages}

    @property
    def index_name(self) -> str:
        """The name by which every process opens the index."""
        return str(self.index) if isinstance(self.index, str | Path) else self.index.name


def check(request: StudyRequest) -> None:
    """Refuse what can be seen to fail, before any work.

    Raises:
        InputError: arguments that do not belong together, methods or settings that there are not.
    """
    known_of = {"protocol": (None, *PROTOCOLS), "splits": (None, *SETTINGS), "backend": WORKERS}
    for name, known in known_of.items():
        if (value := getattr(request, name)) not in known:
            raise InputError(f"{argument(name, value)}: {nearest(str(value), [one for one in known if one])}")
    if (request.test_topics is None) != (request.test_qrels is None):
        raise InputError(f"{argument('test_topics')} and {argument('test_qrels')} go together; only one was given")
    if request.splits:
        for name in ("test_topics", "labelled_queries"):
            if getattr(request, name) is not None:
                shown = argument("splits")
                raise InputError(f"{argument(name)}: goes without {shown}, which says what is tested and trained on")
    for name in ("seeds", "relevant", "context", "jobs", "folds", "labelled_queries", "test_candidates"):
        if (number := getattr(request, name)) is not None and number < 1:
            raise InputError(f"{argument(name, number)}: expected an integer >= 1")
    for name in request.kind.unread:
        if getattr(request, name) != getattr(type(request), name):
            raise InputError(f"{argument(name)}: means nothing to a study of the model {request.written.name}")
    check_backend(request.backend, request.address)
    _ = request.devices, request.trained_on
    request.training  # noqa: B018  # read now: each says what is wrong with its written form
    request.stages  # noqa: B018
    made = [arm.name for arm in request.chosen]
    whose = ["random", *request.stages, *(made if request.kind.own_negatives else ())]
    for arm in request.chosen:
        if arm.own.negatives not in ("", *whose):
            shown = f"{argument('arms', arm.name)}: negatives={arm.own.negatives}"
            raise InputError(f"{shown}: {nearest(arm.own.negatives, whose)}")
        if arm.own.prf and arm.own.start not in made:
            raise InputError(f"{argument('arms', arm.name)}: prf: give start, the arm that is searched with")
    if request.encoder is None and not request.kind.of_index:
        said = f"{argument('encoder')} is missing: the model that the trainings begin with"
        raise InputError(f"{argument('model', request.written.name)}: {said}")
