"""Lines, JSON, parquet and tags of files as rows of fields, by one table of formats; topics and judgements in them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import checked_record, first_line, parse_record, read_json, read_lines
from rnnreranker.data import trec_text
from rnnreranker.data.document import Document, vector_of
from rnnreranker.runs.columns import are_words, check_id, columns_of

Judgement = tuple[str, str, str, str]  # query id, docid, grade, file:line
Records = Iterator[tuple[str, dict[str, Any]]]  # (file:line, record)
Rows = Iterator[tuple[Any, ...]]  # the fields of a shape, then file:line
FORMS = {  # ending of a file's name, before .gz → its format
    **dict.fromkeys(("jsonl", "json"), "json"),
    **dict.fromkeys(("trec", "sgml", "xml"), "tags"),
    "tsv": "columns",
    "parquet": "parquet",
}
DOCID = ("docid", "docno", "pid", "passageid")
QID = ("queryid", "qid", "topicid", "topic", "number")
WEAK = {"topic", "number"}  # names of an id only in records without another name of an id
VECTOR = ("vector", "embedding", "embeddings", "emb", "densevector")  # as Pyserini's JsonVectorCollection and others
_QUOTED = re.compile(r'"(?:[^"]|"")*"')  # a column as the module csv writes it, which DPR uses


@dataclass(frozen=True, eq=False)
class Shape:
    """The fields of a record.

    Attributes:
        names: field → its names in files, without signs and case; `…id` are ids.
        columns: the fields in a line of columns without names, the needed ones first; words: blanks separate columns.
        expected: the needed fields in words; tags: the reader of a file between tags.
    """

    names: Mapping[str, tuple[str, ...]]
    columns: tuple[tuple[str, ...], ...]
    expected: str
    words: bool = False
    tags: Callable[[Path], Records] | None = None

    def header(self, cells: Sequence[str], where: str) -> list[str]:
        """The names in the first line of a file; [] if it is a record.

        They begin with the name of an id, or with another known one before an id.
        """
        names = [cell.strip().strip('"') for cell in cells]
        first, *others = map(_letters, names)
        ids = {name for field, own in self.names.items() if field.endswith("id") for name in own}
        if first in ids or (ids & {*others} and any(first in own for own in self.names.values())):
            return names
        if {*others} & {*self.names[self.columns[0][-1]]}:
            notice(f"{where}: taken for a record, as it names no id; expected names as {self.expected}")
        return []

    @functools.lru_cache(maxsize=64)  # noqa: B019  a handful of shapes, which stay
    def keys(self, names: tuple[str, ...]) -> list[list[int]]:
        """The positions of the names of each field."""
        letters = [_letters(name) for name in names]
        weak = WEAK | {"docid"} if "pid" in letters else WEAK  # MS MARCO v2: `docid` is of the passage's document
        every = [
            [at for one in known for at, name in enumerate(letters) if name == one] for known in self.names.values()
        ]
        return [[one for one in own if letters[one] not in weak] or own for own in every]

    def values(self, record: Mapping[str, Any], where: str) -> list[Any]:
        """The fields of a record: texts, "" for an absent optional one, the vector as it is.

        Raises:
            InputError: a needed field is missing, two ids differ, a value is no string.
        """
        names, cells, values = tuple(record), list(record.values()), []
        for field, positions in zip(self.names, self.keys(names), strict=True):
            value = cells[positions[0]] if positions else None
            if not isinstance(value, str) and field != "vector":
                absent = value is None and field not in self.columns[0]
                if not positions and not absent:
                    raise InputError(f"{where}: keys {str(sorted(record))[:200]}; expected {self.expected}")
                if not (absent or field == "grade" or (field.endswith("id") and type(value) is int)):
                    raise InputError(f'{where}: "{names[positions[0]]}" is a {type(value).__name__}; expected a string')
                value = "" if absent else str(value)
            if len(positions) > 1 and field.endswith("id") and len({str(cells[one]) for one in positions}) > 1:
                raise InputError(
                    f"{where}: {' and '.join(names[one] for one in positions)} differ; expected one key with the id"
                )
            values.append(value)
        return values


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


DOCUMENTS = Shape(
    {
        "id": ("id", *DOCID),
        "text": ("text", "contents", "content", "passage", "document", "body"),
        "title": ("title",),
        "vector": VECTOR,
    },
    columns=(("id", "text"), ("id", "text", "title")),
    expected='"id" (or "_id", "docid") and "text" (or "contents")',
    tags=trec_text.documents,
)
TOPICS = Shape(
    {"id": ("id", *QID), "text": ("text", "query", "querytext", "title", "question")},
    columns=(("id", "text"), ("id", "text", "narrative")),
    expected='"_id" (or "id") and "text"',
    tags=trec_text.topics,
)
JUDGEMENTS = Shape(
    {"qid": QID, "docid": ("corpusid", *DOCID), "grade": ("score", "relevance", "grade", "rel", "label")},
    columns=(("qid", "docid", "grade"), ("qid", "0", "docid", "grade")),
    expected='"query-id", "corpus-id" and "score"',
    words=True,
)
PAIRS = Shape({"qid": (), "docid": (), "other": ()}, (("qid", "docid", "other"),), "qid docid docid", words=True)
MAPPING = Shape({"passage": (), "document": ()}, (("passage", "document"),), "passage document", words=True)


def form_of(path: Path) -> str:
    """The format of a file, by the ending of its name, else by its first characters.

    Raises:
        InputError: the file cannot be read.
    """
    ending = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if ending in FORMS:
        return FORMS[ending]
    first = first_line(path)
    return "parquet" if first.startswith("PAR1") else {"<": "tags", "{": "json", "[": "json"}.get(first[:1], "columns")


def read_rows(path: Path, shape: Shape) -> Rows:
    """The fields of each record of a file, plain or .gz, and its file:line, streamed.

    Raises:
        InputError: an unreadable file, a malformed record (with file:line).
    """
    form = form_of(path)
    if form == "columns" or not (shape.tags or form != "tags"):
        yield from _of_columns(path, shape)
        return
    records: Records = (
        shape.tags(path) if form == "tags" and shape.tags else {"json": of_json}.get(form, of_parquet)(path)
    )
    for where, record in records:
        yield *shape.values(record, where), where


def _of_columns(path: Path, shape: Shape) -> Rows:
    """The lines of columns; the first may name them, and says how many there are.

    Raises:
        InputError: another number of columns, a needed name is missing (with file:line).
    """
    named, names, file = False, tuple[str, ...](), str(path)
    order: list[int] = []  # the column of each field, -2 = an empty one behind the last, before file:line
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{file}:{number}"
        cells = columns_of(line, where) if shape.words else line.rstrip("\r").split("\t")
        if not names:
            names = tuple(shape.header(cells, where))
            if named := bool(names):
                order = [one[0] if one else -2 for one in shape.keys(names)]
                shape.values(dict.fromkeys(names, ""), where)
                continue
            names = next((one for one in shape.columns if len(one) == len(cells)), ())
            order = [names.index(field) if field in names else -2 for field in shape.names]
        if len(cells) != len(names) or (named and tuple(cells) == names):
            expected = " or ".join(map(" ".join, [names] if names else shape.columns))
            raise InputError(
                f"{where}: {len(cells)} columns; expected {expected} between {'blanks' if shape.words else 'tabs'}"
            )
        if named and '"' in line:
            cells = [cell[1:-1].replace('""', '"') if _QUOTED.fullmatch(cell) else cell for cell in cells]
        yield itemgetter(*order, -1)([*cells, "", where])


def of_json(path: Path) -> Records:
    """The objects of lines; but for .jsonl, an array or an object on several lines is held in memory.

    Raises:
        InputError: not JSON, or no object (with file:line).
    """
    if ".jsonl" not in path.name and not re.fullmatch(r"\{.*\}|", first_line(path)):
        content = read_json(path)
        for number, record in enumerate(content if isinstance(content, list) else [content], 1):
            yield f"{path}: entry {number}", checked_record(record, f"{path}: entry {number}")
        return
    for number, line in read_lines(path):
        if line.strip():
            yield f"{path}:{number}", parse_record(line, f"{path}:{number}")


def of_parquet(path: Path) -> Records:
    """The rows of a parquet file; InputError: the file cannot be read."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            records = (record for batch in file.iter_batches() for record in batch.to_pylist())
            for row, record in enumerate(records, 1):
                yield f"{path}: row {row}", record
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as parquet ({str(error).splitlines()[0]}); get it again") from None


