"""The query encoder that a training begins with: loaded as its parameters say, parts of it frozen."""

from __future__ import annotations

from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.encode.dense.query_encoder import PromptedTokens, QueryEncoder, load_query_encoder
from rnnreranker.train.query.params import TrainParams


def start_encoder(
    name: str, dimension: int, params: TrainParams, pooling: str | None = None, normalize: bool | None = None
) -> tuple[QueryEncoder, PromptedTokens, Path]:
    """`load_query_encoder` with the dropout, temperature and query length of a training, and its frozen layers.

    Raises:
        InputError: as `load_query_encoder`, and more layers to freeze than there are.
    """
    encoder, tokens, folder = load_query_encoder(
        name,
        dimension,
        pooling=pooling,
        normalize=normalize,
        dropout=params.dropout,
        inverse_temperature=params.inverse_temperature,
        learn_temperature=params.learn_temperature,
        max_tokens=params.query_tokens,
    )
    model = encoder.transformer
    if params.freeze_embeddings or params.frozen_layers:
        model.get_input_embeddings().weight.requires_grad_(False)  # type: ignore[operator]
    if not params.frozen_layers:
        return encoder, tokens, folder
    stacks = [child for name, child in model.named_modules() if name in ("encoder.layer", "transformer.layer")]
    if not stacks or len(stacks[0]) < params.frozen_layers:
        has = len(stacks[0]) if stacks else "no"
        raise InputError(f"frozen_layers={params.frozen_layers}: {folder} has {has} layers that can be frozen")
    for module in [model.embeddings, *stacks[0][: params.frozen_layers]]:
        module.requires_grad_(False)
    return encoder, tokens, folder
