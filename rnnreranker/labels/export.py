"""Soft labels in the forms that other programs read: TSV, a list-wise data set of texts, TREC qrels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically
from rnnreranker.base.request import Request
from rnnreranker.base.settings import setting
from rnnreranker.labels.soft import Labels, SoftLabels


@dataclass(frozen=True)
class FormsRequest(Request):
    """What the command writes beside the parquet file: other forms, the audit page."""

    tsv: str | None = setting(None, "qid<TAB>docid<TAB>score")
    qrels_output: str | None = setting(None, "TREC qrels; a query's largest target becomes --highest")
    highest: int = setting(100, "its grade", at_least=1)
    listwise: str | None = setting(None, "parquet of query, docs, labels for sentence-transformers")
    list_size: int = setting(16, "documents a query there", at_least=2)
    audit: int | None = setting(None, "page with N queries' proposed positives", at_least=1)
    audit_output: str | None = setting(None, "HTML (default: OUTPUT.audit.html)")
    truth: str | None = setting(None, "fuller judgements: how many proposals are relevant")


def write_tsv(labels: SoftLabels, path: str | os.PathLike[str]) -> int:
    """The number of lines `qid<TAB>docid<TAB>score` written, as the CODER code reads extended labels.

    Only candidates that took part have a line; the score is the label before normalisation, with 9 significant digits,
    which give back the float32. Plain, or compressed when the name ends in .gz.
    """

    def lines(one: Labels) -> list[str]:
        there = np.flatnonzero(np.isfinite(one.scores)).tolist()
        return [f"{one.qid}\t{one.docids[candidate]}\t{one.scores[candidate]:.9g}\n" for candidate in there]

    return _write_lines(labels, path, lines)


def write_qrels(labels: SoftLabels, path: str | os.PathLike[str], highest: int = 100) -> int:
    """The number of lines `qid 0 docid grade` written: targets scaled so that a query's largest becomes `highest`.

    Grades are rounded to whole numbers, halves to even; candidates with grade 0 have no line.

    Raises:
        InputError: highest below 1.
    """
    if highest < 1:
        raise InputError(f"highest={highest}: expected an integer >= 1")

    def lines(one: Labels) -> list[str]:
        largest = float(one.targets.max(initial=0.0)) or 1.0
        grades = np.rint(one.targets.astype(np.float64) / largest * highest).astype(int)
        return [f"{one.qid} 0 {one.docids[at]} {grades[at]}\n" for at in np.flatnonzero(grades).tolist()]

    return _write_lines(labels, path, lines)


def _write_lines(labels: SoftLabels, path: str | os.PathLike[str], lines_of: Callable[[Labels], list[str]]) -> int:
    """Write the lines of every query; how many these are."""
    written = 0
    with write_atomically(path) as stream:
        for one in labels:
            lines = lines_of(one)
            stream.write("".join(lines).encode())
            written += len(lines)
    return written


def write_listwise(
    labels: SoftLabels,
    path: str | os.PathLike[str],
    topics: Mapping[str, str],
    texts: Mapping[str, str],
    size: int = 16,
) -> int:
    """The number of rows written to a parquet file that sentence-transformers trains list-wise losses on.

    Columns: query (text), docs (list of texts), labels (list of float32, the targets); `load_dataset("parquet",
    data_files=...)` reads it. Per query the `size` candidates with the highest targets, ties in candidate order, so
    that negatives fill up what smoothing leaves; labels keep their values.

    Raises:
        InputError: a query or document without a text.
    """
    import pyarrow
    import pyarrow.parquet as parquet

    chosen = [(one, best(one.targets, size)) for one in labels]
    check_texts(labels.qids, (one.docids[at] for one, own in chosen for at in own), topics, texts)
    columns = {
        "query": [topics[qid] for qid in labels.qids],
        "docs": [[texts[one.docids[at]] for at in own] for one, own in chosen],
        "labels": [one.targets[own] for one, own in chosen],
    }
    with write_atomically(path) as stream:
        parquet.write_table(pyarrow.table(columns), stream, compression="zstd")
    return len(labels)


def check_texts(
    qids: Iterable[str], docids: Iterable[str], topics: Mapping[str, str], texts: Mapping[str, str]
) -> None:
    """Look that what is written has texts; InputError: how many queries or documents have none, and the first."""
    lost = [f"query {qid}" for qid in dict.fromkeys(qids) if qid not in topics]
    lost += [f"document {docid}" for docid in dict.fromkeys(docids) if docid not in texts]
    if lost:
        raise InputError(
            f"{len(lost)} queries and documents without a text (first: {lost[0]}); give the topics, and an index with "
            "texts or --documents"
        )


def best(targets: np.ndarray, size: int) -> list[int]:
    """The columns of the `size` highest targets, from the highest on, ties in candidate order."""
    return np.argsort(-targets, kind="stable")[:size].tolist()
