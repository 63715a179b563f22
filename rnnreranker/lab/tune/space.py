"""Search spaces: the values of each setting."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rnnreranker.base.errors import InputError, brief, require
from rnnreranker.base.files import read_yaml
from rnnreranker.base.settings import Hint, Params, check_names, hints_of, located
from rnnreranker.labels.params import LabelParams
from rnnreranker.rnn import RnnParams
from rnnreranker.train.params import TrainParams

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

EXPECTED = "expected {low: …, high: …} (and log: true), or a list of values"

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
        known, ranges = self._known, check_names(self.ranges, self._known)
        for name, entry in ranges.items():
            bounds = isinstance(entry, Mapping) and {"low", "high"} <= set(entry) <= {"low", "high", "log"}
            values = [entry["low"], entry["high"]] if bounds else entry
            if not isinstance(values, list | tuple) or not values:
                raise InputError(f"{name}: {brief(entry)}; {EXPECTED}")
            pairs = [known[name].checked(value) for value in values]
            if problems := [problem for _, problem in pairs if problem]:  # each alone: trials refuse combinations
                raise InputError(f"search space: {problems[0]}")
            plain = [value for value, _ in pairs]
            ranges[name] = {**entry, "low": plain[0], "high": plain[1]} if bounds else plain
        object.__setattr__(self, "ranges", ranges)

    @property
    def parts(self) -> list[Params]:
        """The settings of each kind."""
        return [*vars(self.fixed).values()] if isinstance(self.fixed, Joint) else [self.fixed]

    @property
    def _known(self) -> dict[str, Hint]:
        """The type and the limits of every setting."""
        return {name: hint for part in self.parts for name, hint in hints_of(type(part)).items()}

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

    def drawn(self, values: Mapping[str, Any]) -> Any:
        """`fixed` with other values of some settings, as of a trial; ignores other names."""
        made = []
        for part in self.parts:
            made.append(dataclasses.replace(part, **{name: values[name] for name in vars(part) if name in values}))
        return Joint(*made) if isinstance(self.fixed, Joint) else made[0]  # type: ignore[arg-type]

    def firsts(self, trials: int) -> list[dict[str, Any]]:
        """The values of the first trials: the fixed settings, if they are in the space, and all of a small space."""
        known = {name: value for part in self.parts for name, value in vars(part).items()}
        start = {name: known[name] for name in self.ranges}
        inside = [
            start[name] in one if isinstance(one, list) else one["low"] <= (start[name] or 0) <= one["high"]
            for name, one in self.ranges.items()
        ]
        firsts, lists = [start] if all(inside) else [], [*self.ranges.values()]
        if all(isinstance(one, list) for one in lists) and math.prod(map(len, lists)) <= trials:
            grid = (dict(zip(self.ranges, values, strict=True)) for values in itertools.product(*lists))
            firsts += [values for values in grid if values != start]
        return firsts

    def within(self, deepest: int) -> Space:
        """The space with contexts of at most `deepest`."""
        ranges, entry = dict(self.ranges), self.ranges.get("context")
        if isinstance(entry, list):
            ranges["context"] = sorted({min(value, deepest) for value in entry})
        elif entry:
            ranges["context"] = entry | {name: min(entry[name], deepest) for name in ("low", "high")}
        [context] = [part.context for part in self.parts if isinstance(part, RnnParams)]
        return Space(ranges, self.drawn({"context": min(context, deepest)}))

    @classmethod
    def of(cls, given: str | Path | Mapping[str, Any] | None, fixed: Any) -> Space:
        """The space of a YAML file, or of a mapping such as one has; None = the default ranges.

        `k: {low: 3, high: 30}`, `lam: {low: 0.001, high: 1, log: true}`, `scale: [minmax]`

        Raises:
            InputError: an unreadable file, unknown names or values out of range, with the file's name.
        """
        if given is None:
            return cls(fixed=fixed)
        named = isinstance(given, str | Path)
        content = read_yaml(given, "search space") if isinstance(given, str | Path) else given
        with located(str(given) if named else "space"):
            if not isinstance(content, Mapping) or not content:
                raise InputError("expected a mapping such as `k: {low: 3, high: 30}`")
            return cls({str(name): entry for name, entry in content.items()}, fixed)
