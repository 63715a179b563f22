"""`evaluate_run`: what runs are worth, as a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rnnreranker.evaluate.evaluating import EvaluateRequest, evaluated, named_runs

if TYPE_CHECKING:
    import ir_measures
    import pandas

    from rnnreranker.data.qrels import Qrels
    from rnnreranker.evaluate.evaluating import AnyRun


def evaluate_run(
    run: AnyRun | Mapping[str, AnyRun],
    qrels: Qrels,
    measures: str | Sequence[str | ir_measures.Measure] = ("nDCG@10",),
    protocol: str | None = None,
    *,
    per_query: bool = False,
    common_topics: bool = False,
) -> pandas.DataFrame:
    """The measures of a run, or of several by name: a row for each, a column for each measure.

    `attrs["protocol"]` of the table is its protocol. A table of another protocol than `trec` shows it, too, as the name
    of its columns.

    Args:
        run: a Run, a file, {qid: {docid: score}} or a data frame of query_id, doc_id, score (or qid, docno,
            score); or a mapping from names to these.
        qrels: a name, a file, {qid: {docid: grade}}, {qid: docids} or a data frame, see `qrels_of`.
        measures: as ir-measures or trec_eval writes them, a list or one text with spaces between.
        protocol: which grades count: trec, dl, strict, strict-dropped, binary; None = dl for the names of TREC DL, else
            trec.
        per_query: a row for every run and judged topic, with the columns run and topic, in place of means.
        common_topics: only the judged topics that every run has; otherwise one that is missing scores 0.

    Raises:
        InputError: no such measure or protocol, unreadable files, a run none of whose topics is judged.
    """
    import pandas

    scores = evaluated(EvaluateRequest(named_runs(run), qrels, measures, protocol, common_topics)).scores
    table = scores.frame() if per_query else pandas.DataFrame(scores.means, list(scores.runs), list(scores.measures))
    table.attrs["protocol"] = scores.protocol
    if scores.protocol != "trec":
        table.columns.name = f"protocol {scores.protocol}"
    return table
