"""Labelled queries with candidates as rows of the document vectors: samples, batches and their scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.encode.coder import CandidateScorer, PromptedTokens, QueryEncoder
from rnnreranker.train.fairness import neutrality_of
from rnnreranker.train.params import TrainParams
from rnnreranker.train.request import labels_of, validation_of
from rnnreranker.train.text import by_length

if TYPE_CHECKING:
    from rnnreranker.encode.params import ScorerParams
    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource
    from rnnreranker.train.request import TrainRequest

BLOCK = 8192  # rows fetched at a time
PAD = -1  # where a batch has no row
TOKENS = {"cpu": 2**7, "cuda": 2**17}  # padded tokens of the queries that go through the encoder together


class Sample(NamedTuple):
    """One query with its n candidates.

    rows: (n,) int64, of the source; targets: (n,) float32, sum to 1; positive: (n,) bool.
    """

    qid: str
    rows: np.ndarray
    targets: np.ndarray
    positive: np.ndarray


class CoderInputs(NamedTuple):
    """Inputs of the training of a query encoder.

    Attributes:
        labels: of the training queries; topics: texts of all queries; source: fixed vectors of the documents.
        validation: labels of the validation queries; None = a share of the training queries.
        neutrality: by docid, in [0, 1]; other documents have 1.
        scorer: of candidates, trained with the encoder; None = the inner product.
    """

    labels: SoftLabels
    source: VectorSource
    topics: Mapping[str, str]
    validation: SoftLabels | None = None
    neutrality: Mapping[str, float] | None = None
    scorer: ScorerParams | None = None


def load_inputs(request: TrainRequest, params: TrainParams) -> CoderInputs:
    """Read the inputs of a request. InputError: missing arguments, unreadable or mismatched files."""
    request.needed("labels", "index", "topics")
    index: Any = request.opened
    labels, topics, source = labels_of(request.labels), request.texts_of_queries(), index.vectors  # type: ignore[arg-type]
    validation, texts = validation_of(request, params.validation_queries)
    for name, one in (("labels", labels), ("validation_labels", validation)):
        if one is not None and not request.other_index:
            check_index(one, source, request.shown(name), argument("index", index.name))
    neutrality = None if request.neutrality is None else neutrality_of(request.neutrality)
    return CoderInputs(labels, source, topics | texts, validation, neutrality, request.scoring)


def check_index(labels: SoftLabels, source: VectorSource, labels_name: str, index_name: str) -> None:
    """Check that labels were made from these vectors; labels without an index pass. InputError: another index."""
    made_from = labels.metadata.get("vectors", labels.metadata.get("index"))
    if made_from is not None and made_from != source.fingerprint:
        raise InputError(
            f"{labels_name}: made from index {str(made_from)[:8]}..., {index_name} is {source.fingerprint[:8]}...; "
            f"give the index of the labels, or {argument('other_index')} to train on labels of another one"
        )


def read_samples(
    labels: SoftLabels, source: VectorSource, candidates: int | None, qids: Collection[str] | None = None
) -> tuple[list[Sample], int]:
    """Samples, and the number of candidates without a vector; qids: None = all queries.

    A query keeps its positives, candidates with probability, and others in order up to `candidates` (None = all).
    Queries without probability are dropped. InputError: no query remains.
    """
    samples, lost = [], 0
    for one in labels:
        if qids is not None and one.qid not in qids:
            continue
        rows, first = np.asarray(source.rows(one.docids), dtype=np.int64), one.positive | (one.targets > 0)
        kept = rows >= 0
        lost += int((~kept).sum())
        if candidates is not None:
            kept[np.flatnonzero(kept & ~first)[max(candidates - int((kept & first).sum()), 0) :]] = False
        targets = one.targets[kept].astype(np.float32)
        if targets.any():
            samples.append(Sample(one.qid, rows[kept], targets / targets.sum(), one.positive[kept]))
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
            fetched = source.fetch(rows[start : start + BLOCK])
            if np.abs(fetched).max(initial=0) > np.finfo(np.float16).max:
                raise InputError("document vectors have values beyond 65504, too large for float16; scale them down")
            self.vectors[start : start + BLOCK] = fetched

    def distinct(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Vectors of the distinct rows, (U, d) float32, and positions of all rows among them, 0 at padding (-1)."""
        several, positions = np.unique(rows, return_inverse=True)
        padded = int(several[:1].sum() == PAD)
        vectors = torch.from_numpy(self.vectors[np.searchsorted(self.rows, several[padded:])]).float()
        return vectors, torch.from_numpy(np.maximum(positions.reshape(rows.shape) - padded, 0))


