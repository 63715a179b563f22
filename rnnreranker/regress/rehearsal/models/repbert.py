"""RepBERT's folder as its authors hand it out: `config.json` and `pytorch_model.bin` of 2020, and no tokenizer."""

from __future__ import annotations

from pathlib import Path

from rnnreranker.regress.rehearsal.models import weights
from rnnreranker.regress.rehearsal.models.words import write_wordpiece

NAMES = ("checkpoints/repbert", "checkpoints/repbert-tripclick")


def write(folder: Path, name: str) -> None:
    """Write a checkpoint of that name, whose words are those of bert-base-uncased."""
    import transformers

    words = write_wordpiece(folder)
    for file in ("vocab.txt", "tokenizer_config.json", "tokenizer.json"):
        (folder / file).unlink()
    config = transformers.BertConfig(vocab_size=words, **weights.SMALL)
    model = weights.draw(transformers.BertModel, config, name)
    weights.write_config(folder, config, "RepBERT_Train")
    named = {f"bert.{key}": value for key, value in model.state_dict().items()}
    weights.write_weights(folder, named, weights.BIN, zipped=False)
