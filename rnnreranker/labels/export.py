"""Soft labels for other programs: TSV, a list-wise data set, TREC qrels."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically
from rnnreranker.base.request import Request
from rnnreranker.base.settings import setting
from rnnreranker.labels.soft import SoftLabels

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class FormsRequest(Request):
    """Outputs of the command."""

    output: str = setting(MISSING, "labels to write", metavar="FILE.parquet")
    tsv: str | None = setting(None, "qid<TAB>docid<TAB>score")
    qrels_output: str | None = setting(None, "TREC qrels; a query's largest target becomes --highest")
    highest: int = setting(100, "its grade", at_least=1)
    listwise: str | None = setting(None, "parquet of query, docs, labels for sentence-transformers")
    list_size: int = setting(16, "documents a query there", at_least=2)
    audit: int | None = setting(None, "page with N queries' proposed positives", at_least=1)
    audit_output: str | None = setting(None, "HTML (default: OUTPUT.audit.html)")
    truth: str | None = setting(None, "fuller judgements: how many proposals are relevant")


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
    labels: SoftLabels,
    path: str | os.PathLike[str],
    topics: Mapping[str, str],
    texts_of: Callable[[Iterable[str]], Mapping[str, str]],
    size: int = 16,
) -> int:
    """Write a parquet file for list-wise losses of sentence-transformers; returns its number of rows.

    Columns: query, docs (texts of the `size` highest targets), labels (float32 targets).

    texts_of: gives known texts of docids.

    Raises:
        InputError: a missing text.
    """
    import pyarrow
    import pyarrow.parquet as parquet

    chosen = [(one, np.argsort(-one.targets, kind="stable")[:size].tolist()) for one in labels]
    docids = [[one.docids[at] for at in own] for one, own in chosen]
    texts = texts_of(docid for own in docids for docid in own)
    check_texts(labels.qids, (docid for own in docids for docid in own), topics, texts)
    columns = {
        "query": [topics[qid] for qid in labels.qids],
        "docs": [[texts[docid] for docid in own] for own in docids],
        "labels": [one.targets[own] for one, own in chosen],
    }
    with write_atomically(path) as stream:
        parquet.write_table(pyarrow.table(columns), stream, compression="zstd")
    return len(labels)


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
