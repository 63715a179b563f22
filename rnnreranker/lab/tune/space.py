"""Search spaces: what values each parameter may take, and what a trial is asked to suggest."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.files.yaml_files import read_yaml
from rnnreranker.base.settings import checked, hints_of, member
from rnnreranker.rnn import RnnParams

if TYPE_CHECKING:
    import optuna

P = TypeVar("P")  # RnnParams, LabelParams or TrainParams
NONE = "none"  # how None is written where a choice may be None


@dataclass(frozen=True)
class Between:
    """Numbers from `low` to `high`, whole ones for whole bounds, drawn evenly or evenly in the logarithm."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError(f"low {self.low} is above high {self.high}")
        if self.log and self.low <= 0:
            raise InputError(f"low {self.low}: expected above 0 with log: true")


Choice = tuple[Any, ...]


def _searched() -> dict[str, Between | Choice]:
    """The space of paper 000 for reranking, with `scale`, `weight` and the first stage's rank and score.

    The run's scores always count for something, so that a draw without any of the three terms cannot come up.
    """
    return {
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


@dataclass(frozen=True)
class Space(Generic[P]):
    """What is searched: a range or a choice for each field of the settings that varies; the others are as in `fixed`.

    Attributes:
        ranges: field name -> `Between` or the tuple of its values.
        fixed: the settings that everything else is taken from: RnnParams, LabelParams or TrainParams.
    """

    ranges: Mapping[str, Between | Choice] = field(default_factory=_searched)
    fixed: P = field(default_factory=RnnParams)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        known = hints_of(type(self.fixed))
        fields = {one.name: one for one in dataclasses.fields(self.fixed)}  # type: ignore[arg-type]
        for name, values in self.ranges.items():
            if name not in known:
                raise InputError(f"unknown parameter {name}, {nearest(name, known)}")
            ends = (values.low, values.high) if isinstance(values, Between) else values
            if not ends:
                raise InputError(f"{name}: no values to choose from")
            for value in ends:  # of those that exclude one another a trial says it
                _, problem = checked(fields[name], known[name], self._cast(name, value))
                if problem:
                    raise InputError(f"search space: {problem}")

    def within(self, deepest: int) -> Space[P]:
        """The space for runs of that depth: no context goes beyond it."""
        ranges = dict(self.ranges)
        values = ranges.get("context")
        if isinstance(values, Between):
            high = min(values.high, deepest)
            ranges["context"] = Between(min(values.low, high), high, values.log)
        elif values is not None:
            ranges["context"] = tuple(sorted({min(value, deepest) for value in values}))
        context: int = self.fixed.context  # type: ignore[attr-defined]
        return type(self)(ranges, self._replaced(context=min(context, deepest)))

    def keeping(self, **values: Any) -> Space[P]:
        """The space with some parameters held at a value."""
        ranges = {name: entry for name, entry in self.ranges.items() if name not in values}
        return type(self)(ranges, self._replaced(**values))

    def suggest(self, trial: optuna.trial.BaseTrial) -> P:
        """The parameters of a trial."""
        drawn: dict[str, Any] = {}
        for name, values in self.ranges.items():
            if not isinstance(values, Between):
                word = trial.suggest_categorical(name, [NONE if value is None else value for value in values])
                drawn[name] = None if word == NONE and None in values else word
            elif self._whole(name):
                drawn[name] = trial.suggest_int(name, int(values.low), int(values.high), log=values.log)
            else:
                drawn[name] = trial.suggest_float(name, values.low, values.high, log=values.log)
        return self._replaced(**drawn)

    def as_trial(self, params: P) -> dict[str, Any] | None:
        """The parameters as values of a trial; None where one lies outside the space."""
        of_trial: dict[str, Any] = {}
        for name, values in self.ranges.items():
            value = getattr(params, name)
            if isinstance(values, Between):
                inside = value is not None and values.low <= value <= values.high
            if not (inside if isinstance(values, Between) else value in values):
                return None
            of_trial[name] = NONE if value is None else value
        return of_trial

    @classmethod
    def of(cls, given: str | Path | Mapping[str, Any] | Space[P] | None, fixed: P) -> Space[P]:
        """The space of a file, of a mapping such as one has, or of another space's ranges; None = the default ones.

        Raises:
            InputError: as `from_yaml`.
        """
        if given is None:
            return cls(fixed=fixed)
        if isinstance(given, Space):
            return cls(given.ranges, fixed)
        return cls.from_yaml(given, fixed) if isinstance(given, str | Path) else cls._read(given, fixed, "space")

    @classmethod
    def from_yaml(cls, path: str | Path, fixed: P | None = None) -> Space[P]:
        """A space from a file: `k: {low: 3, high: 30}`, `lam: {low: 0.001, high: 1, log: true}`, `scale: [minmax]`.

        Raises:
            InputError: no such file, not YAML, unknown names or values out of range, with the file named.
        """
        return cls._read(read_yaml(path, "search space"), fixed, str(path))

    @classmethod
    def _read(cls, content: Any, fixed: P | None, shown: str) -> Space[P]:
        if not isinstance(content, Mapping) or not content:
            raise InputError(f"{shown}: expected a mapping such as `k: {{low: 3, high: 30}}`")
        try:
            ranges = {str(name): _entry(str(name), entry) for name, entry in content.items()}
            return cls(ranges, fixed) if fixed is not None else cls(ranges)
        except InputError as error:
            raise InputError(f"{shown}: {error}") from None

    def _replaced(self, **values: Any) -> P:
        return dataclasses.replace(self.fixed, **values)  # type: ignore[type-var, no-any-return, unused-ignore]

    def _whole(self, name: str) -> bool:
        return member(hints_of(type(self.fixed))[name]) is int

    def _cast(self, name: str, value: Any) -> Any:
        return int(value) if self._whole(name) and isinstance(value, float) and value == int(value) else value


def _entry(name: str, entry: Any) -> Between | Choice:
    if isinstance(entry, Between):
        return entry
    if isinstance(entry, list | tuple):
        return tuple(None if value == NONE and name == "normalize" else value for value in entry)
    if isinstance(entry, Mapping) and {"low", "high"} <= set(entry) <= {"low", "high", "log"}:
        numbers = [entry["low"], entry["high"]]
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in numbers):
            return Between(numbers[0], numbers[1], bool(entry.get("log", False)))
    raise InputError(
        f"{name}: {reprlib.repr(entry)}; expected {{low: …, high: …}} (and log: true), or a list of values"
    )
