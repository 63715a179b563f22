"""The request of a study with its arms, checked before any work."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rnnreranker.base.device import ComputesOnDevices, trained_on
from rnnreranker.base.errors import InputError, argument, nearest, refuse
from rnnreranker.base.jobs import CLUSTERS, check_backend
from rnnreranker.base.method import Chosen, Form, choose, fields_of, find, methods
from rnnreranker.base.settings import Params, Request, Written, hints_of, located, setting
from rnnreranker.data.names import INDEX, QRELS
from rnnreranker.data.splits import SETTINGS
from rnnreranker.encode.model_folder import find_start
from rnnreranker.evaluate.protocols import protocol_setting
from rnnreranker.labels.params import unlearnt
from rnnreranker.labels.request import LABEL_PRESET, SOURCE, ChosenLabeler, choose_labeler
from rnnreranker.train.models import NOTHING
from rnnreranker.train.request import Training, TrainRequest, training_of

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import Index

KIND = "trained-model"  # of method
BASE = "base"  # the model as it is
SIGN = "|"  # between names of arms
TO_TRAIN = "of the task"  # in place of the folder of a term scorer, which every task trains
WORKERS = ("loky", *CLUSTERS)  # no threads: libraries of training keep their state by process
USUAL: dict[str, dict[str, Any]] = {  # settings of trainings in a study, where those of the model are others
    "query": {"epochs": 4.0, "candidates": 100, "batch_size": 16},
    "late": {"similarity": "l2"},  # as the program of paper 002
}
LENGTHS = ("max_length", "query_length", "document_length")  # settings of encoders that their trainings have, too
EVERYDAY = ("learning_rate", "epochs", "max_steps", "batch_size")  # of every training: flags and options of specs, too


@dataclass(frozen=True)
class ArmParams(Params):
    """Settings of an arm, except those of its training."""

    labels: str = setting("hard", "what it learns from: a method of labels in its written form")
    start: str = setting("", "what it begins as: an arm, or an encoder; empty = that of the study")
    negatives: str = setting("", "whose: of a first stage, random, of an arm; empty = of the last first stage")
    filter: Literal["none", "rnn"] = setting("none", "of negatives: likely positives are left out")
    prf: str = setting("", "no training: what it starts from, searched with twice, by this feedback")
    rates: str = setting("", "the arm whose chosen learning rates it takes; empty = its own")
    against: str = setting("", f"arms that it is compared with, {SIGN} between them; empty = that of the study")
    family: str = setting("", "of arms among which validation chooses: the name of what it chooses")


@dataclass(frozen=True)
class Arm:
    """One way to train.

    Attributes:
        params: of the training; the task sets the seed, `rates` the learning rate.
        method: of its labels, in written form.
        teacher: the arm whose scores are its labels; finder: the arm whose hits are its negatives; "" = none.
        own: its other settings. against: names of the arms that it is compared with.
        rates: task name → learning rate; empty = that of `params`.
    """

    name: str
    params: Any
    method: Written
    teacher: str = ""
    finder: str = ""
    own: ArmParams = field(default_factory=ArmParams)
    against: tuple[str, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def labels(self) -> ChosenLabeler:
        """The checked method of its labels."""
        return choose_labeler(self.method)

    @property
    def hard(self) -> bool:
        """Whether its labels are the judgements alone."""
        return self.method.name == "hard"

    @property
    def mass(self) -> str | None:
        """ "share" or "confident" if the arm learns how much probability leaves the positives, see `labels.mass`."""
        return self.labels.label_params.mass if unlearnt(self.labels.label_params) else None

    @property
    def refers(self) -> list[str]:
        """Names (perhaps of arms) of its start, its negatives and its teacher."""
        return [*filter(None, dict.fromkeys((self.own.start, self.finder, self.teacher)))]

    def params_of(self, task: Any) -> Any:
        """The settings of its training on a task; hard labels keep their scores."""
        rate = {"learning_rate": self.rates[task.name]} if task.name in self.rates else {}
        values = {"seed": task.seed, **rate} | ({"label_scale": "scores"} if self.hard else {})
        known = vars(self.params)
        return dataclasses.replace(self.params, **{key: value for key, value in values.items() if key in known})


@dataclass(frozen=True)
class StudyRequest(ComputesOnDevices, Request):
    """The arguments of `study`, and flags of the command.

    Attributes:
        index: an opened index, a folder, `pydoc`, or a prebuilt index of Pyserini.
        topics, test_topics: names, files, or qid → text.
        qrels, test_qrels: names, files, {qid: {docid: grade}} or data frames.
        arms: written forms, or name → settings.
        work: None = records of trials are not kept.
        backend, address: as in `do_parts`; workers of a cluster need `work` and the index under the same paths.
    """

    index: str | Path | Index = setting(MISSING, INDEX)
    topics: str | Path | Mapping[str, str] = setting(
        MISSING, "of training (and test): file, ir_datasets id, or `pydoc/train`"
    )
    qrels: Qrels = setting(MISSING, QRELS)
    encoder: str | None = setting(None, "to begin with, of queries by default the one that made the index")
    model: Form = setting("query", "of all arms, with its settings: query, dual, sparse, late, cross")
    loss: Form | None = setting(None, "what it lowers, where an arm does not say: distance:alpha=0.7")
    learning_rates: Sequence[float] | None = setting(None, "choose one a fold, on validation queries", metavar="R")
    seeds: int = setting(3, "trainings of every arm", at_least=1)
    arms: Sequence[Form] | str | Mapping[str, Mapping[str, Any] | None] = setting(
        ("trained",),
        f"settings: {', '.join(hints_of(ArmParams))}, and those of the training",
        metavar="ARM",
    )
    against: str | None = setting(None, "that the others are compared with, beside the model as it was")
    context: int = setting(60, "of query encoders: candidates of labels", at_least=1)
    first_stages: Sequence[Form] = setting(
        ("bm25", "impact"), "of negatives, or of fused labels, by retriever", metavar="M"
    )
    test_topics: str | Path | Mapping[str, str] | None = setting(
        None, "test on these instead of folds", metavar="TOPICS"
    )
    test_qrels: Qrels | None = setting(None, "judgements of --test-topics", metavar="QRELS")
    folds: int | None = setting(None, "default: 5; with --splits the first ones, 4", at_least=1)
    splits: str | None = setting(None, "paper 004's parts, 60/20/20 or 20/20/60", one_of=lambda: [*SETTINGS])
    all_positives: bool = setting(False, "train on all positives of a query, not on one at random")
    labelled_queries: int | None = setting(None, "trained on or validated, by the seed (default: all)", at_least=1)
    test_candidates: int | None = setting(
        None, "reranked by cross-encoders, and depth of other tests (default: 100)", at_least=1
    )
    relevant: int = setting(1, "grade from which on positive", at_least=1)
    protocol: str | None = protocol_setting()
    measures: str = setting("nDCG@10 RR@10 R@100", "of the test")
    compares: str | None = setting(None, "what the arms differ in, for the page (default: the model)")
    title: str | None = setting(None, "of the page's section (default: --topics)")
    work: str | Path | None = setting(None, "records of trials, for going on (default: OUTPUT.trials)")
    jobs: int = setting(1, "trainings at a time", at_least=1)
    backend: str = setting("loky", "who trains", one_of=lambda: [*WORKERS])
    address: str | None = setting(None, "of dask or ray (default: start one here)")

    @property
    def trained_on(self) -> str:
        """The device of the trainings."""
        return trained_on(self.device or "cpu")

    @cached_property
    def written(self) -> Written:
        """The model in written form; InputError for a model that makes no encoder."""
        written = Written.read(self.model)
        known = [name for name, model in methods(KIND).items() if model.trains]
        if written.name not in known:
            raise InputError(f"{argument('model', written.name)}: no study trains it; {nearest(written.name, known)}")
        return written

    @property
    def kind(self) -> Any:
        """The model's class, a subclass of `TrainedModel`."""
        return find(KIND, self.written.name)

    @property
    def fixed(self) -> bool:
        """Whether the model searches the vectors of the index, as a query encoder does."""
        return "vectors" in self.kind.needs

    @property
    def usual(self) -> Any:
        """Settings of a training where neither model nor arm gives others."""
        return self.kind.Params(**USUAL.get(self.written.name, {}))

    @cached_property
    def training(self) -> Training:
        """The model, the settings of its trainings and of the loss; InputError for unknown settings."""
        given = {} if self.loss is None else {"loss": self.loss}
        return training_of(self.written.beside(given, argument("model")), self.usual)

    @property
    def forms(self) -> list[Written]:
        """The arms in written form."""
        own = [{name: own} for name, own in self.arms.items()] if isinstance(self.arms, Mapping) else self.arms
        return [Written.read(form) for form in own]

    @property
    def share(self) -> float:
        """The share of the training queries that validates."""
        return float(getattr(self.training.params, "validation_share", 0.1))

    @cached_property
    def chosen(self) -> list[Arm]:
        """The arms; InputError for a duplicate name, unknown settings, labels, negatives or arms."""
        names, made = [written.name for written in self.forms], list[Arm]()
        beside = [one for one in (self.against or BASE).split(SIGN) if one not in (BASE, *names)]
        refuse(
            (not names, f"{argument('arms')}: expected an arm"),
            (beside, f"{argument('against')}: {', '.join(beside)}: no such arm; {nearest(''.join(beside[:1]), names)}"),
        )
        sources = ["", "random", *self.stages, *names]
        for number, written in enumerate(self.forms):
            with located(argument("arms", str(written))):
                arm = self._arm(written)
                own, before = arm.own, (BASE, *names[:number])
                unknown = [one for one in (*arm.against[1:], own.rates, arm.teacher) if one not in ("", *names)]
                late = [one for one in arm.refers if one in names[number:]]
                refuse(
                    (arm.name in before, f"{arm.name}: an arm of that name is there; give it another"),
                    (unknown, f"{', '.join(unknown)}: no such arm; known: {', '.join(names)}"),
                    (late, f"{', '.join(late)}: comes after it; put it before"),
                    (own.family in (BASE, *names), f"family={own.family}: is the name of an arm; give another"),
                    (own.negatives not in sources, f"negatives={own.negatives}: {nearest(own.negatives, sources[1:])}"),
                    (own.prf and own.start not in names, "prf: give start, the arm that is searched with"),
                )
            made.append(arm)
        return made

    @cached_property
    def rated(self) -> list[str]:
        """Names of the arms, each after those that it refers to or takes its rates from; InputError: a circle."""
        known = {arm.name for arm in self.chosen}
        needs = {arm.name: {*arm.refers, arm.own.rates} & known - {arm.name} for arm in self.chosen}
        try:
            return [*TopologicalSorter(needs).static_order()]
        except CycleError as error:
            shown = ", ".join(error.args[1][1:])
            raise InputError(
                f"{argument('arms')}: {shown}: need the rates of one another; leave a `rates` out"
            ) from None

    def _arm(self, written: Written) -> Arm:
        values = {**self.written.params, **written.params}
        if "seed" in values:
            raise InputError(f"seed: a study draws its own; give {argument('seeds')}, trainings of every arm")
        given = {name: values.pop(name) for name in hints_of(ArmParams) if name in values}
        own = ArmParams.of(given)
        values |= {"loss": self.loss} if self.loss is not None and "loss" not in values else {}
        model = Written(self.written.name, values, written.preset or self.written.preset)
        params: Any = training_of(model, self.usual).params
        if getattr(params, "architecture", "") == "doc":
            raise InputError("architecture=doc: a study weighs the words of queries by the model; expected max")
        # an encoder of single vectors keeps its length, others are tested with that of the study
        shared = ("validation_share", *(() if self.kind.trains == "encoder" else LENGTHS))
        other = [name for name in shared if getattr(params, name, 0) != getattr(self.training.params, name, 0)]
        refuse((other, f"{', '.join(other)}: a study has one for all arms; give it to {argument('model')}"))
        if own.prf:
            choose("feedback", own.prf, of="prf")
        drawn = 2 if getattr(params, "at_random", False) else 1  # as many random documents beside the run's
        context = self.context if self.fixed else drawn * getattr(params, "depth", self.context) + 1
        finder = "" if own.negatives in ("random", *self.stages) else own.negatives
        named = (own.against or self.against or BASE).split(SIGN)
        against = (BASE, *(one for one in named if one not in (BASE, written.name)))
        return Arm(written.name, params, *_labels(own.labels, context), finder, own, against)

    @cached_property
    def stages(self) -> dict[str, Chosen]:
        """The first stages by written form; InputError for an unknown retriever or setting."""
        return {str(Written.read(form)): choose("retriever", form, of="first_stages") for form in self.first_stages}


