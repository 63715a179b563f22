"""The learner of query encoders and of scorers of candidates (CODER), and its dynamic candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Inputs
from rnnreranker.encode.coder import (
    CandidateScorer,
    PromptedTokens,
    QueryEncoder,
    load_query_encoder,
    write_encoder,
    write_scorer,
)
from rnnreranker.encode.model_folder import read_settings
from rnnreranker.labels.export import check_texts
from rnnreranker.labels.methods.base import labeler_of
from rnnreranker.methods.retrieve.dense import dense_run
from rnnreranker.parts.vectors import QueryVectors
from rnnreranker.train.fairness import neutrality_divergence
from rnnreranker.train.params import TrainParams
from rnnreranker.train.request import Start, held_out_of
from rnnreranker.train.samples import (
    Batch,
    CandidateVectors,
    CoderInputs,
    Collator,
    Sample,
    add_negatives,
    read_samples,
    score,
    vectors_of,
)
from rnnreranker.train.trainer import Learner
from rnnreranker.train.validation import Scored, Validation, validate

if TYPE_CHECKING:
    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource

KEPT = "candidates.pt"  # in a checkpoint: the candidates in use
AT_ONCE = 256  # queries encoded and searched together
LEAST = 1e-8  # a plateau makes no smaller cut, as in torch


def make_optimizer(model: torch.nn.Module, params: TrainParams) -> torch.optim.Optimizer:
    """RAdam over the trained parameters; biases and norms do not decay, and a scorer has its own learning rate."""
    parts: list[Any] = [(model, params.learning_rate)]
    if isinstance(model, CandidateScorer):
        parts = [(model.encoder, params.learning_rate), (model.scorer, model.params.learning_rate)]
    groups = [
        {"params": [one for one in part.parameters() if one.requires_grad and (one.dim() > 1) == bool(decay)],
         "weight_decay": decay * params.weight_decay, "lr": rate}
        for part, rate in parts for decay in (1, 0)
    ]  # fmt: skip
    return torch.optim.RAdam(groups, lr=params.learning_rate, eps=params.epsilon, decoupled_weight_decay=True)


class Schedule(LRScheduler):
    """The learning rate of every group by step.

    Plateau: as torch's ReduceLROnPlateau it cuts the peak rates, down to `final_ratio` of them; patience and cool-down
    of `params` are steps, here turned into validations.

    steps: of the training; every: steps between validations. All attributes are plain values, for checkpoints.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, params: TrainParams, steps: int, every: int) -> None:
        self._warmup = int(params.warmup) if params.warmup >= 1 else int(params.warmup * steps)
        self._steps, self._final, self._is_plateau = max(steps, 1), params.final_ratio, params.schedule == "plateau"
        self._patience, self._cooldown = round(params.plateau_patience / every), params.plateau_cooldown // every
        self._factor, self._better = params.plateau_factor, 1 - params.plateau_threshold
        self._highest = [group["lr"] for group in optimizer.param_groups]
        self._lowest, self._stale, self._resting = math.inf, 0, 0
        super().__init__(optimizer)

    def get_lr(self) -> list[Any]:
        step, factor = self.last_epoch, 1.0  # torch's name for the number of steps taken
        if step < self._warmup:
            factor = (step + 1) / (self._warmup + 1)
        elif not self._is_plateau:
            share = (step - self._warmup) / max(self._steps - self._warmup, 1)
            factor = 1 - (1 - self._final) * min(share, 1.0)
        return [rate * factor for rate in self._highest]

    def observe(self, loss: float) -> None:
        """Cut the learning rates of a plateau if the validation loss is due for it."""
        better = loss < self._lowest * self._better
        self._lowest = loss if better else self._lowest
        self._stale = 0 if better or self._resting else self._stale + 1
        self._resting = max(self._resting - 1, 0)
        if self._is_plateau and self._stale > self._patience:
            self._stale, self._resting = 0, self._cooldown
            for number, (old, base) in enumerate(zip(self._highest, self.base_lrs, strict=True)):
                new = max(old * self._factor, base * self._final)
                self._highest[number] = new if old - new > LEAST else old
            for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
                group["lr"] = rate


