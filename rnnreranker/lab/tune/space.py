"""Search spaces: the values of each setting."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rnnreranker.base.errors import InputError, nearest, require
from rnnreranker.base.settings import Hint, Params, hints_of, located
from rnnreranker.base.strict import read_yaml
from rnnreranker.labels.params import LabelParams
from rnnreranker.rnn import RnnParams
from rnnreranker.train.params import TrainParams

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

EXPECTED = "expected {low: …, high: …} (and log: true), or a list of values"
NARROW = ("none", "maxminmax")  # normalisations after which a boost acts on values that are close together
NARROWER = 0.1386  # their power of the boost: its range ends at 1.25, as 5 ** .1386

# The space of paper 000 for reranking, with `scale`, `weight` and the first stage's rank and score. The run's scores
# always count for something, so that a draw without any of the three terms cannot come up.
RERANKING = """
context: {low: 40, high: 1000, log: true}
k: {low: 3, high: 30}
k_exp: {low: 1, high: 20}
tau: {low: 0, high: 0.8}
lam: {low: 0.001, high: 1, log: true}
normalize: [none, max, mean]
scale: [minmax, none]
weight: [linear, binary]
rank_weight: [0, 0.5, 1, 2]
run_weight: {low: 0.1, high: 4, log: true}
query_weight: [0, 0.5, 1, 2]
rank_constant: {low: 1, high: 100, log: true}
probes: {low: 1, high: 4}
smoothing: {low: 0, high: 0.5}
smoothing_neighbours: {low: 1, high: 30}
"""
# Similarity, labels and training with the ranges of paper 000 and `scale` besides; learning rates are higher and
# warm-ups shorter than there, whose training set is 500 times as large.
LABELS = """
context: {low: 20, high: 400}
k: {low: 3, high: 30}
k_exp: {low: 1, high: 10}
tau: [0, 0.5]
lam: {low: 0.001, high: 1, log: true}
scale: [minmax, none]
aggregate: [max, mean]
normalization: [maxmin, maxminmax, std, none]
n_max: {low: 3, high: 300, log: true}
temperature: {low: 0.1, high: 2, log: true}
boost: {low: 1, high: 5, log: true}
"""
TRAINING = """
learning_rate: {low: 5.0e-7, high: 1.0e-4, log: true}
epochs: {low: 1, high: 20, log: true}
warmup: {low: 0, high: 0.3}
final_ratio: {low: 0.1, high: 0.999}
"""


@dataclass(frozen=True)
class Joint:
    """Settings of similarity, labels and training together; their names are distinct."""

    rnn: RnnParams = field(default_factory=lambda: RnnParams.preset("vectors"))
    labels: LabelParams = field(default_factory=LabelParams)
    train: TrainParams = field(default_factory=TrainParams)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """The sections of a preset file; the loss is in written form."""
        return {name: part.to_dict() for name, part in vars(self).items()}


@dataclass(frozen=True)
class Space:
    """A range or choice for each searched setting; the others have the values of `fixed`.

    Attributes:
        ranges: setting → `{"low": …, "high": …, "log": …}` or a list of values, as in a file of `--space`.
        fixed: RnnParams or Joint, the default and first trial.

    Raises:
        InputError: unknown settings, values out of range, entries of another form.
    """

    ranges: Mapping[str, Any] = field(default_factory=lambda: yaml.safe_load(RERANKING))
    fixed: Any = field(default_factory=RnnParams)

    def __post_init__(self) -> None:
        known, ranges = self._known, dict[str, Any]()
        for name, entry in self.ranges.items():
            if name not in known:
                raise InputError(f"unknown parameter {name}, {nearest(name, known)}")
            values = entry
            if isinstance(entry, Mapping) and {"low", "high"} <= set(entry) <= {"low", "high", "log"}:
                values = [entry["low"], entry["high"]]
            if not isinstance(values, list | tuple) or not values:
                raise InputError(f"{name}: {reprlib.repr(entry)}; {EXPECTED}")
            pairs = [known[name].checked(value) for value in values]
            if problems := [
                problem for _, problem in pairs if problem
            ]:  # of values that exclude others a trial says it
                raise InputError(f"search space: {problems[0]}")
            ranges[name] = [value for value, _ in pairs]
            if isinstance(entry, Mapping):
                ranges[name] = {**entry, "low": pairs[0][0], "high": pairs[1][0]}
        object.__setattr__(self, "ranges", ranges)

    @property
    def _parts(self) -> list[Params]:
        return [*vars(self.fixed).values()] if isinstance(self.fixed, Joint) else [self.fixed]

    @property
    def _known(self) -> dict[str, Hint]:
        """The type and the limits of every setting."""
        return {name: hint for part in self._parts for name, hint in hints_of(type(part)).items()}

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """Optuna's distribution of each searched setting; InputError: a range that ends before it begins."""
        of = require("optuna", "tuning", "'rnnreranker[tune]'").distributions
        made: dict[str, BaseDistribution] = {}
        for name, entry in self.ranges.items():
            kind = of.IntDistribution if self._known[name].number is int else of.FloatDistribution
            try:
                made[name] = of.CategoricalDistribution(entry) if isinstance(entry, list) else kind(**entry)
            except ValueError as error:
                raise InputError(f"search space: {name}: {error}") from None
        return made

    def values(self) -> dict[str, Any]:
        """The fixed values of the searched settings."""
        known = {name: value for part in self._parts for name, value in part.to_dict().items()}
        return {name: known[name] for name in self.ranges}

    def replaced(self, **values: Any) -> Any:
        """`fixed` with other values of some settings."""
        if not isinstance(self.fixed, Joint):
            return dataclasses.replace(self.fixed, **values)
        own = [{name: values[name] for name in hints_of(type(part)) if name in values} for part in self._parts]
        return Joint(*(dataclasses.replace(part, **of) for part, of in zip(self._parts, own, strict=True)))  # type: ignore[arg-type]

    def drawn(self, values: Mapping[str, Any]) -> Any:
        """The settings of a trial; a boost is smaller where the normalisation keeps values close."""
        made = self.replaced(**values)
        if "boost" in values and made.labels.normalization in NARROW:
            return self.replaced(**{**values, "boost": values["boost"] ** NARROWER})
        return made

    def as_trial(self) -> dict[str, Any] | None:
        """The fixed settings as values of a trial; None if one is outside the space."""
        values = self.values()
        if "boost" in values and self.fixed.labels.normalization in NARROW:
            values["boost"] **= 1 / NARROWER
        for name, entry in self.ranges.items():
            value = values[name]
            if isinstance(entry, list):
                inside = value in entry
            else:
                inside = value is not None and entry["low"] <= value <= entry["high"]
            if not inside:
                return None
        return values

    def within(self, deepest: int) -> Space:
        """The space with contexts of at most `deepest`."""
        ranges, entry = dict(self.ranges), self.ranges.get("context")
        if isinstance(entry, list):
            ranges["context"] = sorted({min(value, deepest) for value in entry})
        elif entry:
            ranges["context"] = entry | {name: min(entry[name], deepest) for name in ("low", "high")}
        [context] = [part.context for part in self._parts if isinstance(part, RnnParams)]
        return Space(ranges, self.replaced(context=min(context, deepest)))

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
        with located(shown):
            return cls({str(name): entry for name, entry in content.items()}, fixed)
