"""Documents: names or files to a stream of (docid, text)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rnnreranker.base.errors import InputError
from rnnreranker.base.files import read_lines
from rnnreranker.base.files.json_files import parse_record
from rnnreranker.data import irds, local, trec_text, tripclick
from rnnreranker.data.document import Document
from rnnreranker.data.fields import fields_of
from rnnreranker.data.names import is_file
from rnnreranker.runs.words import check_id


def load_documents(name: str | Path, fields: Sequence[str] | None = None) -> Iterator[Document]:
    """The documents of a source, streamed in its order.

    Args:
        name: a `.jsonl` file (keys `_id`, `id` or `docid`; `text` or `contents`; `title` goes before the text), a
            `.tsv` file (docid<TAB>text), a `.trec` or `.txt` file of <DOC>s, all of these plain or .gz, a folder in
            BEIR layout, an ir_datasets id or short name, `tripclick`, `reqa-squad` (-nq, -cmrc, -drcd), or `pydoc`.
        fields: what their texts are: ("title", "text"), where there are titles, or ("text",); None = as `usual_fields`.

    Raises:
        InputError: unknown name or fields, or a malformed line (with file:line), while streaming.
        UnavailableError: data that cannot be downloaded here.
    """
    fields = fields_of(str(name), fields)
    name = local.source(str(name), "documents")
    if Path(name).is_dir():
        return _from_folder(Path(name), fields)
    if is_file(name, "documents"):
        return _from_file(Path(name).expanduser(), fields)
    if name == "pydoc":
        from rnnreranker.data import pydoc

        return pydoc.documents()
    return _from_ir_datasets(name, fields)


def _from_ir_datasets(name: str, fields: Sequence[str]) -> Iterator[Document]:
    dataset = irds.load(name)
    with irds.reading(name, "documents"):
        for document in dataset.docs_iter():
            yield Document(document.doc_id, irds.text_of(document, fields, name))


def _from_file(path: Path, fields: Sequence[str]) -> Iterator[Document]:
    kind = path.name.removesuffix(".gz").rsplit(".", 1)[-1]
    if kind in ("trec", "txt"):
        yield from _from_trec(path, fields)
        return
    if kind not in ("jsonl", "json", "tsv"):
        raise InputError(f"{path}: expected a .jsonl, .tsv or .trec file of documents, plain or .gz")
    for number, line in read_lines(path, "file of documents"):
        if line.strip():
            where = f"{path}:{number}"
            yield _from_tsv(line, where) if kind == "tsv" else _from_json(line, where, fields)


def _from_folder(folder: Path, fields: Sequence[str]) -> Iterator[Document]:
    for path in tripclick.document_files(folder):
        yield from _from_trec(path, fields)


def _from_trec(path: Path, fields: Sequence[str]) -> Iterator[Document]:
    lines = (line for _, line in read_lines(path, "file of documents", errors="replace"))
    for docid, text in trec_text.documents(lines, str(path), titles="title" in fields):
        yield Document(docid, text)


def _from_tsv(line: str, where: str) -> Document:
    docid, tab, text = line.rstrip("\r\n").partition("\t")
    if not tab or not docid.strip():
        raise InputError(f"{where}: no tab-separated docid and text; expected docid<TAB>text")
    check_id(docid.strip(), "docid", where)
    return Document(docid.strip(), text, where)


def _from_json(line: str, where: str, fields: Sequence[str]) -> Document:
    record = parse_record(line, where, 'an object with "id" and "text"')
    ids = [key for key in ("_id", "id", "docid") if key in record]
    if len(ids) > 1 and len({one if isinstance(one := record[key], str) else repr(one) for key in ids}) > 1:
        raise InputError(f"{where}: {' and '.join(ids)} differ; expected one key with the docid")
    docid = record[ids[0]] if ids else None
    text = record.get("text", record.get("contents"))
    title = record.get("title") or ""
    if docid is None or text is None:
        raise InputError(
            f'{where}: keys {sorted(record)}; expected "id" (or "_id", "docid") and "text" (or "contents")'
        )
    if not isinstance(text, str) or not isinstance(title, str) or type(docid) not in (str, int):
        raise InputError(f"{where}: docid, text or title is not a string; expected strings")
    check_id(str(docid), "docid", where)
    return Document(str(docid), f"{title}\n{text}" if title and "title" in fields else text, where)
