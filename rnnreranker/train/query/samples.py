"""Labelled queries with their candidates as rows of a table: which train, which validate, and in which batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.method import Inputs
from rnnreranker.encode.query_encoder import PromptedTokens, QueryEncoder
from rnnreranker.encode.scorer import CandidateScorer
from rnnreranker.labels.export import check_texts
from rnnreranker.train.query.params import TrainParams
from rnnreranker.train.request import labels_of

if TYPE_CHECKING:
    import pandas

    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource
    from rnnreranker.runs import Run
    from rnnreranker.train.request import TrainRequest


@dataclass(frozen=True, eq=False)
class Sample:
    """One query with its n candidates.

    Args:
        qid: the query's id.
        rows: (n,) int64, rows of the table.
        targets: (n,) float32, probabilities that sum to 1.
        positive: (n,) bool, judged relevant.
    """

    qid: str
    rows: np.ndarray
    targets: np.ndarray
    positive: np.ndarray


def check_index(
    labels: SoftLabels, source: VectorSource, labels_name: str = "the labels", index_name: str = "the index"
) -> None:
    """Look that labels were made from the vectors they are to be trained on; labels that name no index pass.

    Args:
        labels: their metadata say which index their targets were computed from, of a graph which vectors the graph is
            of; those of the method `hard` do not.
        source: vectors to train against.
        labels_name, index_name: what the two are called in the message.

    Raises:
        InputError: two different indexes.
    """
    made_from = labels.metadata.get("vectors", labels.metadata.get("index"))
    if made_from is not None and made_from != source.fingerprint:
        raise InputError(
            f"{labels_name}: made from index {str(made_from)[:8]}..., {index_name} is {source.fingerprint[:8]}...; "
            f"give the index of the labels, or {argument('other_index')} to train on labels of another one"
        )


def read_samples(
    labels: SoftLabels, source: VectorSource, candidates: int | None, *, qids: Iterable[str] | None = None
) -> tuple[list[Sample], np.ndarray, int]:
    """Samples whose rows are rows of the source, the distinct rows in use, and how many candidates had no vector.

    A query keeps every candidate that is positive or has probability, and fills up with the others in the order of the
    label file until there are `candidates`; None = all of them. Candidates without a vector are left out and
    probabilities scaled to 1; queries that lose all probability are left out.

    Raises:
        InputError: no query is left.
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
        room = None if candidates is None else max(candidates - int(first.sum()), 0)
        others = np.flatnonzero(known & ~first)[:room]
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
    """The samples with rows of the table that `load_table(source, rows)` made; `rows` ascending."""
    return [
        Sample(sample.qid, np.searchsorted(rows, sample.rows), sample.targets, sample.positive) for sample in samples
    ]


def training_and_validation(
    labels: SoftLabels,
    source: VectorSource,
    topics: Mapping[str, str],
    params: TrainParams,
    validation: SoftLabels | None,
    *,
    whole: bool,
) -> tuple[list[Sample], list[Sample], np.ndarray, int]:
    """Training and validation samples with rows of the source, the rows that the table needs, candidates lost.

    whole: the table needs all documents.
    """
    needed = [*labels.qids, *(validation.qids if validation is not None else ())]
    check_texts(needed, (), topics, {})
    if validation is None:
        held_out = held_out_of(labels.qids, params, ("query", "queries"))
        training, rows, lost = read_samples(
            labels, source, params.candidates, qids=[qid for qid in labels.qids if qid not in held_out]
        )
        checked, more_rows, more_lost = read_samples(labels, source, None, qids=held_out)
    else:
        check_different(labels.qids, validation.qids)
        training, rows, lost = read_samples(labels, source, params.candidates)
        checked, more_rows, more_lost = read_samples(validation, source, None)
    checked = checked[: params.validation_queries]
    everything = np.arange(len(source.docids)) if whole else np.union1d(rows, more_rows)
    return training, checked, everything, lost + more_lost


def split(qids: Sequence[str], share: float, seed: int) -> set[str]:
    """The queries that are held out: those whose hash with the seed is lowest, so their order does not matter.

    >>> sorted(split(["a", "b", "c", "d"], 0.5, 1)) == sorted(split(["d", "c", "b", "a"], 0.5, 1))
    True
    """
    ordered = sorted(qids, key=lambda qid: (fingerprint(seed, qid), qid))
    return set(ordered[: math.ceil(share * len(ordered))])


def held_out_of(ids: Sequence[str], params: Any, what: tuple[str, ...]) -> set[str]:
    """What is held out to validate, see `split`, by the share and the seed of a training.

    Raises:
        InputError: nothing is left on one of the two sides; what: the noun of the ids, for the message.
    """
    held_out = split(ids, params.validation_share, params.seed)
    if not held_out or len(held_out) == len(ids):
        raise InputError(
            f"{counted(len(ids), *what)} cannot be split into training and validation: expected two or more, and a "
            f"share between (validation_share={params.validation_share}); or give validation queries of their own "
            f"({argument('validation_run')} or {argument('validation_labels')}), where the model takes them"
        )
    return held_out


