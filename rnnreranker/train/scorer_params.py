"""Parameters of a scorer of candidates."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args, get_type_hints

from rnnreranker.errors import InputError


def _setting(default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"help": meaning})


@dataclass(frozen=True)
class ScorerParams:
    """What scores the candidates of a query.

    Raises:
        InputError: values out of range, all of them in one message.

    >>> ScorerParams("encoder", heads=3, width=256, blocks=0)
    Traceback (most recent call last):
    rnnreranker.errors.InputError: blocks=0: expected an integer >= 1; width=256: expected a multiple of heads=3
    """

    scorer: Literal["feed-forward", "encoder", "decoder"] = _setting(
        "feed-forward", "each candidate by itself, all with each other, or also with the query's tokens"
    )
    blocks: int = _setting(2, "layers of the scorer")
    heads: int = _setting(4, "of attention")
    width: int = _setting(256, "numbers for a candidate inside the scorer")
    scorer_dropout: float = _setting(0.1, "in the scorer")
    scorer_rate: float = _setting(1e-4, "highest learning rate of the scorer; the encoder keeps --learning-rate")
    residual: bool = _setting(True, "add the inner product of query and candidate, so that training begins at it")

    def __post_init__(self) -> None:
        problems = []
        words = get_args(get_type_hints(type(self))["scorer"])
        if self.scorer not in words:
            problems.append(f"scorer={self.scorer}: expected one of {', '.join(words)}")
        for name in ("blocks", "heads", "width"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                problems.append(f"{name}={value}: expected an integer >= 1")
        if not 0 <= self.scorer_dropout < 1:
            problems.append(f"scorer_dropout={self.scorer_dropout}: expected a number in [0, 1)")
        if not 0 < self.scorer_rate < math.inf:
            problems.append(f"scorer_rate={self.scorer_rate}: expected a number > 0")
        if isinstance(self.width, int) and isinstance(self.heads, int) and self.heads > 0 and self.width % self.heads:
            problems.append(f"width={self.width}: expected a multiple of heads={self.heads}")
        if problems:
            raise InputError("; ".join(problems))

    def to_dict(self) -> dict[str, Any]:
        """Every field with its value."""
        return asdict(self)
