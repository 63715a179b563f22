"""A trained query encoder as an ordinary folder: transformers, sentence-transformers, Pyserini and `search` load it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnreranker.base.files import write_json
from rnnreranker.encode.dense.query_encoder import PromptedTokens, QueryEncoder

KINDS = "sentence_transformers.models."


def write_encoder(folder: Path, encoder: QueryEncoder, tokens: PromptedTokens, max_length: int) -> None:
    """Write config, weights, tokenizer and the files that say how to pool.

    A projection becomes a Dense module, which `search` and sentence-transformers apply; Pyserini's encoder has no such
    layer, so it loads only folders without one.

    Args:
        folder: that is there.
        max_length: tokens at which texts are cut.
    """
    encoder.transformer.save_pretrained(folder)  # type: ignore[operator]
    tokens.tokenizer.save_pretrained(folder)
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")]
    if encoder.projection is not None:
        kinds.append(("2_Dense", "Dense"))
    if encoder.normalize:
        kinds.append((f"{len(kinds)}_Normalize", "Normalize"))
    modules = [
        {"idx": number, "name": str(number), "path": where, "type": KINDS + kind}
        for number, (where, kind) in enumerate(kinds)
    ]
    write_json(folder / "modules.json", modules)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_length, "do_lower_case": tokens.lowercase})
    prompts = {"query": tokens.prompt} if tokens.prompt else {}
    described = {"prompts": prompts, "default_prompt_name": None, "similarity_fn_name": "dot"}
    write_json(folder / "config_sentence_transformers.json", described)
    _write_pooling(folder / "1_Pooling", encoder)
    if encoder.projection is not None:
        _write_dense(folder / "2_Dense", encoder)
    if encoder.normalize:
        (folder / modules[-1]["path"]).mkdir()  # type: ignore[operator]


def _write_pooling(folder: Path, encoder: QueryEncoder) -> None:
    folder.mkdir()
    modes = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
    config: dict[str, Any] = {"word_embedding_dimension": int(encoder.transformer.config.hidden_size)}  # type: ignore
    config |= {f"pooling_mode_{name}": encoder.pooling == mode for name, mode in modes.items()}
    config |= {"pooling_mode_mean_sqrt_len_tokens": False, "include_prompt": True}
    write_json(folder / "config.json", config)


def _write_dense(folder: Path, encoder: QueryEncoder) -> None:
    from safetensors.torch import save_file

    layer = encoder.projection
    assert layer is not None
    folder.mkdir()
    identity = "torch.nn.modules.linear.Identity"
    sizes = {"in_features": layer.in_features, "out_features": layer.out_features, "bias": True}
    write_json(folder / "config.json", {**sizes, "activation_function": identity})
    state = {f"linear.{name}": value.detach().contiguous() for name, value in layer.state_dict().items()}
    save_file(state, str(folder / "model.safetensors"))
