"""The methods of a search in their order, on the inputs of one index."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rnnreranker.base import command
from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError
from rnnreranker.base.method import Inputs, find
from rnnreranker.methods.feedback.base import check_feedback
from rnnreranker.search import sources
from rnnreranker.search.auto import FUSION, choose
from rnnreranker.search.flags import AUTO, feedback_names, fuse_params, passage_params, retriever_names
from rnnreranker.search.indexes import Index, open_index
from rnnreranker.search.inputs import open_inputs
from rnnreranker.search.to_documents import candidates_of, documents_of

if TYPE_CHECKING:
    import pandas

    from rnnreranker.methods.expand import Expander
    from rnnreranker.methods.rerank import Reranker
    from rnnreranker.methods.retrieve import Retriever
    from rnnreranker.runs import Run
    from rnnreranker.runs.fuse import FuseParams
    from rnnreranker.runs.passages import PassageParams


@dataclass(frozen=True, eq=False)
class Pipeline:
    """What a search works with.

    Attributes:
        index: where documents come from; inputs: what methods read of it and of the topics.
        needs: of all methods together.
        retrievers: empty where a run was given; expander: None without --expand; rerankers: in their order.
        retrieved_by: the retrievers as --retriever names them, of `auto` those that it chose; and the feedback.
        fusion: of several retrievers; depth: candidates per query.
        passages: how they become documents, None where they stay; hits: documents per query.
    """

    index: Index
    inputs: Inputs
    needs: frozenset[str]
    retrievers: list[Retriever]
    expander: Expander | None
    rerankers: list[Reranker]
    retrieved_by: str
    fusion: FuseParams
    depth: int
    passages: PassageParams | None
    hits: int

    def retrieve(self) -> Run:
        """The run of the retriever, or of several fused."""
        runs = [retriever.retrieve(self.depth) for retriever in self.retrievers]
        if len(runs) == 1:
            return runs[0]
        from rnnreranker.runs.fuse import fuse

        how = self.fusion
        return fuse(runs, how.fuse, k=how.rrf_k, weights=how.weight_of_runs, hits=self.depth)

    def documents(self, run: Run) -> Run:
        """The documents of a run of passages."""
        assert self.passages is not None
        return documents_of(run, self.passages, self.hits)


def open_pipeline(
    args: argparse.Namespace,
    params: Mapping[str, Any],
    topics: Mapping[str, str],
    qrels: pandas.DataFrame | None,
    given: Run | None,
) -> Pipeline:
    """The index and the methods of a search; what they lack is found here, before queries are encoded.

    Args:
        args: of `search`; `rerank` is the list of rerankers.
        params: the parameters of the rerankers by name.
        topics: query id to text; qrels: judgements, for methods that read them.
        given: a run in place of retrieving.

    Raises:
        InputError: no such index, a part that is not in it, something that this search cannot give to a method.
        UnavailableError: a prebuilt index that cannot be downloaded, BM25 without Java.
    """
    auto, rerankers = given is None and args.retriever == AUTO, list(args.rerank)
    retrieving = [] if given is not None or auto else retriever_names(args.retriever)
    expanding = [args.expand] if args.expand else []
    needed = _methods(args, retrieving, expanding, [] if auto else rerankers)
    index = open_index(args.index, args.bm25_index, needs=_together(needed))
    inputs = open_inputs(args, index, topics, qrels)
    if auto:
        retrieving, rerankers, line = choose(args, index, inputs)
        if line:
            say(line)
    if args.prf:
        check_feedback(args.prf, retrieving)
    none_wanted = args.queries == "none"
    args.queries = sources.choose_queries(args, index, retrieving)
    found = _methods(args, retrieving, expanding, rerankers)
    kinds, needs = [kind for kind, _ in found], _together(found)
    if none_wanted and (others := [kind.name for kind, own in found if "query vectors" in own]):
        say(f"--queries none is of rnn alone: query vectors are needed all the same, for {' and '.join(others)}")
    for kind, own in found:
        if lacking := sorted(need for need in own - {"run scores"} if not inputs.has(need)):
            raise InputError(f"{kind.name} needs {' and '.join(lacking)}, which this search does not have")
    if args.topics is None and args.query is None:
        _check_without_topics(args, found)
    for need in sorted({"vectors", "neighbours", "texts"} & needs):
        getattr(inputs, need)  # opened now
    ways = feedback_names(args)
    again = [
        find("feedback", name)(its)
        for name, its in zip(ways, command.method_params(args, "feedback", ways), strict=True)
    ]
    retrievers = [
        kind(inputs, its, threads=args.threads, batch_size=args.batch_size, feedback=next(iter(again), None))
        for kind, its in zip(kinds, command.method_params(args, "retriever", retrieving), strict=False)
    ]
    for retriever in retrievers:
        retriever.check()
    common = {"threads": args.threads, "missing": args.missing}
    expander = find("expander", args.expand) if args.expand else None
    if expander is not None:
        expander = expander(inputs, *command.method_params(args, "expander", expanding), missing=args.missing)
    made = [
        kind(
            inputs,
            params[kind.name],
            **common,
            **sources.options(args, kind, args.queries),
            device=args.device if kind.takes_device else None,
        )
        for kind in kinds[len(retrieving) + len(expanding) :]
    ]
    for method in [*([expander] if expander else []), *made] if given is not None else []:
        method.check(given)
    fusion = fuse_params(args, len(retrievers), FUSION if auto else None)
    named = ".".join(["+".join(retrieving) if auto else args.retriever, *ways])
    depth, passages = candidates_of(args), passage_params(args)
    return Pipeline(index, inputs, needs, retrievers, expander, made, named, fusion, depth, passages, args.hits)


def _check_without_topics(args: argparse.Namespace, methods: list[tuple[Any, frozenset[str]]]) -> None:
    """Refuse methods that read the texts of queries, where a run alone says which queries there are."""
    reads = {"topics", "query tokens"} | (set() if args.encoded_queries else {"query vectors"})
    if takers := [kind.name for kind, needs in methods if needs & reads]:
        raise InputError(
            f"--run without --topics: {' and '.join(takers)} needs the texts of the queries; give --topics, or "
            "--encoded-queries FILE.npy with its ids in FILE.ids"
        )


def _methods(
    args: argparse.Namespace, retrievers: list[str], expanders: list[str], rerankers: list[str]
) -> list[tuple[Any, frozenset[str]]]:
    """The classes of methods with what they need."""
    first = [find(kind, name) for kind, names in (("retriever", retrievers), ("expander", expanders)) for name in names]
    last = [(find("reranker", name), sources.needs_of(args, name)) for name in rerankers]
    return [*((kind, kind.needs) for kind in first), *last]


def _together(methods: list[tuple[Any, frozenset[str]]]) -> frozenset[str]:
    """What some methods need."""
    return frozenset[str]().union(*(needs for _, needs in methods))
