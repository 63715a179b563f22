"""RoBERTa, with byte pairs, which rerankers begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnreranker.regress.rehearsal.models import weights
from rnnreranker.regress.rehearsal.models.words import LENGTH, write_byte_pairs

NAMES = ("FacebookAI/roberta-large",)


def write(folder: Path, name: str) -> None:
    """Write a RoBERTa of that name; its positions are counted from 2."""
    import transformers

    words = write_byte_pairs(folder)
    special: dict[str, Any] = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    config = transformers.RobertaConfig(
        vocab_size=words, max_position_embeddings=LENGTH + 2, type_vocab_size=1, **special, **weights.SMALL
    )
    model = weights.draw(transformers.RobertaForMaskedLM, config, name)
    weights.rare_words(model.lm_head.bias)
    tied = ("lm_head.decoder.weight", "lm_head.decoder.bias")
    weights.write_config(folder, config, "RobertaForMaskedLM")
    weights.write_weights(folder, {key: value for key, value in model.state_dict().items() if key not in tied})
