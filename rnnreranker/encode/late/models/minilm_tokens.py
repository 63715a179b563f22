"""The late-interaction encoder minilm-tokens."""

from __future__ import annotations

from typing import ClassVar

from rnnreranker.base import settings
from rnnreranker.encode.named import KnownModel
from rnnreranker.encode.params import LateEncoderParams


class MiniLmTokens(KnownModel):
    """The token vectors of minilm before pooling, in 128 dimensions by a drawn projection; not trained for MaxSim."""

    name = "minilm-tokens"
    Params: ClassVar[type[settings.Params]] = LateEncoderParams
    base: ClassVar[str] = "minilm"  # an encoder whose folder is made into one of late interaction, in the cache folder
