"""Mined negatives from their files: what `python -m rnnreranker.negatives` writes, read for training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_lines
from rnnreranker.base.files.json_files import parse_record
from rnnreranker.labels.negatives.mining import SUFFIXES, Mined

EXPECTED = "expected a file of python -m rnnreranker.negatives"


def read_negatives(path: str | Path) -> list[Mined]:
    """The negatives of every query and positive, in the order of the file; triplets of one pair come together.

    Ids of a .tsv file; of .parquet and .jsonl files, which hold texts, the texts themselves.

    Raises:
        InputError: another suffix, no such file, rows without an anchor, a positive and a negative.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: {EXPECTED}, a name that ends in {', '.join(SUFFIXES)}")
    rows = {".tsv": _of_tsv, ".jsonl": _of_jsonl, ".parquet": _of_parquet}[path.suffix](path)
    negatives_of: dict[tuple[str, str], dict[str, None]] = {}
    for where, row in rows:
        if len(row) < 3 or not all(isinstance(cell, str) and cell for cell in row):
            raise InputError(f"{path}{where}: no anchor, positive and negative in it; {EXPECTED}")
        negatives_of.setdefault((row[0], row[1]), {}).update(dict.fromkeys(row[2:]))
    if not negatives_of:
        raise InputError(f"{path}: holds no negatives; {EXPECTED}")
    return [Mined(anchor, positive, tuple(negatives)) for (anchor, positive), negatives in negatives_of.items()]


def holds_texts(path: str | Path) -> bool:
    """Whether a file of negatives holds texts in place of ids."""
    return Path(path).suffix != ".tsv"


Rows = Iterator[tuple[str, Sequence[str]]]  # where a row stands, and its cells


def _of_tsv(path: Path) -> Rows:
    for number, line in read_lines(path, "file of negatives"):
        yield f":{number}", line.rstrip("\n").split("\t")


def _of_jsonl(path: Path) -> Rows:
    for number, line in read_lines(path, "file of negatives"):
        yield f":{number}", list(parse_record(line, f"{path}:{number}").values())


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
        yield f": row {number}", row
