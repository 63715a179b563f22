"""What methods read: queries encoded, texts of documents, and everything that an index has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import progress
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import GIVEN, Inputs
from rnnreranker.data.fields import asked_fields
from rnnreranker.parts.base import givers
from rnnreranker.search.queries import query_vectors

if TYPE_CHECKING:
    import pandas

    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.search.request import SearchRequest


def open_inputs(
    request: SearchRequest, index: IndexOnDisk, topics: Mapping[str, str], qrels: pandas.DataFrame | None
) -> Inputs:
    """Everything that an index and a request can give; nothing is opened yet."""
    fields = asked_fields(request.documents, request.fields)
    return Inputs(
        **of_index(index, topics, request.threads, request.devices),
        topics=topics,
        query_vectors=lambda: query_vectors(request.encoding, index, topics, threads=request.threads),
        texts=lambda: document_texts(request.documents, index, fields),
        qrels=qrels,
    )


def of_index(
    index: IndexOnDisk, topics: Mapping[str, str], threads: int | None = None, devices: Devices | None = None
) -> dict[str, Callable[[], Any]]:
    """What the parts of an index give, for `Inputs`: each opened when it is asked for, its queries by their texts."""
    documents = {need: functools.partial(index.given, need) for need in givers()}
    queries = {
        need: functools.partial(index.given_queries, need, topics, threads, devices)
        for need in givers(queries=True)
        if need not in documents and need not in GIVEN
    }
    return {need.replace(" ", "_"): source for need, source in (documents | queries).items()}


def document_texts(documents: str | None, index: IndexOnDisk, fields: Sequence[str] | None = None) -> Mapping[str, str]:
    """The texts of a source of documents, by docid, else those of the index.

    Args:
        documents: the source; fields: what its texts are, None = as in the index.

    Raises:
        InputError: neither, and as `texts_by_id`.
    """
    if documents:
        from rnnreranker.data.documents import texts_by_id

        return texts_by_id(documents, fields or index.fields)
    from rnnreranker.search.show import texts_in

    if not (texts := texts_in(index)):
        raise InputError(f"{index.name}: no texts in this index; give {argument('documents')}, what it was made from")
    return texts


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
