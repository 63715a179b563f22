"""Where a training keeps its checkpoints, and the arguments under which the Trainer writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rnnreranker.errors import InputError
from rnnreranker.files import write_json
from rnnreranker.train.params import TrainParams

WORK = "work.json"  # in the folder of checkpoints: what they belong to


def training_arguments(params: TrainParams, place: Path, checkpoints: bool, device: str) -> Any:
    """The arguments of the Trainer of transformers that the parameters come to."""
    import transformers

    when = "steps" if params.evaluate_every else "epoch"
    every = params.evaluate_every or 500
    return transformers.TrainingArguments(
        output_dir=str(place),
        per_device_train_batch_size=params.batch_size,
        gradient_accumulation_steps=params.accumulate,
        num_train_epochs=params.epochs,
        max_steps=params.max_steps or -1,
        learning_rate=params.learning_rate,
        max_grad_norm=params.clip,
        seed=params.seed,
        data_seed=params.seed,
        eval_strategy=when,
        eval_steps=every,
        save_strategy=when if checkpoints else "no",
        save_steps=every,
        save_total_limit=2,
        logging_strategy=when,
        logging_steps=every,
        report_to=[],
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        use_cpu=device == "cpu",
        log_level="error",
    )


def resume_from(place: Path, belongs: str) -> Path | None:
    """The last whole checkpoint of this very training; the folder is made, and claimed, where there is none."""
    from rnnreranker.train.trainer import last_checkpoint

    if place.is_dir() and (place / WORK).is_file():
        if json.loads((place / WORK).read_text()).get("belongs") != belongs:
            raise InputError(
                f"{place}: has checkpoints of a training with other inputs or settings; give another --output, "
                "or delete this folder"
            )
        return last_checkpoint(place)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{place}: cannot be written ({error.strerror or error}); choose another --output") from None
    write_json(place / WORK, {"belongs": belongs})
    return None
