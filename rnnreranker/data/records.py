"""Records of a file, one after the other: columns, JSON, parquet; topics and relevance judgements of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rnnreranker.base.command import counted, notice
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint, first_line, read_lines, read_text, rereadable
from rnnreranker.base.files.json_files import parse_record, parse_records
from rnnreranker.data import trec_text
from rnnreranker.data.document import Document, vector_of
from rnnreranker.runs.columns import check_id, columns_of, shown_word

Form = Literal["tsv", "json", "parquet", "tags"]
Lines = Iterable[tuple[int, str]]
Records = Iterator[tuple[str, dict[str, Any]]]  # (file:line, record)
FORMS: dict[str, Form] = {  # ending of a file's name, before .gz → what is in it
    **dict.fromkeys(("jsonl", "json"), "json"),
    **dict.fromkeys(("trec", "sgml", "xml"), "tags"),
    "tsv": "tsv",
    "parquet": "parquet",
}
QID = ("query-id", "query_id", "qid", "topic-id", "topic_id", "topic", "number")
DOCID = ("docid", "doc_id", "doc-id", "docno", "pid", "passage_id", "passage-id")
WEAK = ("topic", "number")  # these count where no other name of an id is there
# of a document, as Pyserini's JsonVectorCollection and others write it
VECTOR = ("vector", "embedding", "embeddings", "emb", "dense_vector")
POSITIVE, NEGATIVE = ("pos", "positive_passages"), ("neg", "negative_passages")  # of FlagEmbedding, of Tevatron
_QUOTED = re.compile(r'"(?:[^"]|"")*"')  # a column as the module csv writes it, which DPR uses


@dataclass(frozen=True, eq=False)
class Shape:
    """What a record has to have.

    Attributes:
        fields: its fields, each with the names that files give it; a file without names has them in this order. Those
            that end in `id` are ids.
        needed: the fields that every record has; expected: how to say it; columns: those of a file without names.
        even: whether all rows of a file without names have as many columns.
    """

    fields: Mapping[str, tuple[str, ...]]
    needed: tuple[str, ...]
    expected: str
    columns: str = ""
    even: bool = False

    def header(self, cells: Sequence[str], where: str) -> list[str]:
        """The names of columns, where the first line of a file has them; empty where it is a row.

        Names are the same in upper and lower case, and with other signs between their words: `QueryID` is `query_id`.

        Raises:
            InputError: names without a needed one.
        """
        names = [cell.strip().strip('"').lower() for cell in cells]
        ids = {name for field, group in self.fields.items() if field.endswith("id") for name in group}
        known = {name for group in self.fields.values() for name in group}
        joined = {re.sub(r"[\W_]", "", name): name for name in known}
        names = [name if name in known else joined.get(re.sub(r"[\W_]", "", name), name) for name in names]
        if names[0] not in ids and not (ids & {*names} and len(known & {*names}) > 1):
            if "text" in self.fields and {*self.fields["text"]} & {*names[1:]}:
                notice(f"{where}: taken for a record, as no name of an id is in it; expected names as {self.expected}")
            return []
        self.values(dict.fromkeys(names, ""), where)
        if unread := [name for name in names if name and name not in known]:
            notice(f"{where}: {counted(len(unread), 'column')} not read: {', '.join(unread)[:200]}")
        return names

    def values(self, record: Mapping[str, Any], where: str) -> dict[str, str]:
        """The fields of a record, all of them strings; "" where it lacks one that is not needed.

        Raises:
            InputError: a needed field that is missing or null, ids that differ, a value that is no string.
        """
        texts_of = {}
        for field, names, is_id in self._named(tuple(record)):
            name, value = (names[0], record[names[0]]) if names else (field, None)
            if is_id and len(names) > 1 and len({repr(record[name]) for name in names}) > 1:
                raise InputError(f"{where}: {' and '.join(names)} differ; expected one key with the id")
            if type(value) is str:
                texts_of[field] = value
                continue
            if value is None and field in self.needed:
                if names:
                    raise InputError(f'{where}: "{name}" is null; expected a string ("" where there is none)')
                raise InputError(f"{where}: keys {str(sorted(record))[:200]}; expected {self.expected}")
            if value is not None and not (type(value) is int and is_id) and field not in ("grade", "iteration"):
                raise InputError(f'{where}: "{name}" is a {type(value).__name__}; expected a string')
            texts_of[field] = "" if value is None else str(value)
        return texts_of

    @functools.lru_cache(maxsize=64)  # noqa: B019  a handful of shapes, which stay
    def _named(self, keys: tuple[str, ...]) -> list[tuple[str, list[str], bool]]:
        """Each field with those of a record's keys that stand for it, and whether it is an id."""
        unread = {"docid"} if "pid" in keys else set()  # MS MARCO v2: `docid` is that of the document of a passage
        named = []
        for field, names in self.fields.items():
            there = [name for name in names if name in keys and name not in unread]
            named.append((field, [name for name in there if name not in WEAK] or there, field.endswith("id")))
        return named


