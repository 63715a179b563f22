"""Qrels: names, files and Python objects to relevance judgements, as the data frame that ir-measures takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.process.phases import phase
from rnnreranker.data import irds, local
from rnnreranker.data.names import BUILT_IN_QRELS, built_in_lines, is_file
from rnnreranker.data.records import LARGEST, read_qrels
from rnnreranker.data.topics import none_left, without

if TYPE_CHECKING:
    from typing import TypeAlias

    import pandas

    Triples: TypeAlias = Iterable[tuple[str, str, int]]
    Qrels: TypeAlias = str | Path | Mapping[str, Mapping[str, int] | Collection[str]] | Triples | pandas.DataFrame

COLUMNS = ("query_id", "doc_id", "relevance")
OF_PYTERRIER = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
EXPECTED = "expected a name, a file, {qid: {docid: grade}}, {qid: [docid]} or a data frame of " + ", ".join(COLUMNS)
TREC_DL = re.compile(r"msmarco-(passage|document)(-v2)?/trec-dl-")


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
    if isinstance(given, pandas.DataFrame):
        frame = given.rename(columns={} if "query_id" in given else OF_PYTERRIER)
        if lost := [name for name in COLUMNS if name not in frame]:
            raise InputError(f"qrels: no column {', '.join(lost)}; {EXPECTED}")
        return _checked(frame[[*COLUMNS]], "qrels")
    return _checked(pandas.DataFrame(_rows(given), columns=[*COLUMNS]), "qrels")


def grades_of(given: Qrels) -> dict[tuple[str, str], int]:
    """(query id, docid) → grade of all judgements; raises as `qrels_of`."""
    qrels = qrels_of(given)
    pairs = zip(qrels["query_id"], qrels["doc_id"], strict=True)
    return dict(zip(pairs, qrels["relevance"].tolist(), strict=True))


def _rows(given: Any) -> list[tuple[Any, Any, Any]]:
    """The judgements of a mapping or an iterable of tuples."""
    if not isinstance(given, Iterable):
        raise InputError(f"qrels: {type(given).__name__}; {EXPECTED}")
    rows: list[tuple[Any, Any, Any]] = []
    if isinstance(given, Mapping):
        for qid, of in given.items():
            if not isinstance(of, Mapping | Sequence | set | frozenset) or isinstance(of, str | bytes):
                raise InputError(f"qrels: query {qid}: {of!r}; {EXPECTED}")
            grades = of.items() if isinstance(of, Mapping) else ((docid, 1) for docid in of)
            rows += [(qid, docid, grade) for docid, grade in grades]
        return rows
    for one in given:
        row = tuple(getattr(one, name) for name in COLUMNS) if hasattr(one, "relevance") else one
        if not isinstance(row, tuple | list) or len(row) != len(COLUMNS):
            raise InputError(f"qrels: {one!r}; {EXPECTED}")
        rows.append(tuple(row))
    return rows


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
    first, unwanted = without(str(name))
    qrels = _all_qrels(first)
    if unwanted and (qrels := qrels[~qrels["query_id"].isin(unwanted)].reset_index(drop=True)).empty:
        raise none_left(str(name), first, "judgement")
    qrels.attrs["protocol"] = named_protocol(first)
    return qrels


def named_protocol(name: str) -> str:
    """The protocol that belongs to a name of judgements: `dl` for TREC DL, `trec` for others.

    >>> named_protocol("dl19"), named_protocol("msmarco-passage-v2/trec-dl-2021/judged"), named_protocol("msmarco-dev")
    ('dl', 'dl', 'trec')
    """
    return "dl" if TREC_DL.match(irds.SHORT_NAMES.get(name, name)) and not Path(name).exists() else "trec"


def _all_qrels(name: str) -> pandas.DataFrame:
    import pandas

    name = local.source(name, "qrels")
    judgements: list[Any]
    if is_file(name, "qrels"):
        judgements = read_qrels(Path(name).expanduser())
    elif name in BUILT_IN_QRELS:
        judgements = read_qrels(name, built_in_lines(BUILT_IN_QRELS[name]))
    else:
        dataset = irds.load(name)
        with irds.reading(name, "qrels"):
            judgements = [(one.query_id, one.doc_id, int(one.relevance)) for one in dataset.qrels_iter()]
    lines_of = [one[3] for one in judgements if len(one) > len(COLUMNS)]
    return _checked(pandas.DataFrame((one[:3] for one in judgements), columns=[*COLUMNS]), name, lines_of)


def _checked(frame: pandas.DataFrame, source: str, lines_of: Sequence[str] = ()) -> pandas.DataFrame:
    """Judgements with ids as text and whole grades, each pair once; lines_of: file:line of each row.

    Raises:
        InputError: no judgements, a wrong id or grade, a pair with two grades.
    """
    if not len(frame):
        raise InputError(f"{source}: no judgements; expected lines of `qid 0 docid grade`")
    frame = frame.assign(
        query_id=as_text(frame["query_id"], source),
        doc_id=as_text(frame["doc_id"], source),
        relevance=_as_grades(frame, source),
    ).reset_index(drop=True)
    distinct = frame.drop_duplicates()
    if (again := distinct.duplicated([*COLUMNS[:2]])).any():
        row = int(distinct.index[again][0])
        qid, docid, grade = distinct.loc[row]
        first = int(frame.index[(frame["query_id"] == qid) & (frame["doc_id"] == docid)][0])
        where, on = (lines_of[row], f" on line {lines_of[first].rpartition(':')[2]}") if lines_of else (source, "")
        before = f"{frame['relevance'][first]}{on}"
        raise InputError(f"{where}: {docid} has grade {grade} for query {qid}, and {before}; expected one grade")
    return distinct.reset_index(drop=True)


def as_text(column: pandas.Series, source: str) -> pandas.Series:
    """Ids as text: whole numbers become their digits."""
    import pandas

    if column.dtype.kind in "iu":
        return column.astype(str)
    if isinstance(column.dtype, pandas.StringDtype) and not column.hasnans:
        return column
    for value in column:
        if not isinstance(value, str | Integral) or isinstance(value, bool):
            raise InputError(f"{source}: {column.name} {value!r} is of type {type(value).__name__}; expected text")
    return column.map(str)


def _as_grades(frame: pandas.DataFrame, source: str) -> pandas.Series:
    """Grades as int64; a whole number may be a float."""
    grades = frame["relevance"]
    if grades.dtype.kind not in "iu" or grades.abs().max() > LARGEST:
        for query, document, grade in zip(frame["query_id"], frame["doc_id"], grades.tolist(), strict=True):
            number = isinstance(grade, Real) and not isinstance(grade, bool)
            if not (number and abs(grade) <= LARGEST and grade == int(grade)):
                raise InputError(f"{source}: query {query}, document {document}: {grade!r}; expected a whole number")
    return grades.astype("int64")
