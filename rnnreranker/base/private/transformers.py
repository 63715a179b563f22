"""Of transformers 5: how a model attends, and what a Trainer does around its steps."""

from __future__ import annotations

import time
from typing import Any

# train.trainer.SmallCheckpoints writes `_save` and `_load_from_checkpoint` anew
USED = {"transformers.Trainer": ("_save", "_load_from_checkpoint", "_maybe_log_save_evaluate")}


def attention_of(model: Any) -> str:
    """The implementation of attention that a model has: eager, sdpa, …"""
    return str(model.config._attn_implementation)


class SecondsAside:
    """Put before a Trainer: counts the seconds that go into validations and saving, and not into training."""

    seconds_aside: float

    def _maybe_log_save_evaluate(self, *args: Any, **kwargs: Any) -> None:
        begun = time.perf_counter()
        super()._maybe_log_save_evaluate(*args, **kwargs)  # type: ignore[misc]
        self.seconds_aside += time.perf_counter() - begun
