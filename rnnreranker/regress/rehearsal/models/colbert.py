"""Stanford's checkpoint of ColBERTv2: a BERT, a projection `linear.weight`, and what its program was started with."""

from __future__ import annotations

from pathlib import Path

from rnnreranker.base.files import write_json
from rnnreranker.regress.rehearsal.models import weights
from rnnreranker.regress.rehearsal.models.words import write_wordpiece

NAMES = ("colbert-ir/colbertv2.0",)
DIMENSION = 128  # of a token, whatever the width


def write(folder: Path, name: str) -> None:
    """Write a checkpoint of that name."""
    import torch
    import transformers

    words = write_wordpiece(folder)
    config = transformers.BertConfig(vocab_size=words, **weights.SMALL)
    state = {
        f"bert.{key}": value for key, value in weights.draw(transformers.BertModel, config, name).state_dict().items()
    }
    generator = torch.Generator().manual_seed(0)
    state["linear.weight"] = torch.randn(DIMENSION, weights.WIDTH, generator=generator) * weights.SPREAD
    weights.write_config(folder, config, "HF_ColBERT")
    weights.write_weights(folder, state)
    program = {
        "query_maxlen": 32,
        "doc_maxlen": 180,
        "dim": DIMENSION,
        "similarity": "cosine",
        "mask_punctuation": True,
    }
    markers = {"query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_token": "[Q]", "doc_token": "[D]"}
    write_json(folder / "artifact.metadata", {**markers, **program, "attend_to_mask_tokens": False})
