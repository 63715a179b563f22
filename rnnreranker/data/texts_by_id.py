"""Texts of documents by docid, from a source of documents: looked up where that can be, else all in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rnnreranker.base.command import progress
from rnnreranker.base.errors import UnavailableError
from rnnreranker.data import irds, local
from rnnreranker.data.documents import load_documents
from rnnreranker.data.fields import TITLE_AND_TEXT, fields_of
from rnnreranker.data.names import BUILT_IN, is_file


def texts_by_id(name: str, fields: Sequence[str] | None = None) -> Mapping[str, str]:
    """The texts of a source of documents by docid.

    Those of a data set of ir_datasets are read when they are asked for, from the store that it keeps beside its data;
    others are held in memory, and so are these where no store can be made.

    Args and Raises: as `load_documents`.
    """
    fields = fields_of(name, fields)
    source = local.source(name, "documents")
    if source not in BUILT_IN and not Path(source).is_dir() and not is_file(source, "documents"):
        try:
            return StoredTexts(source, fields)
        except UnavailableError:
            if not irds.load(source).has_docs():
                raise
    documents = progress(load_documents(name, fields), unit="documents", what="read")
    return {document.docid: document.text for document in documents}


class StoredTexts(Mapping[str, str]):
    """The texts of a data set of ir_datasets by docid; each is read when it is asked for.

    Args:
        name: its id; fields: what texts are, as of `load_documents`.

    Raises:
        InputError: no such data set, or one without documents, or with damaged ones.
        UnavailableError: documents that cannot be downloaded, a store that cannot be written.
    """

    def __init__(self, name: str, fields: Sequence[str] = TITLE_AND_TEXT) -> None:
        self._name, self._fields = name, fields
        self._dataset = irds.load(name)
        with irds.reading(name, "documents"):
            self._store = self._dataset.docs_store()
            next(iter(self._store.get_many_iter([""])), None)  # made now

    def __getitem__(self, docid: str) -> str:
        with irds.reading(self._name, "documents"):
            document = next(iter(self._store.get_many_iter([docid])), None)
        if document is None:
            raise KeyError(docid)
        return irds.text_of(document, self._fields, self._name)

    def __iter__(self) -> Iterator[str]:
        with irds.reading(self._name, "documents"):
            for document in self._dataset.docs_iter():
                yield document.doc_id

    def __len__(self) -> int:
        with irds.reading(self._name, "documents"):
            return int(self._dataset.docs_count())
