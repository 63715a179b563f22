"""The printed results of a search: one query's hits, or measures before and after reranking."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from rnnreranker.base.command import say
from rnnreranker.base.tables import print_table
from rnnreranker.index.opening import IndexOnDisk, letters
from rnnreranker.search.inputs import texts_in

if TYPE_CHECKING:
    import pandas

    from rnnreranker.runs import Run


def show_results(
    index: IndexOnDisk, base: Run, reranked: Run, limit: int, text_of: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Print rank, move, docid, score and a line of text of the only query's first `limit` results.

    A terminal gets an aligned table with arrows, a pipe tab-separated values with signed numbers (+2 = two ranks up).
    text_of: document → the passage whose text is shown.
    """
    (qid,) = reranked.qids
    before = {docid: rank for rank, (docid, _) in enumerate(base[qid], 1)}
    shown = reranked[qid][:limit]
    if not shown:
        say("no document matches the query")
    texts = texts_in(index)
    on_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns - max((len(docid) for docid, _ in shown), default=0) - 28
    rows = []
    for rank, (docid, score) in enumerate(shown, 1):
        moved = before[docid] - rank if docid in before else None
        text = first_line(docid, texts.get(text_of.get(docid, docid), ""))
        if on_terminal:
            arrow = "new" if moved is None else f"{'↑' if moved > 0 else '↓'}{abs(moved)}" if moved else "="
            rows.append([rank, arrow, docid, f"{score:.4f}", _cut(text, max(width, 20))])
        else:
            signed = "new" if moved is None else f"{moved:+d}" if moved else "0"
            rows.append([rank, signed, docid, f"{score:.6f}", text.replace("\t", " ")])
    print_table(["rank", "moved", "docid", "score", "text"], rows)


def first_line(docid: str, text: str) -> str:
    """The first line of a text that does not repeat the docid; else its first line.

    >>> first_line("heapq.merge", "heapq.merge(*iterables)\\nheapq merge\\nMerge sorted inputs.")
    'Merge sorted inputs.'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    again = (line for line in lines if not letters(line).startswith(letters(docid)))
    return next(again, lines[0] if lines else "")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def show_evaluation(runs: Mapping[str, Run], qrels: pandas.DataFrame, measures: str) -> None:
    """Print the measures of one run, or compare others with the first: difference, 95% interval, p, win/tie/loss,
    judged@10.
    """
    from rnnreranker.evaluate import compare, evaluate
    from rnnreranker.evaluate.comparison import print_comparisons, print_scores
    from rnnreranker.evaluate.scores import judged_documents, notice_unjudged

    scores = evaluate(runs, qrels, measures)
    notice_unjudged(runs, judged_documents(qrels))
    (first, *others) = scores.runs
    if not others:
        row = [first, *(f"{value:.4f}" for value in scores.means[0])]
        print_scores(["run", *scores.measures], [row], scores.protocol)
        return
    print_comparisons(scores, compare(scores))
