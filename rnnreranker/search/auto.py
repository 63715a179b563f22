"""`--retriever auto`: every part of an index that can be searched here, and the line that says so."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rnnreranker.base import command
from rnnreranker.base.errors import InputError, MissingDependencyError, UnavailableError
from rnnreranker.base.method import Inputs, find, make_params, names
from rnnreranker.base.settings import flag
from rnnreranker.runs.fuse import FuseParams
from rnnreranker.search.indexes import Index
from rnnreranker.search.inputs import check_query_vectors
from rnnreranker.search.sources import GRAPH, VECTORS, needs_of

if TYPE_CHECKING:
    from rnnreranker.methods.retrieve import Retriever

ORDER = ("bm25", "bm25s", "impact", "late", "dense")  # of those that may take part
SAME = {"bm25s": "bm25"}  # retrievers that take part where another, of the same words, does not
FUSION = FuseParams(fuse="minmax")  # every part counts the same, by its scores


def candidates() -> list[str]:
    """The retrievers that `auto` chooses from, in their order."""
    return [name for name in ORDER if name in names("retriever")]


def asks_for_reranking(args: argparse.Namespace) -> bool:
    """Whether any flag of `search` says how to rerank, so that reranking cannot be left out."""
    given = (args.rerank, args.explain, args.preset, args.device, args.queries)
    asked = any(value is not None for value in given) or args.source != VECTORS
    return asked or bool(command.given_of(args, "reranker"))


def choose(args: argparse.Namespace, index: Index, inputs: Inputs) -> tuple[list[str], list[str], str]:
    """The retrievers, the rerankers, and a line: what is used, what is left out and why; "" of a lone part, used whole.

    A retriever takes part where the index has what it needs and this machine can search it. The default reranker is
    left out where no flag asks for reranking and the index has no vectors, or the queries cannot have them, and no
    graph stands in for them; `args.source` says which of the two it is.

    Raises:
        InputError: an index with no part to search, flags of fusion for an index with one.
        UnavailableError, MissingDependencyError: none of its parts can be searched here, or one that a flag is for.
    """
    kinds = {name: find("retriever", name) for name in candidates()}
    there = {name: kind for name, kind in kinds.items() if all(map(index.has, kind.needs))}
    lost: dict[str, str] = {}
    for name, kind in list(there.items()):
        if (other := SAME.get(name)) in there and other not in lost:
            del there[name]
        elif reason := _obstacle(args, index, inputs, kind):
            lost[name] = reason
    used = [name for name in there if name not in lost]
    if not there:
        raise InputError(f"{index.name}: nothing to search in this index; add a part with index --parts dense")
    if len(there) == 1 and (joins := command.given(args, FuseParams)):
        alone = f"--retriever {next(iter(there))}, which is all that {index.name} has"
        raise InputError(f"{', '.join(map(flag, joins))}: joins several retrievers, not {alone}")
    if not used:
        raise UnavailableError("; ".join(lost.values()))
    said = [f"retriever auto: {'+'.join(used)}"]
    if len(used) > 1:
        said[0] += f", fused by {command.chosen(args, FuseParams, base=FUSION).fuse}"
    said += [f"without {name}: {reason}" for name, reason in lost.items()]
    rerankers = list(args.rerank)
    if args.rerank_by_default and (lacking := _lacking(args, index, rerankers)):
        args.source = GRAPH
        if _lacking(args, index, rerankers):
            args.source, rerankers = VECTORS, []
            said.append(f"not reranked: {' and '.join(args.rerank)} needs {lacking}")
        else:
            said.append("reranked from the graph of the index, as --from neighbours does")
    return used, rerankers, "; ".join(said) if len(used) > 1 or len(said) > 1 else ""


def _obstacle(args: argparse.Namespace, index: Index, inputs: Inputs, kind: type[Retriever]) -> str:
    """Why a part that is there cannot be searched on this machine; "" where it can.

    Raises:
        UnavailableError, MissingDependencyError: the same, where a flag is for this retriever.
    """
    given = command.given(args, kind.Params)
    encodes = "query vectors" in kind.needs
    try:
        kind(inputs, make_params("retriever", kind.name, given)).check()
        if encodes:
            check_query_vectors(args, index)
    except (UnavailableError, MissingDependencyError) as error:
        if given or (encodes and args.encoder):
            raise
        return str(error)
    return ""


def _lacking(args: argparse.Namespace, index: Index, rerankers: list[str]) -> str:
    """What the rerankers need and cannot have; "" where that is nothing."""
    needs = frozenset[str]().union(*(needs_of(args, name) for name in rerankers))
    if lacking := [need for need in sorted(needs) if not index.has(need)]:
        return f"{' and '.join(lacking)}, which this index does not have"
    try:
        if "query vectors" in needs and not args.encoder:
            check_query_vectors(args, index)
    except (UnavailableError, MissingDependencyError):
        return "query vectors, which cannot be made here"
    return ""
