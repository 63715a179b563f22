"""Parameters of reciprocal nearest neighbour similarity: the only home of defaults and published presets."""

from __future__ import annotations

import dataclasses
import math
import numbers
import operator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from rnnreranker.errors import InputError, nearest


def _setting(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"help": meaning})


@dataclass(frozen=True)
class RnnParams:
    """How similar two texts are by their reciprocal nearest neighbours: the symbols of paper 000, explained here once.

    The elements of a context are the query (element 0) and its N candidates; s_ij is the inner product of two of them.

    - `k`: an element's neighbour list holds its k nearest elements besides itself (variant "paper": k in all).
    - `tau`: share of the list that may extend a reciprocal set; 0 means that no set is extended.
    - `weight`, `weight_scale`: weight of a member from its similarity s: s, exp(p s) - 1 with p = `weight_scale`, or 1.
    - `k_exp`: an element's weights are averaged over the first k_exp entries of its list; 1 means no averaging.
    - `lam`: lambda in s* = lambda s_0i + (1 - lambda) J(0, i), J being the Jaccard similarity of the weights.
    - `normalize`: every row of similarities is divided by its maximum or its mean, or left alone.
    - `scale`: "minmax" maps the similarities of a context to [0, 1], so that no setting depends on the scale of the
      encoder's scores; "none" takes them as they are, as the published runs did.
    - `context`: N, the candidates that are reranked. The reranker applies it, the similarity functions do not.
    - `variant`: "authors" is what the published numbers were computed with, "paper" the printed equations.

    The default does not depend on the scale of the scores; `preset` gives the published values, for raw scores.

    Raises:
        InputError: values out of range, all of them in one message.

    >>> RnnParams(k=21).k
    21
    >>> RnnParams.preset("tas-b").lam
    0.451
    >>> RnnParams(k=0, lam=1.5)
    Traceback (most recent call last):
    rnnreranker.errors.InputError: k=0: expected an integer >= 1; lam=1.5: expected a number in [0, 1]
    """

    k: int = _setting(10, "k: neighbours of an element, itself not counted")
    k_exp: int = _setting(3, "k_exp: neighbours whose weights are averaged (1 = no expansion)")
    tau: float = _setting(0.5, "tau: share of k within which neighbours extend a reciprocal set (0 = no extension)")
    lam: float = _setting(0.6, "lambda: weight of the geometric similarity, 1 - lambda that of the Jaccard similarity")
    weight: Literal["linear", "exp", "binary"] = _setting("linear", "weight of a neighbour from its similarity s")
    weight_scale: float = _setting(2.4, "p in the weight exp(p s) - 1 of --weight exp")
    normalize: Literal["max", "mean"] | None = _setting(None, "divide each row of similarities by its max or mean")
    scale: Literal["minmax", "none"] = _setting("minmax", "map a context's similarities to [0, 1], or leave them raw")
    context: int = _setting(60, "N: candidates of a query that are reranked; the rest follows below them")
    variant: Literal["authors", "paper"] = _setting("authors", "what published numbers used, or the printed equations")

    def __post_init__(self) -> None:
        problems = []
        for name in ("k", "k_exp", "context"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
                problems.append(f"{name}={value!r}: expected an integer >= 1")
            else:
                object.__setattr__(self, name, operator.index(value))  # numpy integers become plain ones
        for name, ok, expected in (
            ("tau", lambda v: 0 <= v <= 1, "a number in [0, 1]"),
            ("lam", lambda v: 0 <= v <= 1, "a number in [0, 1]"),
            ("weight_scale", lambda v: 0 < v < math.inf, "a finite number > 0"),
        ):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) or isinstance(value, bool) or not ok(value):
                problems.append(f"{name}={value!r}: expected {expected}")
            else:
                object.__setattr__(self, name, float(value))
        hints = get_type_hints(type(self))
        for name in ("weight", "normalize", "scale", "variant"):
            allowed = _words(hints[name])
            if (value := getattr(self, name)) not in allowed:
                shown = ", ".join("none" if word is None else str(word) for word in allowed)
                problems.append(f"{name}={value!r}: expected one of {shown}")
        if problems:
            raise InputError("; ".join(problems))

    @classmethod
    def preset(cls, name: str) -> RnnParams:
        """The published parameters of a model (paper 000, Table 5), meant for its raw inner products.

        Raises:
            InputError: no such preset (with the nearest names).
        """
        if name not in PRESETS:
            raise InputError(
                f"preset {name}: not known; give a YAML file or a published one, {nearest(str(name), PRESETS)}"
            )
        return PRESETS[name]

    @classmethod
    def from_yaml(cls, path: str | Path) -> RnnParams:
        """The parameters of a YAML file, or of its section `rnn`; see `preset_file.read_settings`.

        Raises:
            InputError: no such file, not YAML, unknown keys (with the nearest names), values out of range.
        """
        from rnnreranker.rnn.preset_file import read_settings

        return read_settings(path, cls, "rnn")

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, plain values: `RnnParams(**params.to_dict()) == params`."""
        return dataclasses.asdict(self)


def _words(hint: Any) -> list[Any]:
    """The values a Literal, or an optional Literal, allows."""
    members = get_args(hint)
    if type(None) in members:
        return [*(word for member in members for word in get_args(member)), None]
    return list(members)


def _published(context: int, k: int, k_exp: int, tau: float, lam: float) -> RnnParams:
    return RnnParams(k=k, k_exp=k_exp, tau=tau, lam=lam, scale="none", context=context)


PRESETS = {  # paper 000, Table 5
    "tas-b": _published(60, 21, 3, 0.0, 0.451),
    "coder-tas-b": _published(60, 21, 3, 0.0, 0.451),
    "cocondenser": _published(53, 21, 5, 0.128, 0.469),
    "coder-cocondenser": _published(63, 19, 8, 0.5, 0.473),
}
