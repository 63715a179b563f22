"""The part `tokens`: a vector for every token of the documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.command import say
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import setting
from rnnreranker.data.document import Document
from rnnreranker.encode.params import LateEncoderParams
from rnnreranker.parts.encoded import Block, EncodedPart
from rnnreranker.parts.ragged import positions_of
from rnnreranker.parts.tokens.source import VECTORS, QueryTokens, TokenSource, query_tokens, write_tokens
from rnnreranker.parts.vectors.npy_files import map_array

if TYPE_CHECKING:
    from rnnreranker.encode.kinds import TextEncoder

EXACT = 1 << 20  # tokens up to which a search compares a query with all of them


@dataclass(frozen=True)
class TokenParams(settings.Params):
    """Settings of stored tokens and of their encoder; InputError: values out of range."""

    search: Literal["auto", "exact", "ivf-pq"] = setting(
        "auto",
        f"exact: MaxSim with all documents; ivf-pq: with those of the nearest tokens by a Faiss index, 16 bytes a "
        f"token more; auto: exact up to {EXACT} tokens",
    )

    encoder: str = setting(
        "minilm-tokens", "a name, a folder or a Hugging Face id, NAME:document_length=180", flag="token-encoder"
    )

    @property
    def kept(self) -> dict[str, Any]:
        return {"search": self.search}


class TokensPart(EncodedPart):
    """A vector for every token of the documents."""

    name, gives, gives_queries, rank = "tokens", "tokens", "query tokens", 30
    folder = "tokens"
    Params, OfEncoder, encoder = TokenParams, LateEncoderParams, "late-encoder"

    @classmethod
    def encoders(cls) -> type[TextEncoder]:
        from rnnreranker.encode.kinds import LateEncoder

        return LateEncoder

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> TokenSource:
        return TokenSource(at, described)

    @classmethod
    def queries(
        cls, opened: TokenSource, topics: Mapping[str, str], threads: int | None = None, devices: Devices | None = None
    ) -> QueryTokens:
        return query_tokens(opened, topics, threads, devices)

    def encoded(self, documents: Sequence[Document]) -> Block:
        texts = [document.text for document in documents]
        block = self.of_documents.encode(texts, "document", threads=self._threads)._asdict()
        with np.errstate(over="ignore"):
            block["vectors"] = block["vectors"].astype(np.float16)
        if not np.isfinite(block["vectors"]).all():
            raise InputError(f"{self._encoder.name}: a token's vector is beyond float16, as which tokens are kept")
        return block

    def taken(self, rows: np.ndarray, texts: list[str]) -> Block:
        positions, offsets = positions_of(self._old.offsets, rows)
        vectors, ids = self._old.vectors[positions], self._old.ids[positions]
        return {"vectors": vectors, "offsets": offsets, "ids": ids, "cut": self._encoder.count_cut(texts, "document")}

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        made_by, path = self._encoder, folder / self.folder
        tokens = int(write_tokens(path, self.stored, made_by.dimension)[-1])
        search = self.params.search
        if search == "auto":
            search = "exact" if tokens <= EXACT else "ivf-pq"
        if search == "ivf-pq":
            from rnnreranker.parts.tokens.neighbours import write_neighbours

            write_neighbours(map_array(path / VECTORS), path)
        cut, said = self.cut()
        say(f"tokens: {tokens / count:.1f} a document, searched by {search}; {said}")
        settings = {"query_length": made_by.query_length, "document_length": made_by.document_length}
        return {
            "encoder": self.made_by({"settings": settings, "digest": made_by.digest}),
            "dimension": made_by.dimension,
            "dtype": "float16",
            "tokens": tokens,
            "search": search,
            "cut": cut,
        }
