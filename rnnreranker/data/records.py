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
from rnnreranker.base.files import fingerprint, first_line, read_lines, rereadable
from rnnreranker.base.files.json_files import parse_record, parse_records
from rnnreranker.data import trec_text
from rnnreranker.data.document import Document, vector_of
from rnnreranker.runs.columns import check_id, columns_of, shown_word

Form = Literal["tsv", "json", "parquet", "tags"]
Lines = Iterable[tuple[int, str]]
Records = Iterator[tuple[str, dict[str, Any]]]  # (file:line, record)
Rows = Iterator[tuple[str, dict[str, str], Mapping[str, Any]]]  # (file:line, fields, record; {} of columns)
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
        words: whether columns are words, which blanks separate too; the second field may be left out then.
    """

    fields: Mapping[str, tuple[str, ...]]
    needed: tuple[str, ...]
    expected: str
    columns: str
    even: bool = False
    words: bool = False

    def header(self, cells: Sequence[str], where: str) -> dict[str, int]:
        """Field → its column, where the first line of a file has names; empty where it is a record.

        Names are the same in upper and lower case, and with other signs between their words: `QueryID` is `query_id`.

        Raises:
            InputError: names without a needed one.
        """
        ids = {name for field, group in self.fields.items() if field.endswith("id") for name in group}
        known = {name for group in self.fields.values() for name in group}
        joined = {_letters(name): name for name in known}
        names = [cell.strip().strip('"').lower() for cell in cells]
        names = [name if name in known else joined.get(_letters(name), name) for name in names]
        if names[0] not in ids and not (ids & {*names} and len(known & {*names}) > 1):
            if "text" in self.fields and {*self.fields["text"]} & {*names[1:]}:
                notice(f"{where}: taken for a record, as no name of an id is in it; expected names as {self.expected}")
            return {}
        self.values(dict.fromkeys(names, ""), where)
        if unread := [name for name in names if name and name not in known]:
            notice(f"{where}: {counted(len(unread), 'column')} not read: {', '.join(unread)[:200]}")
        return {field: names.index(group[0]) for field, group in self._named(tuple(names)) if group}

    def values(self, record: Mapping[str, Any], where: str) -> dict[str, str]:
        """The fields of a record, all of them strings; "" where it lacks one that is not needed.

        Raises:
            InputError: a needed field that is missing or null, ids that differ, a value that is no string.
        """
        texts_of = {}
        for field, names in self._named(tuple(record)):
            name, value = (names[0], record[names[0]]) if names else (field, None)
            is_id = field.endswith("id")
            if is_id and len(names) > 1 and len({repr(record[name]) for name in names}) > 1:
                raise InputError(f"{where}: {' and '.join(names)} differ; expected one key with the id")
            if value is None and field in self.needed:
                if names:
                    raise InputError(f'{where}: "{name}" is null; expected a string ("" where there is none)')
                raise InputError(f"{where}: keys {str(sorted(record))[:200]}; expected {self.expected}")
            whole = type(value) is int and is_id
            if not (value is None or whole or isinstance(value, str) or field in ("grade", "iteration")):
                raise InputError(f'{where}: "{name}" is a {type(value).__name__}; expected a string')
            texts_of[field] = "" if value is None else str(value)
        return texts_of

    @functools.lru_cache(maxsize=64)  # noqa: B019  a handful of shapes, which stay
    def _named(self, keys: tuple[str, ...]) -> list[tuple[str, list[str]]]:
        """Each field with those of a record's keys that stand for it."""
        unread = {"docid"} if "pid" in keys else set()  # MS MARCO v2: `docid` is that of the document of a passage
        named = []
        for field, names in self.fields.items():
            there = [name for name in names if name in keys and name not in unread]
            named.append((field, [name for name in there if name not in WEAK] or there))
        return named


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name)


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
        "iteration": ("iteration", "iter"),
        "docid": ("corpus-id", "corpus_id", *DOCID),
        "grade": ("score", "relevance", "grade", "rel", "label"),
    },
    needed=("qid", "docid", "grade"),
    expected='"query-id", "corpus-id" and "score"',
    columns="`qid 0 docid grade`, or qid docid grade",
    words=True,
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


