"""Where a reranker's similarities come from: `--from` and `--queries` of `search`, and what it needs with them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.method import find

if TYPE_CHECKING:
    from rnnreranker.search.indexes import Index

VECTORS, GRAPH, TOKENS = "vectors", "neighbours", "tokens"


def needs_of(args: argparse.Namespace, name: str) -> frozenset[str]:
    """What a reranker needs with these flags; where --queries is not given, as little as may be from a graph."""
    kind = find("reranker", name)
    usual = "none" if args.source == GRAPH else "encoded"
    found: frozenset[str] = kind.needs_from(args.source, args.queries or usual) if kind.takes_source else kind.needs
    return found


def problems(args: argparse.Namespace) -> list[str]:
    """What is wrong with --from and --queries, in the words of an error."""
    found = []
    if args.source != VECTORS and not any(find("reranker", name).takes_source for name in args.rerank):
        found.append(
            f"--from {args.source} is of rnn: not with {' '.join(f'--rerank {one}' for one in args.rerank or ['none'])}"
        )
    if args.source != GRAPH and args.queries is not None:
        found.append(f"--queries {args.queries}: with {args.source} queries are encoded; give --from {GRAPH} too")
    if args.source != VECTORS and args.device is not None:
        found.append(f"--device: --from {args.source} computes on the processor")
    if args.source == TOKENS and args.explain is not None:
        found.append(f"--explain: shows similarities of vectors or of a graph, not --from {TOKENS}")
    return found


def choose_queries(args: argparse.Namespace, index: Index, retrievers: Sequence[str]) -> str:
    """What --queries stands for where it is not given.

    With vectors and tokens "encoded". From a graph of the vectors that dense retrieval has just searched, "run", whose
    scores are their inner products; of an index that has these vectors, "encoded"; else "none".

    Args:
        args: of `search`.
        index: that the graph is in.
        retrievers: their names, empty where a run was given.

    Raises:
        InputError: --queries encoded without vectors, or with those of another part than the graph is of.
    """
    if args.source != GRAPH:
        return "encoded"
    origin = index.graph.origin
    of_vectors = index.dense is not None and origin.of in ("", "dense") and origin.similarity in ("", "inner product")
    if args.queries == "encoded" and not of_vectors:
        raise InputError(
            f"--queries encoded: {index.name} has no vectors that its graph was made from; give --queries none, or run "
            "where the scores of the run are similarities as the graph has them"
        )
    if args.queries is not None:
        return str(args.queries)
    first = not args.expand and not args.prf and args.rerank and find("reranker", args.rerank[0]).takes_source
    if of_vectors and list(retrievers) == ["dense"] and first:
        return "run"
    return "encoded" if of_vectors else "none"


def options(args: argparse.Namespace, kind: Any, queries: str) -> dict[str, Any]:
    """The arguments of a reranker's constructor that say where its similarities come from."""
    return {"source": args.source, "queries": queries} if kind.takes_source else {}
