"""Where a reranker's similarities come from: its settings `from` and `queries`, and what suits an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.errors import InputError

if TYPE_CHECKING:
    from rnnreranker.base.chosen_method import Chosen
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.search.request import SearchRequest

VECTORS, GRAPH, TOKENS = "vectors", "neighbours", "tokens"


def problems(request: SearchRequest) -> list[str]:
    """What is wrong with the sources of the rerankers, in the words of an error."""
    said = []
    for one in request.rerankers:
        if one.source != GRAPH and one.queries is not None:
            asked, other = argument("queries", one.queries), argument("from", GRAPH)
            said.append(f"{asked}: with {one.source} queries are encoded; give {other} too")
    return said


def with_queries(
    chosen: Chosen, request: SearchRequest, index: IndexOnDisk, retrievers: list[str], first: bool
) -> Chosen:
    """A reranker with `queries` decided.

    With vectors and tokens "encoded". From a graph of the vectors that dense retrieval has just searched, "run", whose
    scores are their inner products; of an index that has these vectors, "encoded"; else "none".

    Args:
        chosen: the reranker; first: whether it comes right behind the retrieval.
        index: that the graph is in.
        retrievers: their names, empty where a run was given.

    Raises:
        InputError: queries to be encoded without vectors, or with those of another part than the graph is of.
    """
    if not chosen.takes_source:
        return chosen
    if chosen.source != GRAPH:
        return chosen.replaced(queries="encoded")
    origin = index.graph.origin
    of_vectors = index.has(VECTORS) and origin.of in ("", "dense") and origin.similarity in ("", "inner product")
    if chosen.queries == "encoded" and not of_vectors:
        raise InputError(
            f"{argument('queries', 'encoded')}: {index.name} has no vectors that its graph was made from; give "
            f"{argument('queries', 'none')}, or run where the scores of the run are similarities as the graph has them"
        )
    if chosen.queries is not None:
        return chosen
    if of_vectors and retrievers == ["dense"] and first and not request.expand and not request.prf:
        return chosen.replaced(queries="run")
    return chosen.replaced(queries="encoded" if of_vectors else "none")


def options(chosen: Chosen) -> dict[str, Any]:
    """The arguments of a reranker's constructor that say where its similarities come from."""
    return {"source": chosen.source, "queries": chosen.queries} if chosen.takes_source else {}
