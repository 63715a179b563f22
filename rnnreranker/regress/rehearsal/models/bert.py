"""BERT: masked-language models that trainings begin with, coCondenser, and MiniLM before any fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rnnreranker.regress.rehearsal.models import weights
from rnnreranker.regress.rehearsal.models.words import write_wordpiece

TOKEN = 128  # numbers of a token of ColBERT, which a transformer has at least


@dataclass(frozen=True)
class BertFiles:
    """What differs between BERTs: whether with heads of pre-training, in which file, with which words, how wide."""

    heads: bool = True
    file: str = weights.SAFE
    chinese: bool = False
    fast: bool = True
    architecture: str | None = "BertForMaskedLM"
    width: int = weights.WIDTH


NAMES = {
    "google-bert/bert-base-uncased": BertFiles(width=TOKEN),
    "google-bert/bert-large-uncased": BertFiles(),
    "google-bert/bert-base-chinese": BertFiles(chinese=True),
    "microsoft/MiniLM-L12-H384-uncased": BertFiles(heads=False, file=weights.BIN, fast=False, architecture=None),
    "Luyu/co-condenser-marco-retriever": BertFiles(heads=False, file=weights.BIN, architecture="BertModel"),
}
INNER_PRODUCT = 100.0  # of a vector of coCondenser with itself, about


def write(folder: Path, name: str) -> None:
    """Write a BERT of that name."""
    import transformers

    published = NAMES[name]
    words = write_wordpiece(folder, published.chinese, published.fast)
    config = transformers.BertConfig(vocab_size=words, **weights.SMALL | {"hidden_size": published.width})
    if published.heads:
        model = weights.draw(transformers.BertForPreTraining, config, name)
        weights.rare_words(model.cls.predictions.bias)
        tied = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
        state = {key: value for key, value in model.state_dict().items() if key not in tied}
        state = weights.old_names(state)
    else:
        state = dict(weights.draw(transformers.BertModel, config, name).state_dict())
        if name.startswith("Luyu/"):
            last = f"encoder.layer.{weights.LAYERS - 1}.output.LayerNorm"
            weights.inner_products(state, last, INNER_PRODUCT)
        state["embeddings.position_ids"] = _positions(config.max_position_embeddings)
        if published.architecture is None:
            state = {f"bert.{key}": value for key, value in state.items()}
    weights.write_config(folder, config, published.architecture)
    weights.write_weights(folder, state, published.file)


def _positions(length: int) -> object:
    """The numbers of positions, which .bin files of before 2023 hold besides the weights."""
    import torch

    return torch.arange(length).unsqueeze(0)