DOCUMENTS = Shape(
    {
        "id": ("_id", "id", *DOCID),
        "text": ("text", "contents", "content", "passage", "document", "body"),
        "title": ("title",),
    },
    needed=("id", "text"),
    expected='"id" (or "_id", "docid") and "text" (or "contents")',
    columns="docid<TAB>text[<TAB>title]",
    even=True,
)
TOPICS = Shape(
    {
        "id": ("_id", "id", *QID),
        "text": ("text", "query", "query_text", "title", "question"),
        "narrative": ("narrative", "narr"),
    },
    needed=("id", "text"),
    expected='"_id" (or "id") and "text"',
    columns="qid<TAB>text[<TAB>narrative]",
)
JUDGEMENTS = Shape(
    {
        "qid": QID,
        "docid": ("corpus-id", "corpus_id", *DOCID),
        "grade": ("score", "relevance", "grade", "rel", "label"),
        "iteration": ("iteration", "iter"),
    },
    needed=("qid", "docid", "grade"),
    expected='"query-id", "corpus-id" and "score"',
)


def form_of(path: Path) -> Form:
    """What is in a file: by the ending of its name, else by its first characters.

    Raises:
        InputError: a file that cannot be read.
    """
    ending = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if ending in FORMS:
        return FORMS[ending]
    first = first_line(path)
    if first.startswith("PAR1"):
        return "parquet"
    return "tags" if first.startswith("<") else "json" if first.startswith(("{", "[")) else "tsv"


def read_records(path: Path, shape: Shape, form: Form) -> Records:
    """The records of a file, plain or .gz, streamed.

    Args:
        path: of the file; shape: of its records; form: what is in it, not "tags".

    Raises:
        InputError: a file that cannot be read, a record of another form (with file:line).
    """
    return of_parquet(path, shape) if form == "parquet" else records_of(read_lines(path), str(path), shape, form)


def records_of(lines: Lines, source: str, shape: Shape, form: Form) -> Records:
    """The same of numbered lines; source: where they stand, for messages."""
    return (_of_json if form == "json" else _of_columns)(iter(lines), source, shape)


def candidates_of(record: Mapping[str, Any], where: str) -> list[tuple[dict[str, Any], int]]:
    """The documents beside a query in a record to train with, each with its grade: 1 = positive, 0 = negative.

    FlagEmbedding writes their texts, whose docids are digests of them; Tevatron writes objects with `docid` and `text`.
    A record without a query has none.

    Raises:
        InputError: something else than a list of texts or objects.
    """
    texts_of: list[tuple[dict[str, Any], int]] = []
    for names, grade in ((POSITIVE, 1), (NEGATIVE, 0)) if "query" in record else ():
        for name in names:
            documents = record.get(name) or []
            if not isinstance(documents, list) or not all(isinstance(one, str | dict) for one in documents):
                raise InputError(f'{where}: "{name}" is no list of texts or objects; expected the documents of a query')
            as_records = [{"id": fingerprint(one), "text": one} if isinstance(one, str) else one for one in documents]
            texts_of += [(one, grade) for one in as_records]
    return texts_of


def document_of(record: Mapping[str, Any], where: str, fields: Sequence[str]) -> Document:
    """The document of a record, with its vector where it has one.

    Args:
        where: file:line; fields: of its text, ("title", "text") or ("text",).

    Raises:
        InputError: as `Shape.values` and `vector_of`; a docid that is no word.
    """
    values = DOCUMENTS.values(record, where)
    docid, title, text = values["id"].strip(), values["title"], values["text"]
    check_id(docid, "docid", where)
    vector = next((record[name] for name in VECTOR if name in record), None)
    text = f"{title}\n{text}" if title and "title" in fields else text
    return Document(docid, text, where, None if vector is None else vector_of(vector, where))


def topic_of(record: dict[str, Any], number: int, where: str) -> dict[str, str]:
    """The fields of a record of topics; a query with documents beside it and without an id has its number as its id.

    Raises:
        InputError: as `Shape.values`.
    """
    if candidates_of(record, where) and not any(name in record for name in TOPICS.fields["id"]):
        record = {**record, "id": number}
    return TOPICS.values(record, where)


