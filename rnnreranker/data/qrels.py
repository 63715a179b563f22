"""Qrels: names or files to relevance judgements, as the data frame that ir-measures takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_text
from rnnreranker.base.process.phases import phase
from rnnreranker.data import irds, local
from rnnreranker.data.names import BUILT_IN_QRELS, built_in_text, is_file
from rnnreranker.data.qrels_lines import parse_qrels
from rnnreranker.data.topics import none_left, without

if TYPE_CHECKING:
    import pandas


def qrels_of(given: str | Path | Mapping[str, Mapping[str, int]] | pandas.DataFrame) -> pandas.DataFrame:
    """The judgements of a name or a file, see `load_qrels`; of a mapping qid → docid → grade, or of such a data frame.

    Raises:
        InputError: as `load_qrels`; grades that are no whole numbers.
        UnavailableError: as `load_qrels`.
    """
    if isinstance(given, str | Path):
        return load_qrels(given)
    if not isinstance(given, Mapping):
        return given
    judged = [(str(qid), str(docid), grade) for qid, of in given.items() for docid, grade in of.items()]
    if wrong := [one for one in judged if not isinstance(one[2], int) or isinstance(one[2], bool)]:
        raise InputError(
            f"qrels: query {wrong[0][0]}, document {wrong[0][1]}: {wrong[0][2]!r}; expected a whole number"
        )
    return _frame(judged, "qrels")


@phase("reading judgements")
def load_qrels(name: str | Path) -> pandas.DataFrame:
    """Judgements: columns query_id (str), doc_id (str), relevance (int), one row each, in the order of the source.

    Args:
        name: a file (TREC: `qid 0 docid grade`; or the tab-separated `query-id corpus-id score` of BEIR with or
            without its header; plain or .gz), a folder in BEIR layout (`FOLDER` or `FOLDER:SPLIT`), an
            ir_datasets id or short name, `tripclick-head-val-dctr` (and the like), `reqa-squad` (-nq, -cmrc, -drcd),
            `pydoc` (and its kinds of topics), `pydoc/shallow` or `pydoc/train`; `NAME:without:OTHER` are those of NAME
            of queries that the topics OTHER lack.

    Raises:
        InputError: unknown name, unreadable file, a malformed line (with file:line), a pair judged twice, no lines,
            none left.
        UnavailableError: data that cannot be downloaded here.
    """
    first, unwanted = without(str(name))
    qrels = _all_qrels(first)
    if unwanted and (qrels := qrels[~qrels["query_id"].isin(unwanted)].reset_index(drop=True)).empty:
        raise none_left(str(name), first, "judgement")
    return qrels


def _all_qrels(name: str) -> pandas.DataFrame:
    name = local.source(name, "qrels")
    if is_file(name, "qrels"):
        return _frame(parse_qrels(read_text(name, "qrels file"), name), name)
    if name in BUILT_IN_QRELS:
        return _frame(parse_qrels(built_in_text(BUILT_IN_QRELS[name]), name), name)
    dataset = irds.load(name)
    with irds.reading(name, "qrels"):
        judgements = [(judged.query_id, judged.doc_id, int(judged.relevance)) for judged in dataset.qrels_iter()]
    return _frame(judgements, name)


def _frame(judgements: list[tuple[str, str, int]], source: str) -> pandas.DataFrame:
    import pandas

    if not judgements:
        raise InputError(f"{source}: no judgements; expected lines of `qid 0 docid grade`")
    return pandas.DataFrame(judgements, columns=["query_id", "doc_id", "relevance"])
