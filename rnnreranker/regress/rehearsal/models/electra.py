"""ELECTRA's discriminator, which rerankers begin with."""

from __future__ import annotations

from pathlib import Path

from rnnreranker.regress.rehearsal.models import weights
from rnnreranker.regress.rehearsal.models.words import write_wordpiece

NAMES = ("google/electra-large-discriminator",)


def write(folder: Path, name: str) -> None:
    """Write an ELECTRA of that name, with the head that tells replaced words, which no reranker has."""
    import transformers

    words = write_wordpiece(folder)
    config = transformers.ElectraConfig(vocab_size=words, embedding_size=weights.WIDTH, **weights.SMALL)
    model = weights.draw(transformers.ElectraForPreTraining, config, name)
    weights.write_config(folder, config, "ElectraForPreTraining")
    weights.write_weights(folder, dict(model.state_dict()), weights.BIN)
