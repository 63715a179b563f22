"""The cross-encoder ms-marco-minilm-l6."""

from __future__ import annotations

from typing import ClassVar

from rnnreranker.base import settings
from rnnreranker.encode.named import KnownModel
from rnnreranker.encode.params import CrossEncoderParams


class MsMarcoMiniLmL6(KnownModel):
    """MiniLM of 6 layers, 23 million parameters, trained on MS MARCO to tell relevant pairs from others."""

    name = "ms-marco-minilm-l6"
    Params: ClassVar[type[settings.Params]] = CrossEncoderParams
    hub = "cross-encoder/ms-marco-MiniLM-L-6-v2"
    licence = "apache-2.0"
