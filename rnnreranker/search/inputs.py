"""Texts of documents: of a given source, else of an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rnnreranker.base.command import progress
from rnnreranker.base.errors import InputError, argument
from rnnreranker.parts.texts import Texts, texts_of

if TYPE_CHECKING:
    from rnnreranker.index.opening import Index


def texts_in(index: Index) -> Mapping[str, str]:
    return Texts(index.texts) if index.texts is not None else {}


def document_texts(documents: str | None, index: Index, fields: Sequence[str] | None = None) -> Mapping[str, str]:
    """The texts by docid of a source of documents, else of the index; InputError: neither has texts.

    fields: of the source's documents, None = as in the index.
    """
    if documents:
        from rnnreranker.data.documents import texts_by_id

        return texts_by_id(documents, fields or index.fields)
    if not (texts := texts_in(index)):
        raise InputError(f"{index.name}: no texts in this index; give {argument('documents')}, what it was made from")
    return texts


def texts_for(
    docids: Iterable[str], index: Index | None, documents: str | None, fields: Sequence[str] | None = None
) -> dict[str, str]:
    """The texts of `docids`, some perhaps missing: from `documents` if given, else from the index.

    fields: of `documents`, None = as in the index.
    """
    wanted = set(docids)
    if fields is None and index is not None:
        fields = index.fields
    if documents:
        from rnnreranker.data.documents import different, load_documents

        read = progress(load_documents(documents, fields), unit="documents", what="read")
        chosen = (document for document in read if document.docid in wanted)
        return {document.docid: document.text for document in different(chosen)}
    if index is None or index.texts is None:
        return {}
    return texts_of(index.texts, sorted(wanted))