def _labels(form: Form, context: int) -> tuple[Written, str]:
    """The method of an arm's labels in written form, and the arm that teaches it.

    Three names are short forms: `arm:name=X` (scores of the model of arm X), `cross-encoders:models=A,B` (mean of their
    scores), `term-scorer` (words weighed by a scorer that each task trains).

    Raises:
        InputError: unknown method or settings, values out of range.
    """
    written = Written.read(form)
    values, name, teacher = dict(written.params), written.name, ""
    with located(f"labels={form}"):
        if name == "arm":
            name, teacher = "teacher", str(values.pop("name", ""))
            values["teacher"] = "encoder"
            refuse((not teacher, "name missing"))
        elif name == "cross-encoders":
            name, models = "teacher", str(values.pop("models", ""))
            refuse((not models, "models missing"))
            several = {"teacher": "ensemble", "models": models}
            values |= several if "," in models else {"teacher": "cross-encoder", "model": models}
        elif name == "term-scorer":
            name, values = "term-weight", {**values, "weights": "scorer", "scorer": TO_TRAIN}
        if strange := [one for one in (SOURCE, LABEL_PRESET) if one in values]:
            raise InputError(f"{strange[0]}: a study takes none; give settings")
        choose_labeler(made := Written(name, values, written.preset))
        takes = "context" in fields_of(find("labeler", name))
        if takes and "context" not in values and not made.preset:
            made = dataclasses.replace(made, params={"context": context, **values})
    return made, teacher


