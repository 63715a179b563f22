"""Soft labels, vectors and a query encoder to a better query encoder: the whole of CODER training."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError, require
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import find
from rnnreranker.base.process.phases import phase
from rnnreranker.encode.model_folder import content_of
from rnnreranker.encode.model_settings import read_settings
from rnnreranker.train.checkpoints import resume_from, train_to_end, training_arguments
from rnnreranker.train.query.params import TrainParams
from rnnreranker.train.query.samples import check_index, renumber, training_and_validation
from rnnreranker.train.query.table import load_table

if TYPE_CHECKING:
    import transformers

    from rnnreranker.base.settings import Params
    from rnnreranker.encode.scorer.params import ScorerParams
    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource

RECORD = "training.json"  # beside the trained encoder


@dataclass(frozen=True)
class Trained:
    """What a training came to.

    Args:
        path: the folder of the model.
        best_step: the step whose weights were written, 0 where no step was better than the encoder as it was.
        steps: taken.
        measures: of validation at `best_step`.
        history: one entry a validation: step, loss, kl, RR@10, nDCG@10, inverse_temperature.
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


def train_encoder(
    labels: SoftLabels,
    source: VectorSource,
    topics: Mapping[str, str],
    encoder: str,
    output: str | os.PathLike[str],
    params: TrainParams | None = None,
    *,
    validation: SoftLabels | None = None,
    pooling: str | None = None,
    normalize: bool | None = None,
    neutrality: Mapping[str, float] | None = None,
    loss: Params | None = None,
    scorer: ScorerParams | None = None,
    other_index: bool = False,
    checkpoints: bool = True,
    device: str = "cpu",
    on_validation: Callable[[int, dict[str, float]], None] | None = None,
) -> Trained:
    """Fine-tune a query encoder and write it to a folder.

    Args:
        labels: candidates and target distributions of the training queries.
        source: the fixed vectors of the documents.
        topics: texts of the queries.
        encoder: minilm, tas-b, a folder or a Hugging Face id.
        output: folder to write; OUTPUT.checkpoints stands beside it while training goes on.
        params: of the training.
        validation: labels of the validation queries; None = a share of the training queries, held out by seed. All
            their candidates count, whatever `params.candidates`.
        pooling, normalize: where they differ from what the model's files say.
        neutrality: of documents, by docid, in [0, 1]; those without count as 1. Needed with `neutrality_weight`.
        loss: parameters of the loss that `params` names; None = its defaults.
        scorer: what scores the candidates, trained with the encoder; `output` is then a folder for `--rerank scorer`.
            None = their inner product with the query.
        other_index: labels whose metadata name another index than `source` are taken, as in a cascade whose candidates
            and targets another model made.
        checkpoints: write one at every validation, so that a killed training goes on exactly.
        device: "cpu" or "cuda".
        on_validation: called with step and measures after every validation; what it raises ends the training.

    Raises:
        InputError: labels that do not fit topics or index, or are of another index (without `other_index`), an encoder
            that cannot be trained, checkpoints of another training, a loss that is not finite.
        MissingDependencyError: without transformers or accelerate.
    """
    params = params or TrainParams()
    with phase("importing torch and transformers", "imports"):
        require("accelerate", "training", "'rnnreranker[train]'")
        import torch
        import transformers

    output = Path(output)
    transformers.set_seed(params.seed)
    if params.neutrality_weight and neutrality is None:
        shown = argument("neutrality")
        raise InputError(f"neutrality_weight={params.neutrality_weight} needs the documents' neutrality, {shown}")
    refresh = params.refresh_every
    chosen_loss = find("loss", params.loss)(loss)
    settings = params.to_dict() | chosen_loss.params.to_dict()
    if not other_index:
        check_index(labels, source)
        if validation is not None:
            check_index(validation, source, "the validation labels")
    training_set, validation_set, table_rows, lost = training_and_validation(
        labels, source, topics, params, validation, whole=bool(params.random_negatives or refresh)
    )
    from rnnreranker.encode.dense.folder import write_encoder
    from rnnreranker.encode.scorer.folder import write_scorer
    from rnnreranker.encode.scorer.model import CandidateScorer
    from rnnreranker.train.best import Observer
    from rnnreranker.train.query.batches import Collator
    from rnnreranker.train.query.start import start_encoder

    dense, tokens, folder = start_encoder(encoder, source.dimension, params, pooling, normalize)
    if dense.projection is not None:
        say(
            f"{encoder}: its vectors have {dense.projection.in_features} dimensions, the index has {source.dimension}: "
            "a projection is added and trained with it"
        )
    model = dense if scorer is None else CandidateScorer(dense, source.dimension, scorer)
    table = load_table(source, table_rows)
    training, checked = (
        Collator(renumber(chosen, table_rows), tokens.cut([topics[sample.qid] for sample in chosen]), tokens)
        for chosen in (training_set, validation_set)
    )
    from rnnreranker.train.query.dynamic import DynamicContext
    from rnnreranker.train.query.trainer import CoderTrainer

    checkpoint_folder = output.with_name(output.name + ".checkpoints")
    belongs = fingerprint(
        *(settings, content_of(folder), source.fingerprint, dense.pooling, dense.normalize, device),
        torch.get_num_threads(),
        *(
            [[s.qid, topics[s.qid], s.rows.tolist(), s.targets.tolist(), s.positive.tolist()] for s in chosen]
            for chosen in (training_set, validation_set)
        ),
        sorted(neutrality.items()) if neutrality is not None else None,
        labels.metadata if refresh else None,
        *([scorer.to_dict()] if scorer is not None else []),
    )
    resumed = resume_from(checkpoint_folder, belongs) if checkpoints else None
    context = None
    if refresh:
        context = DynamicContext(labels, source, table_rows, training, params.candidates, refresh)
    arguments = transformers.TrainingArguments(**training_arguments(params, checkpoint_folder, checkpoints, device))
    neutral = None
    if neutrality is not None:
        neutral = np.array([neutrality.get(source.docids[row], 1.0) for row in table_rows], dtype=np.float32)
    trainer = CoderTrainer(model, table, training, checked, params, chosen_loss, arguments, neutral, context)
    if on_validation is not None:
        trainer.add_callback(Observer(on_validation))
    before = trainer.validation()
    seconds = train_to_end(trainer, resumed)
    after = trainer.validation()
    history = history_of(trainer, [*after.measures, "inverse_temperature"])
    rate = trainer.queries_seen / seconds
    record = {
        "params": settings,
        **({"scorer": scorer.to_dict()} if scorer is not None else {}),
        "encoder": encoder,
        "labels": labels.metadata,
        "index": source.fingerprint,
        "training_queries": len(training_set),
        "validation_queries": len(validation_set),
        "candidates_without_vector": lost,
        "threads": torch.get_num_threads(),
        "best_step": trainer.best.step,
        "steps": int(trainer.state.global_step),
        "measures": after.measures,
        "calibration_error": {"before": before.calibration_error, "after": after.calibration_error},
        "inverse_temperature": model.inverse_temperature.item(),
        "history": history,
        "positives": {
            name: [list(pair) for pair in zip(validated.ranks, validated.probabilities, strict=True)]
            for name, validated in (("before", before), ("after", after))
        },
    }
    length = read_settings(folder).max_length or tokens.max_length  # as before training, where its files say so
    if isinstance(model, CandidateScorer):
        write_scorer(output, model, tokens, length, {RECORD: record})
    else:
        write_encoder(output, model, tokens, length, {RECORD: record})
    shutil.rmtree(checkpoint_folder, ignore_errors=True)
    steps = int(trainer.state.global_step)
    return Trained(output, trainer.best.step, steps, after.measures, tuple(history), rate, seconds, record)


def history_of(trainer: transformers.Trainer, names: list[str]) -> list[dict[str, float]]:
    """One entry a validation, in order of steps, with names in their order: a checkpoint sorts those it keeps."""
    return [
        {"step": entry["step"], **{name: entry[f"eval_{name}"] for name in names}}
        for entry in trainer.state.log_history
        if "eval_loss" in entry
    ]
