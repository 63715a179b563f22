"""Checkpoints of trainers of transformers that hold weights alone, and the seconds that are no training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from rnnreranker.base.private.transformers import SecondsAside

WEIGHTS = "weights.safetensors"  # in a checkpoint: what is trained


class SmallCheckpoints(SecondsAside):
    """Put before a Trainer with `encoder`, what is trained, and `seconds_aside`, spent on validations and saving."""

    encoder: Any

    def save_beside(self, checkpoint: Path) -> None:
        """Nothing beside the weights."""

    def load_beside(self, checkpoint: Path) -> None:
        """Nothing beside the weights."""

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        assert output_dir is not None
        Path(output_dir).mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().contiguous() for name, value in self.encoder.named_parameters()}
        save_file(weights, str(Path(output_dir) / WEIGHTS))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        self.encoder.load_state_dict(load_file(str(Path(resume_from_checkpoint) / WEIGHTS)), strict=False)
