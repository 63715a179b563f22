"""Of transformers 5: the attention of a model, and the method that `train.trainer.FitTrainer` overrides."""

from __future__ import annotations

from typing import Any

USED = {"transformers.Trainer": ("_load_from_checkpoint",)}


def attention_of(model: Any) -> str:
    """A model's implementation of attention: eager, sdpa, …"""
    return str(model.config._attn_implementation)
