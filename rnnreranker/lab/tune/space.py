"""Search spaces: the values of each setting."""

from __future__ import annotations

import dataclasses
import reprlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.settings import Params, checked, hints_of, member
from rnnreranker.base.strict import read_yaml
from rnnreranker.labels.params import LabelParams
from rnnreranker.rnn import RnnParams
from rnnreranker.train.params import TrainParams

if TYPE_CHECKING:
    import optuna

NONE = "none"  # how None is written where a choice may be None
NARROW = ("none", "maxminmax")  # normalisations after which a boost acts on values that are close together
NARROW_NAME = "boost (none, maxminmax)"  # of the trial's value: its range is another, so it is another parameter


@dataclass(frozen=True)
class Between:
    """Numbers from `low` to `high`, integers for integer bounds; log: uniform in the logarithm."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError(f"low {self.low} is above high {self.high}")
        if self.log and self.low <= 0:
            raise InputError(f"low {self.low}: expected above 0 with log: true")


Choice = tuple[Any, ...]
Ranges = Mapping[str, Between | Choice]
NARROW_BOOST = Between(1.0, 1.25, log=True)

# The space of paper 000 for reranking, with `scale`, `weight` and the first stage's rank and score. The run's scores
# always count for something, so that a draw without any of the three terms cannot come up.
RERANKING: Ranges = {
    "context": Between(40, 1000, log=True),
    "k": Between(3, 30),
    "k_exp": Between(1, 20),
    "tau": Between(0.0, 0.8),
    "lam": Between(1e-3, 1.0, log=True),
    "normalize": (None, "max", "mean"),
    "scale": ("minmax", "none"),
    "weight": ("linear", "binary"),
    "rank_weight": (0.0, 0.5, 1.0, 2.0),
    "run_weight": Between(0.1, 4.0, log=True),
    "query_weight": (0.0, 0.5, 1.0, 2.0),
    "rank_constant": Between(1.0, 100.0, log=True),
    "probes": Between(1, 4),
    "smoothing": Between(0.0, 0.5),
    "smoothing_neighbours": Between(1, 30),
}
# Similarity, labels and training with the ranges of paper 000 and `scale` besides; learning rates are higher and
# warm-ups shorter than there, whose training set is 500 times as large.
LABELS: Ranges = {
    "context": Between(20, 400),
    "k": Between(3, 30),
    "k_exp": Between(1, 10),
    "tau": (0.0, 0.5),
    "lam": Between(1e-3, 1.0, log=True),
    "scale": ("minmax", "none"),
    "aggregate": ("max", "mean"),
    "normalization": ("maxmin", "maxminmax", "std", "none"),
    "n_max": Between(3, 300, log=True),
    "temperature": Between(0.1, 2.0, log=True),
    "boost": Between(1.0, 5.0, log=True),
}
TRAINING: Ranges = {
    "learning_rate": Between(5e-7, 1e-4, log=True),
    "epochs": Between(1.0, 20.0, log=True),
    "warmup": Between(0.0, 0.3),
    "final_ratio": Between(0.1, 0.999),
}


@dataclass(frozen=True)
class Joint:
    """Settings of similarity, labels and training together; their names are distinct."""

    rnn: RnnParams = field(default_factory=lambda: RnnParams.preset("vectors"))
    labels: LabelParams = field(default_factory=LabelParams)
    train: TrainParams = field(default_factory=TrainParams)

    @property
    def parts(self) -> dict[str, Params]:
        """Section → settings."""
        return {"rnn": self.rnn, "labels": self.labels, "train": self.train}

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Plain values for JSON; settings of the loss are beside those of the training."""
        return self.sections() | {"train": self.train.described()}

    def sections(self) -> dict[str, dict[str, Any]]:
        """The sections of a preset file; the loss is in written form."""
        return {name: part.to_dict() for name, part in self.parts.items()}


