"""How a term scorer is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rnnreranker.base.setting_order import in_order
from rnnreranker.base.settings import setting
from rnnreranker.train.text.params import TextParams


@in_order
@dataclass(frozen=True)
class TermScorerParams(TextParams):
    """How a term scorer is trained; paper 004's eq. 4 is over the words of queries alone.

    Raises:
        InputError: values out of range, all of them in one message.
    """

    texts: Literal["queries", "documents", "both"] = setting(
        "queries",
        "texts whose words it learns: queries, weighed in a positive (eq. 4), positives, or both",
        tunable=False,
    )
