"""What methods read: queries encoded, and everything that an index has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Inputs
from rnnreranker.data.fields import asked_fields
from rnnreranker.search.queries import query_vectors

if TYPE_CHECKING:
    import pandas

    from rnnreranker.search.indexes import Index
    from rnnreranker.search.request import SearchRequest


def open_inputs(
    request: SearchRequest, index: Index, topics: Mapping[str, str], qrels: pandas.DataFrame | None
) -> Inputs:
    """Everything that an index and a request can give; nothing is opened yet."""
    from rnnreranker.parts.tokens.queries import query_tokens

    fields = asked_fields(request.documents, request.fields)
    return Inputs(
        topics=topics,
        query_vectors=lambda: query_vectors(request.encoding, index, topics, threads=request.threads),
        query_tokens=lambda: query_tokens(index.token_vectors, topics, request.threads),
        vectors=lambda: index.vectors,
        texts=lambda: document_texts(request.documents, index, fields),
        words=lambda: index.lucene,
        terms=lambda: index.term_source,
        impacts=lambda: index.impacts,
        tokens=lambda: index.token_vectors,
        neighbours=lambda: index.graph,
        qrels=qrels,
    )


def document_texts(documents: str | None, index: Index, fields: Sequence[str] | None = None) -> Mapping[str, str]:
    """The texts of a source of documents, by docid, else those of the index.

    Args:
        documents: the source; fields: what its texts are, None = as in the index.

    Raises:
        InputError: neither, and as `texts_by_id`.
    """
    if documents:
        from rnnreranker.data.texts_by_id import texts_by_id

        return texts_by_id(documents, fields or index.fields)
    from rnnreranker.search.show import texts_in

    if not (texts := texts_in(index)):
        raise InputError(f"{index.name}: no texts in this index; give {argument('documents')}, what it was made from")
    return texts
