"""The encoder tas-b."""

from __future__ import annotations

from typing import Any, ClassVar

from rnnreranker.encode.named import KnownModel


class TasB(KnownModel):
    """TAS-B, DistilBERT trained on MS MARCO by topics and margins, 768 dimensions, inner products near 100."""

    name = "tas-b"
    hub = "sebastian-hofstaetter/distilbert-dot-tas_b-b256-msmarco"
    own_settings: ClassVar[dict[str, Any]] = {"pooling": "cls", "normalize": False, "max_length": 256}
