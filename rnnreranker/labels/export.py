"""Soft labels in other forms: TSV, a list-wise data set; and how often they are right."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from rnnreranker.base.command import counted
from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.files import write_atomically
from rnnreranker.labels.soft import SoftLabels

LISTED = 16  # documents of a query in a list-wise data set
Texts = Callable[[Sequence[str]], Mapping[str, str]]  # returns known texts of docids


def write_tsv(labels: SoftLabels, path: str | os.PathLike[str]) -> None:
    """Write lines `qid<TAB>docid<TAB>score` of candidates with a score, as CODER reads them.

    Scores are unnormalised, with 9 significant digits; a name in .gz is compressed.
    """
    frame = labels.frame()
    rows = frame.loc[np.isfinite(frame["score"]), ["qid", "docid", "score"]].itertuples(index=False)
    with write_atomically(path) as stream:
        stream.writelines(f"{qid}\t{docid}\t{score:.9g}\n".encode() for qid, docid, score in rows)


def write_listwise(
    labels: SoftLabels, path: str | os.PathLike[str], topics: Mapping[str, str], texts_of: Texts
) -> None:
    """Write a parquet file for list-wise losses of sentence-transformers, one row a query.

    Columns: query, docs (texts of the `LISTED` highest targets), labels (float32 targets).

    Raises:
        InputError: a missing text.
    """
    import pyarrow
    import pyarrow.parquet as parquet

    chosen = [(one, np.argsort(-one.targets, kind="stable")[:LISTED]) for one in labels]
    docids = [[one.docids[at] for at in own.tolist()] for one, own in chosen]
    texts = texts_of(wanted := [*itertools.chain(*docids)])
    check_texts(labels.qids, wanted, topics, texts)
    columns = {
        "query": [topics[qid] for qid in labels.qids],
        "docs": [[texts[docid] for docid in own] for own in docids],
        "labels": [one.targets[own] for one, own in chosen],
    }
    with write_atomically(path) as stream:
        parquet.write_table(pyarrow.table(columns), stream, compression="zstd")


def check_texts(
    qids: Iterable[str], docids: Iterable[str], topics: Mapping[str, str], texts: Mapping[str, str]
) -> None:
    """Check that queries and documents have texts. InputError: how many have none, and the first."""
    queries = [qid for qid in dict.fromkeys(qids) if qid not in topics]
    documents = [docid for docid in dict.fromkeys(docids) if docid not in texts]
    texts_of = f"{argument('index')} of an index with texts, or {argument('documents')}"
    for lost, names, given in (
        (queries, ("query", "queries"), f"{argument('topics')} that have them"),
        (documents, ("document", "documents"), texts_of),
    ):
        if lost:
            raise InputError(f"{counted(len(lost), *names)} without a text (first: {lost[0]}); give {given}")


SIMILARITIES = tuple(round(step / 10, 1) for step in range(11))  # where bins of similarities begin and end
PROBABILITIES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1.0)  # and of probabilities


def by_confidence(
    values: np.ndarray, relevant: np.ndarray, edges: Sequence[float], weights: np.ndarray | None = None
) -> list[dict[str, float]]:
    """A reliability curve: rows of low, high, candidates (count), mean (of values) and relevant (share), without empty
    bins.

    values, relevant, weights: (n,), weights None = equal. Bins include their high edge; the first and last also values
    beyond.

    >>> by_confidence(np.array([0.1, 0.4, 0.45]), np.array([False, True, False]), (0.0, 0.2, 0.5))[1]["relevant"]
    0.5
    """
    own = np.ones(len(values)) if weights is None else weights
    bins = np.clip(np.searchsorted(edges, values, side="left") - 1, 0, len(edges) - 2)
    return [
        {
            "low": float(edges[one]),
            "high": float(edges[one + 1]),
            "candidates": int((bins == one).sum()),
            "mean": float(np.average(values[bins == one], weights=own[bins == one])),
            "relevant": float(np.average(relevant[bins == one], weights=own[bins == one])),
        }
        for one in np.unique(bins).tolist()
    ]


def of_labels(labels: SoftLabels, truth: Mapping[tuple[str, str], int], relevant: int = 1) -> list[dict[str, float]]:
    """The reliability curve of labels over candidates beside the positives.

    Args:
        truth: (query id, docid) → grade, of independent judgements; unjudged candidates do not count.
        relevant: lowest relevant grade.

    Raises:
        InputError: none of these candidates is judged.
    """
    frame = labels.frame()
    others = frame[~frame["positive"]]
    grades = np.array([truth.get(pair, np.nan) for pair in zip(others["qid"], others["docid"], strict=True)])
    judged = ~np.isnan(grades)
    if not judged.any():
        raise InputError(
            "none of the labelled candidates is judged besides the positives: nothing can be said of the labels; give "
            "judgements of these queries that the labels were not made from"
        )
    shares = others["target"].to_numpy(np.float64)[judged]
    return by_confidence(shares, grades[judged] >= relevant, PROBABILITIES)