def read_rows(path: Path, shape: Shape, form: Form) -> Rows:
    """(file:line, the fields, the record) of the records of a file, plain or .gz, streamed.

    Of a query with documents beside it, as files to train with have them, see `beside`.

    Args:
        path: of the file; shape: of its records; form: what is in it; "tags" are read as columns.

    Raises:
        InputError: a file that cannot be read, a record of another form (with file:line).
    """
    if form not in ("json", "parquet"):
        yield from of_columns(read_lines(path), str(path), shape)
        return
    records = of_parquet(path, shape) if form == "parquet" else of_json(read_lines(path), str(path), shape.expected)
    seen: dict[str, str] = {}  # of documents beside queries: docid → digest
    for number, (where, record) in enumerate(records, 1):
        for one in beside(record, number, where, shape) if "query" in record else [record]:
            values = shape.values(one, where)
            if shape is DOCUMENTS and one is not record:
                mark = fingerprint(values)
                if (before := seen.setdefault(values["id"], mark)) != mark:
                    raise InputError(f"{where}: docid {values['id']} has another text here than before")
                if before is not mark:
                    continue
            yield where, values, one


def beside(record: dict[str, Any], number: int, where: str, shape: Shape) -> list[dict[str, Any]]:
    """What a record with a query stands for: itself, or with positive and negative documents those, or judgements.

    FlagEmbedding writes texts of documents, whose docids are digests of them; Tevatron writes objects with `docid` and
    `text`. A query without an id has its number as its id.

    Raises:
        InputError: something else than a list of texts or objects.
    """
    candidates: list[tuple[dict[str, Any], int]] = []
    for names, grade in ((POSITIVE, 1), (NEGATIVE, 0)):
        for name in names:
            documents = record.get(name) or []
            if not isinstance(documents, list) or not all(isinstance(one, str | dict) for one in documents):
                raise InputError(f'{where}: "{name}" is no list of texts or objects; expected the documents of a query')
            as_records = [{"id": fingerprint(one), "text": one} if isinstance(one, str) else one for one in documents]
            candidates += [(one, grade) for one in as_records]
    if not candidates:
        return [record]
    if shape is DOCUMENTS:
        return [one for one, _ in candidates]
    query = record if any(name in record for name in TOPICS.fields["id"]) else {**record, "id": number}
    if shape is TOPICS:
        return [query]
    qid = TOPICS.values(query, where)["id"]
    pairs = {(DOCUMENTS.values(one, where)["id"], grade) for one, grade in candidates}
    return [{"qid": qid, "docid": docid, "grade": grade} for docid, grade in sorted(pairs)]


def document_of(record: Mapping[str, Any], values: Mapping[str, str], where: str, fields: Sequence[str]) -> Document:
    """The document of a record, with its vector where it has one.

    Args:
        record: as it was read; values: its fields, as of `DOCUMENTS`; where: file:line.
        fields: of its text, ("title", "text") or ("text",).

    Raises:
        InputError: a docid that is no word, and as `vector_of`.
    """
    docid, title, text = values["id"].strip(), values["title"], values["text"]
    check_id(docid, "docid", where)
    vector = next((record[name] for name in VECTOR if name in record), None)
    text = f"{title}\n{text}" if title and "title" in fields else text
    return Document(docid, text, where, None if vector is None else vector_of(vector, where))


def of_columns(lines: Lines, source: str, shape: Shape) -> Rows:
    """The rows of numbered lines of columns; source: where they stand, for messages.

    Raises:
        InputError: another number of columns, names without a needed one (with file:line).
    """
    fields, kind = list(shape.fields), "column" if shape.words else "tab-separated column"
    least, most = len(shape.needed), len(fields)
    at: dict[str, int] = {}  # of a file with names
    first = ""
    for number, line in lines:
        if not line.strip():
            continue
        where = f"{source}:{number}"
        cells = columns_of(line, where) if shape.words else line.rstrip("\r").split("\t")
        if not first:
            first, at = line, shape.header(cells, where)
            if at:
                most = len(cells)
                least = most if shape.words else least
                continue
            if shape.even and least <= len(cells) <= most:
                least = most = len(cells)
        elif at and line == first:
            raise InputError(f"{where}: the line of names stands here a second time; expected a record")
        if not least <= len(cells) <= most:
            blank = " (is there a blank in place of the tab?)" if len(cells) == 1 and " " in line.strip() else ""
            as_first = f", {least} columns as in the first line" if at or least > len(shape.needed) else ""
            raise InputError(f"{where}: {counted(len(cells), kind)}{blank}; expected {shape.columns}{as_first}")
        if at:
            if '"' in line:
                cells = [cell[1:-1].replace('""', '"') if _QUOTED.fullmatch(cell) else cell for cell in cells]
            cells = [cells[at[field]] if at.get(field, most) < len(cells) else "" for field in fields]
        elif shape.words and len(cells) < most:
            cells.insert(1, "")
        cells += [""] * (len(fields) - len(cells))
        yield where, dict(zip(fields, cells, strict=True)), {}


