"""A query encoder while it learns, or a scorer of candidates on top of it: CODER's batches, loss and validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find
from rnnreranker.encode.model_folder import read_settings
from rnnreranker.encode.query_encoder import PromptedTokens, QueryEncoder, load_query_encoder, write_encoder
from rnnreranker.encode.scorer import CandidateScorer, write_scorer
from rnnreranker.train.losses import BatchLoss
from rnnreranker.train.query.dynamic import DynamicContext
from rnnreranker.train.query.fairness import neutrality_divergence
from rnnreranker.train.query.params import TrainParams
from rnnreranker.train.query.samples import (
    Collator,
    add_negatives,
    check_index,
    load_table,
    renumber,
    score,
    training_and_validation,
)
from rnnreranker.train.trainer import Learner
from rnnreranker.train.validation import Scored, Validation, validate

if TYPE_CHECKING:
    from rnnreranker.base.settings import Params
    from rnnreranker.encode.params import ScorerParams
    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource


def make_optimizer(model: torch.nn.Module, params: TrainParams) -> torch.optim.Optimizer:
    """RAdam over the trained parameters; weight decay only on those with two dimensions or more.

    A scorer has its own learning rate.
    """
    parts: list[tuple[torch.nn.Module, float]] = [(model, params.learning_rate)]
    if isinstance(model, CandidateScorer):
        parts = [(model.encoder, params.learning_rate), (model.scorer, model.params.learning_rate)]
    groups = []
    for part, rate in parts:
        trained = [parameter for parameter in part.parameters() if parameter.requires_grad]
        decayed, others = ([p for p in trained if (p.dim() > 1) == wanted] for wanted in (True, False))
        groups.append({"params": decayed, "weight_decay": params.weight_decay, "lr": rate})
        groups.append({"params": others, "weight_decay": 0.0, "lr": rate})
    return torch.optim.RAdam(groups, lr=params.learning_rate, eps=params.epsilon, decoupled_weight_decay=True)


class Schedule(LRScheduler):
    """The learning rate of every group by step; its whole state is in `state_dict`.

    Plateau: torch's ReduceLROnPlateau cuts the highest rates, for as long as the loss is not below
    (1 - plateau_threshold) times the best; none falls below `final_ratio` of what it was. Patience and cool-down are
    given in steps and come to patience / every validations, rounded, and those that fall into the cool-down.

    Args:
        optimizer: at the highest learning rates.
        params: warm-up, kind of schedule and its numbers.
        steps: of the whole training.
        every: steps between two validations.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, params: TrainParams, steps: int, every: int) -> None:
        self._warmup = warmup_steps(params, steps)
        self._steps = max(steps, 1)
        self._final = params.final_ratio
        self._plateau = None
        if params.schedule == "plateau":
            rates = [group["lr"] for group in optimizer.param_groups]
            highest = [{"params": [torch.zeros(1, requires_grad=True)], "lr": rate} for rate in rates]
            self._plateau = ReduceLROnPlateau(
                torch.optim.SGD(highest),  # of nothing: what is cut is the rate that warm-up leads to
                factor=params.plateau_factor,
                patience=round(params.plateau_patience / every),
                threshold=params.plateau_threshold,
                cooldown=params.plateau_cooldown // every,
                min_lr=[rate * params.final_ratio for rate in rates],
            )
        super().__init__(optimizer)

    def get_lr(self) -> list[Any]:
        """The learning rate of every group."""
        step = self.last_epoch  # torch's name for the number of steps taken
        highest = self.base_lrs if self._plateau is None else self._plateau.get_last_lr()
        factor = 1.0
        if step < self._warmup:
            factor = (step + 1) / (self._warmup + 1)
        elif self._plateau is None:
            share = (step - self._warmup) / max(self._steps - self._warmup, 1)
            factor = 1 - (1 - self._final) * min(share, 1.0)
        return [rate * factor for rate in highest]

    def observe(self, loss: float) -> None:
        """Take note of a validation loss: with a plateau, cut the learning rate where it is due."""
        if self._plateau is not None:
            self._plateau.step(loss)
            for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
                group["lr"] = rate

    def state_dict(self) -> dict[str, Any]:
        """Plain values, the plateau's among them."""
        state = super().state_dict()
        state["_plateau"] = self._plateau and self._plateau.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up a state of `state_dict`."""
        kept = dict(state_dict)
        plateau = kept.pop("_plateau")
        super().load_state_dict(kept)
        if self._plateau is not None:
            self._plateau.load_state_dict(plateau)
            for group, rate in zip(self._plateau.optimizer.param_groups, self._plateau.get_last_lr(), strict=True):
                group["lr"] = rate


def warmup_steps(params: TrainParams, steps: int) -> int:
    """Steps of warm-up: `warmup` itself from 1 on, below 1 that share of all steps, rounded down."""
    return int(params.warmup) if params.warmup >= 1 else int(params.warmup * steps)


class QueryLearner(Learner):
    """See `Learner`.

    Args:
        labels: candidates and target distributions of the training queries.
        source: the fixed vectors of the documents.
        topics: texts of the queries.
        encoder: minilm, tas-b, a folder or a Hugging Face id.
        params: of the training.
        validation: labels of the validation queries; None = a share of the training queries, held out by seed. All
            their candidates count, whatever `params.candidates`.
        pooling, normalize: where they differ from what the model's files say.
        neutrality: of documents, by docid, in [0, 1]; those without count as 1. Needed with `neutrality_weight`.
        loss: parameters of the loss that `params` names; None = its defaults.
        scorer: what scores the candidates, trained with the encoder; what is written is then a folder for
            `--rerank scorer`. None = their inner product with the query.
        other_index: labels whose metadata name another index than `source` are taken, as in a cascade whose candidates
            and targets another model made.

    Raises:
        InputError: labels that do not fit topics or index, or are of another index (without `other_index`), an encoder
            that cannot be trained.
    """

    folder: Path
    kept: DynamicContext | None = None

    def __init__(
        self,
        labels: SoftLabels,
        source: VectorSource,
        topics: Mapping[str, str],
        encoder: str,
        params: TrainParams,
        *,
        validation: SoftLabels | None = None,
        pooling: str | None = None,
        normalize: bool | None = None,
        neutrality: Mapping[str, float] | None = None,
        loss: Params | None = None,
        scorer: ScorerParams | None = None,
        other_index: bool = False,
    ) -> None:
        if params.neutrality_weight and neutrality is None:
            shown = argument("neutrality")
            raise InputError(f"neutrality_weight={params.neutrality_weight} needs the documents' neutrality, {shown}")
        self.encoder, self.params, self._loss = encoder, params, find("loss", params.loss)(loss)
        self.settings = params.to_dict() | self._loss.params.to_dict()
        if not other_index:
            check_index(labels, source)
            if validation is not None:
                check_index(validation, source, "the validation labels")
        refresh = params.refresh_every
        *sets, rows, lost = training_and_validation(
            labels, source, topics, params, validation, whole=bool(params.random_negatives or refresh)
        )
        dense, self._tokens, self.folder = start_encoder(encoder, source.dimension, params, pooling, normalize)
        if dense.projection is not None:
            say(
                f"{encoder}: its vectors have {dense.projection.in_features} dimensions, the index has "
                f"{source.dimension}: a projection is added and trained with it"
            )
        self._dense, self._scorer = dense, {} if scorer is None else {"scorer": scorer.to_dict()}
        self.model = dense if scorer is None else CandidateScorer(dense, source.dimension, scorer)
        self._table = load_table(source, rows)
        self._training, self._checked = (
            Collator(renumber(own, rows), self._tokens.cut([topics[sample.qid] for sample in own]), self._tokens)
            for own in sets
        )
        if refresh:
            self.kept = DynamicContext(labels, source, rows, self._training, params.candidates, refresh)
        self._neutrality = None
        if neutrality is not None:
            neutral = [neutrality.get(source.docids[row], 1.0) for row in rows]
            self._neutrality = torch.tensor(neutral, dtype=torch.float32)
        self.training = range(len(sets[0]))
        self.made = {
            "labels": labels.metadata,
            "index": source.fingerprint,
            "training_queries": len(sets[0]),
            "validation_queries": len(sets[1]),
            "candidates_without_vector": lost,
            **self._scorer,
        }
        self.content = [
            *(
                [[s.qid, topics[s.qid], s.rows.tolist(), s.targets.tolist(), s.positive.tolist()] for s in own]
                for own in sets
            ),
            sorted(neutrality.items()) if neutrality is not None else None,
            labels.metadata if refresh else None,
            [*self._scorer.values(), dense.pooling, dense.normalize],
        ]

    def batch(self, rows: Sequence[int]) -> dict[str, Any]:
        """The batch of samples by their numbers."""
        return self._training(rows)

    def optimizers(self, steps: int, every: int) -> tuple[Any, Any]:
        """RAdam, with a learning rate that may follow the loss of validation."""
        optimizer = make_optimizer(self.model, self.params)
        return optimizer, Schedule(optimizer, self.params, steps, every)

    def loss(self, inputs: dict[str, Any], rng: np.random.Generator, step: int) -> Tensor:
        """The mean loss of a batch; rng draws negatives."""
        params, batch = self.params, inputs["batch"]
        if self.kept is not None:
            batch = self.kept.current(self._dense, batch, step)
        wide = params.in_batch_negatives or isinstance(self._loss, BatchLoss)
        batch = add_negatives(batch, len(self._table), params.random_negatives, wide, rng)
        scores = score(self.model, self._table, batch)
        valid = torch.from_numpy(batch.valid).to(scores.device)
        targets, positive = (torch.from_numpy(part).to(scores.device) for part in (batch.targets, batch.positive))
        loss: Tensor = self._loss(scores, targets, positive, valid)
        if self._neutrality is not None and params.neutrality_weight:
            neutral = self._neutrality[torch.from_numpy(batch.rows)].to(scores.device)  # padding finds the last: masked
            divergence = neutrality_divergence(scores, neutral, valid, params.neutrality_cutoff)
            loss = loss + params.neutrality_weight * divergence
        return loss

    def validation(self) -> Validation:
        return validate(self._scored(), self._loss, self.params.seed)

    def _scored(self) -> Iterator[Scored]:
        """The scores of every validation query's candidates; queries of about the same length are computed together."""
        collator, size = self._checked, self.params.batch_size
        order = sorted(range(len(collator.samples)), key=lambda number: (len(collator.cut[number]), number))
        for start in range(0, len(order), size):
            numbers = order[start : start + size]
            scores = score(self.model, self._table, collator.batch(numbers)).cpu().numpy()
            for own, number in zip(scores, numbers, strict=True):
                one = collator.samples[number]
                yield Scored(one.qid, one.rows, one.targets, one.positive, own[: len(one.rows)])

    def beside(self) -> dict[str, float]:
        return {"inverse_temperature": self.model.inverse_temperature.item()}

    def save(self, folder: Path) -> None:
        length = read_settings(self.folder).max_length or self._tokens.max_length  # as before, where its files say so
        if isinstance(self.model, CandidateScorer):
            write_scorer(folder, self.model, self._tokens, length)
        else:
            write_encoder(folder, self.model, self._tokens, length)


