"""The candidates that are labelled: those of a run, or of published pairs where these are here."""

from __future__ import annotations

import numpy as np

from rnnreranker.base.command import counted, say
from rnnreranker.base.errors import UnavailableError
from rnnreranker.data.pairs import load_pairs
from rnnreranker.labels.request import LabelsRequest
from rnnreranker.runs import Run
from rnnreranker.search.first_stage import first_stage_of


def candidates_of(request: LabelsRequest) -> tuple[Run, str | None]:
    """The candidates of each query of the run, and whose pairs gave them where these were asked for and are here.

    Raises:
        InputError: a run or pairs that cannot be read.
    """
    run = first_stage_of(request.run).head(request.depth)
    if request.pairs is None:
        return run, None
    try:
        pairs = load_pairs(request.pairs, request.depth)
    except UnavailableError as error:
        say(f"{error}; candidates are those of {request.shown('run')}, in place of published pairs")
        return run, None
    taken = sum(qid in pairs for qid in run.qids)
    say(f"{request.pairs}: candidates of {taken} of {counted(len(run.qids), 'query', 'queries')}")
    return _first_of(pairs, run), request.pairs


def _first_of(pairs: Run, run: Run) -> Run:
    """The queries of a run, each with its entries of the pairs, or of the run where the pairs have none."""
    number_of = {docid: number for number, docid in enumerate(run.docids)}
    known = np.fromiter(
        (number_of.setdefault(docid, len(number_of)) for docid in pairs.docids), np.int32, len(pairs.docids)
    )
    row_of = {qid: number for number, qid in enumerate(pairs.qids)}
    rows, scores = [], []
    for number, qid in enumerate(run.qids):
        of, at = (pairs, row_of[qid]) if qid in row_of else (run, number)
        span = slice(of.offsets[at], of.offsets[at + 1])
        rows.append(known[of.rows[span]] if of is pairs else of.rows[span])
        scores.append(of.scores[span])
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in rows])])
    docids = np.array(list(number_of), dtype=object)
    return Run.from_parts(run.qids, offsets, docids, np.concatenate(rows), np.concatenate(scores))