def check_different(training: Iterable[str], validation: Iterable[str]) -> None:
    """Look that no query is trained on and validated, too; InputError: some are, with the first."""
    if twice := sorted(set(training) & set(validation)):
        raise InputError(
            f"{counted(len(twice), 'query', 'queries')} in both training and validation (first: "
            f"{', '.join(twice[:3])}); expected different queries"
        )


GIVEN = ("validation_run", "validation_topics", "validation_qrels")


class TrainingInputs(NamedTuple):
    """Labels and texts of the training queries, vectors of documents, labels of the validation queries if given."""

    labels: SoftLabels
    topics: Mapping[str, str]
    source: VectorSource
    validation: SoftLabels | None


def load_inputs(request: TrainRequest, params: TrainParams) -> TrainingInputs:
    """Everything that a request names: of labels, an index and topics at least.

    Raises:
        InputError: files that cannot be read or do not belong together, half of the validation flags.
    """
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index

    assert request.labels is not None
    assert request.index is not None
    assert request.topics is not None
    labels, topics = labels_of(request.labels), topics_of(request.topics)
    validation, texts = validation_of(request, params.validation_queries, topics)
    index = open_index(request.index)
    source, shown = index.vectors, argument("index", index.name)
    if not request.other_index:
        check_index(labels, source, request.shown("labels"), shown)
        if request.validation_labels is not None and validation is not None:
            check_index(validation, source, request.shown("validation_labels"), shown)
    return TrainingInputs(labels, {**texts, **topics}, source, validation)


def validation_of(
    request: TrainRequest, queries: int, topics: Mapping[str, str]
) -> tuple[SoftLabels | None, dict[str, str]]:
    """The labels of the validation queries that were given, None = none, and the texts of these.

    Args:
        queries: how many of a run are taken, at most; topics: texts of the training queries.

    Raises:
        InputError: as `check_validation`, files that cannot be read, a query with two texts.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.runs import Run

    check_validation(request)
    labels = None if request.validation_labels is None else labels_of(request.validation_labels)
    texts = {} if request.validation_topics is None else topics_of(request.validation_topics)
    if request.validation_run is not None and request.validation_qrels is not None:
        run = request.validation_run if isinstance(request.validation_run, Run) else Run.read(request.validation_run)
        labels = hard_labels(run, texts, qrels_of(request.validation_qrels), queries)
        texts = {qid: texts[qid] for qid in labels.qids}
    if other := [qid for qid, text in texts.items() if topics.get(qid, text) != text]:
        raise InputError(
            f"{request.shown('validation_topics')}: query {other[0]} has another text in {request.shown('topics')}; "
            "expected one text for an id"
        )
    return labels, texts


def hard_labels(run: Run, topics: Mapping[str, str], qrels: pandas.DataFrame, queries: int) -> SoftLabels:
    """The original labels of validation queries over the candidates of a run, positives that it lacks put in.

    The papers validate on 10,000 queries of the development set with one relevance level (000, A.2.1; 001, 3.2).

    Args:
        topics: of more queries, perhaps; the first of them that have a judgement of grade 1 or more are taken.
        queries: how many, at most.

    Raises:
        InputError: none of the topics has such a judgement, or none of those with one has candidates.
    """
    from rnnreranker.labels.methods.base import make_labeler

    positive = set(qrels.loc[qrels["relevance"] >= 1, "query_id"])
    chosen = [qid for qid in topics if qid in positive][:queries]
    if not chosen:
        raise InputError(
            f"none of {counted(len(topics), 'validation topic')} has a judgement of grade 1 or more; "
            "give topics and judgements of the same queries"
        )
    known = [qid for qid in chosen if qid in run]
    if not known:
        raise InputError(
            f"the validation run has no candidates of the validation topics (first: {', '.join(chosen[:3])}); "
            "give a run that was retrieved for them"
        )
    if len(known) < len(chosen):
        left = counted(len(chosen) - len(known), "validation query", "validation queries")
        say(f"{left} without candidates left out")
    return make_labeler("hard", Inputs()).infer(run, qrels[qrels["query_id"].isin(known)])


def check_validation(request: TrainRequest) -> None:
    """Refuse two kinds of validation queries at once, and half of one."""
    if request.validation_labels is not None:
        both = [name for name in ("validation_run", "validation_qrels") if getattr(request, name) is not None]
        if both:
            shown = f"{argument('validation_labels')} and {argument(both[0])}"
            raise InputError(f"{shown}: expected one of them; labels name their candidates")
        return
    lacking = request.lacking(*GIVEN)
    if lacking and len(lacking) < len(GIVEN):
        raise InputError(f"{', '.join(lacking)} missing: {', '.join(map(argument, GIVEN))} go together")


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
