"""The whole of a training, whatever is trained: a learner to the folder of a better model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import require
from rnnreranker.base.files import folder_written_whole, write_json
from rnnreranker.base.process.phases import phase

if TYPE_CHECKING:
    from rnnreranker.train.trainer import Learner

RECORD = "training.json"  # beside the trained model


@dataclass(frozen=True)
class Trained:
    """What a training came to.

    Attributes:
        path: the folder of the model.
        best_step: the step whose weights were written, 0 where no step was better than the start.
        steps: taken.
        measures: of validation at `best_step`.
        history: one entry a validation: the step, the measures, what else the learner says of its weights.
        queries_per_second: trained queries, or texts, a second; seconds: of training alone.
        record: what `training.json` holds.
        unit: what `queries_per_second` counts.
    """

    path: Path
    best_step: int
    steps: int
    measures: dict[str, float]
    history: tuple[dict[str, float], ...]
    queries_per_second: float
    seconds: float
    record: dict[str, Any]
    unit: str = "queries"


def fit(
    make: Callable[[], Learner],
    model: str,
    output: str | os.PathLike[str],
    params: Any,
    *,
    checkpoints: bool = True,
    device: str = "cpu",
    on_validation: Callable[[int, dict[str, float]], None] | None = None,
) -> Trained:
    """Train a model and write it to a folder.

    Args:
        make: gives the model and how it learns; called once, after the seed is set.
        model: the kind of model, by name.
        output: folder to write; OUTPUT.checkpoints has the checkpoints until the training ends.
        params: of the training.
        checkpoints: write one at every validation, so that a killed training goes on exactly.
        device: "cpu" or "cuda".
        on_validation: called with step and measures after every validation; what it raises ends the training.

    Raises:
        InputError: what `make` raises, checkpoints of another training, a loss that is not finite.
        MissingDependencyError: without transformers or accelerate.
    """
    with phase("importing torch and transformers", "imports"):
        require("accelerate", "training", "'rnnreranker[train]'")
        import torch
        import transformers

        from rnnreranker.train.trainer import FitTrainer, resume_from
    output = Path(output)
    transformers.set_seed(params.seed)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with phase("loading the model"):
        learner = make()
    learner.model.to(device)
    folder, machine = output.with_name(output.name + ".checkpoints"), (device, torch.get_num_threads())
    resumed = resume_from(folder, learner.identity(model, *machine)) if checkpoints else None
    trainer = FitTrainer(learner, folder, checkpoints, device, on_validation)
    seconds, best = trainer.train_to_end(resumed), trainer.best["step"]
    before, after = trainer.validations[0], trainer.validations.get(best) or trainer.validation()
    steps, history = int(trainer.state.global_step), trainer.history
    record = {
        **learner.record(model, *machine),
        **{"best_step": best, "steps": steps, "measures": after.measures, **learner.beside(), "history": history},
        **after.of_candidates(before),
    }
    with folder_written_whole(output) as written:
        learner.save(written)
        write_json(written / RECORD, record)
    shutil.rmtree(folder, ignore_errors=True)
    speed = trainer.seen / seconds
    return Trained(output, best, steps, after.measures, tuple(history), speed, seconds, record, learner.unit)
