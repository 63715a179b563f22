"""Soft labels in the forms that other programs read: TSV, a list-wise data set of texts, TREC qrels."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically
from rnnreranker.labels.soft import SoftLabels


def write_tsv(labels: SoftLabels, path: str | os.PathLike[str]) -> int:
    """The number of lines `qid<TAB>docid<TAB>score` written, as the CODER code reads extended labels.

    Only candidates that took part have a line; the score is the label before normalisation, with 9 significant digits,
    which give back the float32. Plain, or compressed when the name ends in .gz.
    """
    lines = 0
    with write_atomically(path) as stream:
        for one in labels:
            there = np.flatnonzero(np.isfinite(one.scores)).tolist()
            text = (f"{one.qid}\t{one.docids[candidate]}\t{one.scores[candidate]:.9g}\n" for candidate in there)
            stream.write("".join(text).encode())
            lines += len(there)
    return lines


def write_qrels(labels: SoftLabels, path: str | os.PathLike[str], highest: int = 100) -> int:
    """The number of lines `qid 0 docid grade` written: targets scaled so that a query's largest becomes `highest`.

    Grades are rounded to whole numbers, halves to even; candidates with grade 0 have no line.

    Raises:
        InputError: highest below 1.
    """
    if highest < 1:
        raise InputError(f"highest={highest}: expected an integer >= 1")
    lines = 0
    with write_atomically(path) as stream:
        for one in labels:
            largest = float(one.targets.max(initial=0.0)) or 1.0
            grades = np.rint(one.targets.astype(np.float64) / largest * highest).astype(int)
            there = np.flatnonzero(grades).tolist()
            text = (f"{one.qid} 0 {one.docids[candidate]} {grades[candidate]}\n" for candidate in there)
            stream.write("".join(text).encode())
            lines += len(there)
    return lines


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
        InputError: a query or document without a text, size below 2.
    """
    if size < 2:
        raise InputError(f"size={size}: expected at least 2 documents a query")
    chosen = {one.qid: best(one.targets, size) for one in labels}
    check_texts(labels, chosen, topics, texts)
    import pyarrow
    import pyarrow.parquet as parquet

    rows = [
        (topics[one.qid], [texts[one.docids[at]] for at in chosen[one.qid]], one.targets[chosen[one.qid]].tolist())
        for one in labels
    ]
    kinds = (pyarrow.string(), pyarrow.list_(pyarrow.string()), pyarrow.list_(pyarrow.float32()))
    columns = [pyarrow.array([row[at] for row in rows], type=kind) for at, kind in enumerate(kinds)]
    with write_atomically(path) as stream:
        parquet.write_table(pyarrow.table(columns, names=["query", "docs", "labels"]), stream, compression="zstd")
    return len(rows)


def best(targets: np.ndarray, size: int) -> list[int]:
    """The columns of the `size` highest targets, from the highest on, ties in candidate order."""
    return np.argsort(-targets, kind="stable")[:size].tolist()


def check_texts(
    labels: SoftLabels, chosen: Mapping[str, list[int]], topics: Mapping[str, str], texts: Mapping[str, str]
) -> None:
    """Look that what is to be written has texts; InputError: how many queries or documents have none, and the first."""
    queries = [qid for qid in labels.qids if qid not in topics]
    if queries:
        raise InputError(f"{len(queries)} labelled queries have no text (first: {queries[0]}); give their topics")
    wanted = dict.fromkeys(one.docids[candidate] for one in labels for candidate in chosen[one.qid])
    lost = [docid for docid in wanted if docid not in texts]
    if lost:
        raise InputError(
            f"{len(lost)} documents have no text (first: {lost[0]}); use an index made with texts by "
            "python -m rnnreranker.index, or give --documents"
        )
