"""Qrels: names, files and Python objects to relevance judgements, as the data frame that ir-measures takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.command import phase
from rnnreranker.base.errors import InputError, brief
from rnnreranker.data import irds, local
from rnnreranker.data.names import SHORT_NAMES
from rnnreranker.data.topics import without

if TYPE_CHECKING:
    from typing import TypeAlias

    import pandas

    Triples: TypeAlias = Iterable[tuple[str, str, int]]
    Qrels: TypeAlias = str | Path | Mapping[str, Mapping[str, int] | Collection[str]] | Triples | pandas.DataFrame

COLUMNS = ("query_id", "doc_id", "relevance")
OF_PYTERRIER = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
EXPECTED = "expected a name, a file, {qid: {docid: grade}}, {qid: [docid]} or a data frame of " + ", ".join(COLUMNS)
TREC_DL = re.compile(r"msmarco-(passage|document)(-v2)?/trec-dl-")
GRADE = r"[+-]?[0-9]{1,9}(\.0*)?"  # trec_eval's grades have 32 bits


def qrels_of(given: Qrels) -> pandas.DataFrame:
    """The judgements of a name, a file or an object, in the columns of `load_qrels`.

    Args:
        given: a name, a file, {qid: {docid: grade}}, {qid: docids} of grade 1, (qid, docid, grade) triples, named
            tuples of ir-measures, or a data frame of ir-measures or PyTerrier. Ids may be whole numbers.

    Raises:
        InputError: as `load_qrels`; another type, other ids, grades that are not whole numbers.
        UnavailableError: as `load_qrels`.
    """
    import pandas

    if isinstance(given, str | Path):
        return load_qrels(given)
    try:
        if isinstance(given, Mapping):
            if any(isinstance(of, str) for of in given.values()):
                raise TypeError("a text in place of docids")
            of_queries = {qid: of if isinstance(of, Mapping) else dict.fromkeys(of, 1) for qid, of in given.items()}
            given = [(qid, docid, grade) for qid, of in of_queries.items() for docid, grade in of.items()]
        frame = given if isinstance(given, pandas.DataFrame) else pandas.DataFrame(list(given))
    except (TypeError, ValueError) as error:
        raise InputError(f"qrels: {brief(given)}: {error}; {EXPECTED}") from None
    names: dict[Any, str] = {**dict(enumerate(COLUMNS)), **({} if "query_id" in frame else OF_PYTERRIER)}
    frame = frame.rename(columns=names)
    if len(frame) and (lost := [name for name in COLUMNS if name not in frame]):
        raise InputError(f"qrels: no column {', '.join(lost)} in {brief(given)}; {EXPECTED}")
    return _checked(frame.reindex(columns=[*COLUMNS]).assign(where="qrels"), "qrels")


def grades_of(given: Qrels) -> dict[tuple[str, str], int]:
    """(query id, docid) → grade of all judgements; raises as `qrels_of`."""
    qrels = qrels_of(given)
    pairs = zip(qrels["query_id"], qrels["doc_id"], strict=True)
    return dict(zip(pairs, qrels["relevance"].tolist(), strict=True))


@phase("reading judgements")
def load_qrels(name: str | Path) -> pandas.DataFrame:
    """Judgements: columns query_id (str), doc_id (str), relevance (int), in the order of the source.

    `attrs["protocol"]` is that of `named_protocol`.

    Args:
        name: a file, plain or .gz (lines of TREC or BEIR, JSON or parquet with BEIR's names, see `read_qrels`),
            another name of `load_topics`, `tripclick-head-val-dctr` (and the like) or `pydoc/shallow`.
            `NAME:without:OTHER` leaves out the queries of the topics OTHER.

    Raises:
        InputError: an unknown name, a malformed line (with file:line), a pair with two grades, no judgements.
        UnavailableError: data that cannot be downloaded here.
    """
    import pandas

    first, unwanted = without(str(name))
    if local.files_of(first, "qrels"):
        rows = local.judged(first)
    else:
        rows = [(one.query_id, one.doc_id, one.relevance, first) for one in irds.items(first, "qrels")]
    columns, kept = (*COLUMNS, "where"), zip(*(row for row in rows if row[0] not in unwanted), strict=True)
    qrels = _checked(pandas.DataFrame(dict(zip(columns, kept, strict=False)), columns=columns), str(name))
    qrels.attrs["protocol"] = named_protocol(first)
    return qrels


def named_protocol(name: str) -> str:
    """The protocol that belongs to a name of judgements: `dl` for TREC DL, `trec` for others.

    >>> named_protocol("dl19"), named_protocol("msmarco-passage-v2/trec-dl-2021/judged"), named_protocol("msmarco-dev")
    ('dl', 'dl', 'trec')
    """
    return "dl" if TREC_DL.match(SHORT_NAMES.get(name, name)) and not Path(name).exists() else "trec"


def _checked(frame: pandas.DataFrame, source: str) -> pandas.DataFrame:
    """Judgements with ids as text and whole grades, each pair once; the column `where` is for messages.

    Raises:
        InputError: no judgements, a wrong id or grade, a pair with two grades.
    """
    if frame.empty:
        raise InputError(f"{source}: no judgements; expected lines of `qid 0 docid grade`")
    written = frame["relevance"].map(str)
    if wrong := [one for one in written.unique() if not re.fullmatch(GRADE, one)]:
        one = frame[written == wrong[0]].iloc[0]
        of = f"{one['where']}: query {one['query_id']}, document {one['doc_id']}"
        raise InputError(f"{of}: grade {brief(wrong[0])}; expected a whole number")
    ids = {name: as_text(frame[name], source) for name in COLUMNS[:2]}
    grades = written.map({one: int(float(one)) for one in written.unique()}).astype("int64")
    distinct = frame.assign(**ids, relevance=grades).drop_duplicates([*COLUMNS])
    if (again := distinct.duplicated([*COLUMNS[:2]])).any():
        where, qid, docid, grade = distinct.loc[again, ["where", *COLUMNS]].iloc[0]
        raise InputError(f"{where}: {docid} has grade {grade} for query {qid}, and another before; expected one grade")
    return distinct[[*COLUMNS]].reset_index(drop=True)


def as_text(column: pandas.Series, source: str) -> pandas.Series:
    """Ids as text: whole numbers become their digits; InputError: other types."""
    import pandas

    if isinstance(column.dtype, pandas.StringDtype) and not column.hasnans:
        return column
    for kind in set(map(type, column)):
        if kind is bool or not issubclass(kind, str | Integral):
            raise InputError(f"{source}: {column.name} has a {kind.__name__}; expected text")
    return column.map(str)
