"""Settings of encoders; None = the model's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rnnreranker.base.errors import InputError
from rnnreranker.base.settings import Params, hints_of, setting


@dataclass(frozen=True)
class EncoderParams(Params):
    """Settings of an encoder; None = the model's own. InputError: values out of range."""

    pooling: Literal["mean", "cls", "max", "lasttoken"] | None = setting(None, "pooling of token vectors")
    normalize: bool | None = setting(None, "vectors scaled to length 1", flag="l2-norm")
    max_length: int | None = setting(None, "tokens at which texts are cut", at_least=1)
    query_prompt: str | None = setting(None, 'text before queries, like "query: "')
    document_prompt: str | None = setting(None, 'text before documents, like "passage: "')
    document_type: int | None = setting(
        None, "token type of documents, 0 where it is not given, as queries have; RepBERT: 1", at_least=0
    )
    truncate_dim: int | None = setting(None, "numbers of a vector that are kept, of a Matryoshka model", at_least=1)

    def given(self) -> dict[str, Any]:
        """The settings that differ from the defaults, for `Encoder.load(name, **given)`."""
        return {name: value for name, value in self.to_dict().items() if value != getattr(type(self)(), name)}


RECORD = "training.json"  # in the folder of a trained model
DOCUMENTS_BY = "documents_by"  # of a record: the encoder of the documents that a query encoder is trained for
POOLINGS = hints_of(EncoderParams)["pooling"].words
TRAINED_POOLINGS = ("mean", "cls")  # those of them that an encoder can be trained with
WHERE_GIVEN = ("document_type", "truncate_dim")  # among the settings of an encoder only where it is given
INSIDE = ("pooling", "normalize", "document_type", "truncate_dim")  # those that are part of a graph
# settings that a command which encodes queries alone has no flags for
QUERY_SIDE = ("document_prompt", "document_type")


@dataclass(frozen=True)
class SparseEncoderParams(Params):
    """Settings of a sparse encoder; None = the model's own. InputError: values out of range."""

    max_length: int | None = setting(None, "tokens at which texts are cut", at_least=1, flag="impact-max-length")


@dataclass(frozen=True)
class LateEncoderParams(Params):
    """Settings of a late-interaction encoder; None = the model's own. InputError: values out of range."""

    query_length: int | None = setting(
        None, "tokens at which queries are cut, and to which they are expanded", at_least=1, flag="token-query-length"
    )
    document_length: int | None = setting(
        None, "tokens at which documents are cut", at_least=1, flag="token-document-length"
    )


@dataclass(frozen=True)
class CrossEncoderParams(Params):
    """Settings of a cross-encoder; None = the model's own. InputError: values out of range."""

    max_length: int | None = setting(None, "tokens at which a pair of texts is cut", at_least=1)


@dataclass(frozen=True)
class ScorerParams(Params):
    """What scores the candidates of a query.

    >>> ScorerParams("encoder", heads=3, width=256)
    Traceback (most recent call last):
    rnnreranker.base.errors.InputError: width=256: expected a multiple of heads=3
    """

    scorer: Literal["feed-forward", "encoder", "decoder"] = setting(
        "feed-forward", "each candidate by itself, all with each other, or also with the query's tokens"
    )
    blocks: int = setting(2, "layers of the scorer", at_least=1)
    heads: int = setting(4, "of attention", at_least=1)
    width: int = setting(256, "numbers for a candidate inside the scorer", at_least=1)
    dropout: float = setting(0.1, "in the scorer", at_least=0, at_most=0.999)
    learning_rate: float = setting(1e-4, "highest learning rate of the scorer; the encoder keeps its own", above=0)
    residual: bool = setting(True, "add the inner product of query and candidate, so that training begins at it")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise InputError(f"width={self.width}: expected a multiple of heads={self.heads}")
