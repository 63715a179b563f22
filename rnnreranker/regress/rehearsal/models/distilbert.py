"""DistilBERT: the masked-language model that SPLADEs begin with, and TAS-B."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnreranker.regress.rehearsal.models import weights
from rnnreranker.regress.rehearsal.models.words import LENGTH, write_wordpiece

TAS_B = "sebastian-hofstaetter/distilbert-dot-tas_b-b256-msmarco"
NAMES = ("distilbert/distilbert-base-uncased", TAS_B)
INNER_PRODUCT = 100.0  # of a vector of TAS-B with itself, about


def write(folder: Path, name: str) -> None:
    """Write a DistilBERT of that name."""
    import transformers

    words = write_wordpiece(folder)
    shape: dict[str, Any] = {"dim": weights.WIDTH, "hidden_dim": 2 * weights.WIDTH, "n_layers": weights.LAYERS}
    config = transformers.DistilBertConfig(
        vocab_size=words, n_heads=weights.HEADS, max_position_embeddings=LENGTH, **shape
    )
    if name == TAS_B:
        state = dict(weights.draw(transformers.DistilBertModel, config, name).state_dict())
        last = f"transformer.layer.{weights.LAYERS - 1}.output_layer_norm"
        weights.inner_products(state, last, INNER_PRODUCT)
        weights.write_config(folder, config, "DistilBertModel")
        weights.write_weights(folder, state, weights.BIN)
        return
    model = weights.draw(transformers.DistilBertForMaskedLM, config, name)
    weights.rare_words(model.vocab_projector.bias)
    state = {key: value for key, value in model.state_dict().items() if key != "vocab_projector.weight"}
    weights.write_config(folder, config, "DistilBertForMaskedLM")
    weights.write_weights(folder, state)
