"""Relevance judgements of a file: lines of TREC and BEIR, JSON, parquet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_lines
from rnnreranker.data.records import DOCUMENTS, JUDGEMENTS, Form, Lines, candidates_of, form_of, read_records, topic_of
from rnnreranker.runs.words import check_id, columns_of, shown_word

LARGEST = 2**31 - 1  # a grade, or one below 0: trec_eval's are of 32 bits
_GRADE = re.compile(r"[+-]?[0-9]{1,12}(\.0*)?")
Judgement = tuple[str, str, str, str]  # file:line, query id, docid, grade


def read_qrels(path: Path) -> tuple[list[tuple[str, str, int]], list[str]]:
    """Query id, docid and grade of every judgement of a file, in their order, and file:line of each.

    Args:
        path: lines of TREC (`qid 0 docid grade`) or BEIR (`query-id corpus-id score`), with or without names in the
            first line, by which columns of another order are told; JSON or parquet with these names; or queries with
            positive (1) and negative (0) documents, as FlagEmbedding and Tevatron write them.

    Raises:
        InputError: a malformed line (with file:line).
    """
    form = form_of(path)
    if form in ("json", "parquet"):
        return _graded(_of_records(path, form))
    return parse_qrels(read_lines(path, "qrels file"), str(path))


def parse_qrels(lines: Lines, source: str) -> tuple[list[tuple[str, str, int]], list[str]]:
    """The same of numbered lines of TREC or BEIR; source: where they stand, for messages."""
    return _graded(_of_lines(lines, source))


def _of_lines(lines: Lines, source: str) -> Iterator[Judgement]:
    names: list[str] | None = None
    for number, line in lines:
        where = f"{source}:{number}"
        columns = columns_of(line, where)
        if not columns:
            continue
        if names is None and (names := JUDGEMENTS.header(columns, where)):
            continue
        if names:
            if len(columns) != len(names):
                raise InputError(f"{where}: {len(columns)} columns; expected the {len(names)} of the first line")
            values = JUDGEMENTS.values(dict(zip(names, columns, strict=True)), where)
            yield where, values["qid"], values["docid"], values["grade"]
            continue
        if len(columns) not in (3, 4):
            raise InputError(f"{where}: {len(columns)} columns; expected `qid 0 docid grade`, or qid docid grade")
        yield where, columns[0], columns[-2], columns[-1]


def _of_records(path: Path, form: Form) -> Iterator[Judgement]:
    for number, (where, record) in enumerate(read_records(path, JUDGEMENTS, form), 1):
        if beside := candidates_of(record, where):
            qid = topic_of(record, number, where)["id"]
            pairs = {(DOCUMENTS.values(one, where)["id"], grade) for one, grade in beside}
            yield from ((where, qid, docid, str(grade)) for docid, grade in sorted(pairs))
            continue
        values = JUDGEMENTS.values(record, where)
        check_id(values["qid"], "query id", where)
        check_id(values["docid"], "docid", where)
        yield where, values["qid"], values["docid"], values["grade"]


def _graded(judgements: Iterable[Judgement]) -> tuple[list[tuple[str, str, int]], list[str]]:
    triples: list[tuple[str, str, int]] = []
    lines_of: list[str] = []
    for where, qid, docid, written in judgements:
        grade = float(written) if _GRADE.fullmatch(written) else 0.5
        if not (grade.is_integer() and abs(grade) <= LARGEST):
            raise InputError(f"{where}: grade {shown_word(written)}; expected a whole number in the last column")
        triples.append((qid, docid, int(grade)))
        lines_of.append(where)
    return triples, lines_of
