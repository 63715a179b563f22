"""Trains every model with the Trainer of transformers: validates, keeps the best weights, and resumes."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
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
from rnnreranker.base.files import files_digest, fingerprint, write_json
from rnnreranker.base.files.json_files import read_json
from rnnreranker.base.process import phases
from rnnreranker.encode import model_folder
from rnnreranker.encode.model_folder import content_of, find_model, known_model, read_settings
from rnnreranker.encode.transformer import NO_LIMIT, check_vocabulary
from rnnreranker.train.params import LONGEST
from rnnreranker.train.validation import Validation

WORK = "work.json"  # in the folder of checkpoints: what they belong to
MARK = "best.json"  # written last: a checkpoint that has it is complete
BEST = "best.safetensors"  # in a checkpoint: the best weights so far
WEIGHTS = "weights.safetensors"  # in a checkpoint: what is trained
Tell = Callable[[int, dict[str, float]], None]  # is called with step and measures of every validation


class Learner(ABC):
    """A model and how it learns.

    Attributes:
        unit: rows of `training`: queries or texts.
        in_order: whether `training` lists the rows of all epochs in order.
        folder: of the start, None = a new model; encoder: its name.
        settings, made: settings and inputs, for the record; content: inputs, for the fingerprint of checkpoints.
        kept: further state of checkpoints, with `save` and `load`, or None.
    """

    unit: ClassVar[str] = "queries"
    in_order: ClassVar[bool] = False
    model: Any
    folder: Path | None
    encoder: str | None
    params: Any
    settings: Mapping[str, Any]
    made: Mapping[str, Any]
    content: Sequence[Any]
    training: Any
    kept: Any = None

    @abstractmethod
    def batch(self, rows: Sequence[Any]) -> dict[str, Any]:
        """Inputs of the model for some rows of `training`."""

    @abstractmethod
    def loss(self, inputs: Any, rng: np.random.Generator, step: int) -> Tensor:
        """Mean loss of a batch; `rng` makes all random draws, so resumed trainings repeat them."""

    @abstractmethod
    def validation(self) -> Validation:
        """Measures of the current weights, in evaluation mode."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the model into an existing folder."""

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

    def record(self, model: str, device: str, threads: int) -> dict[str, Any]:
        """First entries of `training.json`; model: name of the kind."""
        of_machine = {"threads": threads, "device": device}
        return {"model": model, "params": self.settings, "encoder": self.encoder, **self.made, **of_machine}

    def identity(self, model: str, device: str, threads: int) -> str:
        """Fingerprint of the training, for its checkpoints."""
        begins = content_of(self.folder) if self.folder else ""
        return fingerprint(model, self.settings, begins, device, threads, *self.content)


class Checkpoints(transformers.TrainerCallback):
    """Completes the checkpoints of a trainer."""

    def __init__(self, trainer: FitTrainer) -> None:
        self._trainer = trainer

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        folder, trainer = Path(args.output_dir) / f"checkpoint-{state.global_step}", self._trainer
        save_file(trainer.weights, str(folder / BEST))
        if trainer.learner.kept is not None:
            trainer.learner.kept.save(folder)
        ended = bool(control.should_training_stop or state.global_step >= state.max_steps)
        write_mark(folder, {**trainer.best, "ended": ended})