@dataclass(frozen=True, eq=False)
class Batch:
    """b queries and N columns of candidates.

    features: input_ids, attention_mask, (b, T) int64; rows: (b, N) int64, -1 at padding; targets: (b, N) float32;
    positive: (b, N) bool; samples: numbers in the collator.
    """

    features: dict[str, Tensor]
    rows: np.ndarray
    targets: np.ndarray
    positive: np.ndarray
    samples: Sequence[int] = ()

    @property
    def valid(self) -> np.ndarray:
        """(b, N) bool: False at padding."""
        return self.rows != PAD


class Collator:
    """Batches of samples, which training may replace; cut: token numbers of their queries."""

    def __init__(self, samples: Sequence[Sample], topics: Mapping[str, str], tokens: PromptedTokens) -> None:
        self.samples, self.tokens = list(samples), tokens
        self.cut = tokens.cut([topics[one.qid] for one in samples])

    def batch(self, numbers: Sequence[int]) -> Batch:
        """The batch of the samples with these numbers."""
        tokens, attention = self.tokens.pad([self.cut[number] for number in numbers])
        rows, targets, positive = self.candidates(numbers)
        features = {"input_ids": tokens, "attention_mask": attention}
        return Batch(features, rows, targets, positive, numbers)

    def candidates(self, numbers: Sequence[int]) -> list[np.ndarray]:
        """Current rows, targets, positive, (b, N) each."""
        columns = zip(*(self.samples[number][1:] for number in numbers), strict=True)
        return [
            pad_sequence([torch.from_numpy(one) for one in column], batch_first=True, padding_value=value).numpy()
            for column, value in zip(columns, (PAD, 0, False), strict=True)
        ]


def add_negatives(
    batch: Batch, table_size: int, random_negatives: int, in_batch: bool, rng: np.random.Generator
) -> Batch:
    """The batch with further candidates without probability, each distinct and new to its query.

    Random ones are drawn from the whole table for each query; in-batch ones are the other queries' positives.
    """
    count, positives = len(batch.rows), np.unique(batch.rows[batch.positive & in_batch])
    drawn = rng.integers(0, table_size, (count, random_negatives)) if random_negatives else np.empty((count, 0), int)
    new = np.full((count, len(positives) + random_negatives), PAD)
    for line in range(count):
        fresh = np.setdiff1d([*positives, *drawn[line]], batch.rows[line])  # distinct, ascending
        new[line, : len(fresh)] = fresh
    wider = [(0, 0), (0, new.shape[1])]
    rows, targets = np.concatenate([batch.rows, new], axis=1), np.pad(batch.targets, wider)
    return replace(batch, rows=rows, targets=targets, positive=np.pad(batch.positive, wider))


def score(model: QueryEncoder | CandidateScorer, table: CandidateVectors, batch: Batch) -> Tensor:
    """(b, N) float32: inner products times the inverse temperature, or a scorer's scores; any value at padding."""
    device = model.inverse_temperature.device
    documents, columns = (part.to(device) for part in table.distinct(batch.rows))
    if isinstance(model, CandidateScorer):
        states, attention = token_states(model.encoder, batch), batch.features["attention_mask"].to(device)
        return model.score(states, attention, documents[columns], torch.from_numpy(batch.valid).to(device))
    return (vectors_of(model, batch) @ documents.T).gather(1, columns) * model.inverse_temperature


def vectors_of(encoder: QueryEncoder, batch: Batch) -> Tensor:
    """(b, d): vectors of the queries of a batch."""
    return _computed(encoder, batch, encoder)


def token_states(encoder: QueryEncoder, batch: Batch) -> Tensor:
    """(b, T, h): token states of the queries of a batch, 0 at padding."""
    longest = batch.features["input_ids"].shape[1]

    def padded(tokens: Tensor, attention: Tensor) -> Tensor:
        return pad(encoder.states(tokens, attention) * attention.unsqueeze(2), (0, 0, 0, longest - tokens.shape[1]))

    return _computed(encoder, batch, padded)


def _computed(encoder: QueryEncoder, batch: Batch, compute: Any) -> Tensor:
    there = {name: one.to(encoder.inverse_temperature.device) for name, one in batch.features.items()}
    return by_length(there, lambda part: compute(part["input_ids"], part["attention_mask"]), TOKENS)
