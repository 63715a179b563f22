"""The cross-encoder ms-marco-minilm-l12."""

from __future__ import annotations

from typing import ClassVar

from rnnreranker.base import settings
from rnnreranker.encode.named import KnownModel
from rnnreranker.encode.params import CrossEncoderParams


class MsMarcoMiniLmL12(KnownModel):
    """MiniLM of 12 layers, 33 million parameters, trained on MS MARCO to tell relevant pairs from others."""

    name = "ms-marco-minilm-l12"
    Params: ClassVar[type[settings.Params]] = CrossEncoderParams
    hub = "cross-encoder/ms-marco-MiniLM-L-12-v2"
    licence = "apache-2.0"