class CoderLearner(Learner):
    """Trains a query encoder against fixed vectors, or a scorer on top of it.

    Raises:
        InputError: labels of other topics, or an encoder that cannot be trained.
    """

    kept: DynamicContext | None = None

    def __init__(self, start: Start, params: TrainParams, inputs: CoderInputs, device: str = "cpu") -> None:
        labels, source, topics, validation, neutrality, scorer = inputs
        if params.neutrality_weight and neutrality is None:
            shown = argument("neutrality")
            raise InputError(f"neutrality_weight={params.neutrality_weight} needs the documents' neutrality, {shown}")
        held_out = held_out_of(labels.qids, params, validation)
        check_texts({*labels.qids, *held_out}, (), topics, {})
        samples, lost = read_samples(labels, source, params.candidates, set(labels.qids) - held_out)
        checked, more_lost = read_samples(validation or labels, source, None, held_out)
        checked, whole = checked[: params.validation_queries], np.arange(len(source.docids))
        rows = np.unique(np.concatenate([one.rows for one in (*samples, *checked)]))
        self._table = CandidateVectors(source, whole if params.random_negatives or params.refresh_every else rows)
        dense, self._tokens, self.folder = start_encoder(start, source.dimension, params)
        if dense.projection is not None:
            say(
                f"{start.name}: its vectors have {dense.projection.in_features} dimensions, the index has "
                f"{source.dimension}: a projection is added and trained with it"
            )
        self.model = dense if scorer is None else CandidateScorer(dense, source.dimension, scorer)
        self._samples, self._checked = (Collator(own, topics, self._tokens) for own in (samples, checked))
        self.training, self.ranking = range(len(samples)), params.ranking
        if params.refresh_every:
            self.kept = DynamicContext(labels, source, self._samples, params)
        self._neutral = torch.ones(len(source.docids) if neutrality else 0)
        if neutrality:
            known = np.asarray(source.rows(list(neutrality)))
            self._neutral[known[known >= 0]] = torch.tensor([*neutrality.values()], dtype=torch.float32)[known >= 0]
        made = {"labels": labels.metadata, "index": source.fingerprint, "training_queries": len(samples)}
        made |= {"validation_queries": len(checked), "candidates_without_vector": lost + more_lost}
        made |= {} if scorer is None else {"scorer": scorer.to_dict()}
        learnt = [[one.qid, topics[one.qid], *(part.tolist() for part in one[1:])] for one in (*samples, *checked)]
        neutral = sorted((neutrality or {}).items())
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
        if wide or params.random_negatives:
            batch = add_negatives(batch, len(self._table.rows), params.random_negatives, wide, rng)
        scores = score(self.model, self._table, batch)
        parts = batch.targets, batch.positive, batch.valid
        targets, positive, valid = (torch.from_numpy(part).to(scores.device) for part in parts)
        loss = self.ranking(scores, targets, positive, valid)
        if params.neutrality_weight:
            neutral = self._neutral[torch.from_numpy(batch.rows)].to(scores.device)  # of padding any: it is masked
            divergence = neutrality_divergence(scores, neutral, valid, params.neutrality_cutoff)
            loss = loss + params.neutrality_weight * divergence
        return loss

    def validation(self) -> Validation:
        return validate(self._scored(), self.ranking, self.params.seed)

    def _scored(self) -> Iterator[Scored]:
        numbers, size = range(len(self._checked.samples)), self.params.batch_size
        for start in numbers[::size]:
            own = numbers[start : start + size]
            scores = score(self.model, self._table, self._checked.batch(own)).cpu().numpy()
            for number, row in zip(own, scores, strict=True):
                one = self._checked.samples[number]
                yield Scored(*one, row[: len(one.rows)])

    def beside(self) -> dict[str, float]:
        return {"inverse_temperature": self.model.inverse_temperature.item()}

    def save(self, folder: Path) -> None:
        assert self.folder is not None
        length = read_settings(self.folder).max_length or self._tokens.max_length  # as before, where its files say so
        if isinstance(self.model, CandidateScorer):
            write_scorer(folder, self.model, self._tokens, length)
        else:
            write_encoder(folder, self.model, self._tokens, length)


