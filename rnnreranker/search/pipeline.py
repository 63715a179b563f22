"""Runs a search request: `auto` chooses its parts, then its methods run in order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.command import phase, say
from rnnreranker.base.errors import InputError, MissingDependencyError, UnavailableError, argument
from rnnreranker.base.method import GIVEN, Chosen, Inputs, Usual, choose, find, needs_together
from rnnreranker.index.opening import Index, open_index
from rnnreranker.methods.feedback.base import check_feedback
from rnnreranker.parts.base import givers
from rnnreranker.parts.vectors.together import notice_mismatch
from rnnreranker.runs.fuse import fuse, fusion
from rnnreranker.search.inputs import document_texts
from rnnreranker.search.own_documents import notice_own, without_own
from rnnreranker.search.queries import has_ids, query_vectors, without_query_vectors
from rnnreranker.search.request import GRAPH, KINDS, SearchRequest

if TYPE_CHECKING:
    import pandas

    from rnnreranker.methods.expand.base import Expander
    from rnnreranker.methods.rerank.base import Reranker
    from rnnreranker.methods.retrieve.base import Retriever
    from rnnreranker.runs import Run


class Pipeline:
    """A search whose index and methods are open.

    Opening checks that nothing is missing, before queries are encoded.

    Args:
        topics: query id to text; qrels: judgements, for methods that read them; given: a run in place of retrieving.

    Attributes:
        inputs: of the methods, from the index and the topics.
        retrievers: empty with a given run; expander: None without one; rerankers: in their order.
        retrieved_by: the retrievers (those that `auto` chose) and the feedback.
        depth: candidates per query.

    Raises:
        InputError: no such index, a part that it lacks, an input that this search cannot give to a method.
        UnavailableError: a prebuilt index that cannot be downloaded, BM25 without Java.
    """

    @phase("opening the index")
    def __init__(
        self,
        request: SearchRequest,
        topics: Mapping[str, str],
        qrels: pandas.DataFrame | None = None,
        given: Run | None = None,
    ) -> None:
        self.request, self.given, self.depth = request, given, request.depth
        feedback, retrieving, rerankers = request.feedback, request.retrievers, request.rerankers
        expanding = [request.expander] if request.expander else []
        needed = needs_together([*retrieving, *expanding, *([] if request.auto else rerankers)])
        self.index = index = open_index(request.index, request.bm25_index, needs=needed)
        of_index: dict[str, Any] = {need: partial(index.given, need) for need in givers()}
        for need in set(givers(queries=True)) - {*of_index, *GIVEN}:
            of_index[need] = partial(index.given_queries, need, topics, request.threads, request.devices)
        self.inputs = inputs = Inputs(
            **{need.replace(" ", "_"): source for need, source in of_index.items()},
            topics=topics,
            query_vectors=lambda: query_vectors(request.encoding, index, topics, threads=request.threads),
            texts=lambda: document_texts(request.documents, index, request.document_fields),
            qrels=qrels,
        )
        if request.auto:
            retrieving, rerankers, line = choose_parts(request, index, inputs)
            if line:
                say(line)
            if request.fuse is not None:
                fusion(request.fuse, len(retrieving), "fuse")  # as many weights
        named = [one.name for one in retrieving]
        if feedback:
            check_feedback(feedback.name, named)
        rerankers = [_with_queries(one, request, index, number == 0) for number, one in enumerate(rerankers)]
        chosen = [*retrieving, *expanding, *rerankers]
        without_texts = request.topics is None and request.query is None  # a run alone says which queries there are
        if without_texts and request.encoded_queries is not None and not has_ids(request.encoded_queries):
            raise InputError(
                f"{argument('encoded_queries')}: the rows have no query ids; give {argument('topics')} in their order, "
                "or the ids in FILE.ids beside FILE.npy, one a line"
            )
        reads = {"topics", "query tokens", *(["query vectors"] if request.encoded_queries is None else [])}
        for one in chosen:
            if lacking := sorted(need for need in one.needs - {"run scores"} if not inputs.has(need)):
                raise InputError(f"{one.name} needs {' and '.join(lacking)}, which this search does not have")
            if without_texts and one.needs & reads:
                raise InputError(
                    f"{argument('run')} without {argument('topics')}: {one.name} needs the texts of the queries; give "
                    f"{argument('topics')}, or {argument('encoded_queries')} FILE.npy with ids in FILE.ids"
                )
        self.needs = needs_together(chosen)
        self._load("vectors", "texts", "neighbours")

        def make(one: Chosen, **how: Any) -> Any:
            how |= {"source": one.source, "queries": one.queries} if one.takes_source else {}
            how |= {"device": request.devices} if one.method.takes_device else {}
            how |= {"threads": request.threads, "missing": request.missing, "batch_size": request.batch_size}
            return one.method(inputs, one.params, **how)

        again = feedback.method(feedback.params) if feedback else None
        self.retrievers: list[Retriever] = [make(one, feedback=again) for one in retrieving]
        self.expander: Expander | None = make(expanding[0]) if expanding else None
        self.rerankers: list[Reranker] = [make(one) for one in rerankers]
        for retriever in self.retrievers:
            retriever.check()
        if given is not None and request.missing == "error":
            for method in self._methods:
                method.rows_of(given)
        by = "hybrid" if request.retrieve == "hybrid" else "+".join(named)
        self.retrieved_by = f"{by}.{feedback.name}" if feedback else by

    @property
    def _methods(self) -> list[Any]:
        return [one for one in (self.expander, *self.rerankers) if one is not None]

    @property
    def steps(self) -> list[str]:
        """The names of the expander and the rerankers."""
        return [one.name for one in self._methods]

    def _load(self, *inputs: str) -> None:
        for need in inputs:
            if need in self.needs:
                getattr(self.inputs, need.replace(" ", "_"))

    def _without_own(self, retriever: Retriever) -> Run:
        """The candidates without own documents; searches deeper while a query's own passages leave too few."""
        hits = self.depth + 1
        while True:
            run = retriever.retrieve(hits)
            kept = without_own(run, self.request.passages)
            if not np.any((np.diff(run.offsets) == hits) & (np.diff(kept.offsets) < self.depth)):
                return kept.head(self.depth)
            hits *= 2

    def stages(self) -> list[Run]:
        """The run of each stage: retrieved or given, expanded, reranked once or more.

        Runs are not cut; passages are not merged to documents.
        """
        remove, passages, how = self.request.remove_query, self.request.passages, self.request.fusion
        with phase("query vectors"):
            self._load("query vectors", "query tokens")
        with phase("retrieval"):
            runs = [self._without_own(one) if remove else one.retrieve(self.depth) for one in self.retrievers]
            words = [run for one, run in zip(self.retrievers, runs, strict=True) if "vectors" not in one.needs]
            if words and {"query vectors", "vectors"} <= self.needs:  # they test vectors better than their own run
                self.inputs.compared = self.inputs.query_vectors
                notice_mismatch(words[0], self.inputs.query_vectors, self.inputs.vectors)
            if len(runs) > 1:
                runs = [fuse(runs, how, hits=self.depth)]
            stages = runs if self.given is None else [self.given]
            if not remove:
                notice_own(stages[0], f"{argument('remove_query', True)} of search leaves it out of the run")
        if self.expander is not None:
            with phase(f"expanding by {self.expander.name}"):
                expanded = self.expander.expand(stages[0])
                stages.append(without_own(expanded, passages) if remove else expanded)
        for reranker in self.rerankers:
            step = "reranking" if len(self.rerankers) == 1 else f"reranking by {reranker.name}"
            with phase(f"{step} on {reranker.devices}" if reranker.devices else step):
                stages.append(reranker.rerank(stages[-1]))
        return stages


