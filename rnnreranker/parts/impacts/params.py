"""How the weights of words are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rnnreranker.base.settings import Params, setting


@dataclass(frozen=True)
class ImpactParams(Params):
    """Settings of stored weights; InputError: values out of range."""

    weights: Literal["whole", "float"] = setting(
        "whole", "stored weights: whole = rounded after times the factor, float = as they are"
    )
    factor: float = setting(100.0, "factor of whole weights before they are rounded", above=0)


@dataclass(frozen=True)
class ImpactPartParams(ImpactParams):
    """Settings of stored weights, and the encoder that gives them; InputError: values out of range."""

    encoder: str = setting(
        "splade-tiny", "a name, a folder or a Hugging Face id, NAME:max_length=256", flag="impact-encoder"
    )

    @property
    def kept(self) -> ImpactParams:
        """How the weights are kept."""
        return ImpactParams(self.weights, self.factor)
