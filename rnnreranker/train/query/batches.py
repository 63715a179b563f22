"""Batches of queries with their candidates and the vectors of these; further negatives; their scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from rnnreranker.base.errors import InputError
from rnnreranker.encode.dense.query_encoder import PromptedTokens, QueryEncoder
from rnnreranker.encode.scorer.folder import CandidateScorer
from rnnreranker.train.query.samples import Sample

if TYPE_CHECKING:
    from rnnreranker.parts.vectors import VectorSource

BLOCK = 8192  # rows fetched at a time
PAD = -1  # where a batch has no row
SPARSE = 16  # a table that many times longer than a batch has rows is not scanned


class VectorTable:
    """Vectors of documents in memory, (D, d) float16 (or float32), and a buffer that gathered vectors go to."""

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors = np.ascontiguousarray(vectors)
        self._buffer = np.empty((0, self.vectors.shape[1]), dtype=self.vectors.dtype)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dimension(self) -> int:
        """d, the length of a vector."""
        return int(self.vectors.shape[1])

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """(n, d) in the table's dtype: the vectors of rows, in a buffer that the next call overwrites.

        Args:
            rows: (n,) or (B, N) integers in [0, D); of another shape than (n,) they give (B * N, d).
        """
        flat = np.ravel(rows)
        if len(flat) > len(self._buffer):
            self._buffer = np.empty((len(flat), self.dimension), dtype=self.vectors.dtype)
        return np.take(self.vectors, flat, axis=0, out=self._buffer[: len(flat)], mode="clip")  # clip: no copy made

    def gather_distinct(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The vectors of the distinct rows, (U, d), and the position of every row among them, shape of `rows`.

        Padding (-1) points at position 0.
        """
        if SPARSE * rows.size < len(self):  # sorting the few is quicker than a look at the whole table
            distinct_rows, inverse = np.unique(rows, return_inverse=True)
            padded = int(len(distinct_rows) > 0 and distinct_rows[0] == PAD)
            return self.gather(distinct_rows[padded:]), np.maximum(inverse.reshape(rows.shape) - padded, 0)
        seen = np.zeros(len(self), dtype=bool)
        seen[rows[rows != PAD]] = True
        distinct = np.flatnonzero(seen)
        position_of = np.zeros(len(self) + 1, dtype=np.int64)  # the last entry is what PAD = -1 finds
        position_of[distinct] = np.arange(len(distinct))
        return self.gather(distinct), position_of[rows]


def load_table(source: VectorSource, rows: np.ndarray, dtype: str = "float16") -> VectorTable:
    """The table of the given rows of a source, in their order; InputError: a vector too large for float16."""
    vectors = np.empty((len(rows), source.dimension), dtype=dtype)
    for start in range(0, len(rows), BLOCK):
        fetched = source.fetch(rows[start : start + BLOCK])
        if dtype == "float16" and np.abs(fetched).max(initial=0) > np.finfo(np.float16).max:
            raise InputError("document vectors have values beyond 65504, too large for float16; scale them down")
        vectors[start : start + BLOCK] = fetched
    return VectorTable(vectors)


CHUNK = 8  # queries that go through the encoder together on a CPU


@dataclass(frozen=True, eq=False)
class Batch:
    """b queries and N columns of candidates.

    Args:
        tokens, attention: (b, T) int64.
        rows: (b, N) int64 rows of the table, -1 where padded.
        targets: (b, N) float32, 0 where padded.
        positive: (b, N) bool, False where padded.
        samples: numbers of the b samples in their collator.
    """

    tokens: Tensor
    attention: Tensor
    rows: np.ndarray
    targets: np.ndarray
    positive: np.ndarray
    samples: tuple[int, ...] = ()

    @property
    def valid(self) -> np.ndarray:
        """(b, N) bool: where there is a candidate."""
        return self.rows != PAD


