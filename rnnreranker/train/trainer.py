"""Trains every model with the Trainer of transformers: validates, keeps the best weights, and resumes."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, ParameterError
from rnnreranker.base.files import fingerprint, folder_written_whole, write_json
from rnnreranker.base.process import phases
from rnnreranker.base.strict import read_json
from rnnreranker.encode import model_folder
from rnnreranker.encode.model_folder import content_of, find_model, known_model, read_settings
from rnnreranker.encode.transformer import NO_LIMIT, check_vocabulary
from rnnreranker.train.params import LONGEST
from rnnreranker.train.request import NOTHING, RECORD, Start, Trained
from rnnreranker.train.validation import Validation

WORK = "work.json"  # in the folder of checkpoints: what they belong to
STATE, WEIGHTS = "trainer_state.json", "model.safetensors"  # of a checkpoint: written last; what is trained
EVAL = "eval_"  # the Trainer's prefix of measures
Tell = Callable[[int, dict[str, float]], None]  # is called with step and measures of every validation


class Learner:
    """A model and how it learns.

    A subclass has `batch(rows)`, inputs of the model for some rows of `training`; `loss(inputs, rng, step)`, the mean
    of a batch, whose random draws `rng` makes, so that resumed trainings repeat them; `validation()` of the current
    weights, in evaluation mode; `save(folder)`, which writes the model into an existing folder.

    Attributes:
        unit: rows of `training`: queries or texts.
        in_order: whether `training` lists the rows of all epochs in order.
        folder: of the start, None = a new model; encoder: its name.
        made: inputs, for the record; content: inputs, for the fingerprint of checkpoints.
        kept: further state of checkpoints, with `save` and `load`, or None.
    """

    unit: ClassVar[str] = "queries"
    in_order: ClassVar[bool] = False
    model: Any
    folder: Path | None = None
    training: Any
    kept: Any = None

    def __init__(self, start: Start, params: Any, made: Mapping[str, Any], content: Sequence[Any]) -> None:
        self.encoder, self.params = None if start.name == NOTHING else start.name, params
        self.made, self.content = dict(made), content

    def beside(self) -> dict[str, float]:
        """Further values of the weights, for validations and the record."""
        return {}

    def optimizers(self, steps: int, every: int) -> tuple[Any, Any]:
        """Optimizer and schedule, which may `observe` validation losses. None = AdamW; linear decay or a constant rate.

        steps: of the training; every: steps between validations.
        """
        return None, None

    @property
    def epoch(self) -> int:
        return self.steps_of(len(self.training))

    @property
    def steps(self) -> int:
        return self.params.max_steps or math.ceil(self.params.epochs * self.epoch)

    def steps_of(self, rows: int) -> int:
        return math.ceil(rows / (self.params.batch_size * self.params.accumulate))


class FitTrainer(transformers.Trainer):  # `_load_from_checkpoint`: see base.private.transformers
    """Trains a learner; random draws depend on seed, step and pass alone.

    Attributes:
        before, after: validations of the start and of the best step; weights: of that step, on the CPU.
        seen: trained rows; seconds: without validations.
    """

    after: Validation | None = None

    def __init__(self, learner: Any, folder: Path, checkpoints: bool, device: str, tell: Tell | None) -> None:
        params, every = learner.params, learner.params.evaluate_every or learner.epoch
        self.learner, self.params, self.tell = learner, params, tell
        self.seen, self.seconds, self._pass = 0, 0.0, (-1, 0)
        arguments = transformers.TrainingArguments(
            output_dir=str(folder),
            per_device_train_batch_size=params.batch_size,
            gradient_accumulation_steps=params.accumulate,
            max_steps=learner.steps,
            learning_rate=params.learning_rate,
            weight_decay=params.weight_decay,
            warmup_steps=params.warmup,
            lr_scheduler_type="linear" if getattr(params, "decay", True) else "constant_with_warmup",
            max_grad_norm=params.clip,
            train_sampling_strategy="sequential" if learner.in_order else "random",
            seed=params.seed,
            data_seed=params.seed,
            eval_strategy="steps",
            eval_steps=every,
            save_strategy="steps" if checkpoints else "no",
            save_steps=every,
            save_total_limit=2,
            metric_for_best_model=params.key_measure,  # the best checkpoint is never removed
            logging_strategy="no",
            remove_unused_columns=False,
            dataloader_pin_memory=False,
            disable_tqdm=True,
            use_cpu=device == "cpu",
        )
        super().__init__(
            model=learner.model,
            args=arguments,
            train_dataset=learner.training,
            eval_dataset=learner.training,  # never read: `evaluate` validates as the learner does
            data_collator=lambda rows: {"rows": len(rows), **learner.batch(rows)},
            optimizers=learner.optimizers(learner.steps, every),
        )
        self.model_accepts_loss_kwargs = False  # the loss is a mean: passes are averaged before a step
        self.remove_callback(transformers.PrinterCallback)
        self.weights, self.before = self._trained(), self.validation()

    def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Tensor:
        step = int(self.state.global_step)
        phases.tell(lambda: f"step {step + 1} of {self.state.max_steps}")
        self.seen += inputs.pop("rows")
        self._pass = (step, self._pass[1] + 1 if self._pass[0] == step else 0)
        loss = self.learner.loss(inputs, np.random.default_rng([self.params.seed, *self._pass]), step)
        if not torch.isfinite(loss):
            raise ParameterError(f"step {step}: the loss is {loss.item()}; try a lower {argument('learning_rate')}")
        return loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Validate and log; keep better weights, or stop when patience ends."""
        step, begun = int(self.state.global_step), time.perf_counter()
        validation = self.validation() if step else self.before
        self.seconds -= time.perf_counter() - begun
        measures = {**validation.measures, **self.learner.beside()}
        metrics = {EVAL + name: value for name, value in measures.items()}
        self.log(metrics)
        self.control.should_evaluate = False
        if hasattr(self.lr_scheduler, "observe"):
            self.lr_scheduler.observe(measures["loss"])
        if self.stale == 0:
            self.weights, self.after = self._trained(), validation
        self.control.should_training_stop |= self.ended
        if self.tell is not None:
            self.tell(step, measures)
        return metrics

    def validation(self) -> Validation:
        was_training = self.learner.model.training
        self.learner.model.eval()
        with torch.no_grad():
            validation = self.learner.validation()
        self.learner.model.train(was_training)
        return validation

    def train_to_end(self, resumed: Path | None) -> Validation:
        """Train, perhaps from a checkpoint, and load the best weights; returns their validation."""
        if resumed:
            self.state = transformers.TrainerState.load_from_json(str(resumed / STATE))
            if self.best["step"]:
                self.weights = load_file(resumed.with_name(f"checkpoint-{self.best['step']}") / WEIGHTS)
            if self.learner.kept is not None:
                self.learner.kept.load(resumed)
        self.args.eval_on_start = not resumed  # the start is a candidate for the best weights
        self.seconds -= time.perf_counter()
        if not resumed or not self.ended:
            self.train(resume_from_checkpoint=str(resumed) if resumed else None)
        self.seconds += time.perf_counter()
        self.learner.model.load_state_dict(self.weights, strict=False)
        return self.after or self.validation()

    @property
    def history(self) -> list[dict[str, float]]:
        """Step and measures of each validation, by name: a checkpoint sorts them."""
        return [
            {"step": entry["step"]} | {name[len(EVAL) :]: entry[name] for name in sorted(entry) if EVAL in name}
            for entry in self.state.log_history
            if "eval_loss" in entry
        ]

    @property
    def best(self) -> dict[str, float]:
        """The first of the validations with the best key measure."""
        key = self.params.key_measure
        return max(self.history, key=lambda entry: -entry[key] if key == "loss" else entry[key])

    @property
    def stale(self) -> int:
        """Validations since the best one."""
        history = self.history
        return len(history) - 1 - history.index(self.best)

    @property
    def ended(self) -> bool:
        """Whether all steps are done or patience has ended."""
        return self.state.global_step >= self.learner.steps or 0 < self.params.patience <= self.stale

    def _trained(self) -> dict[str, Tensor]:
        """The trained weights, copied to the CPU."""
        trained = self.learner.model.named_parameters()
        return {name: one.detach().cpu().clone().contiguous() for name, one in trained if one.requires_grad}

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        self.learner.model.load_state_dict(load_file(Path(resume_from_checkpoint) / WEIGHTS), strict=False)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Write what is trained into the folder of a checkpoint."""
        folder = Path(output_dir or self.args.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self._trained(), folder / WEIGHTS)
        if self.learner.kept is not None:
            self.learner.kept.save(folder)


def fit(learner: Any, kind: str, output: Path, checkpoints: bool, device: str, tell: Tell | None) -> Trained:
    """Train a learner and write the folder of the model; kind: its name, for the record.

    Raises:
        InputError: checkpoints of another training; ParameterError: a loss that is not finite.
    """
    learner.model.to(device)
    made = {"model": kind, "params": learner.params.described(), "encoder": learner.encoder, **learner.made}
    made |= {"threads": torch.get_num_threads(), "device": device}
    folder, begins = (
        output.with_name(output.name + ".checkpoints"),
        content_of(learner.folder) if learner.folder else "",
    )
    resumed = resume_from(folder, fingerprint(made, begins, *learner.content)) if checkpoints else None
    trainer = FitTrainer(learner, folder, checkpoints, device, tell)
    after = trainer.train_to_end(resumed)
    best, steps, history = int(trainer.best["step"]), int(trainer.state.global_step), trainer.history
    record = made | {"best_step": best, "steps": steps, "measures": after.measures}
    record |= {**learner.beside(), "history": history}
    if after.positives:
        record["positives"] = {"before": trainer.before.positives, "after": after.positives}
    with folder_written_whole(output) as written:
        learner.save(written)
        write_json(written / RECORD, record)
    shutil.rmtree(folder, ignore_errors=True)
    speed, seconds = trainer.seen / trainer.seconds, trainer.seconds
    return Trained(output, best, steps, after.measures, tuple(history), speed, seconds, record, learner.unit)


def resume_from(folder: Path, belongs: str) -> Path | None:
    """The newest whole checkpoint of this training, or None; makes the folder if it is missing.

    Raises:
        InputError: checkpoints of another training.
    """
    mark = {"belongs": belongs}
    if not (folder / WORK).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / WORK, mark)
    elif read_json(folder / WORK, "mark of a training", "delete the folder, and the training begins again") != mark:
        raise InputError(
            f"{folder}: has checkpoints of a training with other inputs or settings; give another "
            f"{argument('output')}, or delete this folder"
        )
    whole = [state.parent for state in folder.glob(f"checkpoint-*/{STATE}")]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def start_folder(name: str, kinds: Sequence[str]) -> tuple[Path, Path]:
    """The folder of a model, and the folder of its transformer; errors as `find_model`.

    kinds: kinds of methods that may know the name, by preference.
    """
    folder = find_model(name, next((kind for kind in kinds if known_model(name, kind)), kinds[0])).path
    return folder, folder / read_settings(folder).transformer


def loading(path: Path, what: str) -> AbstractContextManager[None]:
    """A context that turns any error of loading a model into an InputError of one line."""
    return model_folder.loading(path, what, f"give another {argument('encoder')}", "trained")


def limit_of(path: Path, model: Any, wanted: int | None) -> int:
    """Tokens at which texts are cut: `wanted`, else LONGEST or the model's limit.

    Raises:
        InputError: `wanted` is above the limit; the model is no encoder, or its tokenizer does not fit it.
    """
    if model.config.is_encoder_decoder:
        raise InputError(f"{path}: an encoder-decoder model; expected an encoder")
    tokenizer = check_vocabulary(path, model)
    limits = [getattr(model.config, "max_position_embeddings", None), tokenizer.model_max_length]
    most = min((limit for limit in limits if limit and limit < NO_LIMIT), default=512)
    if wanted is not None and wanted > most:
        raise InputError(f"max_length={wanted}: expected an integer <= {most}, as {path} takes no more tokens")
    return wanted or min(LONGEST, most)