def _of_columns(lines: Iterator[tuple[int, str]], source: str, shape: Shape) -> Records:
    names: list[str] = []
    least, named, first = len(shape.needed), False, ""
    for number, line in lines:
        if not line.strip():
            continue
        where, cells = f"{source}:{number}", line.rstrip("\r").split("\t")
        if not names:
            names = shape.header(cells, where)
            if named := bool(names):
                first = line
                continue
            names = list(shape.fields)
            if shape.even and least <= len(cells) <= len(names):
                names, least = names[: len(cells)], len(cells)
        if named and line == first:
            raise InputError(f"{where}: the line of names stands here a second time; expected a record")
        if not least <= len(cells) <= len(names):
            blank = " (is there a blank in place of the tab?)" if len(cells) == 1 and " " in line.strip() else ""
            raise InputError(
                f"{where}: {counted(len(cells), 'tab-separated column')}{blank}; expected {shape.columns}"
                + (f", {least} columns as in the first line" if least > len(shape.needed) else "")
            )
        if named:
            cells = [cell[1:-1].replace('""', '"') if _QUOTED.fullmatch(cell) else cell for cell in cells]
        yield where, dict(zip(names, cells, strict=False))


def _of_json(lines: Iterator[tuple[int, str]], source: str, shape: Shape) -> Records:
    """Of an object a line; an array, or an object on several lines, is held in memory."""
    expected = f"an object with {shape.expected}"
    opens: tuple[str, ...] = ("[",) if source.removesuffix(".gz").endswith(".jsonl") else ("[", "{")
    for number, line in lines:
        begins, ends = line.strip()[:1], line.strip()[-1:]
        if begins in opens and (begins == "[" or ends != "}"):
            text = "\n" * (number - 1) + "\n".join([line, *(line for _, line in lines)])
            yield from parse_records(text, source, expected)
        elif begins:
            opens = ()  # of the first line alone
            yield f"{source}:{number}", parse_record(line, f"{source}:{number}", expected)


def of_parquet(path: Path, shape: Shape | None = None) -> Records:
    """The rows of a parquet file; InputError: a file that cannot be read, or without the fields of a shape."""
    import pyarrow
    import pyarrow.parquet

    row = 0
    try:
        with pyarrow.parquet.ParquetFile(rereadable(path)) as file:
            names = file.schema_arrow.names
            if shape is not None and "query" not in names:
                shape.values(dict.fromkeys(names, ""), str(path))
            for batch in file.iter_batches():
                for record in batch.to_pylist():
                    row += 1
                    yield f"{path}: row {row}", record
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as parquet ({str(error).splitlines()[0]}); get it again") from None


def read_topics(path: Path) -> dict[str, tuple[str, str]]:
    """Query id to text and narrative ("" where there is none), in the order of a file.

    Queries without an id that have positive and negative documents, as FlagEmbedding writes them, have their number.

    Raises:
        InputError: a malformed line (with file:line), a query id twice, a query without text, no topics.
    """
    form = form_of(path)
    if form == "tags":
        return collected(trec_text.topics(read_text(path, "topics file"), str(path)), str(path))
    return topics_of_records(read_records(path, TOPICS, form), str(path))


def topics_of_records(records: Records, source: str) -> dict[str, tuple[str, str]]:
    """The same of records; source: where they stand, for messages."""

    def topics() -> Iterable[tuple[str, str, str, str]]:
        for number, (where, record) in enumerate(records, 1):
            values = topic_of(record, number, where)
            yield where, values["id"].strip(), values["text"].strip(), values["narrative"].strip()

    return collected(topics(), source)


def collected(topics: Iterable[tuple[str, str, str, str]], source: str) -> dict[str, tuple[str, str]]:
    """Query id to text and narrative of (file:line, qid, text, narrative).

    Raises:
        InputError: an id that is no word, or twice, a query without text, no topics.
    """
    queries_of: dict[str, tuple[str, str]] = {}
    for where, qid, query, narrative in topics:
        check_id(qid, "query id", where)
        if qid in queries_of:
            raise InputError(f"{where}: query id {qid} stands here a second time; give every query its own id")
        if not query:
            raise InputError(f"{where}: query {qid} has no text; expected qid<TAB>text")
        queries_of[qid] = (query, narrative)
    return not_empty(queries_of, source)


def not_empty(topics: dict[str, tuple[str, str]], source: str) -> dict[str, tuple[str, str]]:
    """The topics; InputError: there are none."""
    if not topics:
        raise InputError(f"{source}: no topics; expected one query a line, qid<TAB>text")
    return topics


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
