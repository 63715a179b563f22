"""A kind of training that changes nothing: the encoder as it is, the base line of all others."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.plugins import Trained, TrainedModel, TrainingParams, setting


@dataclass(frozen=True)
class AsItIsParams(TrainingParams):
    """Settings of AsItIs."""

    note: str = setting("", "what the record says of it")


class AsItIs(TrainedModel):
    """The files of the encoder, copied."""

    name = "as-it-is"
    trains = "encoder"
    Params = AsItIsParams

    def train(self, request: Any, params: Any, device: str) -> Trained:
        """No step is taken."""
        output, record = Path(request.output), {"model": self.name, "params": params.to_dict()}
        shutil.copytree(request.start.name, output, dirs_exist_ok=True)
        (output / "training.json").write_text(json.dumps(record))
        return Trained(output, 0, 0, {}, ({},), 0.0, record)
