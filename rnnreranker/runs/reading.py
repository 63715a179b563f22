"""Reading of run files: clean ones by Arrow, others line by line, with the line of every fault."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.files import check_no_nul, open_bytes
from rnnreranker.runs.arrow import as_numpy
from rnnreranker.runs.columns import (
    FORMATS,
    Docids,
    check_id,
    encode,
    hold_words,
    numbered,
    repeated_entry,
    shown_word,
)

if TYPE_CHECKING:
    import pyarrow

COLUMNS = {"trec": ("qid", "Q0", "docid", "rank", "score", "tag"), "msmarco": ("qid", "docid", "rank")}
LARGEST = float(np.finfo(np.float32).max) + 2.0**102  # rounds to the largest float32: its shortest text lies above it
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
ALONE = re.compile(rb"\r[^\n]")
Make = Callable[..., Any]
HEAD = 2**16  # bytes that the format is detected from
BLOCK = 2**22  # bytes read at a time
DOUBTFUL = 0.5  # the share of lines above which scores contradict the ranks
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_run(path: str | os.PathLike[str], format: str | None, make: Make) -> Any:
    """What `make`, `Run.from_codes`, makes of a file."""
    if format is not None and format not in FORMATS:
        raise InputError(f"format {format!r}; {nearest(format, FORMATS)}")
    with open_bytes(path, "run file") as stream:
        again = stream if os.path.isfile(path) else io.BytesIO(stream.read())  # a pipe is read once
        if (run := _read_clean(again, format, path, make)) is not None:
            return run
        again.seek(0)
        content = again.read().removeprefix(BYTE_ORDER_MARK)
    check_no_nul(content, path)
    return _read_lines(content, format or _detect(content, path), path, make)


def _detect(content: bytes, path: object) -> str:
    """The format by the number of columns of the first line."""
    start = re.search(rb"\S", content)
    if start is None:
        raise InputError(f"{path}: {_expected('no run lines')}")
    end = content.find(b"\n", start.start())
    line = content[start.start() : end if end >= 0 else len(content)]
    if (format := _format_of(line)) is not None:
        return format
    number = content.count(b"\n", 0, start.start()) + 1
    raise InputError(f"{path}:{number}: {_expected(f'{len(line.split())} columns')}")


def _format_of(line: bytes) -> str | None:
    return next((format for format, names in COLUMNS.items() if len(names) == len(line.split())), None)


def _expected(received: str) -> str:
    return f"{received}; expected TREC `{' '.join(COLUMNS['trec'])}` or MS MARCO `{' '.join(COLUMNS['msmarco'])}`"


class _UncleanError(Exception):
    """Text that Arrow would misread."""


class _Clean:
    """A stream that refuses all but one separator, block by block while it is in the cache."""

    closed = False

    def __init__(self, head: bytes, stream: IO[bytes], separator: bytes) -> None:
        self._head, self._stream, self._before = head, stream, b""
        self._refused = (b" " if separator == b"\t" else b"\t", b"\v", b"\f", b"\0")
        self._hexadecimal = separator + b"0x", separator + b"0X"  # a rank that Arrow would read in base 16

    def read(self, size: int = -1) -> bytes:
        part, self._head = self._head or self._stream.read(size), b""
        window = self._before + part
        if any(mark in part for mark in self._refused):
            raise _UncleanError
        if b"\r" in window and (ALONE.search(window) or (window.endswith(b"\r") and not part)):
            raise _UncleanError
        if any(mark[-1:] in part and mark in window for mark in self._hexadecimal):
            raise _UncleanError
        self._before = window[-2:]
        return part

    def close(self) -> None:
        """The caller that opened the stream closes it."""


def _read_clean(stream: IO[bytes], format: str | None, path: object, make: Make) -> Any:
    """The run of a file with one separator throughout and no fault; None for any other.

    Doubled or trailing separators make more columns, which Arrow refuses, or empty ones, which `_from_columns` refuses.
    """
    import pyarrow
    import pyarrow.csv

    head = stream.read(HEAD).removeprefix(BYTE_ORDER_MARK)
    first, end, _ = head.lstrip().partition(b"\n")
    format = format or _format_of(first)
    if format is None or (len(head) >= HEAD and not end):
        return None
    separator = b"\t" if b"\t" in head[:4096] else b" "
    kinds = dict.fromkeys(COLUMNS[format], pyarrow.string()) | {"rank": pyarrow.int64()}
    if format == "trec":
        kinds["score"] = pyarrow.float64()
    try:
        table = pyarrow.csv.read_csv(
            _Clean(head, stream, separator),
            read_options=pyarrow.csv.ReadOptions(column_names=list(COLUMNS[format]), block_size=BLOCK),
            parse_options=pyarrow.csv.ParseOptions(delimiter=separator.decode(), quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(column_types=kinds, null_values=[]),
        )
    except (pyarrow.ArrowException, _UncleanError):
        return None  # the line by line reader says what is wrong, and where
    columns = {name: table.column(name) for name in table.column_names}
    del table
    return _from_columns(columns, path, make)


def _from_columns(columns: dict[str, pyarrow.ChunkedArray], path: object, make: Make) -> Any:
    """The columns of a run; frees Arrow's as they are read."""
    numbers = {name: columns.pop(name).combine_chunks() for name in ("rank", "score") if name in columns}
    if any(one.null_count for one in numbers.values()):
        return None
    ranks, scores = as_numpy(numbers["rank"]), as_numpy(numbers["score"]) if "score" in numbers else None
    with np.errstate(invalid="ignore"):
        valid = (ranks >= 1).all() if scores is None else (np.abs(scores) <= LARGEST).all()
    if not valid or not len(ranks):
        return None
    of_no_use = [columns.pop(name).unique() for name in ("Q0", "tag") if name in columns]
    qids, queries = numbered(columns.pop("qid"))
    docids, rows = numbered(columns.pop("docid"))
    if not hold_words(qids, docids, *of_no_use):
        return None
    try:
        read = make(qids.to_pylist(), queries, Docids(docids), rows, 1 / ranks if scores is None else scores)
    except InputError:  # a docid twice
        return None
    if scores is None:
        _doubt_third_column(read, path)
    else:
        _doubt_ranks(queries, ranks, scores, path)
    return read


