"""What methods read, from the arguments of a command: queries encoded, and everything that an index has."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Inputs
from rnnreranker.base.process.phases import phase
from rnnreranker.data.fields import asked_fields
from rnnreranker.encode.params import EncoderParams

if TYPE_CHECKING:
    import pandas

    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.parts.vectors.encoder import IndexEncoder
    from rnnreranker.search.indexes import Index


def open_inputs(
    args: argparse.Namespace, index: Index, topics: Mapping[str, str], qrels: pandas.DataFrame | None
) -> Inputs:
    """Everything that an index and the arguments of `search` can give; nothing is opened yet."""
    from rnnreranker.parts.tokens.queries import query_tokens

    return Inputs(
        topics=topics,
        query_vectors=lambda: query_vectors(args, index, topics, encoded=args.encoded_queries, threads=args.threads),
        query_tokens=lambda: query_tokens(index.token_vectors, topics, args.threads),
        vectors=lambda: index.vectors,
        texts=lambda: document_texts(args.documents, index, asked_fields(args)),
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

    if not (found := texts_in(index)):
        raise InputError(f"{index.name}: no texts in this index; give --documents, what it was made from")
    return found


@phase("query vectors")
def query_vectors(
    args: argparse.Namespace,
    index: Index,
    topics: Mapping[str, str],
    wanted: Iterable[str] | None = None,
    *,
    encoded: str | None = None,
    threads: int | None = None,
) -> QueryVectors:
    """The vectors of queries: of a file, else encoded by the encoder that made the index or by a named one.

    Args:
        args: `encoder`, and what was typed of `EncoderParams`; `topics`, where they come from.
        index: whose vectors the queries are compared with.
        topics: query id to text, in the order of the rows of `encoded`; empty: the file has its ids beside it.
        wanted: the queries whose vectors are needed; None = all topics.
        encoded: a .npy file, see `load_encoded_queries`.
        threads: None = one per core; the vectors do not depend on it.

    Raises:
        InputError: queries without text or vector, an index that does not say what encoder made it without
            --encoder, vectors of another dimension than those of the index.
        UnavailableError: an encoder that is neither here nor can be downloaded.
    """
    if encoded:
        from rnnreranker.parts.vectors.queries import load_encoded_queries

        found = load_encoded_queries(encoded, tuple(topics) or None)
        found = found if wanted is None else found.of(list(wanted))
    else:
        qids = list(topics if wanted is None else wanted)
        if lost := [qid for qid in qids if qid not in topics]:
            raise InputError(
                f"{args.topics}: {len(lost)} of the {len(qids)} queries are not in it (first: {', '.join(lost[:3])}); "
                "give the topics that the run was made from"
            )
        found = _encoded(args, index, {qid: topics[qid] for qid in qids}, threads)
    length, expected = found.vectors.shape[1], index.vectors.dimension
    if length != expected:
        source = encoded or args.encoder or index.encoder.get("name")
        raise InputError(
            f"{source}: query vectors have {length} dimensions, the index {index.name} has {expected}; "
            "encode the queries with the encoder that made the index"
        )
    return found


def check_query_vectors(args: argparse.Namespace, index: Index) -> None:
    """Look, without loading it, that the encoder of the queries is here, unless a file has their vectors.

    Raises:
        InputError: an index that does not say what encoder made it, without --encoder.
        UnavailableError, MissingDependencyError: an encoder that is neither here nor can be downloaded.
    """
    own = None if args.encoded_queries is not None else _own_encoder(args, index)
    if args.encoded_queries is None and (own is None or own.graph is None):
        from rnnreranker.encode.dense.encoder import digest_of

        digest_of(_encoder_name(args, index))


def trained_encoder(args: argparse.Namespace, index: Index) -> tuple[str, dict[str, Any]]:
    """The encoder that a training begins with, and what the index says of it.

    Raises:
        InputError: an index that does not say what encoder made it, without --encoder.
    """
    described = {} if args.encoder else index.encoder
    encoder = args.encoder or described.get("name")
    if not encoder:
        raise InputError(f"{args.index}: this index does not say which encoder made it; give --encoder")
    return encoder, described.get("settings", {})


def _encoded(args: argparse.Namespace, index: Index, topics: Mapping[str, str], threads: int | None) -> QueryVectors:
    from rnnreranker.encode.kept_queries import encoded_queries
    from rnnreranker.parts.vectors import QueryVectors

    if (own := _own_encoder(args, index)) is not None:
        return QueryVectors(tuple(topics), own.queries(list(topics.values()), threads))
    described = {} if args.encoder else index.encoder
    settings = {**described.get("settings", {}), **command.chosen(args, EncoderParams).given()}
    return QueryVectors(
        tuple(topics), encoded_queries(_encoder_name(args, index), settings, list(topics.values()), threads)
    )


def _own_encoder(args: argparse.Namespace, index: Index) -> IndexEncoder | None:
    """What encodes queries as the documents were; None where the index does not say what made it, for other settings.

    Raises:
        InputError: a graph that is not that of the encoder that the index says.
    """
    if args.encoder or command.chosen(args, EncoderParams).given() or index.dense is None or not index.encoder:
        return None
    from rnnreranker.parts.vectors.encoder import index_encoder

    return index_encoder(index.dense, index.settings["parts"]["dense"])


def _encoder_name(args: argparse.Namespace, index: Index) -> str:
    """The encoder of the queries: the one given, else the one that made the index."""
    name = args.encoder or index.encoder.get("name")
    if not name:
        raise InputError(
            f"{index.name}: this index does not say which encoder made it; "
            "give --encoder NAME|FOLDER, or --encoded-queries FILE.npy"
        )
    return str(name)
