"""Records of files (columns, JSON, parquet), and the topics and judgements that they hold."""

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
from rnnreranker.base.strict import checked_record, parse_json, parse_record
from rnnreranker.data import trec_text
from rnnreranker.data.document import Document, vector_of
from rnnreranker.runs.columns import check_id, columns_of, shown_word

Form = Literal["tsv", "json", "parquet", "tags"]
Lines = Iterable[tuple[int, str]]
Records = Iterator[tuple[str, dict[str, Any]]]  # (file:line, record)
Rows = Iterator[tuple[str, list[str], Mapping[str, Any]]]  # (file:line, a text per field, record; {} for columns)
FORMS: dict[str, Form] = {  # ending of a file's name, before .gz → its format
    **dict.fromkeys(("jsonl", "json"), "json"),
    **dict.fromkeys(("trec", "sgml", "xml"), "tags"),
    "tsv": "tsv",
    "parquet": "parquet",
}
QID = ("query-id", "query_id", "qid", "topic-id", "topic_id", "topic", "number")
DOCID = ("docid", "doc_id", "doc-id", "docno", "pid", "passage_id", "passage-id")
WEAK = ("topic", "number")  # names of an id only in records without another name of an id
VECTOR = ("vector", "embedding", "embeddings", "emb", "dense_vector")  # as Pyserini's JsonVectorCollection and others
POSITIVE, NEGATIVE = ("pos", "positive_passages"), ("neg", "negative_passages")  # of FlagEmbedding, of Tevatron
_QUOTED = re.compile(r'"(?:[^"]|"")*"')  # a column as the module csv writes it, which DPR uses


@dataclass(frozen=True, eq=False)
class Shape:
    """The fields of a record.

    Attributes:
        fields: field → the names that files give it, in the order of files without names; `…id` are ids.
        needed: fields of every record; expected, columns: the same in words.
        even: all rows without names have as many columns; words: blanks separate columns, the second is optional.
    """

    fields: Mapping[str, tuple[str, ...]]
    needed: tuple[str, ...]
    expected: str
    columns: str
    even: bool = False
    words: bool = False

    def header(self, cells: Sequence[str], where: str) -> list[int]:
        """The column of each field, -1 without one; [] if the first line of a file is a record.

        Names are compared without case and signs: `QueryID` is `query_id`.

        Raises:
            InputError: a needed name is missing.
        """
        known = [name for group in self.fields.values() for name in group]
        joined = {_letters(name): name for name in known} | {name: name for name in known}
        written = [cell.strip().strip('"').lower() for cell in cells]
        names = [joined.get(name) or joined.get(_letters(name), name) for name in written]
        ids = {name for field, group in self.fields.items() if field.endswith("id") for name in group} & {*names}
        if names[0] not in ids and not (ids and len({*known} & {*names}) > 1):
            if "text" in self.fields and {*self.fields["text"]} & {*names[1:]}:
                notice(f"{where}: taken for a record, as no name of an id is in it; expected names as {self.expected}")
            return []
        self.values(dict.fromkeys(names, ""), where)
        if unread := [name for name in names if name and name not in known]:
            notice(f"{where}: {counted(len(unread), 'column')} not read: {', '.join(unread)[:200]}")
        return [names.index(group[0]) if group else -1 for _, group in self._named(tuple(names))]

    def values(self, record: Mapping[str, Any], where: str) -> list[str]:
        """The fields of a record as texts, "" for an absent optional one.

        Raises:
            InputError: a needed field is missing or null, two ids differ, a value is no string.
        """
        values = []
        for field, names in self._named(tuple(record)):
            name, value = (names[0], record[names[0]]) if names else (field, None)
            is_id = field.endswith("id")
            if is_id and len({repr(record[name]) for name in names}) > 1:
                raise InputError(f"{where}: {' and '.join(names)} differ; expected one key with the id")
            if value is None and field in self.needed:
                if names:
                    raise InputError(f'{where}: "{name}" is null; expected a string ("" where there is none)')
                raise InputError(f"{where}: keys {str(sorted(record))[:200]}; expected {self.expected}")
            whole = type(value) is int and is_id
            if not (value is None or whole or isinstance(value, str) or field in ("grade", "iteration")):
                raise InputError(f'{where}: "{name}" is a {type(value).__name__}; expected a string')
            values.append("" if value is None else str(value))
        return values

    @functools.lru_cache(maxsize=64)  # noqa: B019  a handful of shapes, which stay
    def _named(self, keys: tuple[str, ...]) -> list[tuple[str, list[str]]]:
        """Each field with the keys of a record that name it."""
        unread = {"docid"} if "pid" in keys else set()  # MS MARCO v2: `docid` is that of the document of a passage
        named = []
        for field, names in self.fields.items():
            own = [name for name in names if name in keys and name not in unread]
            named.append((field, [name for name in own if name not in WEAK] or own))
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
    """The format of a file, by the ending of its name, else by its first characters.

    Raises:
        InputError: the file cannot be read.
    """
    ending = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if ending in FORMS:
        return FORMS[ending]
    first = first_line(path)
    if first.startswith("PAR1"):
        return "parquet"
    return "tags" if first.startswith("<") else "json" if first.startswith(("{", "[")) else "tsv"


