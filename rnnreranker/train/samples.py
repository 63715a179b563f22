"""Labelled queries with candidates as rows of a table: samples, batches and their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.encode.query_encoder import PromptedTokens, QueryEncoder
from rnnreranker.encode.scorer import CandidateScorer
from rnnreranker.labels.export import check_texts
from rnnreranker.train.params import TrainParams
from rnnreranker.train.request import check_different, held_out_of, labels_of, validation_of

if TYPE_CHECKING:
    from rnnreranker.encode.params import ScorerParams
    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource
    from rnnreranker.train.request import TrainRequest

BLOCK = 8192  # rows fetched at a time
PAD = -1  # where a batch has no row
CHUNK = 8  # queries that go through the encoder together on a CPU


@dataclass(frozen=True, eq=False)
class Sample:
    """One query with its n candidates.

    rows: (n,) int64, of the table; targets: (n,) float32, sum to 1; positive: (n,) bool.
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
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index
    from rnnreranker.train.fairness import neutrality_of

    if request.labels is None or request.index is None or request.topics is None:
        lacking, model = request.lacking("labels", "index", "topics"), argument("model", "query")
        raise InputError(f"{', '.join(lacking)} missing: {model} needs labels, document vectors and queries")
    labels, topics = labels_of(request.labels), topics_of(request.topics)
    validation, texts = validation_of(request, params.validation_queries, topics)
    index = open_index(request.index)
    source, shown = index.vectors, argument("index", index.name)
    if not request.other_index:
        check_index(labels, source, request.shown("labels"), shown)
        if validation is not None:
            check_index(validation, source, request.shown("validation_labels"), shown)
    neutrality = None if request.neutrality is None else neutrality_of(request.neutrality)
    return CoderInputs(labels, source, {**texts, **topics}, validation, neutrality, request.scoring)


def check_index(labels: SoftLabels, source: VectorSource, labels_name: str, index_name: str) -> None:
    """Check that labels were made from these vectors; labels without an index pass. InputError: another index."""
    made_from = labels.metadata.get("vectors", labels.metadata.get("index"))
    if made_from is not None and made_from != source.fingerprint:
        raise InputError(
            f"{labels_name}: made from index {str(made_from)[:8]}..., {index_name} is {source.fingerprint[:8]}...; "
            f"give the index of the labels, or {argument('other_index')} to train on labels of another one"
        )


def read_samples(
    labels: SoftLabels, source: VectorSource, candidates: int | None, *, qids: Iterable[str] | None = None
) -> tuple[list[Sample], np.ndarray, int]:
    """Samples with rows of the source, the distinct rows, and the number of candidates without a vector.

    A query keeps its positives, candidates with probability, and others in order up to `candidates` (None = all).
    Queries without probability are dropped. InputError: no query remains.
    """
    wanted = None if qids is None else set(qids)
    samples, lost = [], 0
    for one in labels:
        if wanted is not None and one.qid not in wanted:
            continue
        rows = np.asarray(source.rows(one.docids), dtype=np.int64)
        known = rows >= 0
        lost += int((~known).sum())
        first = known & (one.positive | (one.targets > 0))
        more = None if candidates is None else max(candidates - int(first.sum()), 0)
        others = np.flatnonzero(known & ~first)[:more]
        kept = np.sort(np.concatenate([np.flatnonzero(first), others]))
        targets = one.targets[kept].astype(np.float32)
        total = float(targets.sum())
        if total > 0:
            samples.append(Sample(one.qid, rows[kept], targets / np.float32(total), one.positive[kept].copy()))
    if not samples:
        raise InputError(
            "no query with labels has a candidate with a vector in the index; expected labels of this index's documents"
        )
    return samples, np.unique(np.concatenate([sample.rows for sample in samples])), lost


def renumber(samples: Sequence[Sample], rows: np.ndarray) -> list[Sample]:
    """Samples with rows of the table; `rows` ascending."""
    return [replace(sample, rows=np.searchsorted(rows, sample.rows)) for sample in samples]


def training_and_validation(
    inputs: CoderInputs, params: TrainParams, *, whole: bool
) -> tuple[list[Sample], list[Sample], np.ndarray, int]:
    """Training and validation samples, rows of the table, and the number of candidates without a vector.

    whole: the table needs all documents.
    """
    labels, source, validation = inputs.labels, inputs.source, inputs.validation
    check_texts([*labels.qids, *(validation.qids if validation is not None else ())], (), inputs.topics, {})
    if validation is None:
        held_out = held_out_of(labels.qids, params, ("query", "queries"))
        training, checked = labels, labels
    else:
        check_different(labels.qids, validation.qids)
        held_out, training, checked = set(validation.qids), labels, validation
    own = [qid for qid in labels.qids if qid not in held_out]
    samples, rows, lost = read_samples(training, source, params.candidates, qids=own)
    checked_samples, more_rows, more_lost = read_samples(checked, source, None, qids=held_out)
    needed = np.arange(len(source.docids)) if whole else np.union1d(rows, more_rows)
    return samples, checked_samples[: params.validation_queries], needed, lost + more_lost


