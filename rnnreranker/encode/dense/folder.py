"""A trained query encoder as an ordinary folder: transformers, sentence-transformers, Pyserini and `search` load it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnreranker.encode.dense.query_encoder import PromptedTokens, QueryEncoder


def write_encoder(folder: Path, encoder: QueryEncoder, tokens: PromptedTokens, max_length: int) -> None:
    """Write config, weights, tokenizer and the files that say how to pool, as sentence-transformers does.

    A projection becomes a Dense module, which `search` and sentence-transformers apply; Pyserini's encoder has no such
    layer, so it loads only folders without one.

    Args:
        folder: that is there.
        max_length: tokens at which texts are cut.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer

    encoder.transformer.save_pretrained(folder)  # type: ignore[operator]
    tokens.tokenizer.save_pretrained(folder)
    lengths: dict[str, Any] = {"max_seq_length": max_length, "do_lower_case": tokens.lowercase}
    text = Transformer(str(folder), model_kwargs={"local_files_only": True}, **lengths)
    text.model = encoder.transformer  # not what is read from a file that is written again below
    modules: list[Any] = [text, encoder.pooling_module]
    if (layer := encoder.projection) is not None:
        sizes = (layer.in_features, layer.out_features)
        weights: dict[str, Any] = {"init_weight": layer.weight.detach(), "init_bias": layer.bias.detach()}
        modules.append(Dense(*sizes, activation_function=torch.nn.Identity(), **weights))
    if encoder.normalize:
        modules.append(Normalize())
    prompts = {"query": tokens.prompt} if tokens.prompt else {}
    where = str(encoder.inverse_temperature.device)
    options: dict[str, Any] = {"prompts": prompts, "similarity_fn_name": "dot"}
    options["truncate_dim"] = encoder.truncate_dim if encoder.projection is None else None
    whole = SentenceTransformer(modules=modules, device=where, **options)
    whole.save_pretrained(str(folder), create_model_card=False)
