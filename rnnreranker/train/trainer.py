"""Learners, which say what is trained and on what, and the trainers that validate them and keep the best weights."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError, ParameterError
from rnnreranker.base.files import files_digest, fingerprint, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.private.transformers import SecondsAside
from rnnreranker.base.process import phases
from rnnreranker.encode.model_folder import content_of
from rnnreranker.train.params import TextParams
from rnnreranker.train.validation import Validation

WORK = "work.json"  # in the folder of checkpoints: what they belong to
MARK = "best.json"  # in a checkpoint, written last: one with it is whole


class Learner(ABC):
    """A model and how it learns.

    Attributes:
        trainer: the class that trains such models: transformers' or one of sentence-transformers; arguments: the class
            of its arguments.
        unit: what is counted of a batch.
        small_checkpoints: whether they hold weights alone; validates_last: whether the last step is validated, too.
        model: what is trained; folder: where it came from, None where it begins from nothing.
        encoder: the name of that; settings: of the training, and of its loss.
        made: what the record says of the inputs; content: what is learnt from, for the fingerprint of checkpoints.
        callbacks: of the trainer, besides those that every training has.
        kept: what a resumed training needs besides the weights, with `save` to a checkpoint and `load`; None = nothing.
    """

    trainer: ClassVar[type[Any]]
    arguments: ClassVar[type[Any]] = transformers.TrainingArguments
    unit: ClassVar[str] = "queries"
    small_checkpoints: ClassVar[bool] = True
    validates_last: ClassVar[bool] = True
    model: Any
    folder: Path | None
    encoder: str | None
    settings: Mapping[str, Any]
    made: Mapping[str, Any]
    content: Sequence[Any]
    callbacks: Sequence[transformers.TrainerCallback] = ()
    kept: Any = None

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """The arguments of the trainer that say what it reads, and how."""

    @abstractmethod
    def size(self, inputs: Mapping[str, Any]) -> int:
        """How many of `unit` a batch has."""

    @abstractmethod
    def validation(self) -> Validation:
        """The validation of the weights as they are, which are in the mode of evaluation."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the model into a folder that is there."""

    def steps(self, params: Any, checkpoints: bool) -> dict[str, Any]:
        """Arguments of the trainer besides those of every training: how the learning rate goes, when it validates."""
        kind = "linear" if params.decay else "constant_with_warmup"
        return {"weight_decay": params.weight_decay, "warmup_steps": params.warmup, "lr_scheduler_type": kind}

    def beside(self) -> dict[str, float]:
        """What validations and the record say of the weights as they are, besides the measures."""
        return {}

    def identity(self, model: str, device: str, threads: int) -> list[Any]:
        """What a checkpoint belongs to; model: the name of the kind of model."""
        begins = content_of(self.folder) if self.folder else ""
        return [model, self.settings, begins, device, threads, *self.content]

    def record(self, model: str, device: str, threads: int) -> dict[str, Any]:
        """What `training.json` says first."""
        of_machine = {"threads": threads, "device": device}
        return {"model": model, "params": self.settings, "encoder": self.encoder, **self.made, **of_machine}


Tell = Callable[[int, dict[str, float]], None]  # is given step and measures of every validation
BEST = "best.safetensors"  # in a checkpoint: the best weights so far
WEIGHTS = "weights.safetensors"  # in a checkpoint: what is trained


