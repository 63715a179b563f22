"""Documents: names or files to a stream of (docid, text)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rnnreranker.base.command import counted, notice
from rnnreranker.base.errors import InputError
from rnnreranker.base.files import fingerprint, read_lines
from rnnreranker.data import irds, local, trec_text
from rnnreranker.data.document import Document, of_one_length
from rnnreranker.data.fields import fields_of
from rnnreranker.data.names import is_file
from rnnreranker.data.records import DOCUMENTS, candidates_of, document_of, form_of, read_records


def load_documents(name: str | Path, fields: Sequence[str] | None = None) -> Iterator[Document]:
    """The documents of a source, streamed in its order.

    Args:
        name: a file, plain or .gz: JSON lines or an array (keys `_id`, `id` or `docid`; `text` or `contents`; `title`
            goes before the text; `vector` or `embedding`), tab-separated docid, text and perhaps title, with or without
            a line of names, parquet with columns of these names, or <DOC>s of TREC; a .npy matrix with its ids beside
            it; a folder of such files of one kind or in BEIR layout; an ir_datasets id or short name, `tripclick`,
            `reqa-squad` (-nq, -cmrc, -drcd), or `pydoc`. Of queries with positive and negative documents, as
            FlagEmbedding and Tevatron write them, the documents are read.
        fields: what their texts are: ("title", "text"), where there are titles, or ("text",); None = as `usual_fields`.

    Raises:
        InputError: unknown name or fields, or a malformed line (with file:line), while streaming.
        UnavailableError: data that cannot be downloaded here.
    """
    if str(name).endswith(".npy"):
        raise InputError(f"{name}: vectors without texts; expected a file or folder of texts, or a data set")
    fields = fields_of(str(name), fields)
    name = local.source(str(name), "documents")
    if Path(name).is_dir() or is_file(name, "documents"):
        return of_one_length(_from_files(local.document_files(Path(name).expanduser()), fields))
    if name == "pydoc":
        from rnnreranker.data import pydoc

        return pydoc.documents()
    return _from_ir_datasets(name, fields)


def _from_ir_datasets(name: str, fields: Sequence[str]) -> Iterator[Document]:
    dataset = irds.load(name)
    with irds.reading(name, "documents"):
        for document in dataset.docs_iter():
            yield Document(document.doc_id, irds.text_of(document, fields, name))


def _from_files(paths: Sequence[Path], fields: Sequence[str]) -> Iterator[Document]:
    for path in paths:
        form = form_of(path)
        yield from _from_tags(path, fields) if form == "tags" else _from_records(path, form, fields)


def _from_tags(path: Path, fields: Sequence[str]) -> Iterator[Document]:
    lost = 0

    def lines() -> Iterator[str]:
        nonlocal lost
        for _, line in read_lines(path, "file of documents", errors="replace"):
            lost += "\ufffd" in line
            yield line

    for where, docid, text in trec_text.documents(lines(), str(path), titles="title" in fields):
        yield Document(docid, text, where)
    if lost:
        notice(f"{path}: {counted(lost, 'line')} not UTF-8, whose characters are lost; convert the file with iconv")


def _from_records(path: Path, form: Any, fields: Sequence[str]) -> Iterator[Document]:
    seen: dict[str, str] = {}  # of documents beside queries: docid → digest of the text
    for where, record in read_records(path, DOCUMENTS, form):
        beside = candidates_of(record, where)
        for one in [one for one, _ in beside] or [record]:
            document = document_of(one, where, fields)
            if beside:
                mark = fingerprint(document.text)
                if (before := seen.get(document.docid)) not in (None, mark):
                    raise InputError(f"{where}: docid {document.docid} has another text here than before")
                if before:
                    continue
                seen[document.docid] = mark
            yield document