def load_table(source: VectorSource, rows: np.ndarray) -> np.ndarray:
    """(D, d) float16: the vectors of some rows of a source. InputError: a value beyond float16."""
    vectors = np.empty((len(rows), source.dimension), dtype=np.float16)
    for start in range(0, len(rows), BLOCK):
        fetched = source.fetch(rows[start : start + BLOCK])
        if np.abs(fetched).max(initial=0) > np.finfo(np.float16).max:
            raise InputError("document vectors have values beyond 65504, too large for float16; scale them down")
        vectors[start : start + BLOCK] = fetched
    return vectors


def distinct(table: np.ndarray, rows: np.ndarray) -> tuple[Tensor, Tensor]:
    """Vectors of the distinct rows, (U, d) float32, and positions of all rows among them, 0 at padding (-1)."""
    several, positions = np.unique(rows, return_inverse=True)
    padded = int(len(several) > 0 and several[0] == PAD)
    vectors = torch.from_numpy(table[several[padded:]]).float()
    return vectors, torch.from_numpy(np.maximum(positions.reshape(rows.shape) - padded, 0))


@dataclass(frozen=True, eq=False)
class Batch:
    """b queries and N columns of candidates.

    tokens, attention: (b, T) int64; rows: (b, N) int64, -1 at padding; targets: (b, N) float32; positive: (b, N) bool;
    samples: numbers in the collator.
    """

    tokens: Tensor
    attention: Tensor
    rows: np.ndarray
    targets: np.ndarray
    positive: np.ndarray
    samples: tuple[int, ...] = ()

    @property
    def valid(self) -> np.ndarray:
        """(b, N) bool: False at padding."""
        return self.rows != PAD


class Collator:
    def __init__(self, samples: Sequence[Sample], cut: Sequence[Sequence[int]], tokens: PromptedTokens) -> None:
        self.samples, self.cut, self.tokens = list(samples), cut, tokens

    def batch(self, numbers: Sequence[int]) -> Batch:
        """The batch of the samples with these numbers."""
        tokens, attention = self.tokens.pad([self.cut[number] for number in numbers])
        return Batch(tokens, attention, *self.candidates(numbers), tuple(numbers))

    def candidates(self, numbers: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Current rows, targets, positive, (b, N) each."""
        chosen = [self.samples[number] for number in numbers]

        def padded(name: str, value: float) -> np.ndarray:
            rows = [torch.from_numpy(getattr(one, name)) for one in chosen]
            return pad_sequence(rows, batch_first=True, padding_value=value).numpy()

        return padded("rows", PAD), padded("targets", 0), padded("positive", False)


def add_negatives(
    batch: Batch, table_size: int, random_negatives: int, in_batch: bool, rng: np.random.Generator
) -> Batch:
    """The batch with further candidates without probability, each distinct and new to its query.

    Random ones are drawn from the whole table for each query; in-batch ones are the other queries' positives.
    """
    blocks = []
    if in_batch:
        rows = np.unique(batch.rows[batch.positive])
        blocks.append(np.broadcast_to(rows, (len(batch.rows), len(rows))))
    if random_negatives:
        blocks.append(rng.integers(0, table_size, (len(batch.rows), random_negatives)))
    if not blocks:
        return batch
    more = np.concatenate(blocks, axis=1)
    new = np.full_like(more, PAD)
    for line, drawn in enumerate(more):
        fresh = np.setdiff1d(drawn, batch.rows[line])  # distinct, ascending
        new[line, : len(fresh)] = fresh
    wider = {"rows": new, "targets": np.zeros(new.shape, np.float32), "positive": np.zeros(new.shape, bool)}
    wide: dict[str, Any] = {name: np.concatenate([getattr(batch, name), one], 1) for name, one in wider.items()}
    return replace(batch, **wide)


def score(model: QueryEncoder | CandidateScorer, table: np.ndarray, batch: Batch) -> Tensor:
    """(b, N) float32: inner products times the inverse temperature, or a scorer's scores; any value at padding."""
    device = model.inverse_temperature.device
    documents, columns = (part.to(device) for part in distinct(table, batch.rows))
    if isinstance(model, CandidateScorer):
        states, attention = token_states(model.encoder, batch), batch.attention.to(device)
        return model.score(states, attention, documents[columns], torch.from_numpy(batch.valid).to(device))
    return (by_length(model, batch, model) @ documents.T).gather(1, columns) * model.inverse_temperature


def token_states(encoder: QueryEncoder, batch: Batch) -> Tensor:
    """(b, T, h): token states of the queries of a batch, 0 at padding."""

    def padded(tokens: Tensor, attention: Tensor) -> Tensor:
        states = encoder.states(tokens, attention) * attention.unsqueeze(2)
        return torch.nn.functional.pad(states, (0, 0, 0, batch.tokens.shape[1] - tokens.shape[1]))

    return by_length(encoder, batch, padded)


def by_length(encoder: QueryEncoder, batch: Batch, compute: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """A computation on tokens and attention; on a CPU, on eight queries of about the same length at a time."""
    device = encoder.inverse_temperature.device
    if device.type != "cpu":
        return compute(batch.tokens.to(device), batch.attention.to(device))
    lengths = batch.attention.sum(dim=1)
    order, parts = torch.argsort(lengths, stable=True), []
    for chosen in order.split(CHUNK):
        longest = int(lengths[chosen].max())
        parts.append(compute(batch.tokens[chosen, :longest], batch.attention[chosen, :longest]))
    return torch.cat(parts)[torch.argsort(order)]
