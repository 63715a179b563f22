"""CODER: query encoders, and scorers of candidates, against fixed vectors of many candidates a query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from rnnreranker.base.command import counted, notice
from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.method import Inputs
from rnnreranker.encode.coder import (
    CandidateScorer,
    PromptedTokens,
    QueryEncoder,
    load_query_encoder,
    write_encoder,
    write_scorer,
)
from rnnreranker.encode.params import DOCUMENTS_BY
from rnnreranker.labels.export import check_texts
from rnnreranker.labels.methods.base import labeler_of
from rnnreranker.methods.retrieve.dense import dense_run
from rnnreranker.parts.vectors import QueryVectors
from rnnreranker.train.fairness import neutrality_divergence, neutrality_of
from rnnreranker.train.params import TrainParams
from rnnreranker.train.request import Start, held_out_of, labels_of, validation_of
from rnnreranker.train.trainer import RankedLearner

if TYPE_CHECKING:
    from rnnreranker.encode.params import ScorerParams
    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource
    from rnnreranker.train.request import TrainRequest

BLOCK = 8192  # rows fetched at a time
PAD = -1  # where a batch has no row


class CoderInputs(NamedTuple):
    """Inputs of the training of a query encoder.

    Attributes:
        labels: of the training queries; topics: texts of all queries; source: fixed vectors of the documents.
        validation: labels of the validation queries; None = a share of the training queries.
        scorer: of candidates, trained with the encoder; None = the inner product.
        neutrality: by docid, in [0, 1]; other documents have 1.
        made_by: name and fingerprint of the encoder of the documents, if the index says them.
    """

    labels: SoftLabels
    source: VectorSource
    topics: Mapping[str, str]
    validation: SoftLabels | None = None
    scorer: ScorerParams | None = None
    neutrality: Mapping[str, float] | None = None
    made_by: Mapping[str, str] | None = None


def load_inputs(request: TrainRequest, params: TrainParams) -> CoderInputs:
    """Read the inputs of a request. InputError: missing arguments, unreadable or mismatched files."""
    request.needed("labels", "index", "topics")
    index: Any = request.opened
    labels, topics, source = labels_of(request.labels), request.texts_of_queries(), index.vectors  # type: ignore[arg-type]
    validation, texts = validation_of(request, params.validation_queries)
    if not request.other_index:
        check_index(labels, source, request.shown("labels"), argument("index", index.name))
    weight = params.neutrality_weight
    neutrality = neutrality_of(request.neutrality) if request.neutrality else None
    if bool(neutrality) != bool(weight):
        raise InputError(f"neutrality_weight={weight}: expected above 0 with {argument('neutrality')}, 0 without it")
    encoder = index.settings.get("parts", {}).get("dense", {}).get("encoder") or {}
    made_by = {key: str(encoder[key]) for key in ("name", "fingerprint") if key in encoder}
    return CoderInputs(labels, source, topics | texts, validation, request.scoring, neutrality, made_by)


def check_index(labels: SoftLabels, source: VectorSource, labels_name: str, index_name: str) -> None:
    """Check that labels were made from these vectors; labels without an index pass. InputError: another index."""
    made_from = labels.metadata.get("vectors", labels.metadata.get("index"))
    if made_from is not None and made_from != source.fingerprint:
        raise InputError(
            f"{labels_name}: made from {str(made_from)[:8]}..., the vectors of {index_name} are "
            f"{source.fingerprint[:8]}...; give the index of the labels, or {argument('other_index')} for labels of "
            "another one, of words or of tokens"
        )


class Sample(NamedTuple):
    """One query with its n candidates.

    rows: (n,) int64, of the source; targets: (n,) float32, sum to 1; positive: (n,) bool.
    """

    qid: str
    rows: Tensor
    targets: Tensor
    positive: Tensor


def read_samples(
    labels: SoftLabels, source: VectorSource, candidates: int | None, qids: Collection[str]
) -> tuple[list[Sample], np.ndarray]:
    """Samples of these queries, and (3,) int64: candidates without a vector, positives of them, queries dropped.

    A query keeps its positives, candidates with probability, and others in order up to `candidates` (None = all).
    Queries without probability are dropped. InputError: no query remains.
    """
    samples, lost = [], np.zeros(3, dtype=np.int64)
    for one in (one for one in labels if one.qid in qids):
        rows, first = np.asarray(source.rows(one.docids), dtype=np.int64), one.positive | (one.targets > 0)
        kept = rows >= 0
        lost += ((~kept).sum(), (~kept & one.positive).sum(), not one.targets[kept].any())
        if candidates is not None:
            kept[np.flatnonzero(kept & ~first)[max(candidates - int((kept & first).sum()), 0) :]] = False
        targets = one.targets[kept].astype(np.float32)
        if targets.any():
            parts = rows[kept], targets / targets.sum(), one.positive[kept]
            samples.append(Sample(one.qid, *map(torch.from_numpy, parts)))
    if not samples:
        raise InputError(
            "no query with labels has a candidate with a vector in the index; expected labels of this index's documents"
        )
    return samples, lost


class CandidateVectors:
    """Vectors of some documents in memory.

    rows: (D,) int64 of a source, ascending; vectors: (D, d) float16. InputError: a value beyond float16.
    """

    def __init__(self, source: VectorSource, rows: np.ndarray) -> None:
        self.rows, self.vectors = rows, np.empty((len(rows), source.dimension), dtype=np.float16)
        for start in range(0, len(rows), BLOCK):
            with np.errstate(over="ignore"):
                self.vectors[start : start + BLOCK] = source.fetch(rows[start : start + BLOCK])
        if np.isinf(self.vectors).any():
            raise InputError("document vectors have values beyond 65504, too large for float16; scale them down")

    def distinct(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors of the distinct rows, (U, d) float32, and positions of all rows among them, 0 at padding (-1)."""
        several, positions = torch.unique(rows, return_inverse=True)
        padded = int(several[0] == PAD)
        vectors = self.vectors[np.searchsorted(self.rows, several[padded:].numpy())]
        return torch.from_numpy(vectors).float(), (positions - padded).clamp(min=0)