def start_encoder(start: Start, dimension: int, params: TrainParams) -> tuple[QueryEncoder, PromptedTokens, Path]:
    """`load_query_encoder` by the settings of a training, with frozen layers. InputError: too few layers."""
    own = {name: getattr(params, name) for name in ("dropout", "inverse_temperature", "learn_temperature")}
    name, pooling, normalize = start
    encoder, tokens, folder = load_query_encoder(
        name, dimension, pooling=pooling, normalize=normalize, max_tokens=params.query_tokens, **own
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
        source: of the documents.
        collator: of the training queries.
        params: `candidates`, or the longest list of the labels if that is shorter, and `refresh_every`, 1 or more.

    Raises:
        InputError: the labels do not say how they were made.
    """

    def __init__(self, labels: SoftLabels, source: VectorSource, collator: Collator, params: TrainParams) -> None:
        self._labels, self._source, self._collator = labels, source, collator
        self._candidates, self._every = params.candidates, params.refresh_every
        self._hits = min(params.candidates, int(np.diff(labels.offsets).max()), len(source.docids))
        self._judged = {sample.qid: judged_of(labels, sample.qid) for sample in collator.samples}
        self._done = 0  # the last step before which samples were made again
        self._labeler(QueryVectors((), np.empty((0, source.dimension), dtype=np.float32)))

    def _labeler(self, queries: QueryVectors) -> Any:
        return labeler_of(self._labels.metadata, Inputs(vectors=self._source, query_vectors=queries))

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
        qids = tuple(self._collator.samples[number].qid for number in numbers)
        queries = QueryVectors(qids, query_vectors(encoder, self._collator, numbers))
        run = dense_run(self._source, queries, self._hits, threads=None, batch_size=AT_ONCE)
        labels, _ = self._labeler(queries).infer_from(run, self._judged)
        samples = read_samples(labels, self._source, self._candidates)[0] if len(labels) else []
        made = {sample.qid: sample for sample in samples}
        for number, qid in zip(numbers, qids, strict=True):  # a query none of whose positives has a vector stays
            self._collator.samples[number] = made.get(qid, self._collator.samples[number])

    def save(self, folder: Path) -> None:
        samples = [[torch.from_numpy(part) for part in one[1:]] for one in self._collator.samples]
        torch.save([self._done, samples], folder / KEPT)

    def load(self, folder: Path) -> None:
        self._done, samples = torch.load(folder / KEPT, weights_only=True)
        both = zip(self._collator.samples, samples, strict=True)
        self._collator.samples = [Sample(one.qid, *(part.numpy() for part in own)) for one, own in both]


def query_vectors(encoder: QueryEncoder, collator: Collator, numbers: Sequence[int]) -> np.ndarray:
    """(n, d) float32: vectors of the queries of samples, by number, without dropout and without random draws."""
    was_training = encoder.training
    encoder.eval()
    with torch.no_grad():
        batches = (collator.batch(numbers[start : start + AT_ONCE]) for start in range(0, len(numbers), AT_ONCE))
        vectors = torch.cat([vectors_of(encoder, batch) for batch in batches])
    encoder.train(was_training)
    return vectors.float().cpu().numpy()


def judged_of(labels: SoftLabels, qid: str) -> list[tuple[str, int]]:
    """Positives of a query with their grades; 1 each if the scores of the labels are no grades."""
    one = labels[qid]
    graded = labels.metadata.get("method") in ("hard", "uniform")
    grades = np.where(graded & (one.scores >= 1), one.scores, 1).astype(int).tolist()
    return [(one.docids[candidate], grades[candidate]) for candidate in np.flatnonzero(one.positive).tolist()]