def check(request: StudyRequest) -> None:
    """Check a request before any work.

    Raises:
        InputError: arguments that exclude each other, unknown methods, models or settings.
        UnavailableError: a model that is not on this machine.
    """
    given = {name for name in ("test_topics", "test_qrels", "labelled_queries") if getattr(request, name) is not None}
    unread, model = "test_candidates" if request.fixed else "context", request.written.name
    wrong = given & {"test_topics", "labelled_queries"} if request.splits else ()
    refuse(
        (
            len(given & {"test_topics", "test_qrels"}) == 1,
            f"{argument('test_topics')} and {argument('test_qrels')} go together; only one was given",
        ),
        *((True, f"{argument(name)}: goes without {argument('splits')}") for name in sorted(wrong)),
        (
            getattr(request, unread) != getattr(StudyRequest, unread),
            f"{argument(unread)}: means nothing to a study of the model {model}",
        ),
    )
    check_backend(request.backend, request.address)
    _ = (
        request.devices,
        request.trained_on,
        request.training,
        request.stages,
        request.rated,
    )  # each says what is wrong with it
    if request.encoder is None and not request.fixed:
        missing = f"{argument('encoder')} is missing: the model that the trainings begin with"
        raise InputError(f"{argument('model', model)}: {missing}")
    names, starts = {arm.name for arm in request.chosen}, [arm.own.start for arm in request.chosen]
    for start in {request.encoder, *starts} - {None, "", NOTHING, *names}:
        find_start(TrainRequest("model", model, encoder=start).start.name, weights=False)