@dataclass(frozen=True, eq=False)
class Batch:
    """b queries and N columns of candidates.

    tokens: numbers and attention, (b, T) int64; rows: (b, N) int64, -1 at padding; targets: (b, N) float32; positive:
    (b, N) bool.
    """

    tokens: tuple[Tensor, Tensor]
    rows: Tensor
    targets: Tensor
    positive: Tensor

    @property
    def valid(self) -> Tensor:
        """(b, N) bool: False at padding."""
        return self.rows != PAD


def batch_of(samples: Sequence[Sample], cut: Mapping[str, Sequence[int]], tokens: PromptedTokens) -> Batch:
    """The batch of samples; cut: token numbers of queries by id."""
    columns = zip(*(one[1:] for one in samples), strict=True)
    padded = (pad_sequence([*one], True, value) for one, value in zip(columns, (PAD, 0, False), strict=True))
    return Batch(tokens.pad([cut[one.qid] for one in samples]), *padded)


def add_negatives(
    batch: Batch, table_size: int, random_negatives: int, in_batch: bool, rng: np.random.Generator
) -> Batch:
    """The batch with further candidates without probability, each distinct and new to its query.

    Random ones are drawn from the whole table for each query; in-batch ones are the other queries' positives.
    """
    positives = batch.rows[batch.positive & in_batch].unique().numpy()
    drawn = rng.integers(0, table_size, (len(batch.rows), random_negatives))
    pairs = zip(batch.rows.numpy(), drawn, strict=True)
    fresh = [torch.from_numpy(np.setdiff1d([*positives, *more], own).astype(np.int64)) for own, more in pairs]
    new = pad_sequence(fresh, True, PAD)
    targets, positive = (pad(part, (0, new.shape[1])) for part in (batch.targets, batch.positive))
    return replace(batch, rows=torch.cat([batch.rows, new], dim=1), targets=targets, positive=positive)


def score(model: QueryEncoder | CandidateScorer, table: CandidateVectors, batch: Batch) -> Tensor:
    """(b, N) float32: inner products times the inverse temperature, or a scorer's scores; any value at padding."""
    device = model.inverse_temperature.device
    documents, columns, tokens, attention = (part.to(device) for part in (*table.distinct(batch.rows), *batch.tokens))
    if isinstance(model, CandidateScorer):
        states = model.encoder.states(tokens, attention)
        return model.score(states, attention, documents[columns], batch.valid.to(device))
    return (model(tokens, attention) @ documents.T).gather(1, columns) * model.inverse_temperature


