"""The learner of query encoders and of scorers of candidates (CODER), and its dynamic candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Inputs
from rnnreranker.encode.model_folder import read_settings
from rnnreranker.encode.query_encoder import PromptedTokens, QueryEncoder, load_query_encoder, write_encoder
from rnnreranker.encode.scorer import CandidateScorer, write_scorer
from rnnreranker.train.fairness import neutrality_divergence
from rnnreranker.train.params import TrainParams
from rnnreranker.train.request import Start
from rnnreranker.train.samples import (
    Batch,
    CoderInputs,
    Collator,
    Sample,
    add_negatives,
    by_length,
    load_table,
    read_samples,
    renumber,
    score,
    training_and_validation,
)
from rnnreranker.train.trainer import Learner
from rnnreranker.train.validation import Scored, Validation, validate

if TYPE_CHECKING:
    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource

KEPT = "candidates.safetensors"  # in a checkpoint: the candidates in use
AT_ONCE = 256  # queries encoded and searched together


def make_optimizer(model: torch.nn.Module, params: TrainParams) -> torch.optim.Optimizer:
    """RAdam over the trained parameters; biases and norms do not decay, and a scorer has its own learning rate."""
    parts: list[tuple[torch.nn.Module, float]] = [(model, params.learning_rate)]
    if isinstance(model, CandidateScorer):
        parts = [(model.encoder, params.learning_rate), (model.scorer, model.params.learning_rate)]
    groups = []
    for part, rate in parts:
        trained = [parameter for parameter in part.parameters() if parameter.requires_grad]
        for wide, decay in ((True, params.weight_decay), (False, 0.0)):
            own = [parameter for parameter in trained if (parameter.dim() > 1) == wide]
            groups.append({"params": own, "weight_decay": decay, "lr": rate})
    return torch.optim.RAdam(groups, lr=params.learning_rate, eps=params.epsilon, decoupled_weight_decay=True)


class Schedule(LRScheduler):
    """The learning rate of every group by step.

    Plateau: torch's ReduceLROnPlateau cuts the peak rates, down to `final_ratio` of them; patience and cool-down of
    `params` are steps, here turned into validations.

    steps: of the training; every: steps between validations.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, params: TrainParams, steps: int, every: int) -> None:
        self._warmup = int(params.warmup) if params.warmup >= 1 else int(params.warmup * steps)
        self._steps, self._final = max(steps, 1), params.final_ratio
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
        """Cut the learning rates of a plateau if the validation loss is due for it."""
        if self._plateau is not None:
            self._plateau.step(loss)
            _set_rates(self.optimizer, self.get_lr())

    def state_dict(self) -> dict[str, Any]:
        """Plain values, with the plateau's state."""
        return super().state_dict() | {"_plateau": self._plateau and self._plateau.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_plateau"})
        if self._plateau is not None:
            self._plateau.load_state_dict(state_dict["_plateau"])
            _set_rates(self._plateau.optimizer, self._plateau.get_last_lr())


def _set_rates(optimizer: torch.optim.Optimizer, rates: list[Any]) -> None:
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


class CoderLearner(Learner):
    """Trains a query encoder against fixed vectors, or a scorer on top of it.

    Raises:
        InputError: labels of other topics, or an encoder that cannot be trained.
    """

    folder: Path
    kept: DynamicContext | None = None

    def __init__(self, start: Start, params: TrainParams, inputs: CoderInputs, device: str = "cpu") -> None:
        neutrality, labels, source = inputs.neutrality, inputs.labels, inputs.source
        if params.neutrality_weight and neutrality is None:
            shown = argument("neutrality")
            raise InputError(f"neutrality_weight={params.neutrality_weight} needs the documents' neutrality, {shown}")
        self.ranking = params.ranking
        refresh = params.refresh_every
        self.params = params
        *sets, rows, lost = training_and_validation(inputs, params, whole=bool(params.random_negatives or refresh))
        dense, self._tokens, self.folder = start_encoder(start, source.dimension, params)
        if dense.projection is not None:
            say(
                f"{start.name}: its vectors have {dense.projection.in_features} dimensions, the index has "
                f"{source.dimension}: a projection is added and trained with it"
            )
        scorer = inputs.scorer
        self.model = dense if scorer is None else CandidateScorer(dense, source.dimension, scorer)
        self._table = load_table(source, rows)
        self._samples, self._checked = (
            Collator(renumber(own, rows), self._tokens.cut([inputs.topics[one.qid] for one in own]), self._tokens)
            for own in sets
        )
        self.training = range(len(sets[0]))
        if refresh:
            self.kept = DynamicContext(labels, source, rows, self._samples, params.candidates, refresh)
        neutral = None if neutrality is None else [neutrality.get(source.docids[row], 1.0) for row in rows]
        self._neutrality = None if neutral is None else torch.tensor(neutral, dtype=torch.float32)
        made = {
            "labels": labels.metadata,
            "index": source.fingerprint,
            "training_queries": len(sets[0]),
            "validation_queries": len(sets[1]),
            "candidates_without_vector": lost,
            **({} if scorer is None else {"scorer": scorer.to_dict()}),
        }
        learnt = [
            [[s.qid, inputs.topics[s.qid], s.rows.tolist(), s.targets.tolist(), s.positive.tolist()] for s in own]
            for own in sets
        ]
        super().__init__(start, params, made, [learnt, neutral, dense.pooling, dense.normalize])

    def batch(self, rows: Sequence[int]) -> dict[str, Any]:
        return {"batch": self._samples.batch(rows)}

    def optimizers(self, steps: int, every: int) -> tuple[Any, Any]:
        optimizer = make_optimizer(self.model, self.params)
        return optimizer, Schedule(optimizer, self.params, steps, every)

    def loss(self, inputs: Any, rng: np.random.Generator, step: int) -> Tensor:
        params, batch = self.params, inputs["batch"]
        if self.kept is not None:
            batch = self.kept.current(self.model.dense, batch, step)
        wide = params.in_batch_negatives or self.ranking.over_batch
        batch = add_negatives(batch, len(self._table), params.random_negatives, wide, rng)
        scores = score(self.model, self._table, batch)
        parts = batch.targets, batch.positive, batch.valid
        targets, positive, valid = (torch.from_numpy(part).to(scores.device) for part in parts)
        loss = self.ranking(scores, targets, positive, valid)
        if self._neutrality is not None and params.neutrality_weight:
            neutral = self._neutrality[torch.from_numpy(batch.rows)].to(scores.device)  # of padding any: it is masked
            divergence = neutrality_divergence(scores, neutral, valid, params.neutrality_cutoff)
            loss = loss + params.neutrality_weight * divergence
        return loss

    def validation(self) -> Validation:
        return validate(self._scored(), self.ranking, self.params.seed)

    def _scored(self) -> Iterator[Scored]:
        collator, size = self._checked, self.params.batch_size
        every = range(len(collator.samples))
        for start in range(0, len(every), size):
            numbers = every[start : start + size]
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


def start_encoder(start: Start, dimension: int, params: TrainParams) -> tuple[QueryEncoder, PromptedTokens, Path]:
    """`load_query_encoder` by the settings of a training, with frozen layers. InputError: too few layers."""
    encoder, tokens, folder = load_query_encoder(
        start.name,
        dimension,
        pooling=start.pooling,
        normalize=start.normalize,
        dropout=params.dropout,
        inverse_temperature=params.inverse_temperature,
        learn_temperature=params.learn_temperature,
        max_tokens=params.query_tokens,
    )
    model: Any = encoder.transformer
    if params.freeze_embeddings or params.frozen_layers:
        model.get_input_embeddings().weight.requires_grad_(False)
    if params.frozen_layers:
        stacks = [child for name, child in model.named_modules() if name in ("encoder.layer", "transformer.layer")]
        if not stacks or len(stacks[0]) < params.frozen_layers:
            has = len(stacks[0]) if stacks else "no"
            raise InputError(f"frozen_layers={params.frozen_layers}: {folder} has {has} layers that can be frozen")
        for module in [model.embeddings, *stacks[0][: params.frozen_layers]]:
            module.requires_grad_(False)
    return encoder, tokens, folder


class DynamicContext:
    """Replaces the samples of a collator by new labels of the same method and parameters.

    Args:
        labels: the first labels; their positives are the judgements.
        source: of the documents; rows: (D,) int64, rows of the table, all of them.
        collator: of the training queries.
        candidates: most per query, or the longest list of the labels if that is shorter.
        every: steps between refreshes, 1 or more.

    Raises:
        InputError: the labels do not say how they were made.
    """

    def __init__(
        self,
        labels: SoftLabels,
        source: VectorSource,
        rows: np.ndarray,
        collator: Collator,
        candidates: int,
        every: int,
    ) -> None:
        self._labels, self._source, self._rows, self._collator = labels, source, rows, collator
        self._candidates, self._every = candidates, every
        self._hits = min(candidates, int(np.diff(labels.offsets).max()), len(source.docids))
        self._judged = {sample.qid: judged_of(labels, sample.qid) for sample in collator.samples}
        self._done = 0  # the last step before which samples were made again
        _labeler(labels, source, (), np.empty((0, source.dimension), dtype=np.float32))

    def current(self, encoder: QueryEncoder, batch: Batch, step: int) -> Batch:
        """The batch with the candidates of a step; a data loader may have made it before a refresh.

        With `every` 1 each step searches for the queries of the batch; else each `every`-th step searches for all
        queries.
        """
        if step and step % self._every == 0 and self._done != step:
            alone = self._every == 1
            self._refresh(encoder, batch.samples if alone else range(len(self._collator.samples)))
            self._done = 0 if alone else step
        rows, targets, positive = self._collator.candidates(batch.samples)
        return replace(batch, rows=rows, targets=targets, positive=positive)

    def _refresh(self, encoder: QueryEncoder, numbers: Sequence[int]) -> None:
        from rnnreranker.methods.retrieve.dense import dense_run
        from rnnreranker.parts.vectors import QueryVectors

        qids = [self._collator.samples[number].qid for number in numbers]
        vectors = query_vectors(encoder, self._collator, numbers)
        queries = QueryVectors(tuple(qids), vectors)
        run = dense_run(self._source, queries, self._hits, threads=None, batch_size=AT_ONCE)
        labels, _ = _labeler(self._labels, self._source, qids, vectors).infer_from(run, self._judged)
        samples = read_samples(labels, self._source, self._candidates)[0] if len(labels) else []
        made = {sample.qid: sample for sample in renumber(samples, self._rows)}
        for number, qid in zip(numbers, qids, strict=True):  # a query none of whose positives has a vector stays
            self._collator.samples[number] = made.get(qid, self._collator.samples[number])

    def save(self, folder: Path) -> None:
        samples = self._collator.samples
        columns = {
            name: np.concatenate([getattr(one, name) for one in samples]) for name in ("rows", "targets", "positive")
        }
        columns["lengths"] = np.array([len(one.rows) for one in samples], dtype=np.int64)
        save_file(columns | {"done": np.array([self._done], dtype=np.int64)}, str(folder / KEPT))

    def load(self, folder: Path) -> None:
        kept = load_file(str(folder / KEPT))
        ends = np.cumsum(kept["lengths"])[:-1]
        parts = [np.split(kept[name], ends) for name in ("rows", "targets", "positive")]
        for number, own in enumerate(zip(*parts, strict=True)):
            self._collator.samples[number] = Sample(self._collator.samples[number].qid, *own)
        self._done = int(kept["done"][0])


def query_vectors(encoder: QueryEncoder, collator: Collator, numbers: Sequence[int]) -> np.ndarray:
    """(n, d) float32: vectors of the queries of samples, by number, without dropout and without random draws."""
    was_training = encoder.training
    encoder.eval()
    with torch.no_grad():
        batches = [collator.batch(numbers[start : start + AT_ONCE]) for start in range(0, len(numbers), AT_ONCE)]
        parts = [by_length(encoder, batch, encoder).float().cpu().numpy() for batch in batches]
    encoder.train(was_training)
    return np.concatenate(parts)


def judged_of(labels: SoftLabels, qid: str) -> list[tuple[str, int]]:
    """Positives of a query with their grades; 1 each if the scores of the labels are no grades."""
    one = labels[qid]
    graded = labels.metadata.get("method") in ("hard", "uniform")
    grades = np.where(graded & (one.scores >= 1), one.scores, 1).astype(int).tolist()
    return [(one.docids[candidate], grades[candidate]) for candidate in np.flatnonzero(one.positive).tolist()]


def _labeler(labels: SoftLabels, source: VectorSource, qids: Sequence[str], vectors: np.ndarray) -> Any:
    """The labeler that made some labels, for queries with vectors; errors as `labeler_of`."""
    from rnnreranker.labels.methods.base import labeler_of
    from rnnreranker.parts.vectors import QueryVectors

    return labeler_of(labels.metadata, Inputs(vectors=source, query_vectors=QueryVectors(tuple(qids), vectors)))
