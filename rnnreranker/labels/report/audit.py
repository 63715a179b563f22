"""A page to judge what labels propose: query, positives, and unjudged documents; the browser saves TREC qrels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.pages import render, write_page
from rnnreranker.labels.export import check_texts
from rnnreranker.labels.soft import SoftLabels

PER_QUERY = 3  # documents proposed for a query at most


@dataclass(frozen=True)
class Proposal:
    """One query's positives, and proposed documents with probabilities, highest first."""

    number: int  # on the page, from 1
    qid: str
    positives: tuple[str, ...]
    proposed: dict[str, float]


def proposals(labels: SoftLabels, queries: int, per_query: int = PER_QUERY) -> list[Proposal]:
    """The queries with the highest probability of an unjudged document, ties by query id.

    Raises:
        InputError: no unjudged document has probability.
    """
    frame = labels.frame()
    others = frame[~frame["positive"] & (frame["target"] > 0)].sort_values("target", ascending=False, kind="stable")
    if others.empty:
        raise InputError(
            "the labels give nothing to documents beside the positives: there is nothing to audit; "
            "use a method that smooths, and a larger n_max"
        )
    shares = {
        str(qid): dict(zip(own["docid"], own["target"].tolist(), strict=True))
        for qid, own in others.groupby("qid", sort=False).head(per_query).groupby("qid", sort=False)
    }
    chosen = sorted(shares, key=lambda qid: (-max(shares[qid].values()), qid))[:queries]
    return [
        Proposal(number, qid, tuple(itertools.compress(labels[qid].docids, labels[qid].positive)), shares[qid])
        for number, qid in enumerate(chosen, 1)
    ]


def write_audit(
    path: Path,
    to_judge: list[Proposal],
    topics: Mapping[str, str],
    texts_of: Callable[[Iterable[str]], Mapping[str, str]],
    metadata: Mapping[str, Any],
    curve: Sequence[Mapping[str, float]] = (),
) -> None:
    """Write the page, one HTML file. InputError: a missing text.

    texts_of: gives known texts of docids; curve: rows of `by_confidence`.
    """
    docids = [docid for one in to_judge for docid in (*one.positives, *one.proposed)]
    texts = texts_of(docids)
    check_texts((one.qid for one in to_judge), docids, topics, texts)
    total = sum(len(one.proposed) for one in to_judge)
    shown = {"to_judge": to_judge, "topics": topics, "texts": texts, "metadata": dict(metadata), "total": total}
    page = render("labels.report", "audit.html.j2", **shown, curve=curve)
    write_page(path, page)


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
    rows = []
    for one in np.unique(bins).tolist():
        chosen = bins == one
        means = [float(np.average(given[chosen], weights=own[chosen])) for given in (values, relevant)]
        row = (float(edges[one]), float(edges[one + 1]), int(chosen.sum()), *means)
        rows.append(dict(zip(("low", "high", "candidates", "mean", "relevant"), row, strict=True)))
    return rows


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
    pairs = zip(others["qid"], others["docid"], strict=True)
    grades = np.array([truth.get(pair, np.nan) for pair in pairs], dtype=np.float64)
    judged = ~np.isnan(grades)
    if not judged.any():
        raise InputError(
            "none of the labelled candidates is judged besides the positives: nothing can be said of the labels; give "
            "judgements of these queries that the labels were not made from"
        )
    shares = others["target"].to_numpy(np.float64)[judged]
    return by_confidence(shares, grades[judged] >= relevant, PROBABILITIES)
