"""The retriever `auto`: the words and the vectors of an index, as far as they can be searched here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Chosen, choose, needs_together
from rnnreranker.base.errors import InputError, MissingDependencyError, UnavailableError
from rnnreranker.base.method import Inputs, find, names
from rnnreranker.index.opening import IndexOnDisk
from rnnreranker.runs.fuse import FuseParams
from rnnreranker.search.queries import check_query_vectors
from rnnreranker.search.request import SearchRequest
from rnnreranker.search.sources import GRAPH

if TYPE_CHECKING:
    from rnnreranker.methods.retrieve import Retriever

KINDS = (("bm25", "bm25s", "impact"), ("dense", "late"))  # words and vectors: of each the first that can be searched
SAME = {"bm25s": "bm25"}  # retrievers of the same words: their absence needs no line
FUSION = FuseParams(fuse="minmax")  # words and vectors count the same, by their scores


def choose_parts(request: SearchRequest, index: IndexOnDisk, inputs: Inputs) -> tuple[list[Chosen], list[Chosen], str]:
    """The retrievers, the rerankers, and a line: what is used, what is left out and why; "" of a lone part, used whole.

    One retriever of words and one of vectors take part: those that the index has what they need for and that this
    machine can search. The usual reranker is left out where the index has no vectors, or the queries cannot have them,
    and no graph replaces them.

    Raises:
        InputError: an index with no part to search, a fusion for an index with one.
        UnavailableError, MissingDependencyError: none of its parts can be searched here, or the encoder that was given.
    """
    kinds = {name: find("retriever", name) for kind in KINDS for name in kind if name in names("retriever")}
    there = [name for name, kind in kinds.items() if all(map(index.has, kind.needs))]
    lost: dict[str, str] = {}
    used: list[Chosen] = []
    for kind in KINDS:
        chosen = None
        for name in (one for one in kind if one in there):
            if chosen:
                if SAME.get(name) != chosen:
                    lost[name] = f"{chosen} is taken, name both in {argument('retrieve')}"
            elif reason := _obstacle(request, index, inputs, kinds[name]):
                lost[name] = reason
            else:
                chosen = name
                used.append(choose("retriever", name))
    if not there:
        raise InputError(f"{index.name}: nothing to search in this index; add a part with index --parts dense")
    if len(there) == 1 and request.fuse is not None:
        alone = f"{argument('retrieve', there[0])}, which is all that {index.name} has"
        raise InputError(f"{argument('fuse', request.fuse)}: joins several retrievers, not {alone}")
    if not used:
        raise UnavailableError("; ".join(lost.values()))
    said = [f"retriever auto: {'+'.join(one.name for one in used)}"]
    if len(used) > 1:
        said[0] += f", fused by {request.fusion(0, FUSION).fuse}"
    said += [f"without {name}: {reason}" for name, reason in lost.items()]
    rerankers = request.rerankers
    if request.usual_reranking and (lacking := _lacking(request, index, rerankers)):
        from_graph = [one.replaced(source=GRAPH) for one in rerankers]
        if _lacking(request, index, from_graph):
            said.append(f"not reranked: {' and '.join(one.name for one in rerankers)} needs {lacking}")
            rerankers = []
        else:
            said.append(f"reranked from the graph of the index, as {argument('from', GRAPH)} does")
            rerankers = from_graph
    return used, rerankers, "; ".join(said) if len(used) > 1 or len(said) > 1 else ""


def _obstacle(request: SearchRequest, index: IndexOnDisk, inputs: Inputs, kind: type[Retriever]) -> str:
    """Why a part that is there cannot be searched on this machine; "" where it can.

    Raises:
        UnavailableError, MissingDependencyError: the same of the encoder that was given.
    """
    encodes = "query vectors" in kind.needs
    try:
        kind(inputs).check()
        if encodes:
            check_query_vectors(request.encoding, index)
    except (UnavailableError, MissingDependencyError) as error:
        if encodes and request.encoding.encoder:
            raise
        return str(error)
    return ""


def _lacking(request: SearchRequest, index: IndexOnDisk, rerankers: list[Chosen]) -> str:
    """What the rerankers need and cannot have; "" where that is nothing."""
    needs = needs_together(rerankers)
    if lacking := [need for need in sorted(needs) if not index.has(need)]:
        return f"{' and '.join(lacking)}, which this index does not have"
    try:
        if "query vectors" in needs and not request.encoding.encoder:
            check_query_vectors(request.encoding, index)
    except (UnavailableError, MissingDependencyError):
        return "query vectors, which cannot be made here"
    return ""
