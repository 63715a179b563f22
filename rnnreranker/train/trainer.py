"""Trains every model with the Trainer of transformers: validates, keeps the best weights, and resumes."""

from __future__ import annotations

import math
import shutil
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas
import torch
import transformers
from safetensors.torch import load_model, save_model
from torch import Tensor

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, ParameterError, argument
from rnnreranker.base.files import fingerprint, folder_written_whole, write_json
from rnnreranker.encode import model_folder
from rnnreranker.encode.params import RECORD
from rnnreranker.encode.transformer import NO_LIMIT, check_vocabulary, load_whole
from rnnreranker.train.losses import Loss, divergence
from rnnreranker.train.models import NOTHING
from rnnreranker.train.params import LONGEST
from rnnreranker.train.request import Start, Trained

STATE, WEIGHTS = "trainer_state.json", "model.safetensors"  # of a checkpoint: written last; what is trained
KEPT = "kept.pt"  # of a checkpoint: `Learner.kept`
CUT = 10  # ranks of RR and nDCG
TOKENS = {"cpu": 2**11, "cuda": 2**17}  # padded tokens of the texts that go through the model together

Features = dict[str, Tensor]  # inputs of a model


class Validation(NamedTuple):
    """Means over texts, or over queries; ranking measures over queries with a positive candidate.

    measures: "loss", and of queries "kl", "RR@10", "nDCG@10"; positives: rank, from 1, and softmax share of each.
    """

    measures: dict[str, float]
    positives: Sequence[tuple[int, float]] = ()


def ranking_measures(scores: np.ndarray, positive: np.ndarray) -> tuple[list[int], dict[str, float]]:
    """Ranks of the positives, from 1, ascending, and RR@10 and nDCG@10 with binary gain; {} without positives.

    A tie with a negative counts against a positive: a model that scores all candidates alike ranks positives last.

    >>> ranking_measures(np.array([3.0, 1.0, 3.0, 2.0]), np.array([False, False, True, True]))[0]
    [2, 3]
    """
    ranks = np.flatnonzero(positive[np.lexsort((positive, -scores))]) + 1
    gains, high = 1 / np.log2(np.arange(2, CUT + 2)), ranks[ranks <= CUT]
    if not len(ranks):
        return [], {}
    ideal = gains[: len(ranks)].sum()
    return ranks.tolist(), {"RR@10": (1 / high).max(initial=0), "nDCG@10": gains[high - 1].sum() / ideal}


class Learner:
    """A model and how it learns.

    A subclass has `batch(rows)`, inputs of the model for some rows of `training`; `loss(inputs)`, the mean of a batch,
    whose random draws `rng` makes, so that resumed trainings repeat them; `validation()` of the current weights, in
    evaluation mode; `save(folder)`, which writes the model into an existing folder.

    Attributes:
        in_order: whether `training` lists the rows of all epochs in order.
        folder: of the start, None = a new model; encoder: its name.
        made: inputs, for the record; content: inputs, for the fingerprint of checkpoints.
        step: steps taken; rng: of this step.
        kept: values of a training that its checkpoints hold beside the weights.
    """

    in_order: ClassVar[bool] = False
    model: Any
    folder: Path | None = None
    training: Any
    step, rng = 0, np.random.default_rng(0)

    def __init__(self, start: Start, params: Any, made: Mapping[str, Any], content: Sequence[Any]) -> None:
        self.encoder, self.params = None if start.name == NOTHING else start.name, params
        self.made, self.content, self.kept = dict(made), content, dict[str, Any]()

    def optimizers(self, steps: int, every: int) -> tuple[Any, Any]:
        """Optimizer and schedule, which may `observe` validation losses. None = AdamW; linear decay or a constant rate.

        steps: of the training; every: steps between validations.
        """
        return None, None

    def steps_of(self, rows: int) -> int:
        return math.ceil(rows / self.params.batch_size)

    @property
    def epoch(self) -> int:
        return self.steps_of(len(self.training))

    @property
    def steps(self) -> int:
        return self.params.max_steps or math.ceil(self.params.epochs * self.epoch)