class Schedule(LRScheduler):
    """The learning rate of every group by step: warm-up, then linear decay or a plateau.

    Plateau: the validation losses cut the peak rates as in torch's ReduceLROnPlateau, down to `final_ratio` of them;
    patience and cool-down are steps, here turned into validations. Other values are those of the authors' program.

    steps: of the training; every: steps between validations. All attributes are plain values, for checkpoints.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, params: TrainParams, steps: int, every: int) -> None:
        self.warmup = int(params.warmup * (1 if params.warmup >= 1 else steps))
        self.rest, self.final = max(steps - self.warmup, 1), params.final_ratio
        self.share, self.losses, self.plateau = 1.0, list[float](), dict[str, Any]()
        if params.schedule == "plateau":
            self.plateau = {
                "factor": 0.707,
                "patience": round(params.plateau_patience / every),
                "cooldown": 3000 // every,
                "threshold": 1e-3,
                "min_lr": self.final,
            }
        super().__init__(optimizer)

    def get_lr(self) -> list[Any]:
        step, factor = self.last_epoch, self.share  # torch's name for the number of steps taken
        if step < self.warmup:
            factor *= (step + 1) / (self.warmup + 1)
        elif not self.plateau:
            factor = 1 - (1 - self.final) * min((step - self.warmup) / self.rest, 1.0)
        return [rate * factor for rate in self.base_lrs]

    def observe(self, loss: float) -> None:
        """Cut the learning rates of a plateau if the validation losses are due for it."""
        if self.plateau:
            self.losses.append(loss)
            shares = torch.optim.SGD([torch.zeros(1)], lr=1.0)
            plateau = ReduceLROnPlateau(shares, **self.plateau)
            for one in self.losses:
                plateau.step(one)
            self.share = shares.param_groups[0]["lr"]
            for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
                group["lr"] = rate


class CoderLearner(RankedLearner):
    """Trains a query encoder against fixed vectors, or a scorer on top of it.

    Raises:
        InputError: labels of other topics, or an encoder that cannot be trained.
    """

    def __init__(self, start: Start, params: TrainParams, inputs: CoderInputs, device: str = "cpu") -> None:
        labels, source, topics, validation, scorer, neutrality, made_by = inputs
        held_out = held_out_of(labels.qids, params, validation)
        check_texts({*labels.qids, *held_out}, (), topics, {})
        samples, lost = read_samples(labels, source, params.candidates, set(labels.qids) - held_out)
        checked, more_lost = read_samples(validation or labels, source, None, held_out)
        checked = checked[: params.validation_queries]
        without, positives, dropped = (lost + more_lost).tolist()
        if without:
            notice(
                f"the index lacks {counted(without, 'candidate')} of the labels, {positives} of them positive; left "
                f"out: {counted(dropped, 'query', 'queries')} of {len({*labels.qids, *held_out})}; give "
                "the index that the run was made from"
            )
        rows = torch.cat([one.rows for one in (*samples, *checked)]).unique().numpy()
        whole = params.random_negatives or params.refresh_every
        self._table = CandidateVectors(source, np.arange(len(source.docids)) if whole else rows)
        self._dense, self._tokens, self.folder = start_encoder(start, source.dimension, params)
        self.model = self._dense if scorer is None else CandidateScorer(self._dense, source.dimension, scorer)
        queries = {one.qid: topics[one.qid] for one in (*samples, *checked)}
        self._cut = dict(zip(queries, self._tokens.cut([*queries.values()]), strict=True))
        self._labels, self._source, self.device = labels, source, device
        self._samples = {one.qid: one for one in samples}
        self.training, self.checked, self.at_once = list(self._samples), checked, params.batch_size
        if params.refresh_every:
            self._labeler(QueryVectors((), np.empty((0, source.dimension), np.float32)))  # the labels say their method
        neutral = neutrality or {}
        self._neutral = torch.ones(len(source.docids) + 1)  # the last is of docids that the index lacks, row -1
        rows = np.asarray(source.rows([*neutral]), dtype=np.int64)
        if neutral and rows.max() < 0:
            raise InputError(f"{argument('neutrality')}: none of its {len(rows)} documents is in the index")
        self._neutral[rows] = torch.tensor([*neutral.values()])
        made = {"labels": labels.metadata, "index": source.fingerprint, "training_queries": len(samples)}
        made |= {"validation_queries": len(checked), "candidates_without_vector": without}
        made |= {DOCUMENTS_BY: made_by} if made_by else {}
        made |= {} if scorer is None else {"scorer": scorer.to_dict()}
        learnt = [[one.qid, topics[one.qid], *(part.tolist() for part in one[1:])] for one in (*samples, *checked)]
        super().__init__(start, params, made, [learnt, neutral, start.settings])

    def batch(self, rows: Sequence[str]) -> dict[str, Any]:
        return {"qids": rows}

    def _labeler(self, queries: QueryVectors) -> Any:
        return labeler_of(self._labels.metadata, Inputs(vectors=self._source, query_vectors=queries))

    def refresh(self, qids: Sequence[str]) -> None:
        """Search for queries with the present encoder, and keep new samples of them, by labels of the same method.

        A query none of whose positives has a vector keeps its sample.
        """
        numbers, attention = (part.to(self.device) for part in self._tokens.pad([self._cut[qid] for qid in qids]))
        self.model.eval()
        with torch.no_grad():
            vectors = self._dense(numbers, attention).float().cpu().numpy()
        self.model.train()
        queries = QueryVectors(tuple(qids), vectors)
        run = dense_run(self._source, queries, max(len(one.rows) for one in self._samples.values()))
        labels, _ = self._labeler(queries).infer_from(run, {qid: judged_of(self._labels, qid) for qid in qids})
        if len(labels):
            made, _ = read_samples(labels, self._source, self.params.candidates, qids)
            self.kept |= {one.qid: tuple(one) for one in made}

    def optimizers(self, steps: int, every: int) -> tuple[Any, Any]:
        """RAdam; biases and norms do not decay, and a scorer has its own learning rate."""
        params, model = self.params, self.model
        parts: list[Any] = [(model, params.learning_rate)]
        if isinstance(model, CandidateScorer):
            parts = [(model.encoder, params.learning_rate), (model.scorer, model.params.learning_rate)]
        groups = [
            {"params": [one for one in part.parameters() if one.requires_grad and (one.dim() > 1) == bool(decay)],
             "weight_decay": decay * params.weight_decay, "lr": rate}
            for part, rate in parts for decay in (1, 0)
        ]  # fmt: skip
        optimizer = torch.optim.RAdam(groups, params.learning_rate, eps=params.epsilon, decoupled_weight_decay=True)
        return optimizer, Schedule(optimizer, params, steps, every)

    def loss(self, inputs: Any) -> Tensor:
        params, qids, every = self.params, inputs["qids"], self.params.refresh_every
        if every and self.step and self.step % every == 0:
            self.refresh(qids if every == 1 else self.training)
        samples = [Sample(*self.kept.get(qid, self._samples[qid])) for qid in qids]
        batch = batch_of(samples, self._cut, self._tokens)
        wide = params.in_batch_negatives or self.ranking.over_batch
        if wide or params.random_negatives:
            batch = add_negatives(batch, len(self._table.rows), params.random_negatives, wide, self.rng)
        scores = score(self.model, self._table, batch)
        targets, positive, valid = (part.to(scores.device) for part in (batch.targets, batch.positive, batch.valid))
        loss: Tensor = self.ranking(scores, targets, positive, valid)
        if params.neutrality_weight:
            neutral = self._neutral[batch.rows].to(scores.device)
            divergence = neutrality_divergence(scores, neutral, valid, params.neutrality_cutoff)
            loss = loss + params.neutrality_weight * divergence
        return loss

    def scored(self, lists: Sequence[Sample]) -> Iterable[np.ndarray]:
        scores = score(self.model, self._table, batch_of(lists, self._cut, self._tokens)).cpu().numpy()
        return [row[: len(one.rows)] for one, row in zip(lists, scores, strict=True)]

    def save(self, folder: Path) -> None:
        write: Any = write_scorer if isinstance(self.model, CandidateScorer) else write_encoder
        write(folder, self.model)


def judged_of(labels: SoftLabels, qid: str) -> dict[str, int]:
    """Positives of a query with their grades; 1 each if the scores of the labels are no grades."""
    one, graded = labels[qid], labels.metadata.get("method") in ("hard", "uniform")
    grades = one.scores.clip(1, None if graded else 1).astype(int)
    return dict(compress(zip(one.docids, grades.tolist(), strict=True), one.positive))


def start_encoder(start: Start, dimension: int, params: TrainParams) -> tuple[QueryEncoder, PromptedTokens, Path]:
    """`load_query_encoder` by the settings of a training, with frozen layers. InputError: too few layers."""
    own = {name: getattr(params, name) for name in ("dropout", "inverse_temperature", "learn_temperature")}
    limit = params.query_tokens
    encoder, tokens, folder = load_query_encoder(start.name, dimension, max_tokens=limit, **own, **start.settings)
    model: Any = encoder.transformer
    if params.frozen_layers:
        stacks = [child for name, child in model.named_modules() if name in ("encoder.layer", "transformer.layer")]
        if not stacks or len(stacks[0]) < params.frozen_layers:
            has = len(stacks[0]) if stacks else "no"
            raise InputError(f"frozen_layers={params.frozen_layers}: {folder} has {has} layers that can be frozen")
        for module in [model.embeddings, *stacks[0][: params.frozen_layers]]:
            module.requires_grad_(False)
    return encoder, tokens, folder
