"""The joint space: similarity, labels and training at once, with the ranges of paper 000 and `scale` besides."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rnnreranker.base.settings import Params
from rnnreranker.lab.tune.space import Between, Choice, Space
from rnnreranker.labels import LabelParams
from rnnreranker.rnn import RnnParams
from rnnreranker.train.params import loss_params
from rnnreranker.train.query.params import TrainParams

if TYPE_CHECKING:
    import optuna

NARROW = ("none", "maxminmax")  # normalisations after which a boost acts on values that are close together
NARROW_BOOST = Between(1.0, 1.25, log=True)
NARROW_NAME = "boost (none, maxminmax)"  # of the trial's value: its range is another, so it is another parameter


@dataclass(frozen=True)
class Joint:
    """Everything between a run with sparse judgements and a trained encoder."""

    rnn: RnnParams = field(default_factory=lambda: RnnParams.preset("vectors"))
    labels: LabelParams = field(default_factory=LabelParams)
    train: TrainParams = field(default_factory=TrainParams)
    loss: Mapping[str, Any] = field(default_factory=dict)  # parameters of losses; the training takes what its loss has

    @property
    def loss_params(self) -> Params:
        """The parameters of the loss of the training."""
        return loss_params(self.train.loss, self.loss)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Plain values of JSON; settings of the loss stand beside those of the training."""
        train = self.train.to_dict() | self.loss_params.to_dict()
        return {"rnn": self.rnn.to_dict(), "labels": self.labels.to_dict(), "train": train}

    def sections(self) -> dict[str, dict[str, Any]]:
        """The sections of a preset file; the loss is in its written form, with its settings."""
        train, of_loss = self.train.to_dict(), self.loss_params.to_dict()
        if of_loss:
            train["loss"] = {self.train.loss: of_loss}
        return {"rnn": self.rnn.to_dict(), "labels": self.labels.to_dict(), "train": train}


def rnn_ranges() -> dict[str, Between | Choice]:
    """For the similarity that labels are made from."""
    return {
        "context": Between(20, 400),
        "k": Between(3, 30),
        "k_exp": Between(1, 10),
        "tau": (0.0, 0.5),
        "lam": Between(1e-3, 1.0, log=True),
        "scale": ("minmax", "none"),
    }


def label_ranges() -> dict[str, Between | Choice]:
    """From similarities to targets."""
    return {
        "aggregate": ("max", "mean"),
        "normalization": ("maxmin", "maxminmax", "std", "none"),
        "boost": Between(1.0, 5.0, log=True),
        "n_max": Between(3, 300, log=True),
        "temperature": Between(0.1, 2.0, log=True),
    }


def train_ranges() -> dict[str, Between | Choice]:
    """The paper's, with higher learning rates and shorter warm-ups: its training set is 500 times as large."""
    return {
        "learning_rate": Between(5e-7, 1e-4, log=True),
        "epochs": Between(1.0, 20.0, log=True),
        "warmup": Between(0.0, 0.3),
        "final_ratio": Between(0.1, 0.999),
    }


class LabelSpace(Space[LabelParams]):
    """Label parameters, with a narrower range of boosts where the normalisation leaves values close together."""

    def suggest(self, trial: optuna.trial.BaseTrial) -> LabelParams:
        """The parameters of a trial."""
        wide = self.ranges.get("boost")
        if not isinstance(wide, Between):
            return super().suggest(trial)
        others = Space({name: values for name, values in self.ranges.items() if name != "boost"}, self.fixed)
        params = others.suggest(trial)
        name, values = (NARROW_NAME, NARROW_BOOST) if params.normalization in NARROW else ("boost", wide)
        boost = trial.suggest_float(name, values.low, values.high, log=values.log)
        return dataclasses.replace(params, boost=boost)

    def as_trial(self, params: LabelParams) -> dict[str, Any] | None:
        """The parameters as values of a trial; None where one lies outside the space."""
        values_of_trial = super().as_trial(params)
        if (
            values_of_trial
            and "boost" in values_of_trial
            and isinstance(self.ranges["boost"], Between)
            and params.normalization in NARROW
        ):
            boost = values_of_trial.pop("boost")
            return values_of_trial | {NARROW_NAME: boost} if NARROW_BOOST.low <= boost <= NARROW_BOOST.high else None
        return values_of_trial


@dataclass(frozen=True)
class JointSpace:
    """A space for each kind of parameters; their names are distinct, so that a trial holds all of them."""

    rnn: Space[RnnParams] = field(default_factory=lambda: Space(rnn_ranges(), RnnParams.preset("vectors")))
    labels: Space[LabelParams] = field(default_factory=lambda: LabelSpace(label_ranges(), LabelParams()))
    train: Space[TrainParams] = field(default_factory=lambda: Space(train_ranges(), TrainParams()))
    loss: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ranges(self) -> Mapping[str, Between | Choice]:
        """What varies, by name."""
        return {**self.rnn.ranges, **self.labels.ranges, **self.train.ranges}

    @property
    def fixed(self) -> Joint:
        """The default."""
        return Joint(self.rnn.fixed, self.labels.fixed, self.train.fixed, self.loss)

    def within(self, deepest: int) -> JointSpace:
        """The space for candidates of that depth: no context goes beyond it."""
        return dataclasses.replace(self, rnn=self.rnn.within(deepest))

    def suggest(self, trial: optuna.trial.BaseTrial) -> Joint:
        """The parameters of a trial."""
        return Joint(self.rnn.suggest(trial), self.labels.suggest(trial), self.train.suggest(trial), self.loss)

    def as_trial(self, params: Joint) -> dict[str, Any] | None:
        """The parameters as values of a trial; None where one lies outside the space."""
        parts = (self.rnn.as_trial(params.rnn), self.labels.as_trial(params.labels), self.train.as_trial(params.train))
        values: dict[str, Any] = {}
        for part in parts:
            if part is None:
                return None
            values |= part
        return values
