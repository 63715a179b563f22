"""What a study is asked for: a request, and the training, the arms and the first stages that it names."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import Request, argument
from rnnreranker.base.chosen_method import Chosen, Form, choose
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.method import find
from rnnreranker.base.written_form import Written
from rnnreranker.data.splits import SETTINGS
from rnnreranker.evaluate.protocols import PROTOCOLS
from rnnreranker.lab.study.query.arms import SMOOTHING, label_form
from rnnreranker.lab.study.text.arms import MODELS
from rnnreranker.train.request import KIND, Training, training_of

if TYPE_CHECKING:
    import pandas

    from rnnreranker.index.opening import IndexOnDisk

ARMS = {"labels": "query", "losses": "query", "candidates": "query", **MODELS}  # what is compared → the model trained
DEFAULTS: dict[str, dict[str, Any]] = {  # of a model in a study, where those of its training are others
    "query": {"epochs": 4.0, "candidates": 100, "batch_size": 16},
    "late": {"similarity": "l2"},  # as the program of paper 002
}
EVERYDAY = {  # settings of every training that are flags and options of specs, too
    **{"learning_rate": "peak learning rate", "epochs": "passes over the training queries"},
    **{"max_steps": "steps, in place of epochs", "batch_size": "queries a step"},
}
OF_QUERY = tuple(name for name, model in ARMS.items() if model == "query")
TAKEN_BY: dict[
    str, tuple[str, ...]
] = {  # an argument → what is compared where it means something; others mean it always
    **dict.fromkeys(("methods", "other_side"), ("labels",)),
    **dict.fromkeys(("learning_rates", "context"), OF_QUERY),
    "loss": tuple(name for name in ARMS if name != "losses"),
    "losses": ("losses", "pair-losses"),
    "counts": ("candidates",),
    "factors": ("regularisation",),
    "test_candidates": tuple(name for name in ARMS if name not in OF_QUERY),
    **dict.fromkeys(("late_arms", "cross_encoders", "teacher_temperature"), ("late",)),
    "dual_arms": ("dual",),
}


@dataclass(frozen=True)
class StudyRequest(Request):
    """A study: the arguments of `run_study`, and the flags of the command.

    Attributes:
        index: a folder, `pydoc`, the name of a prebuilt index of Pyserini, or an opened index, which is opened again
            by its name.
        topics: of training, and without `test_topics` of the test: a name, a file, or qid → text.
        qrels: judgements of them: a name, a file, {qid: {docid: grade}} or a data frame.
        test_topics, test_qrels: of the test; None = every query is tested by an encoder trained on the other folds.
        arms: what is compared, one of `ARMS`.
        title: of the page's section; None = that of the topics.
        model: what is trained, with settings of the training in its written form, `query:candidates=100,warmup=0.1`;
            None = the model of the arms.
        loss: what training lowers where an arm does not say, in its written form, `distance:alpha=0.7`.
        encoder: what the trainings begin with; None = of queries, the one that made the index.
        methods: of labels: methods of smooth labels, in their written form with settings of `LabelParams` among
            theirs; `joint:mass=share` and `mass=confident` are learnt from the training side of a task.
        learning_rates: one of these is chosen for every fold by its validation queries; None = that of the training.
        other_side: of labels: every arm with the rate chosen for the other kind of labels, too.
        counts: of candidates: how many a query has.
        losses: of losses and pair-losses, in their written form; None = all that fit.
        factors: of regularisation: of lambda.
        late_arms, dual_arms: of late and dual, see `late.arms.late_arms` and `dual.arms.dual_arms`; None = those of the
            papers.
        cross_encoders: of late: teachers. teacher_temperature: what a teacher's scores are divided by, of students of
            the similarity l2; twice that of those of maxsim.
        first_stages: retrievers in their written form: where negatives come from, or what a run that teaches is fused
            of; cross-encoders rerank the last in the test.
        test_candidates: reranked in the test; None = 100, of late none: the collection is searched.
        folds: None = 5, with `splits` the first ones, 4.
        splits: in place of folds, paper 004's parts for training, validation and test: "standard" or "cold".
        seeds: trainings of every arm.
        labelled_queries: that a task trains on or holds out for validation, drawn by the seed; None = all.
        relevant: grade from which on a document is positive.
        protocol, measures: of the test, see `evaluate`.
        context: of query encoders: N of the labels.
        work: folder of the records of trials, for going on; None = they are not kept.
        jobs: trainings at a time; results do not depend on it.
    """

    index: str | Path | IndexOnDisk
    topics: str | Path | Mapping[str, str]
    qrels: str | Path | Mapping[str, Mapping[str, int]] | pandas.DataFrame
    test_topics: str | Path | Mapping[str, str] | None = None
    test_qrels: str | Path | Mapping[str, Mapping[str, int]] | pandas.DataFrame | None = None
    arms: str = "labels"
    title: str | None = None
    model: Form | None = None
    loss: Form | None = None
    encoder: str | None = None
    methods: Sequence[Form] = SMOOTHING
    learning_rates: Sequence[float] | None = None
    other_side: bool = True
    counts: Sequence[int] = (10, 50, 200)
    losses: Sequence[Form] | None = None
    factors: Sequence[float] = (0.1, 1.0, 10.0)
    late_arms: Sequence[Form] | None = None
    dual_arms: Sequence[Form] | None = None
    cross_encoders: Sequence[str] = ()
    teacher_temperature: float = 0.25
    first_stages: Sequence[Form] = ("bm25", "impact")
    test_candidates: int | None = None
    folds: int | None = None
    splits: str | None = None
    seeds: int = 3
    labelled_queries: int | None = None
    relevant: int = 1
    protocol: str = "trec"
    measures: str = "nDCG@10 RR@10 R@100"
    context: int = 60
    work: str | Path | None = None
    jobs: int = 1

    @cached_property
    def training(self) -> Training:
        """The model, the settings of its trainings, and those of the loss that they name.

        Raises:
            InputError: another model than that of the arms, settings that it does not have, values out of range.
        """
        trained = ARMS[self.arms]
        written = Written(trained) if self.model is None else Written.read(self.model)
        if written.name != trained:
            said = f"{argument('arms', self.arms)} trains a model {trained}"
            raise InputError(f"{argument('model', written.name)}: {said}; leave it out, or give {trained}:KEY=VALUE")
        if "seed" in written.params:
            shown = argument("model", str(written))
            raise InputError(f"{shown}: seed: a study draws its own; give {argument('seeds')}, trainings of every arm")
        return training_of(written, self.loss, find(KIND, trained).Params(**DEFAULTS.get(trained, {})))

    @cached_property
    def loss_values(self) -> dict[str, Any]:
        """The settings of losses that were given, of which an arm takes those that its loss has."""
        form = self.loss if self.model is None or self.loss is not None else Written.read(self.model).params.get("loss")
        typed = set() if form is None else set(Written.read(form).params)
        loss, usual = self.training.loss.to_dict(), type(self.training.loss)().to_dict()
        return {name: loss[name] for name in sorted(loss) if name in typed or loss[name] != usual[name]}

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


def model_form(model: Form | None, arms: str, typed: Mapping[str, Any]) -> Written:
    """The model of a written form, None = that of the arms, with the settings of `EVERYDAY` that are said beside it.

    Raises:
        InputError: no such arms, a setting that both say.
    """
    if arms not in ARMS:
        raise InputError(f"{argument('arms', arms)}: {nearest(str(arms), ARMS)}")
    return Written.read(ARMS[arms] if model is None else model).beside(typed, argument("model"))


def check(request: StudyRequest) -> None:
    """Refuse what can be seen to fail, before any work.

    Raises:
        InputError: arguments that do not belong together, methods or settings that there are not.
    """
    for name, known in (("arms", ARMS), ("protocol", PROTOCOLS), ("splits", (None, *SETTINGS))):
        if (value := getattr(request, name)) not in known:
            raise InputError(f"{argument(name, value)}: {nearest(str(value), [one for one in known if one])}")
    for field in dataclasses.fields(request):
        taken = TAKEN_BY.get(field.name, ARMS)
        if request.arms not in taken and getattr(request, field.name) != field.default:
            takers = " or ".join(argument("arms", one) for one in taken)
            raise InputError(f"{argument(field.name)}: is for {takers}, not for {request.arms}")
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
    request.training  # noqa: B018  # read now: each says what is wrong with its written form
    request.stages  # noqa: B018
    for form in request.methods:
        label_form(form)
    for form in request.losses or ():
        choose("loss", form, of="losses")
    if request.encoder is None and ARMS[request.arms] != "query":
        said = f"{argument('encoder')} is missing: the model that the trainings begin with"
        raise InputError(f"{argument('arms', request.arms)}: {said}")