class Best(transformers.TrainerCallback):
    """The best weights so far, the untrained ones included, kept in memory and with every checkpoint."""

    def __init__(self, trainer: FitTrainer) -> None:
        self._trainer = trainer
        self._measure = f"eval_{trainer.params.key_measure}"
        self._sign = -1.0 if trainer.params.key_measure == "loss" else 1.0
        self.value: float | None = None
        self.step = 0
        self.stale = 0  # validations since
        self.ended = False  # as of the checkpoint that was loaded: nothing is left to train
        self.weights: dict[str, Tensor] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Validate before the first step."""
        if state.global_step == 0:
            begun = time.perf_counter()
            self._trainer.evaluate()
            self._trainer.seconds_aside += time.perf_counter() - begun

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """Validate after the last step, too, where the learner asks for it."""
        if self._trainer.learner.validates_last and state.global_step >= state.max_steps:
            control.should_evaluate = True
        return control

    def on_evaluate(self, args: Any, state: Any, control: Any, **others: Any) -> Any:
        """Keep the weights where they are better; stop when they have not been for long; tell who asked for it."""
        measured = others["metrics"][self._measure]
        if self.value is None or self._sign * measured > self._sign * self.value:
            self.value, self.step, self.stale = measured, int(state.global_step), 0
            self.weights = {name: value.detach().cpu().clone() for name, value in self._trained().items()}
        else:
            self.stale += 1
            patience = self._trainer.params.patience
            if patience and self.stale >= patience:
                control.should_training_stop = True
        if self._trainer.tell is not None:
            named = {name.removeprefix("eval_"): value for name, value in others["metrics"].items()}
            self._trainer.tell(int(state.global_step), named)
        return control

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the best weights into the checkpoint, and the mark that it is whole."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        save_file(self.weights, str(folder / BEST))
        if self._trainer.learner.kept is not None:
            self._trainer.learner.kept.save(folder)
        ended = bool(control.should_training_stop or state.global_step >= state.max_steps)
        write_mark(folder, {"value": self.value, "step": self.step, "stale": self.stale, "ended": ended})

    def load(self, checkpoint: Path) -> None:
        """Take up where a checkpoint was written; InputError: a file of it that is not as it was written."""
        kept = read_mark(checkpoint)
        for name, value in kept.items():
            setattr(self, name, value)
        self.weights = load_file(str(checkpoint / BEST))
        if self._trainer.learner.kept is not None:
            self._trainer.learner.kept.load(checkpoint)

    def put_back(self) -> None:
        """Load the best weights into the model."""
        self._trainer.learner.model.load_state_dict(self.weights, strict=False)

    def _trained(self) -> dict[str, Tensor]:
        return {n: p for n, p in self._trainer.learner.model.named_parameters() if p.requires_grad}


class FitTrainer(SecondsAside):
    """Put before a Trainer, see `trainer_of`: looks at the loss, validates as the learner does, keeps the best."""

    def __init__(self, learner: Learner, params: Any, arguments: Any, tell: Tell | None) -> None:
        self.learner, self.params, self.tell = learner, params, tell
        self.best = Best(self)
        self.validations: dict[int, Validation] = {}  # by step, of this process
        self.seen, self.seconds_aside = 0, 0.0  # trained on; spent on validations and checkpoints
        callbacks = [self.best, *learner.callbacks]
        super().__init__(model=learner.model, args=arguments, callbacks=callbacks, **learner.data())  # type: ignore[call-arg]
        for shown in (transformers.PrinterCallback, transformers.ProgressCallback):
            self.remove_callback(shown)  # type: ignore[attr-defined]

    def compute_loss(self, model: Any, inputs: Any, *args: Any, return_outputs: bool = False, **kwargs: Any) -> Any:
        """The loss of one pass, which must be a number."""
        trainer: Any = self
        step = int(trainer.state.global_step)
        phases.tell(f"step {step + 1} of {trainer.state.max_steps}")
        self.seen += self.learner.size(inputs)
        loss = super().compute_loss(model, inputs, *args, **kwargs)  # type: ignore[misc]
        if not torch.isfinite(loss):
            raise ParameterError(f"step {step}: the loss is {loss.item()}; try a lower {argument('learning_rate')}")
        return (loss, {}) if return_outputs else loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Validate, and log."""
        trainer: Any = self
        validation = self.validations[int(trainer.state.global_step)] = self.validation()
        measures = {**validation.measures, **self.learner.beside()}
        metrics = {f"eval_{name}": value for name, value in measures.items()}
        trainer.log(dict(metrics))
        trainer.control = trainer.callback_handler.on_evaluate(trainer.args, trainer.state, trainer.control, metrics)
        return metrics

    def validation(self) -> Validation:
        """The validation of the weights as they are."""
        model = self.learner.model
        was_training = model.training
        model.eval()
        with torch.no_grad():
            validation = self.learner.validation()
        model.train(was_training)
        return validation

    def add_model_card_callback(self, _: Any) -> None:
        """No model card: sentence-transformers' would name the day and the machine."""


class SmallCheckpoints:
    """Put before a Trainer: its checkpoints hold weights alone."""

    learner: Learner

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        assert output_dir is not None
        Path(output_dir).mkdir(parents=True, exist_ok=True)
        weights = {name: value.detach().contiguous() for name, value in self.learner.model.named_parameters()}
        save_file(weights, str(Path(output_dir) / WEIGHTS))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        self.learner.model.load_state_dict(load_file(str(Path(resume_from_checkpoint) / WEIGHTS)), strict=False)


