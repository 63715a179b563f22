"""Mined negatives from their files: what `python -m rnnreranker.negatives` writes, read for training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_lines
from rnnreranker.base.files.json_files import parse_record
from rnnreranker.labels.negatives.forms import LABEL, LABELS, SUFFIXES
from rnnreranker.labels.negatives.mining import Mined

EXPECTED = "expected a file of python -m rnnreranker.negatives"


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
    rows = {".tsv": _of_tsv, ".jsonl": _of_jsonl, ".parquet": _of_parquet}[path.suffix](path)
    negatives_of: dict[tuple[str, str], dict[str, None]] = {}
    pairs: dict[str, tuple[list[str], list[str]]] = {}  # an anchor → what is labeled 0, and 1
    for where, row, labels in rows:
        if len(row) < (3 if labels is None else 2) or not all(isinstance(cell, str) and cell for cell in row):
            raise InputError(f"{path}{where}: no anchor, positive and negative in it; {EXPECTED}")
        anchor, *documents = row
        if labels is None:
            negatives_of.setdefault((anchor, documents[0]), {}).update(dict.fromkeys(documents[1:]))
            continue
        if len(labels) != len(documents) or not all(isinstance(one, int) and one in (0, 1) for one in labels):
            raise InputError(f"{path}{where}: labels {labels}: expected 0 or 1 for every document; {EXPECTED}")
        both: tuple[list[str], list[str]] = pairs.setdefault(anchor, ([], [])) if len(documents) == 1 else ([], [])
        for document, label in zip(documents, labels, strict=True):
            both[label].append(document)
        if len(documents) > 1:
            for positive in both[1]:
                negatives_of.setdefault((anchor, positive), {}).update(dict.fromkeys(both[0]))
    for anchor, (negatives, positives) in pairs.items():
        for positive in positives:
            negatives_of.setdefault((anchor, positive), {}).update(dict.fromkeys(negatives))
    mined = [
        Mined(anchor, positive, tuple(negatives)) for (anchor, positive), negatives in negatives_of.items() if negatives
    ]
    if not mined:
        raise InputError(f"{path}: holds no negatives; {EXPECTED}")
    return mined


def holds_texts(path: str | Path) -> bool:
    """Whether a file of negatives holds texts in place of ids."""
    return Path(path).suffix != ".tsv"


Rows = Iterator[tuple[str, list[Any], list[Any] | None]]  # where a row stands, its texts or ids, and their labels


def _of_tsv(path: Path) -> Rows:
    for number, line in read_lines(path, "file of negatives"):
        yield f":{number}", line.rstrip("\n").split("\t"), None


def _of_jsonl(path: Path) -> Rows:
    for number, line in read_lines(path, "file of negatives"):
        yield f":{number}", *_parted(parse_record(line, f"{path}:{number}"))


def _of_parquet(path: Path) -> Rows:
    import pyarrow
    import pyarrow.parquet as parquet

    if not path.is_file():
        raise InputError(f"{path}: no such file of negatives")
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:80]
        raise InputError(f"{path}: not a parquet file, or a damaged one ({reason}); {EXPECTED}") from None
    columns = [column.to_pylist() for column in table.columns]
    for number, row in enumerate(zip(*columns, strict=True), 1):
        yield f": row {number}", *_parted(dict(zip(table.column_names, row, strict=True)))


def _parted(record: dict[str, Any]) -> tuple[list[Any], list[Any] | None]:
    """The texts of a row, and the labels of all but the first; None where it has none."""
    name = next((name for name in (LABEL, LABELS) if name in record), None)
    cells = [cell for own, cell in record.items() if own != name]
    if name is None:
        return cells, None
    labels = record[name]
    if name == LABELS and len(cells) == 2 and isinstance(cells[1], list) and isinstance(labels, list):
        return [cells[0], *cells[1]], labels
    return cells, [labels]