class FitTrainer(transformers.Trainer):  # `_save` and `_load_from_checkpoint`: see base.private.transformers
    """Trains a learner; random draws depend on seed, step and pass alone.

    Attributes:
        best: value of the key measure, its step, and validations since; weights: of that step, on the CPU.
        validations: by step, of this process; seen: trained rows.
    """

    def __init__(
        self, learner: Learner, folder: Path, checkpoints: bool, device: str, tell: Tell | None = None
    ) -> None:
        params, every = learner.params, learner.params.evaluate_every or learner.epoch
        self.learner, self.params, self.tell = learner, params, tell
        self.best: dict[str, Any] = {"value": None, "step": 0, "stale": 0}
        self.weights: dict[str, Tensor] = {}
        self.validations: dict[int, Validation] = {}
        self.seen, self.seconds_aside, self._pass = 0, 0.0, (-1, 0)
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
            logging_strategy="steps",
            logging_steps=every,
            report_to=[],
            remove_unused_columns=False,
            dataloader_pin_memory=False,
            disable_tqdm=True,
            use_cpu=device == "cpu",
            log_level="error",
        )
        super().__init__(
            model=learner.model,
            args=arguments,
            train_dataset=learner.training,
            eval_dataset=learner.training,  # never read: `evaluate` validates as the learner does
            data_collator=lambda rows: {"rows": len(rows), **learner.batch(rows)},
            callbacks=[Checkpoints(self)],
            optimizers=learner.optimizers(learner.steps, every),
        )
        self.model_accepts_loss_kwargs = False  # the loss is a mean: passes are averaged before a step
        for shown in (transformers.PrinterCallback, transformers.ProgressCallback):
            self.remove_callback(shown)

    def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Tensor:
        step = int(self.state.global_step)
        phases.tell(f"step {step + 1} of {self.state.max_steps}")
        self.seen += inputs.pop("rows")
        self._pass = (step, self._pass[1] + 1 if self._pass[0] == step else 0)
        loss = self.learner.loss(inputs, np.random.default_rng([self.params.seed, *self._pass]), step)
        if not torch.isfinite(loss):
            raise ParameterError(f"step {step}: the loss is {loss.item()}; try a lower {argument('learning_rate')}")
        return loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Validate and log; keep better weights, or stop when patience ends."""
        step, begun = int(self.state.global_step), time.perf_counter()
        validation = self.validations[step] = self.validation()
        self.seconds_aside += time.perf_counter() - begun
        measures = {**validation.measures, **self.learner.beside()}
        metrics = {f"eval_{name}": value for name, value in measures.items()}
        self.log(dict(metrics))
        self.control.should_evaluate = False
        if hasattr(self.lr_scheduler, "observe"):
            self.lr_scheduler.observe(measures["loss"])
        value = measures[self.params.key_measure] * (-1 if self.params.key_measure == "loss" else 1)
        if self.best["value"] is None or value > self.best["value"]:
            self.best = {"value": value, "step": step, "stale": 0}
            self.weights = {name: value.cpu().clone() for name, value in self._trained().items()}
        else:
            self.best["stale"] += 1
            if self.params.patience and self.best["stale"] >= self.params.patience:
                self.control.should_training_stop = True
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

    def train_to_end(self, resumed: Path | None) -> float:
        """Train, perhaps from a checkpoint, and load the best weights; returns seconds without validations."""
        ended = False
        if resumed:
            kept = read_mark(resumed)
            ended, self.best, self.weights = kept.pop("ended"), kept, load_file(str(resumed / BEST))
            if self.learner.kept is not None:
                self.learner.kept.load(resumed)
            self.validations[0] = self.validation()
        begun = time.perf_counter()
        if ended:
            self.state = transformers.TrainerState.load_from_json(str(resumed / "trainer_state.json"))  # type: ignore
        else:
            self.args.eval_on_start = not resumed  # the start is a candidate for the best weights
            self.train(resume_from_checkpoint=str(resumed) if resumed else None)
        seconds = time.perf_counter() - begun - self.seconds_aside
        if self.history[-1]["step"] != self.state.global_step:
            self.evaluate()
        self.learner.model.load_state_dict(self.weights, strict=False)
        return seconds

    @property
    def history(self) -> list[dict[str, float]]:
        names = [*self.validations[0].measures, *self.learner.beside()]
        entries = [entry for entry in self.state.log_history if "eval_loss" in entry]
        return [{"step": entry["step"], **{name: entry[f"eval_{name}"] for name in names}} for entry in entries]

    def _trained(self) -> dict[str, Tensor]:
        trained = self.learner.model.named_parameters()
        return {name: one.detach().contiguous() for name, one in trained if one.requires_grad}

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        assert output_dir is not None
        Path(output_dir).mkdir(parents=True, exist_ok=True)
        save_file(self._trained(), str(Path(output_dir) / WEIGHTS))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        self.learner.model.load_state_dict(load_file(str(Path(resume_from_checkpoint) / WEIGHTS)), strict=False)


def resume_from(folder: Path, belongs: str) -> Path | None:
    """The newest whole checkpoint of this training, or None; makes the folder if it is missing.

    Raises:
        InputError: checkpoints of another training, damaged ones.
    """
    if folder.is_dir() and (folder / WORK).is_file():
        claimed = read_json(folder / WORK, "mark of a training", "delete the folder, and the training begins again")
        if not isinstance(claimed, dict) or claimed.get("belongs") != belongs:
            raise InputError(
                f"{folder}: has checkpoints of a training with other inputs or settings; give another "
                f"{argument('output')}, or delete this folder"
            )
        whole = [mark.parent for mark in folder.glob(f"checkpoint-*/{MARK}")]
        return max(whole, key=lambda path: int(path.name.rsplit("-", 1)[1]), default=None)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / WORK, {"belongs": belongs})
    return None


def write_mark(checkpoint: Path, kept: dict[str, Any]) -> None:
    """Mark a checkpoint as whole, with `kept` and a digest of it and of all files."""
    write_json(checkpoint / MARK, {"kept": kept, "check": _digest(checkpoint, kept)})


def read_mark(checkpoint: Path) -> dict[str, Any]:
    """What the mark of a checkpoint keeps. InputError: the mark or another file has changed."""
    repair = f"delete {checkpoint} to resume from the previous checkpoint"
    mark = read_json(checkpoint / MARK, "mark of a checkpoint", repair)
    if not isinstance(mark, dict) or mark.get("check") != _digest(checkpoint, mark.get("kept")):
        raise InputError(f"{checkpoint}: {MARK} or another file is not as it was written; {repair}")
    return mark["kept"]


def _digest(checkpoint: Path, kept: Any) -> str:
    files = (path for path in checkpoint.rglob("*") if path.is_file() and path.name != MARK)
    return fingerprint(kept, files_digest(files, checkpoint))


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
    tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
    check_vocabulary(path, tokenizer, model)
    limits = [getattr(model.config, "max_position_embeddings", None), tokenizer.model_max_length]
    most = min((limit for limit in limits if limit and limit < NO_LIMIT), default=512)
    if wanted is not None and wanted > most:
        raise InputError(f"max_length={wanted}: expected an integer <= {most}, as {path} takes no more tokens")
    return wanted or min(LONGEST, most)