def start_encoder(
    name: str, dimension: int, params: TrainParams, pooling: str | None = None, normalize: bool | None = None
) -> tuple[QueryEncoder, PromptedTokens, Path]:
    """`load_query_encoder` with the dropout, temperature and query length of a training, and its frozen layers.

    Raises:
        InputError: as `load_query_encoder`, and more layers to freeze than there are.
    """
    encoder, tokens, folder = load_query_encoder(
        name,
        dimension,
        pooling=pooling,
        normalize=normalize,
        dropout=params.dropout,
        inverse_temperature=params.inverse_temperature,
        learn_temperature=params.learn_temperature,
        max_tokens=params.query_tokens,
    )
    model = encoder.transformer
    if params.freeze_embeddings or params.frozen_layers:
        model.get_input_embeddings().weight.requires_grad_(False)  # type: ignore[operator]
    if not params.frozen_layers:
        return encoder, tokens, folder
    stacks = [child for name, child in model.named_modules() if name in ("encoder.layer", "transformer.layer")]
    if not stacks or len(stacks[0]) < params.frozen_layers:
        has = len(stacks[0]) if stacks else "no"
        raise InputError(f"frozen_layers={params.frozen_layers}: {folder} has {has} layers that can be frozen")
    for module in [model.embeddings, *stacks[0][: params.frozen_layers]]:
        module.requires_grad_(False)
    return encoder, tokens, folder