class RankedLearner(Learner):
    """A model that scores the n candidates of queries; each query has `targets` and `positive`.

    Attributes:
        checked: validation queries; at_once: how many are scored together.
        own: targets of a loss that are no distribution, (n,), of a query.
    """

    checked: Sequence[Any]
    at_once: int = 32
    own: Callable[[Any], np.ndarray] | None = None

    @cached_property
    def ranking(self) -> Loss:
        return self.params.ranking

    @abstractmethod
    def scored(self, lists: Sequence[Any]) -> Iterable[np.ndarray]:
        """(n,) float32: scores of the candidates of each query."""

    def validation(self) -> Validation:
        """Means over validation queries, whatever the order of queries and candidates."""
        measured, positives = list[dict[str, float]](), list[tuple[int, float]]()
        for start in range(0, len(self.checked), self.at_once):
            lists = self.checked[start : start + self.at_once]
            for one, own in zip(lists, self.scored(lists), strict=True):
                given = own, one.targets, one.positive, self.own(one) if self.own else one.targets
                scores, targets, positive, aims = (torch.as_tensor(part)[None] for part in given)
                valid = torch.ones_like(positive)
                losses = {"loss": self.ranking(scores, aims, positive, valid), "kl": divergence(scores, targets, valid)}
                ranks, ranked = ranking_measures(own, positive[0].numpy())
                measured.append({name: float(loss) for name, loss in losses.items()} | ranked)
                shares = torch.softmax(scores[0], dim=0)[positive[0]].sort(descending=True).values
                positives += zip(ranks, shares.tolist(), strict=True)
        means: Any = pandas.DataFrame(measured, columns=["loss", "kl", "RR@10", "nDCG@10"]).mean().fillna(0)
        return Validation(means.to_dict(), positives)


class OneDevice(transformers.TrainingArguments):
    @property
    def n_gpu(self) -> int:
        """At most 1: transformers takes `batch_size` queries for each GPU that it sees."""
        return min(super().n_gpu, 1)


