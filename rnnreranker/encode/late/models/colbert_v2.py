"""The late-interaction encoder colbert-v2."""

from __future__ import annotations

from typing import ClassVar

from rnnreranker.base import settings
from rnnreranker.encode.named import KnownModel
from rnnreranker.encode.params import LateEncoderParams


class ColbertV2(KnownModel):
    """ColBERTv2, 110 million parameters, trained on MS MARCO; Stanford's checkpoint, 128 numbers a token."""

    name = "colbert-v2"
    Params: ClassVar[type[settings.Params]] = LateEncoderParams
    hub = "colbert-ir/colbertv2.0"
    licence = "mit"
