"""Writing of run files, in an order that sorting by score keeps."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from rnnreranker.base.errors import InputError, nearest
from rnnreranker.base.files import FORMATS, write_atomically
from rnnreranker.runs.arrow import as_numpy, numbers, strings
from rnnreranker.runs.columns import check_id, hold_words
from rnnreranker.runs.ordering import steps

LINES = 200_000  # joined at a time: bounds the memory, and an Arrow string array holds less than 2 GiB
LARGEST_KEY = int(np.array(np.finfo(np.float32).max).view(np.int32))


def write_run(run: Any, path: str | os.PathLike[str], tag: str, format: str) -> None:
    """Write a run; see `Run.write`."""
    from pyarrow.compute import binary_join_element_wise as join

    if format not in FORMATS:
        raise InputError(f"format {format!r}; {nearest(format, FORMATS)}")
    qids, docids = strings(run.qids), run.ids.names
    for words, what in ((strings([tag]), "tag"), (qids, "query id"), (docids, "docid")):
        for word in [] if hold_words(words) else words.to_pylist():
            check_id(word, what, "run")
    queries, ranks = run.queries, run.ranks
    scores = strictly_decreasing(run) if format == "trec" else None
    blank, tab, second, ended, nothing, line_end = strings([" ", "\t", "Q0", f"{tag}\n", "", "\n"])
    with write_atomically(path) as stream:
        for first in range(0, len(run.rows), LINES):
            part = slice(first, first + LINES)
            qid_column, docid_column = qids.take(numbers(queries[part])), docids.take(numbers(run.rows[part]))
            rank_column = numbers(ranks[part]).cast("string")
            if scores is None:
                columns = [qid_column, docid_column, join(rank_column, line_end, nothing), tab]
            else:
                score_column = numbers(scores[part]).cast("string")  # the shortest text that reads back equal
                columns = [qid_column, second, docid_column, rank_column, score_column, ended, blank]
            lines = join(*columns)
            _, ends, text = lines.buffers()  # Arrow keeps the text of all lines one after the other
            stream.write(text[: np.frombuffer(ends, dtype=np.int32)[len(lines)]])


def strictly_decreasing(run: Any) -> np.ndarray:
    """(L,) float32: the scores of a run, lowered just enough to decrease strictly in every query.

    With floats as ordered integers k, the rule k'_i = min(k_i, k'_(i-1) - 1) is a running minimum of k_i + i.

    Raises:
        InputError: a score that float32 cannot hold, or no float32 below the one before.
    """
    with np.errstate(over="ignore"):
        single = run.scores.astype(np.float32)
    queries, ranks = run.queries, run.ranks - 1
    apart = queries << 33  # more than any two keys differ: a query's minimum never reaches into the next one
    lowered = np.minimum.accumulate(steps(single) + ranks - apart) + apart - ranks
    wrong = np.abs(lowered) > LARGEST_KEY
    if wrong.any():
        entry = int(np.argmax(wrong))
        where = f"query {run.qids[queries[entry]]}, docid {run.docids[run.rows[entry]]}"
        raise InputError(
            f"{where}: score {run.scores[entry]:g} at rank {ranks[entry] + 1} cannot be written: "
            "no float32 number is left for it; expected scores within ±3.4e38"
        )
    magnitude = np.abs(lowered).astype(np.int32).view(np.float32)
    return np.where(lowered < 0, -magnitude, magnitude)


def written_scores(run: Any) -> np.ndarray:
    """(L,) float64: the scores as read again from their text."""
    return as_numpy(numbers(strictly_decreasing(run)).cast("string").cast("float64"))
