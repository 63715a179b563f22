"""Parameters of a scorer of candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, setting


@dataclass(frozen=True)
class ScorerParams(Params):
    """What scores the candidates of a query.

    >>> ScorerParams("encoder", heads=3, width=256)
    Traceback (most recent call last):
    rnnreranker.base.errors.InputError: width=256: expected a multiple of heads=3
    """

    scorer: Literal["feed-forward", "encoder", "decoder"] = setting(
        "feed-forward", "each candidate by itself, all with each other, or also with the query's tokens"
    )
    blocks: int = setting(2, "layers of the scorer", at_least=1)
    heads: int = setting(4, "of attention", at_least=1)
    width: int = setting(256, "numbers for a candidate inside the scorer", at_least=1)
    dropout: float = setting(0.1, "in the scorer", at_least=0, at_most=0.999)
    learning_rate: float = setting(1e-4, "highest learning rate of the scorer; the encoder keeps its own", above=0)
    residual: bool = setting(True, "add the inner product of query and candidate, so that training begins at it")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise InputError(f"width={self.width}: expected a multiple of heads={self.heads}")
