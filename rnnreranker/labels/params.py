"""Parameters of soft labels: how scores of candidates become a target distribution."""

from __future__ import annotations

import math
import numbers
import operator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from rnnreranker.errors import InputError


def _setting(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"help": meaning})


@dataclass(frozen=True)
class LabelParams:
    """From the similarity of candidates to the positives to a distribution over them (paper 000, Algorithm 1).

    The published values for a model belong to its data set: see `preset`. `compat` chooses the order of steps:

    - "paper": normalise over all candidates, multiply the positives by `boost`, keep the `n_max` highest and every
      positive, drop what is below `include_level`, softmax.
    - "coder": what the published models were trained with: drop what is below `include_level`, keep the `n_max`
      highest, normalise over these, round to float16, multiply as many labels as there are positives, from the highest
      on, by `boost` whether they are positives or not, drop what is below `include_level` again, softmax.

    Raises:
        InputError: values out of range, all of them in one message.

    >>> LabelParams(boost=0.5, n_max=0)
    Traceback (most recent call last):
    rnnreranker.errors.InputError: boost=0.5: expected a finite number >= 1; n_max=0: expected an integer >= 1 or none
    """

    aggregate: Literal["mean", "max", "sum"] = _setting("mean", "over several positives, each times its grade")
    redistribute: Literal["radically", "fully"] = _setting(
        "radically", "labels are the scores, or positives keep 1 - rho of their grade and the others share the rest"
    )
    rho: float = _setting(0.2, "share of the grades that --redistribute fully gives to the others")
    normalization: Literal["maxmin", "std", "max", "maxminmax", "none"] = _setting(
        "maxmin", "f_n: what a query's scores go through before the softmax"
    )
    boost: float = _setting(1.222, "b: what the positives' values are multiplied by")
    n_max: int | None = _setting(4, "candidates that get probability, from the highest on")
    include_level: float | None = _setting(None, "values below it get no probability")
    temperature: float = _setting(1.0, "of the softmax: values are divided by it")
    mass: Literal["own", "evidence"] | None = _setting(
        None, "probability that positives keep: by the method itself, or as evidence gives (uniform, query: evidence)"
    )
    compat: Literal["paper", "coder"] = _setting("paper", "the paper's order of steps, or that of the published models")

    def __post_init__(self) -> None:
        problems = []
        for name, ok, expected in (
            ("rho", lambda v: 0 <= v <= 1, "a number in [0, 1]"),
            ("boost", lambda v: 1 <= v < math.inf, "a finite number >= 1"),
            ("temperature", lambda v: 0 < v < math.inf, "a finite number > 0"),
            ("include_level", lambda v: v is None or math.isfinite(v), "a finite number or none"),
        ):
            value = getattr(self, name)
            optional = name == "include_level" and value is None
            if not optional and (not isinstance(value, numbers.Real) or isinstance(value, bool) or not ok(value)):
                problems.append(f"{name}={value!r}: expected {expected}")
            elif not optional:
                object.__setattr__(self, name, float(value))
        if self.n_max is not None:
            if not isinstance(self.n_max, numbers.Integral) or isinstance(self.n_max, bool) or self.n_max < 1:
                problems.append(f"n_max={self.n_max!r}: expected an integer >= 1 or none")
            else:
                object.__setattr__(self, "n_max", operator.index(self.n_max))
        hints = get_type_hints(type(self))
        for name in ("aggregate", "redistribute", "normalization", "compat", "mass"):
            allowed = _words(hints[name])
            if (value := getattr(self, name)) not in allowed:
                problems.append(f"{name}={value!r}: expected one of {', '.join(map(str, allowed))}")
        if problems:
            raise InputError("; ".join(problems))

    @classmethod
    def preset(cls, name: str) -> LabelParams:
        """The label parameters a published model was trained with, in the order of steps it was trained with.

        Raises:
            InputError: no such preset.
        """
        if name not in PRESETS:
            raise InputError(f"label preset {name}: not known; known: {', '.join(sorted(PRESETS))}")
        return PRESETS[name]

    @classmethod
    def from_yaml(cls, path: str | Path) -> LabelParams:
        """The parameters of a YAML file, or of its section `labels`; see `rnn.preset_file.read_settings`.

        Raises:
            InputError: no such file, not YAML, unknown keys (with the nearest names), values out of range.
        """
        from rnnreranker.rnn.preset_file import read_settings

        return read_settings(path, cls, "labels")

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, plain values: `LabelParams(**params.to_dict()) == params`."""
        return asdict(self)


def _words(hint: Any) -> list[Any]:
    """The values a Literal, or an optional Literal, allows."""
    members = get_args(hint)
    if type(None) in members:
        return [*(word for member in members for word in get_args(member)), None]
    return list(members)


PRESETS = {  # paper 000, Table 6, with the digits of the published training settings
    "coder-tas-b": LabelParams(boost=1.2217071730607665, n_max=4, include_level=0.1, compat="coder"),
    "coder-cocondenser": LabelParams(normalization="std", boost=1.525, n_max=34, include_level=0.1, compat="coder"),
    "tripclick": LabelParams(boost=4.075, n_max=81, include_level=0.1, compat="coder"),
}
