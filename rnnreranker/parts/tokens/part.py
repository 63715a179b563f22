"""The part `tokens`: a vector for every token of the documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base import settings
from rnnreranker.base.command import counted, say
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import setting
from rnnreranker.encode.params import LateEncoderParams
from rnnreranker.parts.encoded import CountedPart
from rnnreranker.parts.tokens.source import VECTORS, Block, TokenSource, write_tokens
from rnnreranker.parts.vectors.ids import positions_of
from rnnreranker.parts.vectors.npy_files import map_array

if TYPE_CHECKING:
    from rnnreranker.encode.base import TextEncoder
    from rnnreranker.encode.late import LateEncoder, TokenVectors
    from rnnreranker.parts.tokens.source import QueryTokens

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


class TokensPart(CountedPart):
    """A vector for every token of the documents."""

    name, gives, gives_queries, rank = "tokens", "tokens", "query tokens", 30
    folder = "tokens"
    Params, OfEncoder, encoder = TokenParams, LateEncoderParams, "late-encoder"
    aliases = ("late", "colbert")
    packages = ("torch", "transformers", "sentence-transformers", "onnxruntime", "faiss-cpu")
    _encoder: LateEncoder
    _params: TokenParams
    _old: TokenSource | None

    @classmethod
    def encoders(cls) -> type[TextEncoder]:
        from rnnreranker.encode.late import LateEncoder

        return LateEncoder

    @classmethod
    def params_of(cls, described: Mapping[str, Any]) -> TokenParams:
        return TokenParams(described.get("wanted", "auto"), cls.form_of(described))

    @classmethod
    def open(cls, at: Path, described: Mapping[str, Any]) -> TokenSource:
        return TokenSource(at, described)

    @classmethod
    def queries(
        cls,
        opened: TokenSource,
        topics: Mapping[str, str],
        threads: int | None = None,
        devices: Devices | None = None,
    ) -> QueryTokens:
        from rnnreranker.parts.tokens.source import query_tokens

        return query_tokens(opened, topics, threads, devices)

    def taken(self, rows: np.ndarray, texts: list[str]) -> TokenVectors:
        from rnnreranker.encode.late import TokenVectors

        old = self._old
        assert old is not None
        positions, offsets = positions_of(old.offsets, rows)
        cut = self._encoder.count_cut(texts, "document")
        return TokenVectors(old.vectors[positions], offsets, old.ids[positions], cut)

    def save(self, stream: IO[bytes], block: TokenVectors) -> None:
        vectors, offsets, ids, cut = block
        with np.errstate(over="ignore"):
            halves = vectors.astype(np.float16)
        if not np.isfinite(halves).all():
            raise InputError(f"{self._encoder.name}: a token's vector is beyond float16, as which tokens are kept")
        np.savez(stream, vectors=halves, offsets=offsets, ids=ids, cut=cut)

    def write(self, folder: Path, corpus: Path, count: int) -> dict[str, Any]:
        made_by, path = self._encoder, folder / self.folder
        tokens = int(write_tokens(path, self._blocks, made_by.dimension)[-1])
        search = self._params.search
        if search == "auto":
            search = "exact" if tokens <= EXACT else "ivf-pq"
        if search == "ivf-pq":
            from rnnreranker.parts.tokens.neighbours import write_neighbours

            write_neighbours(map_array(path / VECTORS), path)
        cut = f"{counted(self._cut, 'text')} cut at {made_by.document_length} tokens"
        say(f"tokens: {tokens / count:.1f} a document, searched by {search}; {cut}")
        settings = {"query_length": made_by.query_length, "document_length": made_by.document_length}
        return {
            "encoder": self.made_by({"settings": settings, "digest": made_by.digest}),
            "dimension": made_by.dimension,
            "dtype": "float16",
            "tokens": tokens,
            "wanted": self._params.search,
            "search": search,
            "cut": self._cut,
        }

    def _blocks(self) -> Iterator[Block]:
        for file in self._files:
            with np.load(file, allow_pickle=False) as block:
                yield block["vectors"], block["offsets"], block["ids"]
