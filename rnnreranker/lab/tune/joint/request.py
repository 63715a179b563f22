"""What a tuning of labels and training is asked for: a request, and the joint space that its written forms leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form
from rnnreranker.base.device import trained_on
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.method import defaults_of, find, names
from rnnreranker.base.preset_files import is_file_name, sections_of
from rnnreranker.base.settings import hints_of
from rnnreranker.base.written_form import PRESET, Written
from rnnreranker.encode.params import TRAINED_POOLINGS
from rnnreranker.lab.tune.check import check_all
from rnnreranker.lab.tune.joint.space import JointSpace, LabelSpace, label_ranges, rnn_ranges, train_ranges
from rnnreranker.lab.tune.request import QuerySetRequest
from rnnreranker.lab.tune.space import Space
from rnnreranker.labels import LabelParams
from rnnreranker.labels.request import LABEL_PRESET, ChosenLabeler, choose_labeler
from rnnreranker.rnn import RnnParams
from rnnreranker.search.queries import QueryEncoding
from rnnreranker.train.query.params import TrainParams, training_settings
from rnnreranker.train.request import Training, training_of

MODEL = "query"  # what is trained
HARD = "hard"  # labels that nothing is searched of
ENCODER_SETTINGS = ("pooling", "normalize")
UNREAD = {  # settings of a training that nothing reads here
    **dict.fromkeys(("validation_share", "validation_queries"), "which queries validate is said beside the model"),
    **dict.fromkeys(("neutrality_weight", "neutrality_cutoff"), "no trial is told how neutral documents are"),
}


@dataclass(frozen=True, kw_only=True)
class TuneTrainRequest(QuerySetRequest):
    """The settings of labels and of a training that suit a data set: what `tune_training` takes, and the flags.

    Attributes:
        relevant: grade from which on a document is positive.
        encoder: that is trained, `name:pooling=cls,normalize=true`; None = the one that made the index.
        method: of the labels, in its written form, `evidence:k=10,n_max=5`; what it says is held at that value.
        model: `query` with settings of the training that are held, `query:epochs=1,batch_size=8`.
        loss: what a training lowers, in its written form, `listnet`; the setting `loss` of the model says the same.
        preset: what the search begins with, and what is compared with: published settings of rNN, or a file that a
            tuning wrote, of similarity, labels and training.
        validation_share, test_share: of the queries, by a hash of their ids.
        final_seeds: trainings for the test.
        device: "cpu", "cuda" or "auto".
    """

    hits: int = 200
    trials: int = 40
    relevant: int = 1
    method: Form = "evidence"
    model: Form = MODEL
    loss: Form | None = None
    preset: str | Path | None = None
    validation_share: float = 0.25
    test_share: float = 0.25
    final_seeds: int = 3
    device: str = "cpu"

    @cached_property
    def labeler(self) -> ChosenLabeler:
        """The method of the labels, with its settings and those of labels.

        Raises:
            InputError: no such method, settings that it does not have, a source that is not of vectors.
        """
        written = Written.read(self.method)
        if self.preset is not None and written.name in names("labeler"):
            if issubclass(find("labeler", written.name).Params, RnnParams):
                written = written.beside({PRESET: str(self.preset)}, argument("method"))
            elif "labels" in self._sections and LABEL_PRESET not in written.params:
                written = Written(written.name, {LABEL_PRESET: str(self.preset), **written.params})
        chosen = choose_labeler(written, "method")
        shown = argument("method", str(Written.read(self.method)))
        if chosen.source != "vectors":
            raise InputError(f"{shown}: from={chosen.source}: not in tuning, which compares vectors of the index")
        if chosen.name == HARD and set(hints_of(LabelParams)) & set(Written.read(self.method).params):
            raise InputError(f"{shown}: {HARD} has no parameters of similarity or labels")
        return chosen

    @cached_property
    def of_method(self) -> dict[str, Any]:
        """Settings of the method that are none of the similarity, where they are not its defaults."""
        params = self.labeler.params
        usual = defaults_of(find("labeler", self.labeler.name))
        own = set(hints_of(type(params))) - set(hints_of(RnnParams))
        return {name: getattr(params, name) for name in sorted(own) if getattr(params, name) != getattr(usual, name)}

    @cached_property
    def training(self) -> Training:
        """The model, the settings of its training, and those of its loss.

        Raises:
            InputError: another model, no such loss, settings that they do not have or that nothing reads here.
        """
        written = Written.read(self.model)
        shown = argument("model", str(written))
        if written.name != MODEL:
            raise InputError(f"{shown}: expected {MODEL}, the model whose training is searched")
        if unread := {name: UNREAD[name] for name in written.params if name in UNREAD}:
            raise InputError(f"{shown}: " + "; ".join(f"{name}: {reason}" for name, reason in unread.items()))
        if self._sections:
            written = written.beside({PRESET: str(self.preset)}, argument("model"))
        return training_of(written, self.loss)

    @cached_property
    def searched(self) -> JointSpace:
        """The space, with what the written forms say held at its value."""
        train, labels = self.training.params, self.labeler.label_params
        assert isinstance(train, TrainParams)
        rnn = RnnParams.preset("vectors")
        if preset := str(self.preset or Written.read(self.method).preset):
            rnn = RnnParams.named(preset, rnn)
        rnn_space = Space(rnn_ranges(), rnn).keeping(**self._held(RnnParams))
        label_space = LabelSpace(label_ranges(), labels).keeping(**self._held(LabelParams))
        if self.labeler.name == HARD:
            rnn_space, label_space = Space({}, rnn), LabelSpace({}, labels)
        train_space = Space(train_ranges(), train).keeping(**self._held(TrainParams))
        return JointSpace(rnn_space, label_space, train_space, self._of_loss())

    @property
    def encoding(self) -> QueryEncoding:
        """How queries become vectors.

        Raises:
            InputError: settings that a training does not keep.
        """
        how = QueryEncoding.of(self.encoder, None, self.topics)
        given = how.settings.given()
        if strange := [name for name in given if name not in ENCODER_SETTINGS]:
            expected = " or ".join(ENCODER_SETTINGS)
            raise InputError(
                f"{argument('encoder')}: {', '.join(strange)}: expected {expected}, which a training keeps"
            )
        if given.get("pooling") not in (None, *TRAINED_POOLINGS):
            raise InputError(
                f"{argument('encoder')}: pooling={given['pooling']}: expected {' or '.join(TRAINED_POOLINGS)}"
            )
        return how

    @property
    def _sections(self) -> frozenset[str]:
        """Of the preset file; none of a published preset, or of a file of one kind of settings."""
        return sections_of(self.preset) if self.preset is not None and is_file_name(str(self.preset)) else frozenset()

    def _held(self, kind: type) -> dict[str, Any]:
        """The settings of a class that a written form says, with their values."""
        form, params = (
            (self.model, self.training.params)
            if kind is TrainParams
            else (self.method, self.labeler.label_params if kind is LabelParams else self.labeler.params)
        )
        return {name: getattr(params, name) for name in Written.read(form).params if name in hints_of(kind)}

    def _of_loss(self) -> dict[str, Any]:
        """Settings of losses that are not left at their defaults: of the preset, and those of the written form."""
        preset = str(self.preset) if self._sections else Written.read(self.model).preset
        kept = training_settings({}, preset)[1].to_dict() if preset else {}
        form = self.loss if self.loss is not None else Written.read(self.model).params.get("loss")
        said = sorted(Written.read(form).params) if form is not None else []
        return {**kept, **{name: getattr(self.training.loss, name) for name in said}}


def check(request: TuneTrainRequest, *, ablations: bool = False) -> None:
    """Refuse what can be seen to fail; ablations: whether parts are to be left out too.

    Raises:
        InputError: everything that is wrong; settings that there are not.
        MissingDependencyError: without the packages of tuning and training.
    """
    share, test = request.validation_share, 0.0 if request.test_topics is not None else request.test_share
    shares: Mapping[str, float] = {"validation_share": share, "test_share": request.test_share}
    whole = {"trials": request.trials, "relevant": request.relevant, "final_seeds": request.final_seeds}
    hard = Written.read(request.method).name == HARD
    check_all(
        request,
        *(
            (not 0 < value < 1, f"{argument(name, value)}: expected above 0 and below 1")
            for name, value in shares.items()
        ),
        *((value < 1, f"{argument(name, value)}: expected 1 or more") for name, value in whole.items()),
        (
            share + test >= 1,
            f"{argument('validation_share', share)} and {argument('test_share', test)} leave nothing to train on",
        ),
        (
            hard and ablations,
            f"{argument('ablations')} leaves out parts of similarity and labels: not with {argument('method', HARD)}",
        ),
    )
    trained_on(request.device)
    for name in ("labeler", "searched", "encoding"):
        getattr(request, name)  # read now: each says what is wrong with its written form
    require("optuna", "tuning", "'rnnreranker[tune]'")
    require("accelerate", "training", "'rnnreranker[train]'")
