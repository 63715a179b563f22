"""Documents: names or files to a stream of (docid, text)."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from rnnreranker.data import irds, local, trec_text, tripclick
from rnnreranker.data.document import Document
from rnnreranker.data.names import is_file
from rnnreranker.errors import InputError


def load_documents(name: str | Path) -> Iterator[Document]:
    """The documents of a source, streamed in its order.

    Args:
        name: a `.jsonl` file (keys `_id`, `id` or `docid`; `text` or `contents`; `title` goes before the text), a
            `.tsv` file (docid<TAB>text), a `.trec` or `.txt` file of <DOC>s, all of these plain or .gz, a folder in
            BEIR layout, an ir_datasets id or short name, `tripclick`, `reqa-squad` (-nq, -cmrc, -drcd), or `pydoc`.

    Raises:
        InputError: unknown name, or a malformed line (with file:line), while streaming.
        UnavailableError: data that cannot be downloaded here.
    """
    name = local.source(str(name), "documents")
    if Path(name).is_dir():
        return _from_folder(Path(name))
    if is_file(name, "documents"):
        return _from_file(Path(name).expanduser())
    if name == "pydoc":
        from rnnreranker.data import pydoc

        return pydoc.documents()
    return _from_ir_datasets(name)


def _from_ir_datasets(name: str) -> Iterator[Document]:
    dataset = irds.load(name)
    with irds.reading(name, "documents"):
        for document in dataset.docs_iter():
            yield Document(document.doc_id, document.default_text())


def _from_file(path: Path) -> Iterator[Document]:
    kind = path.name.removesuffix(".gz").rsplit(".", 1)[-1]
    if kind in ("trec", "txt"):
        yield from _from_trec(path)
        return
    if kind not in ("jsonl", "json", "tsv"):
        raise InputError(f"{path}: expected a .jsonl, .tsv or .trec file of documents, plain or .gz")
    opener = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opener(path, "rb") as lines:
            for number, content in enumerate(lines, 1):
                where = f"{path}:{number}"
                try:
                    line = content.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError:
                    raise InputError(f"{where}: not UTF-8 text; expected documents in UTF-8") from None
                if line.strip():
                    yield _from_tsv(line, where) if kind == "tsv" else _from_json(line, where)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read after line {number} ({error}); get the file again") from None


def _from_folder(folder: Path) -> Iterator[Document]:
    for path in tripclick.document_files(folder):
        yield from _from_trec(path)


def _from_trec(path: Path) -> Iterator[Document]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", errors="replace") as lines:
            for docid, text in trec_text.documents(lines, str(path)):
                yield Document(docid, text)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read ({error}); get the file again") from None


def _from_tsv(line: str, where: str) -> Document:
    docid, tab, text = line.rstrip("\r\n").partition("\t")
    if not tab or not docid.strip():
        raise InputError(f"{where}: no tab-separated docid and text; expected docid<TAB>text")
    return Document(docid.strip(), text, where)


def _from_json(line: str, where: str) -> Document:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not a JSON object on one line ({error})") from None
    if not isinstance(record, dict):
        raise InputError(f'{where}: a JSON {type(record).__name__}; expected an object with "id" and "text"')
    docid = next((record[key] for key in ("_id", "id", "docid") if key in record), None)
    text = next((record[key] for key in ("text", "contents") if key in record), None)
    title = record.get("title") or ""
    if docid is None or text is None:
        raise InputError(
            f'{where}: keys {sorted(record)}; expected "id" (or "_id", "docid") and "text" (or "contents")'
        )
    if not isinstance(text, str) or not isinstance(title, str) or not isinstance(docid, str | int):
        raise InputError(f"{where}: docid, text or title is not a string; expected strings")
    return Document(str(docid), f"{title}\n{text}" if title else text, where)
