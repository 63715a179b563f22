"""Reading of run files by Arrow, and what is wrong with lines that it cannot read."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable
from typing import IO, Any, NoReturn

import numpy as np

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.files import FORMATS, check_no_nul, open_bytes
from rnnreranker.runs.arrow import as_numpy
from rnnreranker.runs.columns import Docids, check_id, hold_words, numbered, shown_word

COLUMNS = {"trec": ("qid", "Q0", "docid", "rank", "score", "tag"), "msmarco": ("qid", "docid", "rank")}
LARGEST = float(np.finfo(np.float32).max) + 2.0**102  # rounds to the largest float32: its shortest text lies above it
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
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
        first = stream.read(HEAD).removeprefix(BYTE_ORDER_MARK).lstrip().partition(b"\n")[0]
        columns = len(first.split())
        format = format or next((one for one, names in COLUMNS.items() if len(names) == columns), None)
        stream.seek(0)
        if (run := _read(stream, b"\t" if b"\t" in first else b" ", format, path, make)) is not None:
            return run
        stream.seek(0)
        content = stream.read().removeprefix(BYTE_ORDER_MARK)
    check_no_nul(content, path)
    lines = [b" ".join(line.split()) for line in content.split(b"\n")]
    if (run := _read(io.BytesIO(b"\n".join(lines)), b" ", format, path, make, any_rank=True)) is not None:
        return run
    _refuse(lines, format, path)


def _read(
    stream: IO[bytes], separator: bytes, format: str | None, path: object, make: Make, any_rank: bool = False
) -> Any:
    """The run of lines with one separator between columns and no fault; None for any other.

    any_rank: whether ranks beside scores may be other words than whole numbers.

    Doubled or trailing separators make more columns, which Arrow refuses, or empty ones, which `hold_words` refuses.
    """
    import pyarrow
    import pyarrow.csv

    if format is None:
        return None
    kinds = dict.fromkeys(COLUMNS[format], pyarrow.string()) | {"rank": pyarrow.int64()}
    if format == "trec":
        kinds |= {"score": pyarrow.float64()} | ({"rank": pyarrow.string()} if any_rank else {})
    try:
        table = pyarrow.csv.read_csv(
            stream,
            read_options=pyarrow.csv.ReadOptions(column_names=list(COLUMNS[format]), block_size=BLOCK),
            parse_options=pyarrow.csv.ParseOptions(delimiter=separator.decode(), quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(column_types=kinds, null_values=[]),
        )
    except pyarrow.ArrowException:
        return None
    columns = {name: table.column(name) for name in table.column_names}
    del table  # and its columns as they are read: bounds the memory
    values = as_numpy(columns.pop("score" if format == "trec" else "rank").combine_chunks())
    valid = (values >= 1).all() if format == "msmarco" else (np.abs(values) <= LARGEST).all()
    if not valid or not len(values):
        return None
    ranks, unread = None, [] if format == "msmarco" else ["Q0", "tag"]
    if unread:
        try:
            ranks = as_numpy(columns["rank"].cast(pyarrow.int64()).combine_chunks())
        except pyarrow.ArrowInvalid:
            unread.append("rank")
    words = [columns.pop(name).unique() for name in unread]
    qids, queries = numbered(columns.pop("qid"))
    docids, rows = numbered(columns.pop("docid"))
    if not hold_words(qids, docids, *words):
        return None
    try:
        read = make(qids.to_pylist(), queries, Docids(docids), rows, values if format == "trec" else 1 / values)
    except InputError:  # a docid twice
        return None
    if format == "msmarco":
        _doubt_third_column(read, path)
        return without_gaps(read)
    if ranks is not None:
        _doubt_ranks(queries, ranks, values, path)
    return read


def without_gaps(run: Any) -> Any:
    """The run with 1 / rank as scores, where ranks of a query count its entries from 1; equal ranks stay equal."""
    ranks = np.cumsum(np.diff(run.scores, prepend=0) != 0)
    ranks -= np.repeat(ranks[run.offsets[:-1]] - 1, np.diff(run.offsets))
    return type(run)(run.qids, run.offsets, run.ids, run.rows, 1 / ranks)


def _doubt_ranks(queries: np.ndarray, ranks: np.ndarray, scores: np.ndarray, path: object) -> None:
    """Report ranks that most scores contradict: on successive lines of a query a higher rank must have a lower score.

    queries, ranks, scores: (L,).
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


def _refuse(lines: Iterable[bytes], format: str | None, path: object) -> NoReturn:
    """Raise InputError for the first fault of lines with one blank between columns."""
    trec, msmarco = (
        f"{word} `{' '.join(COLUMNS[name])}`" for word, name in (("TREC", "trec"), ("MS MARCO", "msmarco"))
    )
    expected = {"trec": trec, "msmarco": msmarco, None: f"{trec} or {msmarco}"}[format]
    line_of: dict[tuple[str, str], int] = {}
    for line, text in enumerate(lines, 1):
        where = f"{path}:{line}"
        try:
            words = text.decode().split(" ") if text else []
        except UnicodeDecodeError:
            raise InputError(f"{where}: not UTF-8 text; expected a run file in UTF-8") from None
        if not words:
            continue
        if format is None or len(words) != len(COLUMNS[format]):
            raise InputError(f"{where}: {len(words)} columns; expected {expected}")
        of = dict(zip(COLUMNS[format], words, strict=True))
        check_id(of["qid"], "query id", where)
        check_id(of["docid"], "docid", where)
        score = of.get("score", "0")
        if not NUMBER.fullmatch(score) or not abs(float(score)) <= LARGEST:
            received = f"score {shown_word(score)}"
            raise InputError(
                f"{where}: {received}; expected a finite number within float32 (±{LARGEST:.2g}) in column 5"
            )
        if format == "msmarco" and not re.fullmatch(r"0*[1-9]\d{0,17}", of["rank"], re.ASCII):
            raise InputError(f"{where}: rank {shown_word(of['rank'])}; expected a whole number from 1 in column 3")
        if (first := line_of.setdefault((of["qid"], of["docid"]), line)) != line:
            raise InputError(
                f"{where}: query {of['qid']} has docid {of['docid']} a second time (first on line {first}); expected "
                "every docid once a query"
            )
    wrong = "a control character in a column" if line_of else "no run lines"
    raise InputError(f"{path}: {wrong}; expected {expected}")
