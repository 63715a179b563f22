"""The encoder multilingual-e5-small."""

from __future__ import annotations

from typing import Any, ClassVar

from rnnreranker.encode.named import KnownModel


class MultilingualE5Small(KnownModel):
    """multilingual-e5-small in full precision, 384 dimensions, mean pooling, length 1; e5 is the same in 4 bits."""

    name = "multilingual-e5-small"
    hub = "intfloat/multilingual-e5-small"
    licence = "mit"
    own_settings: ClassVar[dict[str, Any]] = {
        **{"pooling": "mean", "normalize": True},
        **{"query_prompt": "query: ", "document_prompt": "passage: "},
    }
