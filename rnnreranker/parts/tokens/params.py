"""How the tokens of documents are searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rnnreranker.base.settings import Params, setting

EXACT = 1 << 20  # tokens up to which a search compares a query with all of them


@dataclass(frozen=True)
class TokenParams(Params):
    """Settings of stored tokens; InputError: values out of range."""

    search: Literal["auto", "exact", "ivf-pq"] = setting(
        "auto",
        f"exact: MaxSim with all documents; ivf-pq: with those of the nearest tokens by a Faiss index, 16 bytes a "
        f"token more; auto: exact up to {EXACT} tokens",
    )


@dataclass(frozen=True)
class TokensPartParams(TokenParams):
    """Settings of stored tokens, and the encoder that gives them; InputError: values out of range."""

    encoder: str = setting(
        "minilm-tokens", "a name, a folder or a Hugging Face id, NAME:document_length=180", flag="token-encoder"
    )

    @property
    def kept(self) -> TokenParams:
        """How the tokens are searched."""
        return TokenParams(self.search)
