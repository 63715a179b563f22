"""Qrels: names or files to relevance judgements, as the data frame that ir-measures takes."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.data import irds, local
from rnnreranker.data.names import BUILT_IN_QRELS, is_file
from rnnreranker.errors import InputError
from rnnreranker.files import read_text
from rnnreranker.process.phases import phase
from rnnreranker.runs.words import columns_of, shown_word

if TYPE_CHECKING:
    import pandas

LARGEST = 2**31 - 1  # a grade, or one below 0: trec_eval's are of 32 bits
_GRADE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@phase("reading judgements")
def load_qrels(name: str | Path) -> pandas.DataFrame:
    """Judgements: columns query_id (str), doc_id (str), relevance (int), one row each, in the order of the source.

    Args:
        name: a file (TREC: `qid 0 docid grade`; or the tab-separated `query-id corpus-id score` of BEIR with or
            without its header; plain or .gz), a folder in BEIR layout (`FOLDER` or `FOLDER:SPLIT`), an
            ir_datasets id or short name, `tripclick-head-val-dctr` (and the like), `reqa-squad` (-nq, -cmrc, -drcd),
            `pydoc` or `pydoc/train`.

    Raises:
        InputError: unknown name, unreadable file, a malformed line (with file:line), a pair judged twice, no lines.
        UnavailableError: data that cannot be downloaded here.
    """
    name = local.source(str(name), "qrels")
    if is_file(name, "qrels"):
        return _frame(_parse(read_text(name, "qrels file"), name), name)
    if name in BUILT_IN_QRELS:
        inside = resources.files("rnnreranker.data").joinpath(BUILT_IN_QRELS[name])
        return _frame(_parse(inside.read_text(encoding="utf-8"), name), name)
    dataset = irds.load(name)
    with irds.reading(name, "qrels"):
        judgements = [(judged.query_id, judged.doc_id, int(judged.relevance)) for judged in dataset.qrels_iter()]
    return _frame(judgements, name)


def _parse(text: str, source: str) -> list[tuple[str, str, int]]:
    judgements = []
    first_seen: dict[tuple[str, str], int] = {}
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
        if (qid, docid) in first_seen:
            before = first_seen[qid, docid]
            raise InputError(f"{where}: {docid} is judged for query {qid} a second time (first on line {before})")
        first_seen[qid, docid] = number
        judgements.append((qid, docid, int(grade)))
    return judgements


def _frame(judgements: list[tuple[str, str, int]], source: str) -> pandas.DataFrame:
    import pandas

    if not judgements:
        raise InputError(f"{source}: no judgements; expected lines of `qid 0 docid grade`")
    return pandas.DataFrame(judgements, columns=["query_id", "doc_id", "relevance"])