class LossTrainer(transformers.Trainer):
    """Trains a learner by its own `loss`; what is drawn depends on seed, step and pass alone.

    So a resumed training draws the same.
    """

    learner: Any
    params: Any

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.model_accepts_loss_kwargs = False  # the loss is a mean: passes are averaged before a step
        self._pass = (-1, 0)

    def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Tensor:
        """The loss of one pass."""
        step = int(self.state.global_step)
        self._pass = (step, self._pass[1] + 1 if self._pass[0] == step else 0)
        loss: Tensor = self.learner.loss(inputs, np.random.default_rng([self.params.seed, *self._pass]), step)
        return loss


def trainer_of(
    learner: Learner, params: Any, folder: Path, checkpoints: bool, device: str, tell: Tell | None = None
) -> Any:
    """The trainer of a learner: what `FitTrainer` says, the rest of what the learner's own does.

    Args:
        learner: the model and how it is trained; params: of the training.
        folder: of checkpoints; checkpoints: whether they are written.
        device: cpu or cuda.
        tell: called with step and measures after every validation.
    """
    usual = training_arguments(params, folder, checkpoints, device)
    arguments = learner.arguments(**usual | learner.steps(params, checkpoints))
    small = [SmallCheckpoints] if learner.small_checkpoints else []
    kind: Any = type(learner.trainer.__name__, (FitTrainer, *small, learner.trainer), {})
    return kind(learner, params, arguments, tell)


class TextLearner(Learner):
    """A model and how it learns from texts.

    Args:
        encoder: what it begins as, None = from nothing; params: of the training.
        made, content: see `Learner`.

    Attributes:
        training: what batches are made of, one a text.
    """

    trainer = LossTrainer
    unit = "texts"
    training: Sequence[Any]

    def __init__(self, encoder: str | None, params: TextParams, made: Mapping[str, Any], content: str) -> None:
        self.encoder, self.params, self.made, self.content = encoder, params, made, [content]
        self.settings = params.to_dict()

    @abstractmethod
    def batch(self, several: Sequence[Any]) -> dict[str, Any]:
        """The inputs of several texts."""

    @abstractmethod
    def loss(self, inputs: dict[str, Any], rng: np.random.Generator, step: int) -> Tensor:
        """The mean loss of a batch; what is drawn at random comes from `rng`."""

    @abstractmethod
    def measures(self) -> dict[str, float]:
        """Of the validation texts, "loss" among them."""

    def data(self) -> dict[str, Any]:
        unread = self.training[:1]  # validation has its own texts
        return {"train_dataset": self.training, "eval_dataset": unread, "data_collator": self.batch}

    def size(self, inputs: Mapping[str, Any]) -> int:
        return len(inputs["tokens"])

    def validation(self) -> Validation:
        return Validation(self.measures())

    def record(self, model: str, device: str, threads: int) -> dict[str, Any]:
        """As of every model, without the setting `loss`, which means nothing here."""
        params = {name: value for name, value in self.settings.items() if name != "loss"}
        made = {**self.made, "training_texts": len(self.training)}
        return {"model": model, "params": params, "encoder": self.encoder, **made, "threads": threads, "device": device}


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
    """Mark a checkpoint as whole: with what is to be kept in the mark, and the digest of it and of all its files."""
    write_json(checkpoint / MARK, {"kept": kept, "check": _digest(checkpoint, kept)})


def read_mark(checkpoint: Path) -> dict[str, Any]:
    """What the mark of a checkpoint keeps; all files are looked at, as libraries take damaged ones for good.

    Raises:
        InputError: the mark or another file is not as it was written.
    """
    repair = f"delete {checkpoint}, and the training goes on from the one before"
    mark = read_json(checkpoint / MARK, "mark of a checkpoint", repair)
    if not isinstance(mark, dict) or mark.get("check") != _digest(checkpoint, mark.get("kept")):
        raise InputError(f"{checkpoint}: {MARK} or another file is not as it was written; {repair}")
    kept: dict[str, Any] = mark["kept"]
    return kept


def _digest(checkpoint: Path, kept: Any) -> str:
    files = (path for path in checkpoint.rglob("*") if path.is_file() and path.name != MARK)
    return fingerprint(kept, files_digest(files, checkpoint))


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
