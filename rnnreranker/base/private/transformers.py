"""Of transformers 5: how a model attends, and what a Trainer does around its steps."""

from __future__ import annotations

import time
from typing import Any

# train.trainer.SmallCheckpoints writes `_save` and `_load_from_checkpoint` anew
USED = {"transformers.Trainer": ("_save", "_load_from_checkpoint", "_maybe_log_save_evaluate")}


def attention_of(model: Any) -> str:
    """A model's implementation of attention: eager, sdpa, …"""
    return str(model.config._attn_implementation)


class SecondsAside:
    """A mixin before a Trainer that counts the seconds of validations and saving."""

    seconds_aside: float

    def _maybe_log_save_evaluate(self, *args: Any, **kwargs: Any) -> None:
        begun = time.perf_counter()
        super()._maybe_log_save_evaluate(*args, **kwargs)  # type: ignore[misc]
        self.seconds_aside += time.perf_counter() - begun
