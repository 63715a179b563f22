"""The rows of mined negatives in the four output formats of sentence-transformers' `mine_hard_negatives`, and files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import write_atomically
from rnnreranker.labels.negatives.mining import Mined, MinedQuery

OF_TEXTS = (".parquet", ".jsonl")
SUFFIXES = (*OF_TEXTS, ".tsv")
LABELED = ("labeled-pair", "labeled-list")  # forms with a label beside every document, 1 or 0
LABEL, LABELS = "label", "labels"  # their columns, as that function names them

Cell = str | int | tuple[str, ...] | tuple[int, ...]  # a document or several, a label or several
Row = tuple[Cell, ...]


def rows_of(
    mined: Sequence[Mined], form: Literal["triplet", "n-tuple", "labeled-list"], negatives: int
) -> tuple[list[str], list[Row]]:
    """Column names, and rows of ids: query, positive, then its negatives.

    One negative a row ("triplet"), all of a positive in columns ("n-tuple", of positives that have all `negatives`), or
    positive and negatives in one list beside a list of their labels ("labeled-list").
    """
    if form == "triplet":
        return ["anchor", "positive", "negative"], [
            (one.qid, one.positive, bad) for one in mined for bad in one.negatives
        ]
    if form == "labeled-list":
        lists: list[Row] = [
            (one.qid, (one.positive, *one.negatives), (1, *(0 for _ in one.negatives))) for one in mined
        ]
        return ["anchor", "positive", LABELS], lists
    names = ["anchor", "positive", *(f"negative_{number}" for number in range(1, negatives + 1))]
    return names, [(one.qid, one.positive, *one.negatives) for one in mined if len(one.negatives) == negatives]


def labeled_pairs(mined: Sequence[MinedQuery]) -> tuple[list[str], list[Row]]:
    """Column names, and rows of ids ("labeled-pair"): query, document, 1; then its negatives, with 0.

    The column of documents is called "positive", as there.
    """
    rows: list[Row] = [
        (one.qid, docid, label)
        for one in mined
        for docids, label in ((one.positives, 1), (one.negatives, 0))
        for docid in docids
    ]
    return ["anchor", "positive", LABEL], rows


def documents_in(rows: Sequence[Row]) -> Iterator[str]:
    """The docids of rows of ids, as often as they stand there."""
    for _, *cells in rows:
        for cell in cells:
            for one in cell if isinstance(cell, tuple) else (cell,):
                if isinstance(one, str):
                    yield one


def write_rows(
    path: str | Path,
    names: Sequence[str],
    rows: Sequence[Row],
    topics: Mapping[str, str],
    texts: Mapping[str, str],
) -> None:
    """Write texts (.parquet, .jsonl: the columns that sentence-transformers' losses take) or ids (.tsv).

    Raises:
        InputError: another suffix, labels in a file of ids, a query or document without a text.
    """
    path = Path(path)
    suffixes = OF_TEXTS if {LABEL, LABELS} & set(names) else SUFFIXES
    if path.suffix not in suffixes:
        raise InputError(f"{path}: expected a name that ends in {', '.join(suffixes)}")
    if path.suffix == ".tsv":
        with write_atomically(path) as stream:
            stream.write("".join("\t".join(map(str, row)) + "\n" for row in rows).encode())
        return
    queries = [row[0] for row in rows if row[0] not in topics]
    documents = [docid for docid in documents_in(rows) if docid not in texts]
    if queries or documents:
        first = f"query {queries[0]}" if queries else f"document {documents[0]}"
        raise InputError(f"{first}: has no text; give --topics, and an index with texts or --documents, or write .tsv")
    filled = [(topics[str(query)], *(_filled(cell, texts) for cell in cells)) for query, *cells in rows]
    with write_atomically(path) as stream:
        if path.suffix == ".jsonl":
            lines = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in filled)
            stream.write("".join(lines).encode())
        else:
            import pyarrow
            import pyarrow.parquet as parquet

            columns = [pyarrow.array([row[at] for row in filled], _type(name, names)) for at, name in enumerate(names)]
            parquet.write_table(pyarrow.table(columns, names=list(names)), stream, compression="zstd")


def _filled(cell: Cell, texts: Mapping[str, str]) -> Any:
    """Texts in place of docids; labels as they are."""
    if isinstance(cell, tuple):
        return [_filled(one, texts) for one in cell]
    return texts[cell] if isinstance(cell, str) else cell


def _type(name: str, names: Sequence[str]) -> Any:
    """The type of a column of a parquet file, also where it has no rows."""
    import pyarrow

    single = pyarrow.int64() if name in (LABEL, LABELS) else pyarrow.string()
    return pyarrow.list_(single) if LABELS in names and name != "anchor" else single
