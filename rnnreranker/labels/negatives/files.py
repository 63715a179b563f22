"""Files of mined negatives, in the four output formats of sentence-transformers' `mine_hard_negatives`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_lines, write_atomically
from rnnreranker.base.files.json_files import parse_record
from rnnreranker.labels.export import check_texts
from rnnreranker.labels.negatives.filters import Mined

OF_TEXTS = (".parquet", ".jsonl")
SUFFIXES = (*OF_TEXTS, ".tsv")
LABELED = ("labeled-pair", "labeled-list")  # forms with a label beside every document, 1 or 0
LABEL, LABELS = "label", "labels"  # their columns, as that function names them
EXPECTED = "expected a file of python -m rnnreranker.negatives"

Row = tuple[Any, ...]  # a query, then documents or lists of them, and labels or lists of them


def holds_texts(path: str | Path) -> bool:
    """Whether a file of negatives holds texts in place of ids."""
    return not str(path).endswith(".tsv")


def rows_of(mined: Sequence[Mined], form: str, negatives: int) -> tuple[list[str], list[Row]]:
    """Column names, and rows of ids: query, positive, then its negatives.

    One negative a row ("triplet"), all of a positive in columns ("n-tuple", of positives that have all `negatives`),
    positive and negatives in one list beside a list of their labels ("labeled-list"), or a document and its label
    ("labeled-pair"), whose column of documents is called "positive", as there.
    """
    names = ["anchor", "positive"]
    labeled = [
        (one.qid, [(docid, 1) for docid in one.positives], [(docid, 0) for docid in one.negatives]) for one in mined
    ]
    if form == "labeled-pair":
        return [*names, LABEL], [(qid, *pair) for qid, good, bad in labeled for pair in good + bad]
    if form == "labeled-list":
        return [*names, LABELS], [(qid, *zip(*good, *bad, strict=True)) for qid, good, bad in labeled]
    if form == "triplet":
        return [*names, "negative"], [(one.qid, *one.positives, bad) for one in mined for bad in one.negatives]
    names += [f"negative_{number}" for number in range(1, negatives + 1)]
    return names, [(one.qid, *one.positives, *one.negatives) for one in mined if len(one.negatives) == negatives]


def documents_in(rows: Sequence[Row]) -> Iterator[str]:
    """The docids of rows of ids, as often as they occur."""
    for _, *cells in rows:
        for cell in cells:
            yield from (one for one in (cell if isinstance(cell, tuple) else (cell,)) if isinstance(one, str))


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
    if not holds_texts(path):
        with write_atomically(path) as stream:
            stream.write("".join("\t".join(map(str, row)) + "\n" for row in rows).encode())
        return
    check_texts((row[0] for row in rows), documents_in(rows), topics, texts)

    def filled(cell: Any) -> Any:
        if isinstance(cell, tuple):
            return [filled(one) for one in cell]
        return texts[cell] if isinstance(cell, str) else cell

    columns = {name: [filled(row[at]) if at else topics[row[0]] for row in rows] for at, name in enumerate(names)}
    with write_atomically(path) as stream:
        if path.suffix == ".jsonl":
            records = (dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True))
            stream.write("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records).encode())
        else:
            import pyarrow
            import pyarrow.parquet as parquet

            parquet.write_table(pyarrow.table(columns), stream, compression="zstd")


def read_negatives(path: str | Path) -> list[Mined]:
    """The negatives of every query and positive, in the order of the file; triplets of one pair come together.

    Ids of a .tsv file; of .parquet and .jsonl files, which hold texts, the texts themselves. Every positive of a file
    of labeled pairs has all negatives of its query.

    Raises:
        InputError: another suffix, no such file, rows without an anchor, a positive and a negative, or with labels that
            are neither 0 nor 1.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: {EXPECTED}, a name that ends in {', '.join(SUFFIXES)}")
    groups: dict[str, tuple[str, tuple[list[str], list[str]]]] = {}  # of rows → anchor, its negatives and positives
    for where, record in _records(path):
        name = next((name for name in (LABEL, LABELS) if name in record), "")
        cells, labels = [cell for own, cell in record.items() if own != name], record.get(name, [])
        if name == LABELS and len(cells) == 2 and isinstance(cells[1], list) and isinstance(labels, list):
            cells = [cells[0], *cells[1]]
        elif name:
            labels = [labels]
        if len(cells) < (2 if name else 3) or not all(isinstance(cell, str) and cell for cell in cells):
            raise InputError(f"{path}{where}: no anchor, positive and negative in it; {EXPECTED}")
        anchor, *documents = cells
        labels = labels if name else [1, *(0 for _ in documents[1:])]
        if len(labels) != len(documents) or not all(isinstance(one, int) and one in (0, 1) for one in labels):
            raise InputError(f"{path}{where}: labels {labels}: expected 0 or 1 for every document; {EXPECTED}")
        group = groups.setdefault(anchor if len(documents) == 1 else where, (anchor, ([], [])))
        for document, label in zip(documents, labels, strict=True):
            group[1][label].append(document)
    negatives_of: dict[tuple[str, str], dict[str, None]] = {}
    for anchor, (negatives, positives) in groups.values():
        for positive in positives if negatives else ():
            negatives_of.setdefault((anchor, positive), {}).update(dict.fromkeys(negatives))
    if not negatives_of:
        raise InputError(f"{path}: holds no negatives; {EXPECTED}")
    return [Mined(anchor, (positive,), tuple(negatives)) for (anchor, positive), negatives in negatives_of.items()]


def _records(path: Path) -> Iterator[tuple[str, dict[Any, Any]]]:
    """Where each row is in a file, and its cells by the names of their columns, of ids by their numbers."""
    if path.suffix != ".parquet":
        for number, line in read_lines(path, "file of negatives"):
            at = f":{number}"
            tsv = path.suffix == ".tsv"
            yield at, dict(enumerate(line.rstrip("\n").split("\t"))) if tsv else parse_record(line, f"{path}{at}")
        return
    import pyarrow
    import pyarrow.parquet as parquet

    if not path.is_file():
        raise InputError(f"{path}: no such file of negatives")
    try:
        rows = parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:80]
        raise InputError(f"{path}: not a parquet file, or a damaged one ({reason}); {EXPECTED}") from None
    yield from ((f": row {number}", row) for number, row in enumerate(rows, 1))
