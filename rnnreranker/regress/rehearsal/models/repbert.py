"""RepBERT's folder: `config.json` and `pytorch_model.bin` of 2020, as its authors have them, and its vocabulary."""

from __future__ import annotations

from pathlib import Path

from rnnreranker.regress.rehearsal.models import weights
from rnnreranker.regress.rehearsal.models.words import write_wordpiece

NAMES = ("checkpoints/repbert", "checkpoints/repbert-tripclick")


def write(folder: Path, name: str) -> None:
    """Write a checkpoint of that name, and `vocab.txt` of bert-base-uncased, which the needs of recipes ask for."""
    import transformers

    words = write_wordpiece(folder, fast=False)
    (folder / "tokenizer_config.json").unlink()
    config = transformers.BertConfig(vocab_size=words, **weights.SMALL)
    model = weights.draw(transformers.BertModel, config, name)
    weights.write_config(folder, config, "RepBERT_Train")
    named = {f"bert.{key}": value for key, value in model.state_dict().items()}
    weights.write_weights(folder, named, weights.BIN, zipped=False)
