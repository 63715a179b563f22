"""Soft labels in other forms: TSV, a list-wise data set, TREC qrels, and a page to judge what labels propose."""

from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnnreranker.base.command import put
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically
from rnnreranker.base.pages import render, write_page
from rnnreranker.labels.soft import SoftLabels

if TYPE_CHECKING:
    import pandas

    from rnnreranker.labels.request import LabelsRequest

Texts = Callable[[Sequence[str]], Mapping[str, str]]  # returns known texts of docids
PER_QUERY = 3  # documents that the page proposes for a query at most


def write_forms(request: LabelsRequest, output: Path, job: Any) -> None:
    """Write the other files of a request, from the labels in `output`; job: of `labels.make`."""
    if not (request.tsv or request.qrels_output or request.listwise or request.audit):
        return
    from rnnreranker.search.inputs import texts_for

    labels = SoftLabels.read(output)
    texts_of = partial(texts_for, index=job.index, documents=job.documents, fields=job.fields)
    if request.tsv:
        write_tsv(labels, request.tsv)
    if request.qrels_output:
        write_qrels(labels, request.qrels_output, request.highest)
    if request.listwise:
        write_listwise(labels, request.listwise, job.topics, texts_of, request.list_size)
    if request.audit:
        from rnnreranker.data.qrels import grades_of

        path = Path(request.audit_output or f"{output}.audit.html")
        curve = of_labels(labels, grades_of(request.truth), request.relevant) if request.truth else ()
        write_audit(path, proposals(labels, request.audit), job.topics, texts_of, labels.metadata, curve)
        put(path)


def write_tsv(labels: SoftLabels, path: str | os.PathLike[str]) -> int:
    """Write lines `qid<TAB>docid<TAB>score` of candidates with a score, as CODER reads them; returns their number.

    Scores are unnormalised, with 9 significant digits; a name in .gz is compressed.
    """
    frame = labels.frame()
    return _write_lines(frame.loc[np.isfinite(frame["score"]), ["qid", "docid", "score"]], path, "\t")


def write_qrels(labels: SoftLabels, path: str | os.PathLike[str], highest: int = 100) -> int:
    """Write lines `qid 0 docid grade`, targets scaled to a largest grade `highest` per query; returns their number.

    Grades are rounded, halves to even; grade 0 has no line.

    Raises:
        InputError: highest below 1.
    """
    if highest < 1:
        raise InputError(f"highest={highest}: expected an integer >= 1")
    frame = labels.frame().assign(iteration=0)
    targets = frame["target"].astype("float64")
    largest = targets.groupby(frame["qid"]).transform("max")
    frame["grade"] = np.rint(targets / largest * highest).astype(int)
    return _write_lines(frame.loc[frame["grade"] > 0, ["qid", "iteration", "docid", "grade"]], path, " ")


def _write_lines(frame: pandas.DataFrame, path: str | os.PathLike[str], sign: str) -> int:
    """Write the rows of a frame; returns their number."""
    text = frame.to_csv(
        sep=sign, header=False, index=False, float_format="%.9g", quoting=csv.QUOTE_NONE, lineterminator="\n"
    )
    with write_atomically(path) as stream:
        stream.write(text.encode())
    return len(frame)


def write_listwise(
    labels: SoftLabels, path: str | os.PathLike[str], topics: Mapping[str, str], texts_of: Texts, size: int = 16
) -> int:
    """Write a parquet file for list-wise losses of sentence-transformers; returns its number of rows.

    Columns: query, docs (texts of the `size` highest targets), labels (float32 targets).

    Raises:
        InputError: a missing text.
    """
    import pyarrow
    import pyarrow.parquet as parquet

    chosen = [(one, np.argsort(-one.targets, kind="stable")[:size]) for one in labels]
    docids = [[one.docids[at] for at in own.tolist()] for one, own in chosen]
    texts = known_texts(labels.qids, [docid for own in docids for docid in own], topics, texts_of)
    columns = {
        "query": [topics[qid] for qid in labels.qids],
        "docs": [[texts[docid] for docid in own] for own in docids],
        "labels": [one.targets[own] for one, own in chosen],
    }
    with write_atomically(path) as stream:
        parquet.write_table(pyarrow.table(columns), stream, compression="zstd")
    return len(labels)


def known_texts(
    qids: Iterable[str], docids: Sequence[str], topics: Mapping[str, str], texts_of: Texts
) -> Mapping[str, str]:
    """The texts of documents; errors as `check_texts`."""
    texts = texts_of(docids)
    check_texts(qids, docids, topics, texts)
    return texts


def check_texts(
    qids: Iterable[str], docids: Iterable[str], topics: Mapping[str, str], texts: Mapping[str, str]
) -> None:
    """Check that queries and documents have texts. InputError: how many have none, and the first."""
    lost = [f"query {qid}" for qid in dict.fromkeys(qids) if qid not in topics]
    lost += [f"document {docid}" for docid in dict.fromkeys(docids) if docid not in texts]
    if lost:
        raise InputError(
            f"{len(lost)} queries and documents without a text (first: {lost[0]}); give the topics, and an index with "
            "texts or --documents"
        )


class Proposal(NamedTuple):
    """One query's positives, and proposed documents with probabilities, highest first; number: on the page, from 1."""

    number: int
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
    texts_of: Texts,
    metadata: Mapping[str, Any],
    curve: Sequence[Mapping[str, float]] = (),
) -> None:
    """Write the page, one HTML file; curve: rows of `by_confidence`. InputError: a missing text."""
    docids = [docid for one in to_judge for docid in (*one.positives, *one.proposed)]
    texts = known_texts((one.qid for one in to_judge), docids, topics, texts_of)
    total = sum(len(one.proposed) for one in to_judge)
    shown = {"to_judge": to_judge, "topics": topics, "texts": texts, "metadata": dict(metadata), "total": total}
    write_page(path, render("labels", "audit.html.j2", **shown, curve=curve))


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
    grades = np.array([truth.get(pair, np.nan) for pair in zip(others["qid"], others["docid"], strict=True)])
    judged = ~np.isnan(grades)
    if not judged.any():
        raise InputError(
            "none of the labelled candidates is judged besides the positives: nothing can be said of the labels; give "
            "judgements of these queries that the labels were not made from"
        )
    shares = others["target"].to_numpy(np.float64)[judged]
    return by_confidence(shares, grades[judged] >= relevant, PROBABILITIES)
