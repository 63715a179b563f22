"""How the weights of words are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rnnreranker.base.settings import Params, setting


@dataclass(frozen=True)
class ImpactParams(Params):
    """Settings of stored weights.

    Raises:
        InputError: values out of range.
    """

    weights: Literal["whole", "float"] = setting(
        "whole", "stored weights: whole = rounded after times the factor, float = as they are", flag="impact-weights"
    )
    factor: float = setting(100.0, "of whole weights: what weights are multiplied by", above=0, flag="impact-factor")
