"""Contexts of labels: the positives of a query, then other candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.vectors.of_run import HasRows
    from rnnreranker.runs import Run

Judged = Mapping[str, Sequence[tuple[str, int]]]  # query id -> its positives with their grades


def positives_of(qrels: pandas.DataFrame, relevant: int = 1, source: str = "") -> dict[str, list[tuple[str, int]]]:
    """Positives of every query with their grades, in the order of the judgements.

    Args:
        qrels: columns query_id, doc_id, relevance.
        relevant: lowest positive grade, 1 or more; source: name of the judgements, for messages.

    Raises:
        InputError: no judgement reaches it.
    """
    chosen = qrels[qrels["relevance"] >= relevant]
    if not len(chosen):
        raise InputError(
            f"{source or 'qrels'}: no judgement has a grade of {relevant} or more (the highest is "
            f"{qrels['relevance'].max()}); there is nothing to make labels from"
        )
    positives: dict[str, list[tuple[str, int]]] = {}
    columns = (chosen[name].tolist() for name in ("query_id", "doc_id", "relevance"))
    for qid, docid, grade in zip(*columns, strict=True):
        positives.setdefault(qid, []).append((docid, int(grade)))
    return positives


def docids_of(judged: Judged) -> dict[str, set[str]]:
    """Query id → docids of its positives."""
    return {qid: {docid for docid, _ in pairs} for qid, pairs in judged.items()}


@dataclass(frozen=True, eq=False)
class JudgedContext:
    """One query's n candidates: positives in the order of the judgements, then the run's.

    docids: n, the first `size` are the context; rows: (size,) int64; grades: (R,) float64, of the first R candidates;
    positive: (n,) bool; ranks: (size,) int64 in the run from 0, distinct; scores: (size,) float64 of the run, of
    positives that it lacks the lowest of the context.
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
        """Candidates in the context."""
        return len(self.rows)


def contexts_of(
    run: Run, judged: Judged, size: int, vectors: HasRows | None, apart: bool = False, whole: bool = False
) -> tuple[list[JudgedContext], int]:
    """Contexts of the run's queries with positives, and the number of positives without a vector.

    A positive that the run lacks displaces the last candidate; one without a vector is dropped. Without `vectors`,
    which may be a graph, rows are 0.

    Args:
        size: candidates of a context.
        apart: a context for every positive alone.
        whole: all positives take part, however many.

    Raises:
        InputError: a candidate of the run has no vector.
    """
    every = [docid for qid in run for docid, _ in judged.get(qid, ())]
    lists = run.docids.tolist(), every
    of_run, known = (np.zeros(len(one), np.int64) if vectors is None else vectors.rows(one) for one in lists)
    if len(lost := run.docids[of_run < 0]):
        raise InputError(
            f"{len(lost)} of {len(run.docids)} docids in the run are not in the index (first: "
            f"{', '.join(map(str, lost[:3]))}); use the index that the run was made from"
        )
    row_of = dict(zip(every, known.tolist(), strict=True))
    contexts, without = [], int((known < 0).sum())
    for qid, first, last in zip(run.qids, run.offsets[:-1], run.offsets[1:], strict=True):
        part = slice(first, last)
        docids, rows, scores = run.docids[run.rows[part]].tolist(), of_run[run.rows[part]], run.scores[part]
        pairs = [pair for pair in judged.get(qid, ()) if row_of[pair[0]] >= 0]
        rank_of = {docid: rank for rank, docid in enumerate(docids)} if pairs else {}
        for visible in ([pair] for pair in pairs) if apart else [pairs] if pairs else []:
            taken = max(size, len(visible)) if whole else size
            ranks = np.array([rank_of.get(docid, -1) for docid, _ in visible], dtype=np.int64)
            others = np.delete(np.arange(len(docids)), ranks[ranks >= 0])
            of_context = np.concatenate([ranks, others])[:taken]
            lacking = of_context < 0  # positives that the run does not have
            values = np.append(scores, 0.0)[of_context]
            values[lacking] = min(values[~lacking].tolist(), default=0.0)
            of_context[lacking] = len(scores) + np.arange(np.count_nonzero(lacking))
            of_positives = [row_of[docid] for docid, _ in visible]
            contexts.append(
                JudgedContext(
                    qid,
                    [docid for docid, _ in visible] + [docids[rank] for rank in others.tolist()],
                    np.concatenate([of_positives, rows[others]])[:taken].astype(np.int64),
                    np.array([grade for _, grade in visible[:taken]], dtype=np.float64),
                    np.arange(len(visible) + len(others)) < len(visible),
                    of_context,
                    values,
                )
            )
    return contexts, without
