"""Lines of relevance judgements, as TREC and BEIR write them."""

from __future__ import annotations

import re

from rnnreranker.base.errors import InputError
from rnnreranker.runs.words import columns_of, shown_word

LARGEST = 2**31 - 1  # a grade, or one below 0: trec_eval's are of 32 bits
_GRADE = re.compile(r"[+-]?[0-9]{1,12}(\.0*)?")


def parse_qrels(text: str, source: str) -> tuple[list[tuple[str, str, int]], list[int]]:
    """Query id, docid and grade of every judgement, in their order, and the line that each is on.

    Args:
        text: lines of TREC (`qid 0 docid grade`) or of BEIR (`query-id corpus-id score`, with or without a header).
        source: their file, for messages.

    Raises:
        InputError: a malformed line (with source:line).
    """
    judgements, lines = [], []
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{source}:{number}"
        columns = columns_of(line, where)
        if not columns or (number == 1 and columns[0] == "query-id"):
            continue
        if len(columns) not in (3, 4):
            raise InputError(f"{where}: {len(columns)} columns; expected `qid 0 docid grade`, or qid docid grade")
        qid, docid = columns[0], columns[-2]
        grade = float(columns[-1]) if _GRADE.fullmatch(columns[-1]) else 0.5
        if not (grade.is_integer() and abs(grade) <= LARGEST):
            raise InputError(f"{where}: grade {shown_word(columns[-1])}; expected a whole number in the last column")
        judgements.append((qid, docid, int(grade)))
        lines.append(number)
    return judgements, lines