class FitTrainer(transformers.Trainer):  # `_load_from_checkpoint`: see base.private
    """Trains a learner; random draws depend on seed and step alone.

    Attributes:
        before: the validation of the start.
        seconds: without validations.
    """

    def __init__(self, learner: Any, folder: Path, device: str) -> None:
        params, every = learner.params, learner.params.evaluate_every or learner.epoch
        self.learner, self.params = learner, params
        self.seconds = 0.0
        arguments = OneDevice(
            output_dir=str(folder),
            per_device_train_batch_size=params.batch_size,
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
            save_steps=every,
            save_total_limit=2,
            metric_for_best_model=params.key_measure,  # the best checkpoint is never removed
            greater_is_better=params.key_measure != "loss",
            restore_callback_states_from_checkpoint=True,
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
            data_collator=learner.batch,
            optimizers=learner.optimizers(learner.steps, every),
            callbacks=[transformers.EarlyStoppingCallback(params.patience)] if params.patience else [],
        )
        self.remove_callback(transformers.PrinterCallback)
        self.before = self.validation()

    def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Tensor:
        learner, step = self.learner, int(self.state.global_step)
        command.tell(lambda: f"step {step + 1} of {self.state.max_steps}")
        learner.step, learner.rng = step, np.random.default_rng([self.params.seed, step, 0])
        loss: Tensor = learner.loss(inputs)
        if not torch.isfinite(loss):
            raise ParameterError(f"step {step}: the loss is {loss.item()}; try a lower {argument('learning_rate')}")
        return loss

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Validate and log; the start is the first candidate for the best weights."""
        step, begun = int(self.state.global_step), time.perf_counter()
        measures = (self.validation() if step else self.before).measures
        self.seconds -= time.perf_counter() - begun
        self.log(measures)
        if hasattr(self.lr_scheduler, "observe"):
            self.lr_scheduler.observe(measures["loss"])
        named = {f"eval_{name}": value for name, value in measures.items()}
        self.callback_handler.on_evaluate(self.args, self.state, self.control, named)
        if not step:
            self.state.best_metric = measures[self.params.key_measure]
            self.state.best_model_checkpoint = str(Path(self.args.output_dir) / "checkpoint-0")
            self.save_model(self.state.best_model_checkpoint)
        return named

    def validation(self) -> Validation:
        """Validate in evaluation mode, which each step of training leaves again."""
        with torch.no_grad():
            self.learner.model.eval()
            validation: Validation = self.learner.validation()
        return validation

    def train_to_end(self, resumed: Path | None) -> Validation:
        """Train, perhaps from a checkpoint, and load the best weights; returns their validation."""
        self.args.eval_on_start = not resumed
        if resumed:
            self.state = transformers.TrainerState.load_from_json(str(resumed / STATE))
        self.seconds -= time.perf_counter()
        if not self.state.stateful_callbacks["TrainerControl"]["args"]["should_training_stop"]:
            self.train(resume_from_checkpoint=resumed and str(resumed))
        self.seconds += time.perf_counter()
        self._load_from_checkpoint(str(self.state.best_model_checkpoint))
        return self.validation()

    @property
    def history(self) -> list[dict[str, float]]:
        """Step and measures of each validation, by name: a checkpoint sorts them."""
        logs = [entry for entry in self.state.log_history if "loss" in entry]
        return [{name: entry[name] for name in sorted(entry.keys() - {"epoch"})} for entry in logs]

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        load_model(self.learner.model, Path(resume_from_checkpoint) / WEIGHTS)
        self.learner.kept = torch.load(Path(resume_from_checkpoint) / KEPT, weights_only=True)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Write the weights and what the learner keeps into the folder of a checkpoint."""
        folder = Path(str(output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        save_model(self.learner.model, str(folder / WEIGHTS))
        torch.save(self.learner.kept, folder / KEPT)


def fit(kind: str, learns: Any, start: Start, params: Any, inputs: Any, output: Path, device: str) -> Trained:
    """Train a model and write its folder.

    Args:
        kind: its name, for the record; learns: its `Learner`.

    Raises:
        InputError: an unsuitable model; ParameterError: a loss that is not finite.
    """
    transformers.set_seed(params.seed)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with command.phase("loading the model"):
        learner = learns(start, params, inputs, device)
    learner.model.to(device)
    made = {"model": kind, "params": params.described(), "encoder": learner.encoder, **learner.made}
    made |= {"threads": torch.get_num_threads(), "device": device}
    begins = model_folder.content_of(learner.folder) if learner.folder else ""
    folder = output.with_name(output.name + ".checkpoints")
    own = folder / fingerprint(made, begins, *learner.content)  # another training to this output begins anew
    whole = [state.parent for state in own.glob(f"checkpoint-*/{STATE}")]
    resumed = max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    trainer = FitTrainer(learner, own, device)
    after = trainer.train_to_end(resumed)
    best, steps, history = int(trainer.state.best_global_step or 0), int(trainer.state.global_step), trainer.history
    record = made | {"best_step": best, "steps": steps, "measures": after.measures, "history": history}
    if hasattr(learner.model, "inverse_temperature"):
        record["inverse_temperature"] = learner.model.inverse_temperature.item()
    if after.positives:
        record["positives"] = {"before": trainer.before.positives, "after": after.positives}
    with folder_written_whole(output) as written:
        learner.save(written)
        write_json(written / RECORD, record)
    shutil.rmtree(folder, ignore_errors=True)
    return Trained(output, best, steps, after.measures, tuple(history), trainer.seconds, record)


def start_of(
    given: Start, what: str, wanted: int | None, kind: str = "AutoModel"
) -> tuple[Path, Path, Any, int, model_folder.ModelSettings]:
    """The folder of a model to train and of its transformer, this, the tokens at which texts are cut, its settings.

    Args:
        given: the request's; what: the model that is trained, for messages.
        wanted: tokens; None = LONGEST or the model's limit; kind: the class of transformers.

    Raises:
        InputError: `wanted` is above the limit, missing weights, no encoder, a tokenizer that does not fit.
    """
    start = model_folder.find_start(given.name)
    own = model_folder.read_settings(start.path, start.known, **given.settings)
    path = start.path / own.transformer
    with model_folder.loading(path, what):
        model = load_whole(path, kind)
        tokenizer = check_vocabulary(path, model)
    limits = [getattr(model.config, "max_position_embeddings", None), tokenizer.model_max_length]
    most = min((limit for limit in limits if limit and limit < NO_LIMIT), default=512)
    if wanted is not None and wanted > most:
        raise InputError(f"max_length={wanted}: expected an integer <= {most}, as {path} takes no more tokens")
    return start.path, path, model, wanted or min(LONGEST, most), own


def by_length(features: Features, compute: Callable[[Features], Tensor]) -> Tensor:
    """(n, …): computes texts of about the same length together, to avoid padding.

    features: (n, t) each, with `attention_mask`, padded on the right; others have no padding.
    """
    if "attention_mask" not in features:
        return compute(dict(features))
    lengths, order = torch.sort(features["attention_mask"].sum(dim=1), stable=True)
    parts, start, sizes = [], 0, lengths.tolist()
    while start < len(sizes):
        stop = start + 1
        while stop < len(sizes) and sizes[stop] * (stop + 1 - start) <= TOKENS[order.device.type]:
            stop += 1
        parts.append(compute({name: value[order[start:stop], : sizes[stop - 1]] for name, value in features.items()}))
        start = stop
    return torch.cat(parts)[torch.argsort(order)]