def of_json(lines: Lines, source: str, expected: str = "") -> Records:
    """The objects of numbered lines, one a line; an array, or an object on several lines, is held in memory.

    Args:
        lines, source: as of `of_columns`; expected: the keys of an object, for messages.

    Raises:
        InputError: not JSON, or no object (with file:line).
    """
    expected = f"an object with {expected}" if expected else "an object"
    lines = iter(lines)
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
    """The rows of a parquet file.

    Raises:
        InputError: a file that cannot be read, or without the fields of a shape.
    """
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


def read_topics(source: Path | str, lines: Lines | None = None) -> dict[str, str]:
    """Query id to text, in the order of a file, or of its lines.

    Queries without an id that have positive and negative documents, as FlagEmbedding writes them, have their number.

    Raises:
        InputError: a malformed line (with file:line), an id that is no word, or twice, a query without text, no topics.
    """
    form = form_of(Path(source)) if lines is None else "tsv"
    if form == "tags":
        topics = trec_text.topics((line for _, line in read_lines(source, "topics file")), str(source))
    else:
        rows = of_columns(lines, str(source), TOPICS) if lines else read_rows(Path(source), TOPICS, form)
        topics = ((where, values["id"].strip(), values["text"].strip()) for where, values, _ in rows)
    queries_of: dict[str, str] = {}
    for where, qid, query in topics:
        check_id(qid, "query id", where)
        if qid in queries_of:
            raise InputError(f"{where}: query id {qid} stands here a second time; give every query its own id")
        if not query:
            raise InputError(f"{where}: query {qid} has no text; expected qid<TAB>text")
        queries_of[qid] = query
    return not_empty(queries_of, str(source))


def not_empty(topics: dict[str, str], source: str) -> dict[str, str]:
    """The topics; InputError: there are none."""
    if not topics:
        raise InputError(f"{source}: no topics; expected one query a line, qid<TAB>text")
    return topics


LARGEST = 2**31 - 1  # a grade, or one below 0: trec_eval's are of 32 bits
_GRADE = re.compile(r"[+-]?[0-9]{1,12}(\.0*)?")


def read_qrels(source: Path | str, lines: Lines | None = None) -> tuple[list[tuple[str, str, int]], list[str]]:
    """Query id, docid and grade of every judgement of a file, or of its lines, in their order, and file:line of each.

    Args:
        source: a file of lines of TREC (`qid 0 docid grade`) or BEIR (`query-id corpus-id score`), with or without
            column names in the first line, which may have another order; JSON or parquet with these names; or
            queries with positive (1) and negative (0) documents, as FlagEmbedding and Tevatron write them.
        lines: numbered lines of TREC or BEIR in place of those of the file.

    Raises:
        InputError: a malformed line (with file:line).
    """
    form = form_of(Path(source)) if lines is None else "tsv"
    rows = of_columns(lines, str(source), JUDGEMENTS) if lines else read_rows(Path(source), JUDGEMENTS, form)
    triples: list[tuple[str, str, int]] = []
    lines_of: list[str] = []
    for where, values, record in rows:
        qid, docid, written = values["qid"], values["docid"], values["grade"]
        if record:  # the columns of a line are words
            check_id(qid, "query id", where)
            check_id(docid, "docid", where)
        grade = float(written) if _GRADE.fullmatch(written) else 0.5
        if not (grade.is_integer() and abs(grade) <= LARGEST):
            raise InputError(f"{where}: grade {shown_word(written)}; expected a whole number in the last column")
        triples.append((qid, docid, int(grade)))
        lines_of.append(where)
    return triples, lines_of
