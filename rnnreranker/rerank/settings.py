"""Fields of the rivals' parameters and the checks they share; a field is called as its flag and its key in a spec."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable
from dataclasses import field
from typing import Any

from rnnreranker.errors import InputError

Rule = tuple[Callable[[Any], bool], str]  # whether a value will do, and what is expected

UNIT: Rule = (lambda value: 0 <= value <= 1, "a number in [0, 1]")
NOT_NEGATIVE: Rule = (lambda value: 0 <= value < math.inf, "a finite number >= 0")


def setting(default: Any, meaning: str) -> Any:
    """A dataclass field with a default and the help text of its flag."""
    return field(default=default, metadata={"help": meaning})


def context_setting() -> Any:
    """The field `context`: N as in `RnnParams`, so that methods are compared at equal context."""
    return setting(60, "N: candidates of a query that are reranked; the rest follows below them")


def check(params: Any, whole: dict[str, int], real: dict[str, Rule] | None = None) -> None:
    """Check the fields of frozen parameters and make plain numbers of them.

    Args:
        params: the dataclass, from its __post_init__.
        whole: integer fields with their lowest value.
        real: float fields with their rules.

    Raises:
        InputError: everything out of range, in one message.
    """
    problems = []
    for name, lowest in whole.items():
        value = getattr(params, name)
        if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < lowest:
            problems.append(f"{name}={value!r}: expected an integer >= {lowest}")
        else:
            object.__setattr__(params, name, operator.index(value))
    for name, (fits, expected) in (real or {}).items():
        value = getattr(params, name)
        if not isinstance(value, numbers.Real) or isinstance(value, bool) or not fits(value):
            problems.append(f"{name}={value!r}: expected {expected}")
        else:
            object.__setattr__(params, name, float(value))
    if problems:
        raise InputError("; ".join(problems))
