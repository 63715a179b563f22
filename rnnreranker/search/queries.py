"""Query vectors: topics encoded by the encoder that made the index, or by a named one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rnnreranker.errors import InputError
from rnnreranker.vectors import QueryVectors

if TYPE_CHECKING:
    from rnnreranker.search.indexes import Index


def encode_topics(
    index: Index, topics: Mapping[str, str], encoder: str | None, settings: dict[str, Any], threads: int | None
) -> QueryVectors:
    """The vectors of the topics, (Q, d) float32, in their order.

    Args:
        index: its settings name the encoder when `encoder` is None.
        topics: query id to text.
        encoder: minilm, tas-b, a folder or a Hugging Face id.
        settings: pooling, normalize, max_length, where they differ from the encoder's own.
        threads: None = one per core; the vectors do not depend on it.

    Raises:
        InputError: an index that does not say what encoder made it, without `encoder`.
        UnavailableError: an encoder that is neither here nor can be downloaded.
    """
    from rnnreranker.encode.encoder import load_encoder

    described = _described(index) if encoder is None else {}
    name = encoder or described.get("name")
    if not name:
        raise InputError(
            f"{index.name}: this index does not say which encoder made it; "
            "give --encoder NAME|FOLDER, or --encoded-queries FILE.npy"
        )
    if encoder is None:
        settings = {**described.get("settings", {}), **settings}
    loaded = load_encoder(name, **settings)
    vectors = loaded.encode(list(topics.values()), threads=threads, what="queries")
    return QueryVectors(tuple(topics), vectors)


def check_dimension(queries: QueryVectors, index: Index, source: str | None) -> None:
    """Look that query vectors are as long as those of the index.

    Args:
        queries: vectors (Q, d).
        index: where the candidates' vectors come from.
        source: where the query vectors come from: a file or an encoder; None = the encoder that made the index.

    Raises:
        InputError: another dimension.
    """
    found, expected = queries.vectors.shape[1], index.vectors.dimension
    if found != expected:
        raise InputError(
            f"{source or _described(index).get('name')}: query vectors have {found} dimensions, the index {index.name} "
            f"has {expected}; encode the queries with the encoder that made the index"
        )


def _described(index: Index) -> dict[str, Any]:
    """What the index says about the encoder that made it: name and settings; empty when it says nothing."""
    from rnnreranker.encode.params import EncoderParams
    from rnnreranker.settings import hints_of

    described = index.settings.get("encoder", {})
    settings = described.get("settings", {}) if isinstance(described, dict) else None
    if not isinstance(settings, dict) or not set(settings) <= set(hints_of(EncoderParams)):
        raise InputError(
            f"{index.name}: rnnreranker.json does not describe an encoder as this version does; "
            "make the index again, or give --encoder"
        )
    return described
