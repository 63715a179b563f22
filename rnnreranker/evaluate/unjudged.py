"""A warning for runs in which no judged document stands: every measure is then 0, mostly for one silly reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rnnreranker.base.command import say

if TYPE_CHECKING:
    import pandas

    from rnnreranker.runs import Run


def say_unjudged(runs: Mapping[str, Run], qrels: pandas.DataFrame) -> None:
    """One line on stderr for each run that has none of the documents judged for its topics.

    qrels: as `load_qrels` gives them.
    """
    judged: dict[str, set[str]] = {}
    for qid, docid in zip(qrels["query_id"], qrels["doc_id"], strict=True):
        judged.setdefault(qid, set()).add(docid)
    for name, run in runs.items():
        topics = [qid for qid in run.qids if qid in judged]
        if any(not judged[qid].isdisjoint(run.ranked(qid)) for qid in topics):
            continue
        shown = next((docid for qid in topics for docid in run.ranked(qid)), "")
        say(
            f"{name}: no judged docid is in the run, so that every measure is 0 (its first docid: {shown or 'none'}; "
            f"judged: {qrels['doc_id'].iloc[0]}); check that both are of the same collection"
        )