class Collator:
    """Makes a batch of samples and their cut texts; called by the data loader with numbers of samples."""

    def __init__(self, samples: Sequence[Sample], cut: Sequence[Sequence[int]], tokens: PromptedTokens) -> None:
        self.samples, self.cut, self.tokens = list(samples), cut, tokens

    def __call__(self, numbers: Sequence[int]) -> dict[str, Batch]:
        """{"batch": the batch}: the Trainer of transformers wants a mapping."""
        return {"batch": self.batch(numbers)}

    def batch(self, numbers: Sequence[int]) -> Batch:
        """The batch of the samples with the given numbers."""
        tokens, attention = self.tokens.pad([self.cut[number] for number in numbers])
        return Batch(tokens, attention, *self._candidates(numbers), tuple(numbers))

    def renewed(self, batch: Batch) -> Batch:
        """The batch with the candidates that its samples have now."""
        return Batch(batch.tokens, batch.attention, *self._candidates(batch.samples), batch.samples)

    def _candidates(self, numbers: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, targets, positive, (b, N) each."""
        chosen = [self.samples[number] for number in numbers]
        shape = len(chosen), max(len(sample.rows) for sample in chosen)
        rows, targets = np.full(shape, PAD, dtype=np.int64), np.zeros(shape, dtype=np.float32)
        positive = np.zeros(shape, dtype=bool)
        for line, sample in enumerate(chosen):
            rows[line, : len(sample.rows)] = sample.rows
            targets[line, : len(sample.rows)] = sample.targets
            positive[line, : len(sample.rows)] = sample.positive
        return rows, targets, positive


def add_negatives(
    batch: Batch, table_size: int, random_negatives: int, in_batch: bool, rng: np.random.Generator
) -> Batch:
    """The batch with further columns of candidates without probability.

    Random ones are drawn from the whole table for each query by itself; in-batch ones are the other queries' positives.
    What a query has as a candidate already stays padding there, so no document counts twice.
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
    return Batch(
        batch.tokens,
        batch.attention,
        np.concatenate([batch.rows, new], axis=1),
        np.concatenate([batch.targets, np.zeros(new.shape, dtype=np.float32)], axis=1),
        np.concatenate([batch.positive, np.zeros(new.shape, dtype=bool)], axis=1),
        batch.samples,
    )


def score(model: QueryEncoder | CandidateScorer, table: VectorTable, batch: Batch) -> Tensor:
    """(b, N) float32: inner products times the inverse temperature, or a scorer's scores; any value where padded.

    A document that several queries of the batch have as a candidate is gathered and multiplied once.
    """
    device = model.inverse_temperature.device
    vectors, columns = table.gather_distinct(batch.rows)
    documents = torch.from_numpy(vectors).to(device).float()  # (U, d), a copy: the buffer may be overwritten
    if documents.data_ptr() == vectors.ctypes.data:
        documents = documents.clone()  # a float32 table: the backward pass needs what the next batch overwrites
    if isinstance(model, CandidateScorer):
        near = documents[torch.from_numpy(columns).to(device)]  # (b, N, d)
        states, attention = token_states(model.encoder, batch), batch.attention.to(device)
        return model.score(states, attention, near, torch.from_numpy(batch.valid).to(device))
    queries = encode(model, batch)  # (b, d)
    products = queries @ documents.T  # (b, U)
    return products.gather(1, torch.from_numpy(columns).to(device)) * model.inverse_temperature


def encode(encoder: QueryEncoder, batch: Batch) -> Tensor:
    """(b, d): the query vectors of a batch.

    On a CPU, eight queries of about the same length go through the encoder at a time: padding a batch to its longest
    query would nearly double the work.
    """
    return _by_length(encoder, batch, encoder)


def token_states(encoder: QueryEncoder, batch: Batch) -> Tensor:
    """(b, T, h): the token states of the queries of a batch, 0 at padding; grouped by length as in `encode`."""

    def padded(tokens: Tensor, attention: Tensor) -> Tensor:
        states = encoder.states(tokens, attention) * attention.unsqueeze(2)
        return torch.nn.functional.pad(states, (0, 0, 0, batch.tokens.shape[1] - tokens.shape[1]))

    return _by_length(encoder, batch, padded)


def _by_length(encoder: QueryEncoder, batch: Batch, compute: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """What is computed of tokens and attention: of the whole batch, on a CPU of eight queries at a time."""
    device = encoder.inverse_temperature.device
    if device.type != "cpu":
        return compute(batch.tokens.to(device), batch.attention.to(device))
    lengths = batch.attention.sum(dim=1)
    order = torch.argsort(lengths, stable=True)
    parts = []
    for chosen in order.split(CHUNK):
        longest = int(lengths[chosen].max())
        parts.append(compute(batch.tokens[chosen, :longest], batch.attention[chosen, :longest]))
    return torch.cat(parts)[torch.argsort(order)]