def read_rows(path: Path, shape: Shape, form: Form, lines: Lines | None = None) -> Rows:
    """The records of a file, plain or .gz, streamed; "tags" are read as columns. `beside` explains queries.

    Raises:
        InputError: an unreadable file, a malformed record (with file:line).
    """
    if form not in ("json", "parquet"):
        yield from of_columns(lines or read_lines(path), str(path), shape)
        return
    records = of_parquet(path, shape) if form == "parquet" else of_json(read_lines(path), str(path), shape.expected)
    seen: dict[str, list[str]] = {}  # documents beside queries
    for number, (where, record) in enumerate(records, 1):
        for one in beside(record, number, where, shape) if "query" in record else [record]:
            values = shape.values(one, where)
            if shape is DOCUMENTS and one is not record:
                if (before := seen.setdefault(values[0], values)) != values:
                    raise InputError(f"{where}: docid {values[0]} has another text here than before")
                if before is not values:
                    continue
            yield where, values, one


def beside(record: dict[str, Any], number: int, where: str, shape: Shape) -> list[dict[str, Any]]:
    """The records of `shape` in a query with positive and negative documents; of another query itself.

    FlagEmbedding writes texts, whose docids are digests; Tevatron writes objects.

    Raises:
        InputError: the documents are no list of texts or objects.
    """
    candidates: list[tuple[dict[str, Any], int]] = []
    for grade, name in [*((1, name) for name in POSITIVE), *((0, name) for name in NEGATIVE)]:
        documents = record.get(name) or []
        if not isinstance(documents, list) or not all(isinstance(one, str | dict) for one in documents):
            raise InputError(f'{where}: "{name}" is no list of texts or objects; expected the documents of a query')
        texts = ({"id": fingerprint(one), "text": one} if isinstance(one, str) else one for one in documents)
        candidates += [(one, grade) for one in texts]
    if not candidates:
        return [record]
    if shape is DOCUMENTS:
        return [one for one, _ in candidates]
    query = record if any(name in record for name in TOPICS.fields["id"]) else {**record, "id": number}
    if shape is TOPICS:
        return [query]
    qid = TOPICS.values(query, where)[0]
    pairs = {(DOCUMENTS.values(one, where)[0], grade) for one, grade in candidates}
    return [{"qid": qid, "docid": docid, "grade": grade} for docid, grade in sorted(pairs)]


def document_of(record: Mapping[str, Any], values: Sequence[str], where: str, fields: Sequence[str]) -> Document:
    """The document of a record with its vector, if any; values: of `DOCUMENTS`; fields: of its text.

    Raises:
        InputError: the docid is no word, or as `vector_of`.
    """
    docid, text, title = values
    docid = docid.strip()
    check_id(docid, "docid", where)
    vector = next((record[name] for name in VECTOR if name in record), None) if record else None
    text = f"{title}\n{text}" if title and "title" in fields else text
    return Document(docid, text, where, None if vector is None else vector_of(vector, where))


