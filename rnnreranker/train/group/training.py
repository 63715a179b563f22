"""Candidates, texts and a model to a better model: the whole of a training on groups."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint, folder_written_whole, write_json
from rnnreranker.base.method import find
from rnnreranker.base.process.phases import phase
from rnnreranker.train.checkpoints import resume_from, train_to_end
from rnnreranker.train.group.groups import Groups
from rnnreranker.train.group.inputs import GroupInputs
from rnnreranker.train.group.negative_kinds import check_collection
from rnnreranker.train.group.params import GroupParams
from rnnreranker.train.query.training import RECORD, Trained, history_of

if TYPE_CHECKING:
    from rnnreranker.base.settings import Params


def train_on_groups(
    inputs: GroupInputs,
    model: str,
    encoder: str,
    output: str | os.PathLike[str],
    params: GroupParams,
    *,
    loss: Params | None = None,
    checkpoints: bool = True,
    device: str = "cpu",
) -> Trained:
    """Train a model on groups and write it to a folder.

    Args:
        inputs: candidates and texts.
        model: the kind of model, by name, as "sparse".
        encoder: what it begins as: a name, folder or hub id; "none" = from nothing, where the model can be new.
        output: folder to write; OUTPUT.checkpoints stands beside it while training goes on.
        params: of the training; loss: of the loss that they name, None = its defaults.
        checkpoints: write one at every validation, so that a killed training goes on exactly.
        device: "cpu" or "cuda".

    Raises:
        InputError: a model that cannot be trained so, a loss without the targets it needs or that is not finite,
            checkpoints of another training.
        MissingDependencyError: without sentence-transformers, accelerate or datasets.
    """
    chosen = find("loss", params.loss)(loss)
    if "teacher" in chosen.needs and not inputs.margins:
        raise InputError(
            f"loss {params.loss}: needs targets of the negatives, and the candidates have none; give "
            f"{argument('labels')} of a method that gives them probability, as `labels --method teacher`"
        )
    with phase("importing torch and transformers", "imports"):
        for package in ("accelerate", "datasets", "sentence_transformers"):
            require(package, "training", "'rnnreranker[train]'")
        import torch
        import transformers

        from rnnreranker.encode.model_folder import content_of
        from rnnreranker.train.group.trainer import trainer_of
    output = Path(output)
    transformers.set_seed(params.seed)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with phase("loading the model"):
        learner = find("trained-model", model)().learner(encoder, params, chosen, inputs, device)
    check_collection(params.kind, params.group_size, inputs.collection)
    count = count_of(params, len(inputs.pools))
    drawn = params.group_size, params.depth, params.seed, params.kind, inputs.collection
    groups = Groups(inputs.pools, count, *drawn)
    settings = params.to_dict() | chosen.params.to_dict()
    checkpoint_folder = output.with_name(output.name + ".checkpoints")
    begins = content_of(learner.folder) if learner.folder else ""
    belongs = fingerprint(model, settings, begins, device, torch.get_num_threads(), *_content(inputs))
    resumed = resume_from(checkpoint_folder, belongs) if checkpoints else None
    trainer = trainer_of(learner, groups, inputs.checked, params, chosen, checkpoint_folder, checkpoints, device)
    if resumed:
        trainer.validations[0] = trainer.validation()
    seconds = train_to_end(trainer, resumed)
    before, after = trainer.validations[0], trainer.validations.get(trainer.best.step) or trainer.validation()
    history, steps = history_of(trainer, list(after.measures)), int(trainer.state.global_step)
    record: dict[str, Any] = {
        "model": model,
        "params": settings,
        "encoder": encoder,
        **inputs.made,
        "training_queries": len({pool.qid for pool in inputs.pools}),
        "validation_queries": len(inputs.checked),
        "threads": torch.get_num_threads(),
        "device": device,
        "best_step": trainer.best.step,
        "steps": steps,
        "measures": after.measures,
        "calibration_error": {"before": before.calibration_error, "after": after.calibration_error},
        "history": history,
        "positives": {
            name: [list(pair) for pair in zip(validation.ranks, validation.probabilities, strict=True)]
            for name, validation in (("before", before), ("after", after))
        },
    }
    with folder_written_whole(output) as folder:
        learner.save(folder)
        write_json(folder / RECORD, record)
    shutil.rmtree(checkpoint_folder, ignore_errors=True)
    rate = trainer.groups_seen / seconds
    return Trained(output, trainer.best.step, steps, after.measures, tuple(history), rate, seconds, record)


def count_of(params: GroupParams, pools: int) -> int:
    """The groups that a training takes: by steps where they are given, else by epochs, rounded up."""
    if params.max_steps:
        return params.max_steps * params.batch_size * params.accumulate
    return math.ceil(params.epochs * pools)


def _content(inputs: GroupInputs) -> list[Any]:
    """What a training is of, for its fingerprint: candidates and texts."""
    content: list[Any] = [
        [[one.qid, one.docids, one.targets.tolist(), one.positive.tolist()] for one in lists]
        for lists in (inputs.pools, inputs.checked)
    ]
    qids = sorted({one.qid for lists in (inputs.pools, inputs.checked) for one in lists})
    if inputs.teacher is not None:
        content.append(inputs.teacher.fingerprint)
    if inputs.collection:
        content.append(list(inputs.collection))
    return [*content, [inputs.queries[qid] for qid in qids], sorted(inputs.documents.items())]
