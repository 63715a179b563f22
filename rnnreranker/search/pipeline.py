"""Runs a search request: `auto` chooses its parts, then its methods run in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Chosen, choose, needs_together
from rnnreranker.base.command import say
from rnnreranker.base.errors import InputError, MissingDependencyError, UnavailableError
from rnnreranker.base.method import GIVEN, Inputs, find, names
from rnnreranker.base.process.phases import phase
from rnnreranker.index.opening import IndexOnDisk, open_index
from rnnreranker.methods.feedback.base import check_feedback
from rnnreranker.parts.base import givers
from rnnreranker.parts.vectors.together import notice_mismatch
from rnnreranker.runs.fuse import fuse, fusion
from rnnreranker.search.defaults import Usual
from rnnreranker.search.inputs import document_texts
from rnnreranker.search.own_documents import notice_own, without_own
from rnnreranker.search.queries import query_vectors, without_query_vectors
from rnnreranker.search.request import KINDS, SAME, SearchRequest

if TYPE_CHECKING:
    import pandas

    from rnnreranker.methods.expand import Expander
    from rnnreranker.methods.rerank import Reranker
    from rnnreranker.methods.retrieve import Retriever
    from rnnreranker.runs import Run

GRAPH = "neighbours"


@dataclass(frozen=True, eq=False)
class Pipeline:
    """An opened search.

    Attributes:
        inputs: of the methods, from the index and the topics.
        retrievers: empty with a given run; expander: None without one; rerankers: in their order.
        retrieved_by: the retrievers (those that `auto` chose) and the feedback.
        depth: candidates per query; needs: the inputs that all methods read.
    """

    request: SearchRequest
    index: IndexOnDisk
    inputs: Inputs
    retrievers: list[Retriever]
    expander: Expander | None
    rerankers: list[Reranker]
    retrieved_by: str
    depth: int
    needs: frozenset[str]

    def stages(self, given: Run | None = None) -> list[Run]:
        """The run of each stage: retrieved or given, expanded, reranked once or more.

        Runs are not cut; passages are not merged to documents.
        """
        remove, passages = self.request.remove_query, self.request.methods.passages
        with phase("query vectors"):
            for need in ("query tokens", "query vectors"):
                if need in self.needs:
                    getattr(self.inputs, need.replace(" ", "_"))  # loaded now
        with phase("retrieval"):
            stages = [self.retrieved() if given is None else given]
            if not remove:
                notice_own(stages[0], f"give {argument('remove_query', True)} to leave it out of the run")
        if self.expander is not None:
            with phase(f"expanding by {self.expander.name}"):
                expanded = self.expander.expand(stages[0])
                stages.append(without_own(expanded, passages) if remove else expanded)
        for reranker in self.rerankers:
            step = "reranking" if len(self.rerankers) == 1 else f"reranking by {reranker.name}"
            with phase(f"{step} on {reranker.devices}" if reranker.devices else step):
                stages.append(reranker.rerank(stages[-1]))
        return stages

    @property
    def steps(self) -> list[str]:
        own = [] if self.expander is None else [self.expander.name]
        return own + [one.name for one in self.rerankers]

    def retrieved(self) -> Run:
        remove = self.request.remove_query
        runs = [one.retrieve(self.depth + remove) for one in self.retrievers]
        if remove:
            runs = [without_own(run, self.request.methods.passages).head(self.depth) for run in runs]
        others = [run for one, run in zip(self.retrievers, runs, strict=True) if "vectors" not in one.needs]
        if others and {"query vectors", "vectors"} <= self.needs:  # a lexical run tests vectors better than their own
            self.inputs.compared = self.inputs.query_vectors
            notice_mismatch(others[0], self.inputs.query_vectors, self.inputs.vectors)
        if len(runs) == 1:
            return runs[0]
        how = self.request.methods.fusion
        return fuse(runs, how.fuse, k=how.k, weights=how.weight_of_runs, hits=self.depth)


@phase("opening the index")
def open_pipeline(
    request: SearchRequest,
    topics: Mapping[str, str],
    qrels: pandas.DataFrame | None = None,
    given: Run | None = None,
) -> Pipeline:
    """Open the index and the methods of a search, and check that nothing is missing, before queries are encoded.

    topics: query id to text; qrels: judgements, for methods that read them; given: a run in place of retrieving.

    Raises:
        InputError: no such index, a part that it lacks, an input that this search cannot give to a method.
        UnavailableError: a prebuilt index that cannot be downloaded, BM25 without Java.
    """
    methods = request.methods
    retrieving, rerankers, feedback = methods.retrievers, methods.rerankers, methods.feedback
    expanding = [methods.expander] if methods.expander else []
    needed = [*retrieving, *expanding, *([] if methods.auto else rerankers)]
    index = open_index(request.index, request.bm25_index, needs=needs_together(needed))
    of_index: dict[str, Any] = {need: partial(index.given, need) for need in givers()}
    for need in set(givers(queries=True)) - {*of_index, *GIVEN}:
        of_index[need] = partial(index.given_queries, need, topics, request.threads, request.devices)
    inputs = Inputs(
        **{need.replace(" ", "_"): source for need, source in of_index.items()},
        topics=topics,
        query_vectors=lambda: query_vectors(methods.encoding, index, topics, threads=request.threads),
        texts=lambda: document_texts(request.documents, index, methods.fields),
        qrels=qrels,
    )
    if methods.auto:
        retrieving, rerankers, line = choose_parts(request, index, inputs)
        if line:
            say(line)
        if request.fuse is not None:
            fusion(request.fuse, len(retrieving), "fuse")  # as many weights
    named = [one.name for one in retrieving]
    if feedback:
        check_feedback(feedback.name, named)
    rerankers = [
        _with_queries(one, request, index, named if number == 0 else []) for number, one in enumerate(rerankers)
    ]
    chosen = [*retrieving, *expanding, *rerankers]
    for one in chosen:
        if lacking := sorted(need for need in one.needs - {"run scores"} if not inputs.has(need)):
            raise InputError(f"{one.name} needs {' and '.join(lacking)}, which this search does not have")
    if request.topics is None and request.query is None:  # a run alone says which queries there are
        reads = {"topics", "query tokens"} | ({"query vectors"} if request.encoded_queries is None else set())
        if takers := [one.name for one in chosen if one.needs & reads]:
            raise InputError(
                f"{argument('run')} without {argument('topics')}: {' and '.join(takers)} needs the texts of the "
                f"queries; give {argument('topics')}, or {argument('encoded_queries')} FILE.npy with ids in FILE.ids"
            )
    for need in sorted({"vectors", "neighbours", "texts"} & needs_together(chosen)):
        getattr(inputs, need)  # opened now
    again = feedback.method(feedback.params) if feedback else None
    threads, devices, missing = request.threads, request.devices, request.missing
    speed = {"threads": threads, "batch_size": request.batch_size, "devices": devices}
    retrievers = [one.method(inputs, one.params, **speed, feedback=again) for one in retrieving]
    for retriever in retrievers:
        retriever.check()
    expanders = [one.method(inputs, one.params, missing=missing) for one in expanding]
    made: list[Any] = []
    for one in rerankers:
        options: dict[str, Any] = {"source": one.source, "queries": one.queries} if one.takes_source else {}
        options |= {"device": devices} if one.method.takes_device else {}
        made.append(one.method(inputs, one.params, threads=threads, missing=missing, **options))
    for method in [*expanders, *made] if given is not None else []:
        method.check(given)
    needs = frozenset[str]().union(*(one.needs for one in [*retrievers, *expanders, *made]))
    by = "hybrid" if request.retrieve == "hybrid" else "+".join(named)
    by += f".{feedback.name}" if feedback else ""
    return Pipeline(request, index, inputs, retrievers, next(iter(expanders), None), made, by, methods.depth, needs)


def _with_queries(chosen: Chosen, request: SearchRequest, index: IndexOnDisk, retrieved_by: list[str]) -> Chosen:
    """A reranker with its `queries`.

    "encoded" with vectors and tokens. With a graph: "run" right after dense retrieval (`retrieved_by`) by its
    vectors, since those scores are inner products; else "encoded" if the index has these vectors; else "none".

    Raises:
        InputError: encoded queries without the vectors of the graph.
    """
    if not chosen.takes_source:
        return chosen
    if chosen.source != GRAPH:
        return chosen.replaced(queries="encoded")
    origin = index.graph.origin
    of_vectors = index.has("vectors") and origin.of in ("", "dense") and origin.similarity in ("", "inner product")
    if chosen.queries == "encoded" and not of_vectors:
        raise InputError(
            f"{argument('queries', 'encoded')}: {index.name} has no vectors that its graph was made from; give "
            f"{argument('queries', 'none')}, or run if the run's scores are the same similarity as the graph's"
        )
    if chosen.queries is not None:
        return chosen
    if of_vectors and retrieved_by == ["dense"] and not request.expand and not request.prf:
        return chosen.replaced(queries="run")
    return chosen.replaced(queries="encoded" if of_vectors else "none")


def choose_parts(request: SearchRequest, index: IndexOnDisk, inputs: Inputs) -> tuple[list[Chosen], list[Chosen], str]:
    """The retrievers, the rerankers, and a line that says which parts are used or not, and why; "" for a single part.

    `auto` takes one retriever of words and one of vectors that the index has and this machine can search. It drops the
    usual reranker if its inputs are missing and no graph replaces them.

    Raises:
        InputError: nothing to search, a fusion for a single part.
        UnavailableError, MissingDependencyError: no part, or the given encoder, works here.
    """
    methods, lost, used, there = request.methods, dict[str, str](), list[Chosen](), 0
    for kind in KINDS:
        taken = ""
        for name in (one for one in kind if one in names("retriever")):
            method = find("retriever", name)
            if not all(map(index.has, method.needs)):
                continue
            there += 1
            if taken:
                if SAME.get(name) != taken:
                    lost[name] = f"{taken} is taken, name both in {argument('retrieve')}"
                continue
            try:
                method(inputs).check()
                reason = ""
            except (UnavailableError, MissingDependencyError) as error:
                reason = str(error)
            if not reason and "query vectors" in method.needs:
                reason = without_query_vectors(methods.encoding, index)
            if reason:
                lost[name] = reason
            else:
                taken = name
                used.append(choose("retriever", name))
    if not there:
        raise InputError(f"{index.name}: nothing to search in this index; add a part with index --parts dense")
    if there == 1 and request.fuse is not None:
        [alone] = [*lost, *(one.name for one in used)]
        raise InputError(
            f"{argument('fuse', request.fuse)}: joins several retrievers, not {argument('retrieve', alone)}, which is "
            f"all that {index.name} has"
        )
    if not used:
        raise UnavailableError("; ".join(lost.values()))
    said = [f"retriever auto: {'+'.join(one.name for one in used)}"]
    if len(used) > 1:
        said[0] += f", fused by {methods.fusion.fuse}"
    said += [f"without {name}: {reason}" for name, reason in lost.items()]
    rerankers = methods.rerankers
    if isinstance(request.rerank, Usual):
        needs = needs_together(rerankers)
        lacking = " and ".join(sorted(need for need in needs if not index.has(need)))
        lacking = f"{lacking}, which this index does not have" if lacking else ""
        if not lacking and "query vectors" in needs and without_query_vectors(methods.encoding, index):
            lacking = "query vectors, which cannot be made here"
        from_graph = [one.replaced(source=GRAPH) for one in rerankers]
        if lacking and all(map(index.has, needs_together(from_graph))):
            said.append(f"reranked from the graph of the index, as {argument('from', GRAPH)} does")
            rerankers = from_graph
        elif lacking:
            said.append(f"not reranked: {' and '.join(one.name for one in rerankers)} needs {lacking}")
            rerankers = []
    return used, rerankers, "; ".join(said) if len(used) > 1 or len(said) > 1 else ""
