"""Cross-encoders of sentence-transformers, trained on MS MARCO, which rerank and teach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnreranker.regress.rehearsal.models import weights
from rnnreranker.regress.rehearsal.models.words import write_wordpiece

NAMES = ("cross-encoder/ms-marco-MiniLM-L-12-v2", "cross-encoder/ms-marco-MiniLM-L-6-v2")


def write(folder: Path, name: str) -> None:
    """Write a cross-encoder of that name: one label, whose value is the score as it is."""
    import transformers

    words = write_wordpiece(folder)
    labels: dict[str, Any] = {"id2label": {0: "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    config = transformers.BertConfig(vocab_size=words, **labels, **weights.SMALL)
    model = weights.draw(transformers.BertForSequenceClassification, config, name)
    own = {"activation_fn": "torch.nn.modules.linear.Identity", "version": "4.0.1"}
    weights.write_config(folder, config, "BertForSequenceClassification", sentence_transformers=own)
    weights.write_weights(folder, dict(model.state_dict()))
