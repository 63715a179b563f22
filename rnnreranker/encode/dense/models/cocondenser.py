"""The encoder cocondenser."""

from __future__ import annotations

from typing import Any, ClassVar

from rnnreranker.encode.named import KnownModel


class CoCondenser(KnownModel):
    """coCondenser, BERT trained on MS MARCO after contrastive pre-training, 768 dimensions."""

    name = "cocondenser"
    hub = "Luyu/co-condenser-marco-retriever"
    own_settings: ClassVar[dict[str, Any]] = {"pooling": "cls", "normalize": False, "max_length": 256}
