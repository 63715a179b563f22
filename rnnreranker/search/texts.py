"""Texts of documents for whoever asks: from a source of documents where one is given, else from an index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rnnreranker.base.command import progress

if TYPE_CHECKING:
    from rnnreranker.index.opening import IndexOnDisk


def texts_for(
    docids: Iterable[str], index: IndexOnDisk | None, documents: str | None, fields: Sequence[str] | None = None
) -> dict[str, str]:
    """The texts of documents, by docid: from `documents` where given, else from the index; some may have none.

    Args:
        docids: those wanted.
        index, documents: where they come from; fields: what the texts of `documents` are, None = as in the index.
    """
    wanted = set(docids)
    if fields is None and index is not None:
        fields = index.fields
    if documents:
        from rnnreranker.data.documents import load_documents

        read = progress(load_documents(documents, fields), unit="documents", what="read")
        return {document.docid: document.text for document in read if document.docid in wanted}
    if index is None or index.texts is None:
        return {}
    from rnnreranker.parts.texts import texts_of

    return texts_of(index.texts, sorted(wanted))
