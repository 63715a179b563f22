"""`evaluate_run`: what runs are worth, as a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.data.qrels import qrels_of
from rnnreranker.evaluate.scores import Scores, evaluate
from rnnreranker.evaluate.ties import DEFAULT_TIES
from rnnreranker.runs import Run

if TYPE_CHECKING:
    import pandas


def evaluate_run(
    run: str | Path | Run | Mapping[str, str | Path | Run],
    qrels: str | Path | Mapping[str, Mapping[str, int]] | pandas.DataFrame,
    measures: str | Iterable[str] = ("nDCG@10",),
    protocol: str = "trec",
    *,
    per_query: bool = False,
    common_topics: bool = False,
    ties: str = DEFAULT_TIES,
) -> pandas.DataFrame:
    """The measures of a run, or of several by name: a row for each, a column for each measure.

    Args:
        run: a Run or a file; or a mapping from names to these.
        qrels: a name, a file, or {qid: {docid: grade}}.
        measures: as ir-measures writes them, a list or one text with spaces between.
        protocol: which grades count: trec, strict, strict-dropped, lenient, binary.
        per_query: a row for every run and judged topic, with the columns run and topic, in place of means.
        common_topics: only the judged topics that every run has; otherwise one that is missing scores 0.
        ties: the order of equal scores, as of `python -m rnnreranker.evaluate --ties`.

    Raises:
        InputError: no such measure or protocol, unreadable files, a run none of whose topics is judged.
    """
    import pandas

    named = run if isinstance(run, Mapping) else {_name(run): run}
    runs = {name: one if isinstance(one, Run) else Run.read(one) for name, one in named.items()}
    asked = measures if isinstance(measures, str) else " ".join(map(str, measures))
    scores: Scores = evaluate(runs, qrels_of(qrels), asked, protocol, common_topics, ties)
    if per_query:
        return scores.frame()
    return pandas.DataFrame(scores.means, index=list(scores.runs), columns=list(scores.measures))


def _name(run: str | Path | Run) -> str:
    return "run" if isinstance(run, Run) else Path(run).name
