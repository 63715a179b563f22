"""The whole of a training, whatever is trained, and its checkpoints: a learner to the folder of a better model."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import file_digest, fingerprint, folder_written_whole, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.process.phases import phase

if TYPE_CHECKING:
    from rnnreranker.train.trainer import Learner

WORK = "work.json"  # in the folder of checkpoints: what they belong to
MARK = "best.json"  # in a checkpoint, written last: one with it is whole


def training_arguments(params: Any, folder: Path, checkpoints: bool, device: str) -> dict[str, Any]:
    """The arguments of the Trainer of transformers that the parameters of any training come to.

    params: with batch_size, accumulate, epochs, max_steps, learning_rate, clip, seed and evaluate_every.
    """
    when = "steps" if params.evaluate_every else "epoch"
    every = params.evaluate_every or 500
    return {
        "output_dir": str(folder),
        "per_device_train_batch_size": params.batch_size,
        "gradient_accumulation_steps": params.accumulate,
        "num_train_epochs": params.epochs,
        "max_steps": params.max_steps or -1,
        "learning_rate": params.learning_rate,
        "max_grad_norm": params.clip,
        "seed": params.seed,
        "data_seed": params.seed,
        "eval_strategy": when,
        "eval_steps": every,
        "save_strategy": when if checkpoints else "no",
        "save_steps": every,
        "save_total_limit": 2,
        "logging_strategy": when,
        "logging_steps": every,
        "report_to": [],
        "remove_unused_columns": False,
        "dataloader_pin_memory": False,
        "disable_tqdm": True,
        "use_cpu": device == "cpu",
        "log_level": "error",
    }


def resume_from(folder: Path, belongs: str) -> Path | None:
    """The last whole checkpoint of this very training; the folder is made, and claimed, where there is none.

    Raises:
        InputError: checkpoints of another training, or damaged ones.
    """
    if folder.is_dir() and (folder / WORK).is_file():
        claimed = read_json(folder / WORK, "mark of a training", "delete the folder, and the training begins again")
        if not isinstance(claimed, dict) or claimed.get("belongs") != belongs:
            raise InputError(
                f"{folder}: has checkpoints of a training with other inputs or settings; give another "
                f"{argument('output')}, or delete this folder"
            )
        return last_checkpoint(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        shown = argument("output")
        raise InputError(f"{folder}: cannot be written ({error.strerror or error}); choose another {shown}") from None
    write_json(folder / WORK, {"belongs": belongs})
    return None


def last_checkpoint(folder: Path) -> Path | None:
    """The whole checkpoint with the most steps in a folder, or None."""
    whole = [mark.parent for mark in folder.glob(f"checkpoint-*/{MARK}")]
    return max(whole, key=lambda path: int(path.name.rsplit("-", 1)[1]), default=None)


def write_mark(checkpoint: Path, kept: dict[str, Any]) -> None:
    """Mark a checkpoint as whole: with what is to be kept in the mark, and the digests of all its files."""
    body = {**kept, "files": _digests(checkpoint)}
    write_json(checkpoint / MARK, {**body, "check": fingerprint(body)})


def read_mark(checkpoint: Path) -> dict[str, Any]:
    """What the mark of a checkpoint keeps; all files are looked at, as libraries take damaged ones for good.

    Raises:
        InputError: a mark or another file that is not as it was written.
    """
    repair = f"delete {checkpoint}, and the training goes on from the one before"
    mark = read_json(checkpoint / MARK, "mark of a checkpoint", repair)
    if not isinstance(mark, dict) or mark.pop("check", None) != fingerprint(mark):
        raise InputError(f"{checkpoint / MARK}: not as it was written; {repair}")
    digests = _digests(checkpoint)
    for name in sorted(mark["files"].keys() | digests.keys()):
        if mark["files"].get(name) != digests.get(name):
            raise InputError(f"{checkpoint / name}: not as it was written; {repair}")
    return {key: value for key, value in mark.items() if key != "files"}


def _digests(checkpoint: Path) -> dict[str, str]:
    """Name of a file of a checkpoint, but for its mark -> SHA-256."""
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name != MARK)
    return {path.relative_to(checkpoint).as_posix(): file_digest(path) for path in files}


def train_to_end(trainer: Any, resumed: Path | None) -> float:
    """Train, from a checkpoint where there is one, and put the best weights back; the seconds of training alone.

    Args:
        trainer: of the Hugging Face kind, with `best` and `seconds_aside`.
        resumed: what `resume_from` gave.
    """
    from transformers import TrainerState

    if resumed:
        trainer.best.load(resumed)
    begun = time.perf_counter()
    if resumed and trainer.best.ended:
        trainer.state = TrainerState.load_from_json(str(resumed / "trainer_state.json"))
    else:
        trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
    seconds = time.perf_counter() - begun - trainer.seconds_aside
    trainer.best.put_back()
    return float(seconds)


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

        from rnnreranker.train.trainer import trainer_of
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
        **after.calibration(before),
        **learner.beside(),
        "history": history,
        **after.positives(before),
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
