"""Records of files (columns, JSON, parquet, tags), and the topics and judgements that they hold."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base.command import notice
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import first_line, read_lines, rereadable
from rnnreranker.base.strict import checked_record, parse_record, read_json
from rnnreranker.data import trec_text
from rnnreranker.data.document import Document, vector_of
from rnnreranker.runs.columns import check_id, columns_of

Judgement = tuple[str, str, str, str]  # query id, docid, grade, file:line
Records = Iterator[tuple[str, dict[str, Any]]]  # (file:line, record)
FORMS = {  # ending of a file's name, before .gz → its format
    **dict.fromkeys(("jsonl", "json"), "json"),
    **dict.fromkeys(("trec", "sgml", "xml"), "tags"),
    "tsv": "columns",
    "parquet": "parquet",
}
DOCID = ("docid", "docno", "pid", "passageid")
QID = ("queryid", "qid", "topicid", "topic", "number")
WEAK = ("topic", "number")  # names of an id only in records without another name of an id
VECTOR = ("vector", "embedding", "embeddings", "emb", "dense_vector")  # as Pyserini's JsonVectorCollection and others
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

    def header(self, cells: Sequence[str], where: str) -> tuple[str, ...]:
        """The names in the first line of a file; () if it is a record.

        They begin with the name of an id, or with another known one before an id.
        """
        names = tuple(cell.strip().strip('"') for cell in cells)
        first, *others = map(_letters, names)
        ids = {name for field, group in self.names.items() if field.endswith("id") for name in group}
        if first in ids or (ids & {*others} and first in {name for group in self.names.values() for name in group}):
            return names
        if {*others} & {*self.names[self.columns[0][-1]]}:
            notice(f"{where}: taken for a record, as it names no id; expected names as {self.expected}")
        return ()

    def values(self, record: Mapping[str, Any], where: str) -> list[str]:
        """The fields of a record as texts, "" for an absent optional one.

        Raises:
            InputError: a needed field is missing, two ids differ, a value is no string.
        """
        plain = [record[key] if key else "" for key in self._read(tuple(record))]
        if plain and {*map(type, plain)} == {str}:  # most records
            return plain
        values = []
        for field, keys in self._keys(tuple(record)):
            value, is_id = record[keys[0]] if keys else None, field.endswith("id")
            if not isinstance(value, str):
                absent = value is None and field not in self.columns[0]
                if not keys and not absent:
                    raise InputError(f"{where}: keys {str(sorted(record))[:200]}; expected {self.expected}")
                if not (absent or field == "grade" or (is_id and type(value) is int)):
                    raise InputError(f'{where}: "{keys[0]}" is a {type(value).__name__}; expected a string')
                value = "" if absent else str(value)
            if is_id and len(keys) > 1 and len({str(record[key]) for key in keys}) > 1:
                raise InputError(f"{where}: {' and '.join(keys)} differ; expected one key with the id")
            values.append(value)
        return values

    @functools.lru_cache(maxsize=64)  # noqa: B019  a handful of shapes, which stay
    def _read(self, keys: tuple[str, ...]) -> list[str]:
        """The key of each field in such records, "" for an absent one; [] if one has two, or a needed one none."""
        named = self._keys(keys)
        clear = all(len(own) == 1 or (not own and field not in self.columns[0]) for field, own in named)
        return ["".join(own) for _, own in named] if clear else []

    @functools.lru_cache(maxsize=64)  # noqa: B019  a handful of shapes, which stay
    def _keys(self, keys: tuple[str, ...]) -> list[tuple[str, list[str]]]:
        """Each field with the keys of a record that name it."""
        weak = (*WEAK, "docid") if "pid" in keys else WEAK  # MS MARCO v2: `docid` is that of the passage's document
        named = []
        for field, names in self.names.items():
            own = [key for name in names for key in keys if _letters(key) == name]
            named.append((field, [key for key in own if _letters(key) not in weak] or own))
        return named


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


DOCUMENTS = Shape(
    {
        "id": ("id", *DOCID),
        "text": ("text", "contents", "content", "passage", "document", "body"),
        "title": ("title",),
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


def form_of(path: Path) -> str:
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
    return {"<": "tags", "{": "json", "[": "json"}.get(first[:1], "columns")


def read_records(path: Path, shape: Shape) -> Records:
    """The records of a file, plain or .gz, streamed.

    Raises:
        InputError: an unreadable file, a malformed record (with file:line).
    """
    form = form_of(path)
    if form == "tags" and shape.tags:
        return shape.tags(path)
    return of_json(path) if form == "json" else of_parquet(path) if form == "parquet" else of_columns(path, shape)


def of_columns(path: Path, shape: Shape) -> Records:
    """The lines of columns; the first may name them, and says how many there are.

    Raises:
        InputError: another number of columns, a needed name is missing (with file:line).
    """
    names, named = tuple[str, ...](), False
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        cells = columns_of(line, where) if shape.words else line.rstrip("\r").split("\t")
        if not names:
            names = shape.header(cells, where)
            if named := bool(names):
                shape.values(dict.fromkeys(names, ""), where)
                continue
            names = next((one for one in shape.columns if len(one) == len(cells)), ())
        if len(cells) != len(names) or (named and tuple(cells) == names):
            expected = " or ".join(map(" ".join, [names] if names else shape.columns))
            raise InputError(
                f"{where}: {len(cells)} columns; expected {expected} between {'blanks' if shape.words else 'tabs'}"
            )
        if named and '"' in line:
            cells = [cell[1:-1].replace('""', '"') if _QUOTED.fullmatch(cell) else cell for cell in cells]
        yield where, dict(zip(names, cells, strict=True))


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
        with pyarrow.parquet.ParquetFile(rereadable(path)) as file:
            records = (record for batch in file.iter_batches() for record in batch.to_pylist())
            for row, record in enumerate(records, 1):
                yield f"{path}: row {row}", record
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as parquet ({str(error).splitlines()[0]}); get it again") from None


def document_of(record: Mapping[str, Any], where: str, fields: Sequence[str]) -> Document:
    """The document of a record with its vector, if any; fields: of its text.

    Raises:
        InputError: as `Shape.values` and `vector_of`; the docid is no word.
    """
    docid, text, title = DOCUMENTS.values(record, where)
    check_id(docid := docid.strip(), "docid", where)
    vector = next((record[name] for name in VECTOR if name in record), None)
    text = f"{title}\n{text}" if title and "title" in fields else text
    return Document(docid, text, where, None if vector is None else vector_of(vector, where))


def read_topics(paths: Iterable[Path]) -> dict[str, str]:
    """Query id → text, in the order of the files.

    Raises:
        InputError: a malformed line (with file:line), a wrong or repeated id, no text.
    """
    queries: dict[str, str] = {}
    for path in paths:
        for where, record in read_records(path, TOPICS):
            qid, text = map(str.strip, TOPICS.values(record, where))
            check_id(qid, "query id", where)
            if qid in queries:
                raise InputError(f"{where}: query id {qid} stands here a second time; give every query its own id")
            if not text:
                raise InputError(f"{where}: query {qid} has no text; expected qid<TAB>text")
            queries[qid] = text
    return queries


def read_qrels(paths: Iterable[Path]) -> Iterator[Judgement]:
    """Query id, docid, grade and file:line of each judgement, in the order of the files.

    Lines are TREC's (`qid 0 docid grade`) or BEIR's (`query-id corpus-id score`); the first may name the columns.

    Raises:
        InputError: a malformed line (with file:line).
    """
    for path in paths:
        for where, record in read_records(path, JUDGEMENTS):
            qid, docid, grade = JUDGEMENTS.values(record, where)
            check_id(qid, "query id", where)
            check_id(docid, "docid", where)
            yield qid, docid, grade, where
