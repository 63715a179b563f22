"""The contexts that labels are computed in: the positives of a query, then its other candidates, and their vectors."""

from __future__ import annotations

import dataclasses
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
    ranks_of_positives = [candidates.index(docid) if docid in there else -1 for docid, _ in pairs]
    taken = sorted({rank for rank in ranks_of_positives if rank >= 0}, reverse=True)
    rest = candidates.copy()
    for rank in taken:
        del rest[rank]
    left = np.ones(len(candidates), dtype=bool)
    left[taken] = False
    others = np.flatnonzero(left)
    ranks, known = _of_run(np.concatenate([np.array(ranks_of_positives, dtype=np.int64), others])[:size], scores)
    return JudgedContext(
        qid,
        [docid for docid, _ in pairs] + rest,
        np.concatenate([first, rows[others]])[:size],
        np.array([grade for _, grade in pairs[:size]], dtype=np.float64),
        np.arange(len(pairs) + len(rest)) < len(pairs),
        ranks,
        known,
    )


def _of_run(ranks: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`JudgedContext.ranks` and `.scores`, of (size,) ranks in a run, -1 where it lacks a positive, and its scores."""
    lacking = ranks < 0
    if not lacking.any():
        return ranks, scores[ranks]
    known = scores[ranks] if len(scores) else np.zeros(len(ranks))
    known[lacking] = known[~lacking].min() if not lacking.all() else 0.0
    ranks[lacking] = len(scores) + np.arange(np.count_nonzero(lacking))
    return ranks, known


def stacked(contexts: Sequence[JudgedContext], bytes_each: int) -> Iterator[JudgedBatch]:
    """The contexts in batches without vectors, those with equally many positives together.

    bytes_each: of a candidate; a batch has no more than `BATCH_BYTES`.
    """
    groups: dict[int, list[int]] = {}
    for index, context in enumerate(contexts):
        groups.setdefault(len(context.grades), []).append(index)
    for members in groups.values():
        widest = max(contexts[index].size for index in members)
        at_once = max(1, BATCH_BYTES // (bytes_each * (widest + 1)))
        for first in range(0, len(members), at_once):
            chosen = members[first : first + at_once]
            lengths = np.array([contexts[index].size for index in chosen])
            rows, scores = np.zeros((len(chosen), widest), dtype=np.int64), np.zeros((len(chosen), widest))
            ranks = np.full(rows.shape, np.iinfo(np.int64).max)
            for line, one in enumerate(contexts[index] for index in chosen):
                rows[line, : one.size], ranks[line, : one.size] = one.rows, one.ranks
                scores[line, : one.size] = one.scores
            grades = np.stack([contexts[index].grades for index in chosen])
            yield JudgedBatch(chosen, lengths, grades, np.arange(widest) < lengths[:, None], rows, ranks, scores)


def batches(contexts: Sequence[JudgedContext], vectors: VectorSource, queries: QueryVectors) -> Iterator[JudgedBatch]:
    """The contexts in batches as `stacked` makes them; the vectors of a batch live until the next."""
    row_of = {qid: row for row, qid in enumerate(queries.qids)}
    buffer = np.empty((0, 0, vectors.dimension), dtype=np.float32)
    for batch in stacked(contexts, 4 * vectors.dimension):
        shape = len(batch.rows), batch.rows.shape[1] + 1
        if buffer.shape[1] != shape[1] or len(buffer) < shape[0]:
            buffer = np.empty((*shape, vectors.dimension), dtype=np.float32)
        part = buffer[: shape[0]]
        for into, index in zip(part, batch.indices, strict=True):
            context = contexts[index]
            into[0] = queries.vectors[row_of[context.qid]]
            vectors.fetch(context.rows, into[1 : context.size + 1])
        yield dataclasses.replace(batch, vectors=part)


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
    docids = np.empty(offsets[-1], dtype=object)
    docids[:] = [docid for context in contexts for docid in context.docids]
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