def _doubt_ranks(queries: np.ndarray, ranks: np.ndarray, scores: np.ndarray, path: object) -> None:
    """Report ranks that most scores contradict: on successive lines of a query a higher rank must have a lower score.

    queries, scores: (L,); ranks: (L,), NaN if none.
    """
    if (np.diff(queries) < 0).any():
        order = np.argsort(queries, kind="stable")
        queries, ranks, scores = queries[order], ranks[order], scores[order]
    same = np.diff(queries) == 0
    risen, fallen = np.diff(ranks)[same], -np.diff(scores)[same]
    ranked = int(np.count_nonzero(np.abs(risen) > 0))
    wrong = ranked - int(np.count_nonzero(risen * fallen > 0))
    if wrong > ranked * DOUBTFUL:
        notice(
            f"{path}: on {wrong:,} of {ranked:,} lines the score does not fall where the rank rises; a run is ordered "
            "by its scores; if its ranks are right, write scores that fall with the rank, or `qid docid rank` lines"
        )


def _doubt_third_column(read: Any, path: object) -> None:
    """Report a third column that holds no ranks in most queries: none is 1, or one repeats."""
    queries, wrong = read.queries, read.scores[read.offsets[:-1]] < 1
    wrong[queries[1:][(np.diff(queries) == 0) & (np.diff(read.scores) == 0)]] = True
    if (count := int(wrong.sum())) > len(wrong) * DOUBTFUL:
        notice(
            f"{path}: in {count:,} of {len(wrong):,} queries no rank is 1, or one stands twice; column 3 is read as "
            "the rank, the lowest first; write scores in the six columns of TREC"
        )


def _read_lines(content: bytes, format: str, path: str | os.PathLike[str], make: Make) -> Any:
    qids: list[str] = []
    docids: list[str] = []
    scores: list[float] = []
    ranks: list[float] = []
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
        if format == "trec":
            scores.append(_score(columns[4], where))
            ranks.append(float(columns[3]) if NUMBER.fullmatch(columns[3]) else math.nan)
        else:
            scores.append(1 / _rank(columns[2], where))
        lines.append(line)
    if not lines:
        raise InputError(f"{path}: {_expected('no run lines')}")
    names, queries = encode(qids, "qids")
    distinct, rows = encode(docids, "docids")
    if (repeated := repeated_entry(queries, rows, len(distinct))) is not None:
        first, second = repeated
        raise InputError(
            f"{path}:{lines[second]}: query {qids[second]} has docid {docids[second]} a second time "
            f"(first on line {lines[first]}); expected every docid once a query"
        )
    read = make(names.tolist(), queries, Docids(distinct), rows, np.array(scores))
    if format == "trec":
        _doubt_ranks(queries, np.array(ranks), np.array(scores), path)
    else:
        _doubt_third_column(read, path)
    return read


def _score(text: bytes, where: str) -> float:
    score = float(text) if NUMBER.fullmatch(text) else math.nan
    if not abs(score) <= LARGEST:
        raise InputError(
            f"{where}: score {_shown(text)}; expected a finite number within float32 (±{LARGEST:.2g}) in column 5"
        )
    return score


def _shown(text: bytes) -> str:
    return shown_word(text.decode(errors="replace"))


def _rank(text: bytes, where: str) -> int:
    if not re.fullmatch(rb"\+?0*[1-9]\d{0,17}", text):
        raise InputError(f"{where}: rank {_shown(text)}; expected a whole number from 1 in column 3")
    return int(text)
