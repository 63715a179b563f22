"""Settings of mining: what is discarded, and which of the rest become negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, setting

DEFAULT_RATE = 0.1  # share of pairs discarded where neither a threshold nor a rate is given


@dataclass(frozen=True)
class NegativeParams(Params):
    """How hard negatives are mined; see `filters.suspicion` for the filters.

    Raises:
        InputError: values out of range, a threshold beside a rate.
    """

    filter: Literal["rnn", "joint", "margin", "relative-margin", "max-score", "none"] = setting(
        "rnn", "what is discarded"
    )
    threshold: float | None = setting(
        None, "discard above it: s* for rnn, joint similarity for joint; see docs/negatives.md for the others"
    )
    rate: float | None = setting(
        None, f"discard this share of pairs instead (without a threshold {DEFAULT_RATE})", at_least=0, at_most=1
    )
    form: Literal["triplet", "n-tuple", "labeled-pair", "labeled-list"] = setting(
        "triplet", "rows of one negative, of all of a positive, of a document and its label, or of lists of both"
    )
    negatives: int = setting(3, "of a positive", at_least=1)
    sampling: Literal["top", "random"] = setting("top", "the first kept ones of the run, or drawn")
    seed: int = setting(0, "of --sampling random", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None and self.rate is not None:
            raise InputError(f"threshold={self.threshold:g} and rate={self.rate:g}: give one of them, not both")