def document_of(row: Sequence[Any], fields: Sequence[str]) -> Document:
    """The document of a row of DOCUMENTS with its vector, if any; fields: of its text.

    Raises:
        InputError: the docid is no word; as `vector_of`.
    """
    docid, text, title, vector, where = row
    vector = None if isinstance(vector, str) and not vector else vector  # of columns
    check_id(docid := docid.strip(), "docid", where)
    text = f"{title}\n{text}" if title and "title" in fields else text
    return Document(docid, text, where, None if vector is None else vector_of(vector, where))


def read_topics(paths: Iterable[Path]) -> dict[str, str]:
    """Query id → text, in the order of the files.

    Raises:
        InputError: a malformed line (with file:line), a wrong or repeated id, no text.
    """
    queries: dict[str, str] = {}
    for qid, text, where in (row for path in paths for row in read_rows(path, TOPICS)):
        check_id(qid := qid.strip(), "query id", where)
        if qid in queries:
            raise InputError(f"{where}: query id {qid} stands here a second time; give every query its own id")
        if not (text := text.strip()):
            raise InputError(f"{where}: query {qid} has no text; expected qid<TAB>text")
        queries[qid] = text
    return queries


def read_qrels(paths: Iterable[Path]) -> list[Judgement]:
    """Query id, docid, grade and file:line of each judgement, in the order of the files.

    Lines are TREC's (`qid 0 docid grade`) or BEIR's (`query-id corpus-id score`); the first may name the columns.

    Raises:
        InputError: a malformed line (with file:line).
    """
    rows: list[Any] = [row for path in paths for row in read_rows(path, JUDGEMENTS)]
    ids = {one for row in rows for one in row[:2]}
    if "" in ids or not are_words(ids):
        for qid, docid, _, where in rows:
            check_id(qid, "query id", where)
            check_id(docid, "docid", where)
    return rows
