"""The whole of a training, whatever is trained, and its checkpoints: a learner to the folder of a better model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import require
from rnnreranker.base.files import fingerprint, folder_written_whole, write_json
from rnnreranker.base.process.phases import phase

if TYPE_CHECKING:
    from rnnreranker.train.trainer import Learner

RECORD = "training.json"  # beside the trained model


@dataclass(frozen=True)
class Trained:
    """What a training came to.

    Args:
        path: the folder of the model.
        best_step: the step whose weights were written, 0 where no step was better than the encoder as it was.
        steps: taken.
        measures: of validation at `best_step`.
        history: one entry a validation: the step, the measures, what else the learner says of its weights.
        queries_per_second: trained queries per second of training, validation and checkpoints left out.
        seconds: of training, validation and checkpoints left out.
        record: everything that `training.json` holds.
    """

    path: Path
    best_step: int
    steps: int
    measures: dict[str, float]
    history: tuple[dict[str, float], ...]
    queries_per_second: float
    seconds: float
    record: dict[str, Any]
    unit: str = "queries"  # what `queries_per_second` counts


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
        model: the kind of model, by name, as "sparse".
        output: folder to write; OUTPUT.checkpoints stands beside it while training goes on.
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

        from rnnreranker.train.trainer import resume_from, train_to_end, trainer_of
    output = Path(output)
    transformers.set_seed(params.seed)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with phase("loading the model"):
        learner = make()
    learner.model.to(device)
    folder, machine = output.with_name(output.name + ".checkpoints"), (device, torch.get_num_threads())
    belongs = fingerprint(*learner.identity(model, *machine))
    resumed = resume_from(folder, belongs) if checkpoints else None
    trainer = trainer_of(learner, params, folder, checkpoints, device, on_validation)
    if resumed:
        trainer.validations[0] = trainer.validation()
    seconds = train_to_end(trainer, resumed)
    before, after = trainer.validations[0], trainer.validations.get(trainer.best.step) or trainer.validation()
    history = _history(trainer, [*after.measures, *learner.beside()])
    record = {
        **learner.record(model, *machine),
        "best_step": trainer.best.step,
        "steps": int(trainer.state.global_step),
        "measures": after.measures,
        **learner.beside(),
        "history": history,
        **after.of_candidates(before),
    }
    with folder_written_whole(output) as written:
        learner.save(written)
        write_json(written / RECORD, record)
    shutil.rmtree(folder, ignore_errors=True)
    came_to = trainer.best.step, record["steps"], after.measures, tuple(history)
    return Trained(output, *came_to, trainer.seen / seconds, seconds, record, learner.unit)


def _history(trainer: Any, names: list[str]) -> list[dict[str, float]]:
    """One entry a validation, in order of steps, with names in their order: a checkpoint sorts those it keeps."""
    return [
        {"step": entry["step"], **{name: entry[f"eval_{name}"] for name in names}}
        for entry in trainer.state.log_history
        if "eval_loss" in entry
    ]
