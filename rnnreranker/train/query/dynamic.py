"""Dynamic context: candidates and labels of the training queries made again from the encoder as it is now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Inputs, find
from rnnreranker.train.query.samples import Batch, Collator, Sample, encode, read_samples, renumber

if TYPE_CHECKING:
    from rnnreranker.encode.query_encoder import QueryEncoder
    from rnnreranker.labels import SoftLabels
    from rnnreranker.parts.vectors import VectorSource

KEPT = "candidates.safetensors"  # in a checkpoint: the candidates in use
AT_ONCE = 256  # queries encoded and searched together


class DynamicContext:
    """Makes the samples of a collator again, with the method and parameters that the label file names.

    Args:
        labels: that the training began with; its metadata say how labels are made, its positives are the judgements.
        source: of the documents; its search finds the candidates.
        rows: (D,) int64 ascending, the rows of the source that the table has: all of them.
        collator: of the training queries; its samples are replaced.
        candidates: a query, at most; as many are retrieved, or the longest list of the labels where that is shorter.
        every: steps between two times, 1 or more.

    Raises:
        InputError: labels that do not say how they were made.
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
        self.hits = min(candidates, int(np.diff(labels.offsets).max()), len(source.docids))
        self._judged = {sample.qid: judged_of(labels, sample.qid) for sample in collator.samples}
        self._done = 0  # the last step before which samples were made again
        _labeler(labels, source, None)

    def current(self, encoder: QueryEncoder, batch: Batch, step: int) -> Batch:
        """The batch with the candidates that are due at a step; the data loader may have made it before they changed.

        With `every` 1 the queries of the batch alone are searched for, in every step; otherwise all of them, in each
        `every`-th. The steps before the first time use the candidates of the label file.
        """
        if step and step % self._every == 0:
            if self._every == 1:
                self._refresh(encoder, batch.samples)
            elif self._done != step:
                self._refresh(encoder, range(len(self._collator.samples)))
                self._done = step
        return self._collator.renewed(batch)

    def _refresh(self, encoder: QueryEncoder, numbers: Sequence[int]) -> None:
        vectors = query_vectors(encoder, self._collator, numbers)
        made = self.made_again([self._collator.samples[number].qid for number in numbers], vectors)
        for number in numbers:
            sample = made.get(self._collator.samples[number].qid)
            if sample is not None:  # a query none of whose positives has a vector stays as it is
                self._collator.samples[number] = sample

    def made_again(self, qids: Sequence[str], vectors: np.ndarray) -> dict[str, Sample]:
        """The samples of queries with the given vectors, rows of the table, by query id."""
        from rnnreranker.methods.retrieve.dense import dense_run
        from rnnreranker.parts.vectors import QueryVectors

        queries = QueryVectors(tuple(qids), vectors)
        run = dense_run(self._source, queries, self.hits, threads=None, batch_size=AT_ONCE)
        labels, _ = _labeler(self._labels, self._source, queries).infer_from(run, self._judged)
        if not len(labels):
            return {}
        samples, _, _ = read_samples(labels, self._source, self._candidates)
        return {sample.qid: sample for sample in renumber(samples, self._rows)}

    def save(self, folder: Path) -> None:
        """Write the samples in use into a checkpoint: with them a resumed training goes on exactly."""
        from safetensors.numpy import save_file

        samples = self._collator.samples
        columns = {name: np.concatenate([getattr(one, name) for one in samples]) for name in ("rows", "targets")}
        columns["positive"] = np.concatenate([one.positive for one in samples])
        columns["lengths"] = np.array([len(one.rows) for one in samples], dtype=np.int64)
        columns["done"] = np.array([self._done], dtype=np.int64)
        save_file(columns, str(folder / KEPT))

    def load(self, folder: Path) -> None:
        """Take up the samples of a checkpoint."""
        from safetensors.numpy import load_file

        kept = load_file(str(folder / KEPT))
        ends = np.cumsum(kept["lengths"])[:-1]
        parts = [np.split(kept[name], ends) for name in ("rows", "targets", "positive")]
        for number, (rows, targets, positive) in enumerate(zip(*parts, strict=True)):
            self._collator.samples[number] = Sample(self._collator.samples[number].qid, rows, targets, positive)
        self._done = int(kept["done"][0])


def query_vectors(encoder: QueryEncoder, collator: Collator, numbers: Sequence[int]) -> np.ndarray:
    """(n, d) float32: vectors of the queries of samples, by number, without dropout; the mode of the encoder stays.

    The random state is not touched, so dropout and order of a training are the same with and without it.
    """
    import torch

    was_training = encoder.training
    encoder.eval()
    order = sorted(range(len(numbers)), key=lambda line: (len(collator.cut[numbers[line]]), line))
    vectors = np.empty((len(numbers), 0), dtype=np.float32)
    with torch.no_grad():
        for start in range(0, len(order), AT_ONCE):
            lines = order[start : start + AT_ONCE]
            encoded = encode(encoder, collator.batch([numbers[line] for line in lines])).float().cpu().numpy()
            if not vectors.shape[1]:
                vectors = np.empty((len(numbers), encoded.shape[1]), dtype=np.float32)
            vectors[lines] = encoded
    encoder.train(was_training)
    return vectors


def judged_of(labels: SoftLabels, qid: str) -> list[tuple[str, int]]:
    """The positives of a query with their grades.

    Label files keep grades only where the scores are the grades (hard, uniform); elsewhere each positive counts as 1.
    """
    one = labels[qid]
    graded = labels.metadata.get("method") in ("hard", "uniform")
    positives = np.flatnonzero(one.positive)
    return [
        (one.docids[candidate], int(one.scores[candidate]) if graded and one.scores[candidate] >= 1 else 1)
        for candidate in positives.tolist()
    ]


def _labeler(labels: SoftLabels, source: VectorSource, queries: Any) -> Any:
    """The labeler that a label file was made by; without `queries` it is only looked whether there is one."""
    from rnnreranker.labels.methods.base import make_labeler
    from rnnreranker.labels.params import LabelParams
    from rnnreranker.parts.vectors import QueryVectors

    said = labels.metadata
    try:
        kind = find("labeler", said["method"])
        params = kind.Params(**said.get(kind.Params.section or "params", {}))
        queries = queries or QueryVectors((), np.empty((0, source.dimension), dtype=np.float32))
        inputs = Inputs(vectors=source, query_vectors=queries)
        return make_labeler(said["method"], inputs, params, LabelParams(**said.get("labels", {})))
    except (InputError, KeyError, TypeError) as missing:
        raise InputError(
            f"the labels do not say how they were made ({missing}); to make them again while training "
            "(refresh_every) give a file of python -m rnnreranker.labels"
        ) from None
