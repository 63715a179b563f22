"""Run files: a clean one in one go through Arrow; any other line by line, with the line of whatever is wrong."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import numpy as np

from rnnreranker.errors import InputError, nearest
from rnnreranker.files import check_no_nul, read_bytes
from rnnreranker.runs.columns import FORMATS, Columns, RepeatedEntryError, dictionary_of, encode, from_codes
from rnnreranker.runs.words import are_words, check_id

if TYPE_CHECKING:
    import pyarrow

COLUMNS = {"trec": ("qid", "Q0", "docid", "rank", "score", "tag"), "msmarco": ("qid", "docid", "rank")}
LARGEST = float(np.finfo(np.float32).max) + 2.0**102  # rounds to the largest float32: its shortest text lies above it
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_columns(path: str | os.PathLike[str], format: str | None) -> Columns:
    """The columns of a run file; see `Run.read`."""
    if format is not None and format not in FORMATS:
        raise InputError(f"format {format!r}; {nearest(format, FORMATS)}")
    content = read_bytes(path, "run file").removeprefix(BYTE_ORDER_MARK)
    check_no_nul(content, path)
    format = format or _detect(content, path)
    found = _read_clean(content, format)
    return found if found is not None else _read_lines(content, format, path)


def _detect(content: bytes, path: str | os.PathLike[str]) -> str:
    """The format by the number of columns of the first line that is not blank."""
    start = re.search(rb"\S", content)
    if start is None:
        raise InputError(f"{path}: {_expected('no run lines')}")
    end = content.find(b"\n", start.start())
    line = content[start.start() : end if end >= 0 else len(content)]
    for format, names in COLUMNS.items():
        if len(line.split()) == len(names):
            return format
    number = content.count(b"\n", 0, start.start()) + 1
    raise InputError(f"{path}:{number}: {_expected(f'{len(line.split())} columns')}")


def _expected(found: str) -> str:
    return f"{found}; expected TREC `{' '.join(COLUMNS['trec'])}` or MS MARCO `{' '.join(COLUMNS['msmarco'])}`"


def _read_clean(content: bytes, format: str) -> Columns | None:
    """The columns of a file with one separator throughout and nothing wrong in it; None for any other.

    Two separators in a row, or one at an end of a line, give a line another number of columns or an empty column: Arrow
    refuses the one and `_from_table` the other.
    """
    import pyarrow
    import pyarrow.csv

    separator = b"\t" if b"\t" in content[:4096] else b" "
    other = b" " if separator == b"\t" else b"\t"
    if any(mark in content for mark in (other, b"\v", b"\f", b"\0")):  # single bytes: quickly looked for
        return None
    if b"\r" in content and content.count(b"\r") != content.count(b"\r\n"):
        return None
    if any(x in content and separator + b"0" + x in content for x in (b"x", b"X")):
        return None  # Arrow would read a rank in base 16
    number, kind = ("score", pyarrow.float64()) if format == "trec" else ("rank", pyarrow.int64())
    words = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    kinds = dict.fromkeys(COLUMNS[format], words) | {"docid": pyarrow.string(), "rank": pyarrow.int64(), number: kind}
    try:
        table = pyarrow.csv.read_csv(
            pyarrow.BufferReader(content),
            read_options=pyarrow.csv.ReadOptions(column_names=list(COLUMNS[format]), block_size=16 * 2**20),
            parse_options=pyarrow.csv.ParseOptions(delimiter=separator.decode(), quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=kinds,
                null_values=[],
            ),
        )
    except pyarrow.ArrowException:
        return None  # the line by line reader says what is wrong, and where
    columns = {name: table.column(name) for name in table.column_names}
    del table
    return _from_columns(columns, number)


def _from_columns(columns: dict[str, pyarrow.ChunkedArray], number: str) -> Columns | None:
    """The columns of a run, which are let go of as they are read, so that memory never holds them twice."""
    values = columns.pop(number).to_numpy()
    with np.errstate(invalid="ignore"):
        valid = (np.abs(values) <= LARGEST).all() if number == "score" else (values >= 1).all()
    if not valid or not len(values):
        return None
    columns.pop("rank", None)
    of_no_use = {
        name
        for other in ("Q0", "tag")
        if other in columns
        for chunk in columns.pop(other).chunks
        for name in chunk.dictionary.to_pylist()
    }
    qids, queries = dictionary_of(columns.pop("qid"))
    docids, rows = dictionary_of(columns.pop("docid"))
    if not all(are_words(names) and all(names) for names in (qids, docids, of_no_use)):
        return None
    try:
        return from_codes(tuple(qids), queries, docids, rows, values if number == "score" else 1 / values)
    except RepeatedEntryError:
        return None


def _read_lines(content: bytes, format: str, path: str | os.PathLike[str]) -> Columns:
    qids: list[str] = []
    docids: list[str] = []
    scores: list[float] = []
    lines: list[int] = []
    for line, text in enumerate(content.split(b"\n"), 1):
        columns = text.split()
        if not columns:
            continue
        where = f"{path}:{line}"
        if len(columns) != len(COLUMNS[format]):
            name = {"trec": "TREC", "msmarco": "MS MARCO"}[format]
            raise InputError(f"{where}: {len(columns)} columns; expected {name} `{' '.join(COLUMNS[format])}`")
        try:
            qids.append(columns[0].decode())
            docids.append(columns[2 if format == "trec" else 1].decode())
        except UnicodeDecodeError:
            raise InputError(f"{where}: not UTF-8 text; expected a run file in UTF-8") from None
        check_id(qids[-1], "query id", where)
        check_id(docids[-1], "docid", where)
        scores.append(_score(columns[4], where) if format == "trec" else 1 / _rank(columns[2], where))
        lines.append(line)
    if not lines:
        raise InputError(f"{path}: {_expected('no run lines')}")
    names, queries = encode(qids, "qids")
    distinct, rows = encode(docids, "docids")
    try:
        return from_codes(tuple(names), queries, distinct, rows, np.array(scores))
    except RepeatedEntryError as error:
        raise InputError(
            f"{path}:{lines[error.second]}: query {error.qid} has docid {error.docid} a second time "
            f"(first on line {lines[error.first]}); expected every docid once a query"
        ) from None


def _score(text: bytes, where: str) -> float:
    shown = _shown(text)
    if NOT_FINITE.fullmatch(text):
        raise InputError(f"{where}: score {shown}; expected a finite number")
    if not NUMBER.fullmatch(text):
        raise InputError(f"{where}: score {shown!r} is not a number; expected one in column 5")
    score = float(text)
    if abs(score) > LARGEST:
        raise InputError(
            f"{where}: score {shown} is beyond float32 (largest {LARGEST:.4g}), which evaluation tools use"
        )
    return score


def _shown(text: bytes) -> str:
    said = text.decode(errors="replace")
    return said if len(said) <= 40 else f"{said[:40]}... of {len(said)} characters"


def _rank(text: bytes, where: str) -> int:
    if not re.fullmatch(rb"\+?0*[1-9]\d{0,17}", text):
        shown = _shown(text)
        raise InputError(f"{where}: rank {shown!r}; expected a whole number from 1 in column 3")
    return int(text)