def of_columns(lines: Lines, source: str, shape: Shape) -> Rows:
    """The rows of numbered lines of columns; source: their file.

    Raises:
        InputError: another number of columns, a needed name is missing (with file:line).
    """
    least, most = len(shape.needed), len(shape.fields)
    width, at, first = most, list[int](), ""  # at: columns of a file with names
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
            count = counted(len(cells), "column" if shape.words else "tab-separated column")
            raise InputError(f"{where}: {count}{blank}; expected {shape.columns}{as_first}")
        if at:
            if '"' in line:
                cells = [cell[1:-1].replace('""', '"') if _QUOTED.fullmatch(cell) else cell for cell in cells]
            cells = [cells[column] if 0 <= column < len(cells) else "" for column in at]
        elif len(cells) < width:
            if shape.words:
                cells.insert(1, "")
            cells += [""] * (width - len(cells))
        yield where, cells, {}


def of_json(lines: Lines, source: str, expected: str = "") -> Records:
    """The objects of numbered lines; an array or an object on several lines is held in memory.

    Raises:
        InputError: not JSON, or no object (with file:line).
    """
    expected = f"an object with {expected}" if expected else "an object"
    lines = iter(lines)
    opens: tuple[str, ...] = ("[",) if source.removesuffix(".gz").endswith(".jsonl") else ("[", "{")
    for number, line in lines:
        begins, ends = line.strip()[:1], line.strip()[-1:]
        if begins in opens and (begins == "[" or ends != "}"):
            content = parse_json(
                "\n" * (number - 1) + "\n".join([line, *(line for _, line in lines)]), f"{source}:{number}"
            )
            for entry, record in enumerate(content if isinstance(content, list) else [content], 1):
                where = f"{source}: entry {entry}"
                yield where, checked_record(record, where, expected)
        elif begins:
            opens = ()  # of the first line alone
            yield f"{source}:{number}", parse_record(line, f"{source}:{number}", expected)


def of_parquet(path: Path, shape: Shape | None = None) -> Records:
    """The rows of a parquet file.

    Raises:
        InputError: the file cannot be read, or lacks needed fields of the shape.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(rereadable(path)) as file:
            names = file.schema_arrow.names
            if shape is not None and "query" not in names:
                shape.values(dict.fromkeys(names, ""), str(path))
            records = (record for batch in file.iter_batches() for record in batch.to_pylist())
            for row, record in enumerate(records, 1):
                yield f"{path}: row {row}", record
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as parquet ({str(error).splitlines()[0]}); get it again") from None


def read_topics(source: Path | str, lines: Lines | None = None) -> dict[str, str]:
    """Query id → text, in the order of a file, or of the given lines.

    Raises:
        InputError: a malformed line (with file:line), a wrong or repeated id, no text, no topics.
    """
    form = "tsv" if lines else form_of(Path(source))
    if form == "tags":
        topics = trec_text.topics((line for _, line in read_lines(source, "topics file")), str(source))
    else:
        rows = read_rows(Path(source), TOPICS, form, lines)
        topics = ((where, values[0].strip(), values[1].strip()) for where, values, _ in rows)
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


LARGEST = 2**31 - 1  # the largest absolute grade: trec_eval's are of 32 bits
_GRADE = re.compile(r"[+-]?[0-9]{1,12}(\.0*)?")


def read_qrels(source: Path | str, lines: Lines | None = None) -> list[tuple[str, str, int, str]]:
    """Query id, docid, grade and file:line of each judgement, in the order of a file, or of the given lines.

    Lines are TREC's (`qid 0 docid grade`) or BEIR's (`query-id corpus-id score`); the first may name the columns.

    Raises:
        InputError: a malformed line (with file:line).
    """
    rows = read_rows(Path(source), JUDGEMENTS, "tsv" if lines else form_of(Path(source)), lines)
    judgements: list[tuple[str, str, int, str]] = []
    for where, (qid, _, docid, written), record in rows:
        if record:  # the columns of a line are words
            check_id(qid, "query id", where)
            check_id(docid, "docid", where)
        grade = float(written) if _GRADE.fullmatch(written) else 0.5
        if not (grade.is_integer() and abs(grade) <= LARGEST):
            raise InputError(f"{where}: grade {shown_word(written)}; expected a whole number in the last column")
        judgements.append((qid, docid, int(grade), where))
    return judgements
