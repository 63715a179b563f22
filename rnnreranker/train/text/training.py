"""Texts and a model to a trained model: the whole of a training on single texts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import require
from rnnreranker.base.files import fingerprint, folder_written_whole, write_json
from rnnreranker.base.process.phases import phase
from rnnreranker.train.checkpoints import resume_from, train_to_end
from rnnreranker.train.query.training import RECORD, Trained, history_of
from rnnreranker.train.text.params import TextParams

if TYPE_CHECKING:
    from rnnreranker.train.text.trainer import TextLearner


def train_on_texts(
    make: Callable[[], TextLearner],
    model: str,
    encoder: str | None,
    output: str | os.PathLike[str],
    params: TextParams,
    made: Mapping[str, Any],
    content: str,
    *,
    checkpoints: bool = True,
    device: str = "cpu",
) -> Trained:
    """Train a model on texts and write it to a folder.

    Args:
        make: gives the model and how it learns; called once, after the seed is set.
        model: the kind of model, by name; encoder: what it begins as, None = from nothing.
        output: folder to write; OUTPUT.checkpoints stands beside it while training goes on.
        params: of the training.
        made: what the record says of the texts, with "validation_queries".
        content: the fingerprint of all that is learnt from.
        checkpoints: write one at every validation, so that a killed training goes on exactly.
        device: "cpu" or "cuda".

    Raises:
        InputError: a model that cannot be trained so, checkpoints of another training.
        MissingDependencyError: without accelerate.
    """
    with phase("importing torch and transformers", "imports"):
        require("accelerate", "training", "'rnnreranker[train]'")
        import torch
        import transformers

        from rnnreranker.encode.model_folder import content_of
        from rnnreranker.train.text.trainer import text_trainer
    output = Path(output)
    transformers.set_seed(params.seed)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with phase("loading the model"):
        learner = make()
    learner.model.to(device)
    checkpoint_folder = output.with_name(output.name + ".checkpoints")
    begins = content_of(learner.folder) if learner.folder else ""
    belongs = fingerprint(model, params.to_dict(), begins, device, torch.get_num_threads(), content)
    resumed = resume_from(checkpoint_folder, belongs) if checkpoints else None
    trainer: Any = text_trainer(learner, params, checkpoint_folder, checkpoints, device)
    seconds = train_to_end(trainer, resumed)
    history, steps = history_of(trainer, list(learner.measured)), int(trainer.state.global_step)
    best = next(entry for entry in history if entry["step"] == trainer.best.step)
    measures = {name: value for name, value in best.items() if name != "step"}
    record: dict[str, Any] = {
        "model": model,
        "params": {name: value for name, value in params.to_dict().items() if name != "loss"},
        "encoder": encoder,
        **made,
        "training_texts": len(learner.training),
        "threads": torch.get_num_threads(),
        "device": device,
        "best_step": trainer.best.step,
        "steps": steps,
        "measures": measures,
        "history": history,
    }
    with folder_written_whole(output) as folder:
        learner.save(folder)
        write_json(folder / RECORD, record)
    shutil.rmtree(checkpoint_folder, ignore_errors=True)
    rate = trainer.texts_seen / seconds
    return Trained(output, trainer.best.step, steps, measures, tuple(history), rate, seconds, record, "texts")
