"""The contexts that labels are computed in: the positives of a query, then its other candidates, and their vectors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.labels.soft import SoftLabels

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.parts.vectors.of_run import HasRows
    from rnnreranker.runs import Run

BATCH_BYTES = 8 * 2**20  # of vectors held at a time, or of rows of a graph and what is made of them
Judged = Mapping[str, Sequence[tuple[str, int]]]  # query id -> its positives with their grades


def positives_of(qrels: pandas.DataFrame, relevant: int = 1, source: str = "") -> dict[str, list[tuple[str, int]]]:
    """The positives of every query with their grades, in the order of the judgements.

    Args:
        qrels: columns query_id, doc_id, relevance.
        relevant: grades from here on are positive; at least 1.
        source: where the judgements come from, for messages.

    Raises:
        InputError: `relevant` below 1, or no judgement reaches it.
    """
    if relevant < 1:
        raise InputError(f"relevant={relevant}: expected a grade >= 1")
    chosen = qrels[qrels["relevance"] >= relevant]
    if not len(chosen):
        highest = f"the highest is {qrels['relevance'].max()}" if len(qrels) else "there is none at all"
        raise InputError(
            (f"{source}: " if source else "") + f"no judgement has a grade of {relevant} or more ({highest}); "
            "there is nothing to make labels from"
        )
    positives: dict[str, list[tuple[str, int]]] = {}
    columns = (chosen[name].tolist() for name in ("query_id", "doc_id", "relevance"))
    for qid, docid, grade in zip(*columns, strict=True):
        positives.setdefault(qid, []).append((docid, int(grade)))
    return positives


def docids_of(judged: Judged) -> dict[str, set[str]]:
    """Query id → the docids of its positives."""
    return {qid: {docid for docid, _ in pairs} for qid, pairs in judged.items()}


@dataclass(frozen=True, eq=False)
class JudgedContext:
    """One query's candidates: positives in the order of the judgements, then the rest in the order of the run.

    docids: all candidates, the first `size` of them are the context; rows: (size,) int64 vector rows;
    grades: (R,) float64, of the first R candidates; positive: (n,) bool, over all candidates. ranks: (size,) int64,
    ranks in the run from 0, distinct, those put in behind its end; scores: (size,) float64 of the run, those put in
    with the lowest of the context.
    """

    qid: str
    docids: list[str]
    rows: np.ndarray
    grades: np.ndarray
    positive: np.ndarray
    ranks: np.ndarray
    scores: np.ndarray

    @property
    def size(self) -> int:
        """Candidates that take part: the first of `docids`."""
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class JudgedBatch:
    """Contexts with equally many positives R, stacked.

    lengths: (B,) candidates of each; grades: (B, R); real: (B, N) bool; rows, ranks, scores: (B, N), those of the
    contexts; behind their ends rows and scores are 0, ranks beyond every other. vectors: (B, N + 1, d) float32, row 0 =
    query, rows 1..R = positives; what stands behind a context's end is arbitrary; None where none were asked for.
    """

    indices: list[int]  # of its contexts in the list they came from
    lengths: np.ndarray
    grades: np.ndarray
    real: np.ndarray
    rows: np.ndarray
    ranks: np.ndarray
    scores: np.ndarray
    vectors: Any = None

    @property
    def positives(self) -> np.ndarray:
        """(R,) int64: the positives as elements of their contexts, of which 0 is the query."""
        return np.arange(1, self.grades.shape[1] + 1)

    @property
    def positive(self) -> np.ndarray:
        """(B, N) bool: the first R candidates."""
        return np.broadcast_to(np.arange(self.real.shape[1]) < self.grades.shape[1], self.real.shape)


def contexts_of(
    run: Run, judged: Judged, size: int, vectors: HasRows | None, apart: bool = False, whole: bool = False
) -> tuple[list[JudgedContext], int]:
    """The contexts of the queries of a run that have positives, and how many positives have no vector.

    A positive that is no candidate is put in and displaces the last candidate of a full context; one without a vector
    is left out. `vectors` may be a graph. Without them the rows are -1, and positives are taken as they are.
    apart: a context for every positive, of which it alone is known. whole: all positives take part, however many.

    Raises:
        InputError: a candidate of the run that has no vector.
    """
    of_run = _rows_of_run(run, vectors)
    wanted = sorted({docid for qid in run for docid, _ in judged.get(qid, ())})
    known = vectors.rows(wanted) if vectors is not None else np.full(len(wanted), 0)
    of_positives = dict(zip(wanted, known.tolist(), strict=True))
    contexts, without = [], 0
    for query, qid in enumerate(run.qids):
        pairs = [(docid, grade) for docid, grade in judged.get(qid, ()) if of_positives[docid] >= 0]
        without += len(judged.get(qid, ())) - len(pairs)
        if not pairs:
            continue
        part = slice(run.offsets[query], run.offsets[query + 1])
        entries = run.rows[part]
        candidates, rows, scores = run.docids[entries].tolist(), of_run[entries], run.scores[part]
        for visible in [[pair] for pair in pairs] if apart else [pairs]:
            first = np.array([of_positives[docid] for docid, _ in visible], dtype=np.int64)
            taken = max(size, len(visible)) if whole else size
            contexts.append(_context(qid, visible, first, candidates, rows, scores, taken))
    return contexts, without


def _context(
    qid: str,
    pairs: Sequence[tuple[str, int]],
    first: np.ndarray,
    candidates: list[str],
    rows: np.ndarray,
    scores: np.ndarray,
    size: int,
) -> JudgedContext:
    """The context of a query: pairs and first, its R positives with their rows; the others as the run has them."""
    there = {docid for docid, _ in pairs}.intersection(candidates)
    ranks = np.array([candidates.index(docid) if docid in there else -1 for docid, _ in pairs], dtype=np.int64)
    left = np.ones(len(candidates), dtype=bool)
    left[ranks[ranks >= 0]] = False
    others = np.flatnonzero(left)
    ranks = np.concatenate([ranks, others])[:size]
    known = scores[ranks] if len(scores) else np.zeros(len(ranks))
    if (lacking := ranks < 0).any():  # positives that the run does not have
        known[lacking] = known[~lacking].min() if not lacking.all() else 0.0
        ranks[lacking] = len(scores) + np.arange(np.count_nonzero(lacking))
    return JudgedContext(
        qid,
        [docid for docid, _ in pairs] + list(itertools.compress(candidates, left.tolist())),
        np.concatenate([first, rows[others]])[:size],
        np.array([grade for _, grade in pairs[:size]], dtype=np.float64),
        np.arange(len(pairs) + len(others)) < len(pairs),
        ranks,
        known,
    )


def batches(
    contexts: Sequence[JudgedContext],
    bytes_each: int = 0,
    vectors: VectorSource | None = None,
    queries: Any = None,
) -> Iterator[JudgedBatch]:
    """The contexts in batches of those with equally many positives; the vectors of a batch live until the next.

    Args:
        contexts: any number of them.
        bytes_each: of a candidate, without vectors; a batch has no more than `BATCH_BYTES`.
        vectors, queries: `VectorSource` and `QueryVectors`, for batches with vectors.
    """
    row_of = {} if queries is None else {qid: row for row, qid in enumerate(queries.qids)}
    bytes_each = bytes_each if vectors is None else 4 * vectors.dimension
    buffer = np.empty((0, 0, 0), dtype=np.float32)
    groups: dict[int, list[int]] = {}
    for index, context in enumerate(contexts):
        groups.setdefault(len(context.grades), []).append(index)
    for members in groups.values():
        widest = max(contexts[index].size for index in members)
        at_once = max(1, BATCH_BYTES // (bytes_each * (widest + 1)))
        for first in range(0, len(members), at_once):
            chosen = members[first : first + at_once]
            own = [contexts[index] for index in chosen]
            lengths = np.array([one.size for one in own])
            shape = len(own), widest
            rows, ranks, scores = np.zeros(shape, np.int64), np.full(shape, np.iinfo(np.int64).max), np.zeros(shape)
            part: Any = None
            if vectors is not None:
                if buffer.shape[1] != widest + 1 or len(buffer) < len(own):
                    buffer = np.empty((len(own), widest + 1, vectors.dimension), dtype=np.float32)
                part = buffer[: len(own)]
            for line, one in enumerate(own):
                for into, values in ((rows, one.rows), (ranks, one.ranks), (scores, one.scores)):
                    into[line, : one.size] = values
                if vectors is not None:
                    part[line, 0] = queries.vectors[row_of[one.qid]]
                    vectors.fetch(one.rows, part[line, 1 : one.size + 1])
            real = np.arange(widest) < lengths[:, None]
            yield JudgedBatch(chosen, lengths, np.stack([one.grades for one in own]), real, rows, ranks, scores, part)


def assembled(
    contexts: Sequence[JudgedContext],
    scores: Sequence[np.ndarray],
    target_lists: Sequence[np.ndarray],
    metadata: dict[str, Any],
) -> SoftLabels:
    """Labels over all candidates: those that took no part get score -inf and target 0.

    scores, target_lists: (n,) float32 each of the n = `size` candidates of each context, scores and targets.
    """
    lengths = [len(context.docids) for context in contexts]
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    all_scores = np.full(offsets[-1], -np.inf, dtype=np.float32)
    all_targets = np.zeros(offsets[-1], dtype=np.float32)
    for start, one, given in zip(offsets[:-1].tolist(), scores, target_lists, strict=True):
        all_scores[start : start + len(one)] = one
        all_targets[start : start + len(given)] = given
    docids = np.array([docid for context in contexts for docid in context.docids], dtype=object)
    positive = np.concatenate([np.zeros(0, dtype=bool), *(context.positive for context in contexts)])
    qids = tuple(context.qid for context in contexts)
    return SoftLabels(qids, offsets, docids, all_scores, all_targets, positive, metadata)


def check_queries(run: Run, judged: Judged, vectors: VectorSource, queries: QueryVectors) -> None:
    """Look that the queries to label have vectors as long as those of the index.

    Raises:
        InputError: another dimension, or queries without a vector.
    """
    if queries.vectors.shape[1] != vectors.dimension:
        raise InputError(
            f"query vectors have {queries.vectors.shape[1]} dimensions, the index has {vectors.dimension}; "
            "encode the queries with the encoder that made the index"
        )
    there = set(queries.qids)
    lost = [qid for qid in run.qids if judged.get(qid) and qid not in there]
    if lost:
        raise InputError(
            f"{len(lost)} queries of the run have no vector (first: {', '.join(lost[:3])}); check topics and run match"
        )


def _rows_of_run(run: Run, vectors: HasRows | None) -> np.ndarray:
    """(V,) int64: the vector row of each distinct docid of the run."""
    if vectors is None:
        return np.full(len(run.docids), -1, dtype=np.int64)
    rows = vectors.rows(run.docids.tolist())
    lost = np.flatnonzero(rows < 0)
    if len(lost):
        shown = ", ".join(map(str, run.docids[lost[:3]]))
        raise InputError(
            f"{len(lost)} of {len(run.docids)} docids in the run are not in the index (first: {shown}); "
            "use the index that the run was made from"
        )
    return rows
