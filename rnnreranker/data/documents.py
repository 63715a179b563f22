"""Documents: names, files or what Python gives to a stream of (docid, text), or to texts by docid."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError, UnavailableError, brief
from rnnreranker.base.files import fingerprint
from rnnreranker.data import irds, local
from rnnreranker.data.document import Document, of_one_length
from rnnreranker.data.fields import TITLE_AND_TEXT, fields_of
from rnnreranker.data.records import DOCUMENTS, document_of, read_rows


def load_documents(name: str | Path, fields: Sequence[str] | None = None) -> Iterator[Document]:
    """The documents of a source, streamed in its order.

    Args:
        name: a file, plain or .gz: JSON lines or an array (keys `_id`, `id` or `docid`; `text` or `contents`;
            `title`; `vector` or `embedding`); TSV of docid, text and perhaps title; parquet with these names; TREC's
            <DOC>s. A folder of such files or in BEIR layout; an ir_datasets id or short name, `tripclick`,
            `reqa-squad` (-nq, -cmrc, -drcd), or `pydoc`.
        fields: of the texts: ("title", "text") or ("text",); None = as `fields_of`.

    Raises:
        InputError: unknown name or fields, or a malformed line (with file:line), while streaming.
        UnavailableError: data that cannot be downloaded here.
    """
    chosen = fields_of(str(name), fields)
    if files := local.files_of(str(name), "documents"):
        return of_one_length(document_of(row, chosen) for path in files for row in read_rows(path, DOCUMENTS))
    if name == "pydoc":
        from rnnreranker.data import pydoc

        return pydoc.documents()
    return _from_ir_datasets(str(name), chosen)


def _from_ir_datasets(name: str, fields: Sequence[str]) -> Iterator[Document]:
    for document in irds.items(name, "docs"):
        yield Document(document.doc_id, irds.text_of(document, fields, name))


def texts_by_id(name: str, fields: Sequence[str] | None = None) -> Mapping[str, str]:
    """Docid → text of a source: from the store of ir_datasets, else in memory; as `load_documents`."""
    if name != "pydoc" and not local.files_of(name, "documents"):
        with contextlib.suppress(UnavailableError):  # a store that cannot be made: the documents may be there
            return StoredTexts(name, fields_of(name, fields))
    documents = progress(load_documents(name, fields), unit="documents", what="read")
    return {document.docid: document.text for document in different(documents)}


def different(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents; InputError for a docid that comes twice."""
    seen = set[str]()
    for document in documents:
        if document.docid in seen:
            where = document.where or "documents"
            raise InputError(f"{where}: docid {document.docid} a second time; every document needs its own")
        seen.add(document.docid)
        yield document


class StoredTexts(Mapping[str, str]):
    """The texts of a data set of ir_datasets by docid, each read on demand.

    Raises:
        InputError: unknown or damaged data; UnavailableError: no download, a store that cannot be written.
    """

    def __init__(self, name: str, fields: Sequence[str]) -> None:
        self._name, self._fields, dataset = name, fields, irds.load(name)
        with irds.reading(name, "documents"):
            self._store = dataset.docs_store()
        self.get("")  # makes the store

    def __getitem__(self, docid: str) -> str:
        with irds.reading(self._name, "documents"):
            document = next(iter(self._store.get_many_iter([docid])), None)
        if document is None:
            raise KeyError(docid)
        return irds.text_of(document, self._fields, self._name)

    def __iter__(self) -> Iterator[str]:
        return (document.docid for document in _from_ir_datasets(self._name, self._fields))

    def __len__(self) -> int:
        return int(self._store.count())


EXPECTED = "expected a name, a file, (docid, text) pairs, {docid: text}, or records with id and text"


@dataclass(frozen=True)
class GivenDocuments:
    """Documents with their texts, in memory."""

    documents: tuple[Document, ...]

    @classmethod
    def of(cls, given: Any, fields: Sequence[str] = TITLE_AND_TEXT) -> GivenDocuments:
        """The documents of an object.

        Args:
            given: (docid, text[, vector]) tuples, {docid: text}, {docid: record}, records or a data frame.
            fields: of the texts of records.

        Raises:
            InputError: another object, an entry of another form.
        """
        if hasattr(given, "columns") and hasattr(given, "notna"):  # pandas has NaN for an absent text
            given = given.astype(object).where(given.notna(), None).to_dict("records")
        elif rows := getattr(given, "to_dicts", None) or getattr(given, "to_pylist", None):  # of Polars, of Arrow
            given = rows()
        if isinstance(given, Mapping):
            given = [{**(one if isinstance(one, Mapping) else {"text": one}), "id": key} for key, one in given.items()]
        if not isinstance(given, Iterable) or isinstance(given, bytes) or getattr(given, "shape", None) == ():
            raise InputError(f"documents: a {type(given).__name__}; {EXPECTED}")
        documents = []
        for number, entry in enumerate(given, 1):
            where = f"documents: entry {number}"
            if isinstance(entry, tuple | list) and len(entry) in (2, 3):
                entry = dict(zip(("id", "text", "vector"), entry, strict=False))
            if not isinstance(entry, Mapping):
                raise InputError(f"{where} is {brief(entry)}; {EXPECTED}")
            documents.append(document_of([*DOCUMENTS.values(entry, where), where], fields))
        return cls(tuple(of_one_length(documents)))

    @property
    def fingerprint(self) -> str:
        """A digest of docids, texts and vectors."""
        vectors = [b"" if one.vector is None else one.vector.tobytes() for one in self.documents]
        return fingerprint([[one.docid, one.text] for one in self.documents], *filter(None, vectors))

    def __str__(self) -> str:
        return "given in Python"  # in descriptions
