"""The printed results of a search: one query's hits, or measures before and after reranking."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rnnreranker.base.command import print_table, say
from rnnreranker.index.opening import Index
from rnnreranker.search.inputs import texts_in

if TYPE_CHECKING:
    from rnnreranker.runs import Run

ARROWS = str.maketrans("+-0", "↑↓=")  # of moves on a terminal


def show_results(index: Index, base: Run, reranked: Run, limit: int, text_of: Mapping[str, str]) -> None:
    """Print rank, move, docid, score and a line of text of the only query's first `limit` results.

    A terminal gets an aligned table with arrows, a pipe tab-separated values with signed numbers (+2 = two ranks up).
    text_of: document → the passage whose text is shown.
    """
    (qid,) = reranked.qids
    before = {docid: rank for rank, docid in enumerate(base.ranked(qid), 1)}
    shown = reranked[qid][:limit]
    if not shown:
        say("no document matches the query")
    texts, wide, rows = texts_in(index), not sys.stdout.isatty(), []
    width = max(shutil.get_terminal_size().columns - max((len(docid) for docid, _ in shown), default=0) - 28, 20)
    for rank, (docid, score) in enumerate(shown, 1):
        moved = f"{before[docid] - rank:+d}" if docid in before else "new"
        moved = "0" if moved == "+0" else moved
        text = first_line(docid, texts.get(text_of.get(docid, docid), ""))
        if wide:
            rows.append([rank, moved, docid, f"{score:.6f}", text])
        else:
            moved = moved[:1].translate(ARROWS) + moved[1:]
            rows.append([rank, moved, docid, f"{score:.4f}", text if len(text) <= width else text[: width - 1] + "…"])
    print_table(["rank", "moved", "docid", "score", "text"], rows)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def first_line(docid: str, text: str) -> str:
    """The first line of a text that does not repeat the docid; else its first line.

    >>> first_line("heapq.merge", "heapq.merge(*iterables)\\nheapq merge\\nMerge sorted inputs.")
    'Merge sorted inputs.'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    again = (line for line in lines if not _letters(line).startswith(_letters(docid)))
    return next(again, lines[0] if lines else "")