@dataclass(frozen=True)
class Space:
    """A range or choice for each searched setting; the others have the values of `fixed`.

    Attributes:
        ranges: setting → `Between` or a tuple of values.
        fixed: RnnParams or Joint, the default and first trial.
    """

    ranges: Ranges = field(default_factory=lambda: dict(RERANKING))
    fixed: Any = field(default_factory=RnnParams)

    def __post_init__(self) -> None:
        known = {name: (part, hints_of(type(part))[name]) for part in self._parts for name in hints_of(type(part))}
        for name, values in self.ranges.items():
            if name not in known:
                raise InputError(f"unknown parameter {name}, {nearest(name, known)}")
            ends = (values.low, values.high) if isinstance(values, Between) else values
            if not ends:
                raise InputError(f"{name}: no values to choose from")
            part, hint = known[name]
            [own] = [one for one in dataclasses.fields(part) if one.name == name]
            for value in ends:  # of those that exclude one another a trial says it
                whole = member(hint) is int and isinstance(value, float) and value == int(value)
                _, problem = checked(own, hint, int(value) if whole else value)
                if problem:
                    raise InputError(f"search space: {problem}")

    @property
    def _parts(self) -> list[Params]:
        return list(self.fixed.parts.values()) if isinstance(self.fixed, Joint) else [self.fixed]

    def value(self, name: str) -> Any:
        """The fixed value of a setting."""
        return next(getattr(part, name) for part in self._parts if name in hints_of(type(part)))

    def replaced(self, **values: Any) -> Any:
        """`fixed` with other values of some settings."""
        if isinstance(self.fixed, Joint):
            values = {
                part: dataclasses.replace(params, **{n: v for n, v in values.items() if n in hints_of(type(params))})
                for part, params in self.fixed.parts.items()
            }
        return dataclasses.replace(self.fixed, **values)

    def within(self, deepest: int) -> Space:
        """The space with contexts of at most `deepest`."""
        ranges, values = dict(self.ranges), self.ranges.get("context")
        if isinstance(values, Between):
            high = min(values.high, deepest)
            ranges["context"] = Between(min(values.low, high), high, values.log)
        elif values is not None:
            ranges["context"] = tuple(sorted({min(value, deepest) for value in values}))
        return type(self)(ranges, self.replaced(context=min(self.value("context"), deepest)))

    def keeping(self, **values: Any) -> Space:
        """The space with some settings fixed."""
        ranges = {name: entry for name, entry in self.ranges.items() if name not in values}
        return type(self)(ranges, self.replaced(**values))

    def suggest(self, trial: optuna.trial.BaseTrial) -> Any:
        """The settings of a trial; a boost has a narrower range where the normalisation keeps values close."""
        drawn: dict[str, Any] = {}
        for name, values in self.ranges.items():
            if not isinstance(values, Between):
                word = trial.suggest_categorical(name, [NONE if value is None else value for value in values])
                drawn[name] = None if word == NONE and None in values else word
                continue
            shown = name
            if name == "boost" and drawn.get("normalization", self.value("normalization")) in NARROW:
                shown, values = NARROW_NAME, NARROW_BOOST
            part = next(one for one in self._parts if name in hints_of(type(one)))
            if member(hints_of(type(part))[name]) is int:
                drawn[name] = trial.suggest_int(shown, int(values.low), int(values.high), log=values.log)
            else:
                drawn[name] = trial.suggest_float(shown, values.low, values.high, log=values.log)
        return self.replaced(**drawn)

    def as_trial(self) -> dict[str, Any] | None:
        """The fixed settings as values of a trial; None if one is outside the space."""
        from optuna.trial import FixedTrial

        values = {name: self.value(name) for name in self.ranges}
        if "boost" in values and self.value("normalization") in NARROW:
            values[NARROW_NAME] = values.pop("boost")
        of_trial = {name: NONE if value is None else value for name, value in values.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # optuna warns of values out of range
            try:
                self.suggest(FixedTrial(of_trial))
            except (ValueError, UserWarning):
                return None
        return of_trial

    @classmethod
    def of(cls, given: str | Path | Mapping[str, Any] | None, fixed: Any) -> Space:
        """The space of a YAML file, or of a mapping such as one has; None = the default ranges.

        `k: {low: 3, high: 30}`, `lam: {low: 0.001, high: 1, log: true}`, `scale: [minmax]`

        Raises:
            InputError: an unreadable file, unknown names or values out of range, with the file's name.
        """
        if given is None:
            return cls(fixed=fixed)
        content, shown = given, "space"
        if isinstance(given, str | Path):
            content, shown = read_yaml(given, "search space"), str(given)
        if not isinstance(content, Mapping) or not content:
            raise InputError(f"{shown}: expected a mapping such as `k: {{low: 3, high: 30}}`")
        try:
            return cls({str(name): _entry(str(name), entry) for name, entry in content.items()}, fixed)
        except InputError as error:
            raise InputError(f"{shown}: {error}") from None


def _entry(name: str, entry: Any) -> Between | Choice:
    if isinstance(entry, list | tuple):
        return tuple(None if value == NONE and name == "normalize" else value for value in entry)
    if isinstance(entry, Mapping) and {"low", "high"} <= set(entry) <= {"low", "high", "log"}:
        numbers = [entry["low"], entry["high"]]
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in numbers):
            return Between(numbers[0], numbers[1], bool(entry.get("log", False)))
    raise InputError(
        f"{name}: {reprlib.repr(entry)}; expected {{low: …, high: …}} (and log: true), or a list of values"
    )
