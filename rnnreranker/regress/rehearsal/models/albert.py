"""ALBERT, with pieces of SentencePiece and one layer's weights for all layers, which a teacher begins with."""

from __future__ import annotations

from pathlib import Path

from rnnreranker.regress.rehearsal.models import weights
from rnnreranker.regress.rehearsal.models.words import write_unigrams

NAMES = ("albert/albert-large-v2",)


def write(folder: Path, name: str) -> None:
    """Write an ALBERT of that name; its embeddings are narrower than its layers."""
    import transformers

    words = write_unigrams(folder)
    config = transformers.AlbertConfig(
        vocab_size=words, embedding_size=weights.WIDTH // 2, bos_token_id=2, eos_token_id=3, **weights.SMALL
    )
    model = weights.draw(transformers.AlbertForMaskedLM, config, name)
    weights.rare_words(model.predictions.bias)
    tied = ("predictions.decoder.weight", "predictions.decoder.bias")
    weights.write_config(folder, config, "AlbertForMaskedLM")
    weights.write_weights(folder, {key: value for key, value in model.state_dict().items() if key not in tied})