def _with_queries(chosen: Chosen, request: SearchRequest, index: Index, first: bool) -> Chosen:
    """A reranker from a graph with its `queries`; first: whether it reads the run of the first stage.

    "run" right after dense retrieval by the graph's vectors, since those scores are inner products; else "encoded" if
    the index has these vectors; else "none".

    Raises:
        InputError: encoded queries without the vectors of the graph.
    """
    if chosen.source != GRAPH:
        return chosen
    origin = index.graph.origin
    of_vectors = index.has("vectors") and origin.of in ("", "dense") and origin.similarity in ("", "inner product")
    if chosen.queries == "encoded" and not of_vectors:
        raise InputError(
            f"{argument('queries', 'encoded')}: {index.name} has no vectors that its graph was made from; give "
            f"{argument('queries', 'none')}, or run if the run's scores are the same similarity as the graph's"
        )
    retrieved_by = [one.name for one in request.retrievers]
    of_run = first and retrieved_by == ["dense"] and not request.expand and not request.prf
    return chosen.replaced(queries=chosen.queries or ("none" if not of_vectors else "run" if of_run else "encoded"))


def choose_parts(request: SearchRequest, index: Index, inputs: Inputs) -> tuple[list[Chosen], list[Chosen], str]:
    """The retrievers, the rerankers, and a line that says which parts are used or not, and why; "" for a single part.

    `auto` takes one retriever of words and one of vectors that the index has and this machine can search. It drops the
    usual reranker if its inputs are missing and no graph replaces them.

    Raises:
        InputError: nothing to search, a fusion for a single part.
        UnavailableError, MissingDependencyError: no part, or the given encoder, works here.
    """
    rerankers, lost, used = request.rerankers, dict[str, str](), list[Chosen]()
    without_queries = cache(lambda: without_query_vectors(request.encoding, index))
    for kind in KINDS:
        for name in kind:
            method = find("retriever", name)
            if not all(map(index.has, method.needs)):
                continue
            try:
                method(inputs).check()
            except (UnavailableError, MissingDependencyError) as error:
                reason = str(error)
            else:
                reason = without_queries() if "query vectors" in method.needs else ""
            if not reason:
                used.append(choose("retriever", name))
                break
            lost[name] = reason
    if not lost and not used:
        raise InputError(f"{index.name}: nothing to search in this index; add a part with index --parts dense")
    if request.fuse is not None and len(lost) + len(used) == 1:
        raise InputError(
            f"{argument('fuse', request.fuse)}: joins several retrievers, and {index.name} has one part to search"
        )
    if not used:
        raise UnavailableError("; ".join(lost.values()))
    fused = f", fused by {request.fusion.fuse}" if len(used) > 1 else ""
    said = [f"retriever auto: {'+'.join(one.name for one in used)}{fused}"]
    said += [f"without {name}: {reason}" for name, reason in lost.items()]
    if isinstance(request.rerank, Usual):
        needs = needs_together(rerankers)
        lacking = [f"{need}, which this index does not have" for need in sorted(needs) if not index.has(need)][:1]
        if not lacking and "query vectors" in needs and without_queries():
            lacking = ["query vectors, which cannot be made here"]
        from_graph = [one.replaced(source=GRAPH) for one in rerankers]
        if lacking and all(map(index.has, needs_together(from_graph))):
            said.append(f"reranked from the graph of the index, as {argument('from', GRAPH)} does")
            rerankers = from_graph
        elif lacking:
            said.append(f"not reranked: {' and '.join(one.name for one in rerankers)} needs {lacking[0]}")
            rerankers = []
    return used, rerankers, "; ".join(said) if fused or len(said) > 1 else ""
