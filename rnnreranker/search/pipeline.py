"""A search from its request to its runs: what `auto` chooses, and the methods in their order on one index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Chosen, choose, needs_together
from rnnreranker.base.command import say
from rnnreranker.base.device import Devices
from rnnreranker.base.errors import InputError, MissingDependencyError, UnavailableError
from rnnreranker.base.method import Inputs, find, names
from rnnreranker.base.process.phases import phase
from rnnreranker.index.opening import IndexOnDisk, open_index
from rnnreranker.methods.feedback.base import check_feedback
from rnnreranker.parts.vectors.together import notice_mismatch
from rnnreranker.runs.fuse import FuseParams
from rnnreranker.search import sources
from rnnreranker.search.inputs import open_inputs
from rnnreranker.search.own_documents import documents_of, notice_own, without_own
from rnnreranker.search.queries import check_query_vectors
from rnnreranker.search.request import SearchRequest
from rnnreranker.search.sources import GRAPH

if TYPE_CHECKING:
    import pandas

    from rnnreranker.methods.expand import Expander
    from rnnreranker.methods.rerank import Reranker
    from rnnreranker.methods.retrieve import Retriever
    from rnnreranker.runs import Run
    from rnnreranker.runs.passages import PassageParams


@dataclass(frozen=True, eq=False)
class Pipeline:
    """What a search works with.

    Attributes:
        index: where documents come from; inputs: what methods read of it and of the topics.
        needs: of all methods together.
        retrievers: empty where a run was given; expander: None without one; rerankers: in their order.
        retrieved_by: the retrievers, of `auto` those that it chose; and the feedback.
        fusion: of several retrievers; depth: candidates per query.
        passages: how they become documents, None where they stay; hits: documents per query that come out.
        remove_query: whether a query's own document is no candidate, see `SearchRequest`.
        devices: where models compute; None = the processor.
    """

    index: IndexOnDisk
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
    remove_query: bool = False
    devices: Devices | None = None

    def stages(self, given: Run | None = None) -> list[Run]:
        """The run of every stage: retrieved or given, expanded, reranked once or more.

        Runs have their whole depth and passages stay passages: see `documents`.
        """
        with phase("query vectors"):
            for need in sorted({"query vectors", "query tokens"} & self.needs):
                getattr(self.inputs, need.replace(" ", "_"))  # loaded now
        with phase("retrieval"):
            stages = [self.retrieved() if given is None else given]
            if not self.remove_query:
                notice_own(stages[0], f"give {argument('remove_query', True)} to leave it out of the run")
        if self.expander is not None:
            with phase(f"expanding by {self.expander.name}"):
                expanded = self.expander.expand(stages[0])
                stages.append(without_own(expanded, self.passages) if self.remove_query else expanded)
        for reranker in self.rerankers:
            step = "reranking" if len(self.rerankers) == 1 else f"reranking by {reranker.name}"
            with phase(f"{step} on {reranker.devices}" if reranker.devices else step):
                stages.append(reranker.rerank(stages[-1]))
        return stages

    def documents(self, run: Run, hits: int | None = None) -> Run:
        """The documents of a run of passages, or a run as it is; hits: of every query, None = all."""
        made = run if self.passages is None else documents_of(run, self.passages)
        return made if hits is None else made.head(hits)

    def retrieved(self) -> Run:
        """The run of the retriever, or of several fused."""
        runs = [
            without_own(one.retrieve(self.depth + 1), self.passages).head(self.depth)
            if self.remove_query
            else one.retrieve(self.depth)
            for one in self.retrievers
        ]
        others = [run for one, run in zip(self.retrievers, runs, strict=True) if "vectors" not in one.needs]
        if others and {"query vectors", "vectors"} <= self.needs:  # a run of words says more of vectors than their own
            self.inputs.compared = self.inputs.query_vectors
            notice_mismatch(others[0], self.inputs.query_vectors, self.inputs.vectors)
        if len(runs) == 1:
            return runs[0]
        from rnnreranker.runs.fuse import fuse

        how = self.fusion
        return fuse(runs, how.fuse, k=how.k, weights=how.weight_of_runs, hits=self.depth)


@phase("opening the index")
def open_pipeline(
    request: SearchRequest,
    topics: Mapping[str, str],
    qrels: pandas.DataFrame | None = None,
    given: Run | None = None,
) -> Pipeline:
    """The index and the methods of a search; what they lack is noticed here, before queries are encoded.

    Args:
        request: what is asked for.
        topics: query id to text; qrels: judgements, for methods that read them.
        given: a run in place of retrieving.

    Raises:
        InputError: no such index, a part that is not in it, something that this search cannot give to a method.
        UnavailableError: a prebuilt index that cannot be downloaded, BM25 without Java.
    """
    retrieving, rerankers = request.retrievers, request.rerankers
    expanding = [request.expander] if request.expander else []
    needed = [*retrieving, *expanding, *([] if request.auto else rerankers)]
    index = open_index(request.index, request.bm25_index, needs=needs_together(needed))
    inputs = open_inputs(request, index, topics, qrels)
    if request.auto:
        retrieving, rerankers, line = choose_parts(request, index, inputs)
        if line:
            say(line)
    names = [one.name for one in retrieving]
    if request.feedback:
        check_feedback(request.feedback.name, names)
    none_wanted = any(one.queries == "none" for one in rerankers)
    rerankers = [
        sources.with_queries(one, request, index, names, first=number == 0) for number, one in enumerate(rerankers)
    ]
    chosen = [*retrieving, *expanding, *rerankers]
    if none_wanted and (others := [one.name for one in chosen if "query vectors" in one.needs]):
        say(
            f"{argument('queries', 'none')} is of rnn alone: query vectors are needed all the same, for "
            f"{' and '.join(others)}"
        )
    for one in chosen:
        if lacking := sorted(need for need in one.needs - {"run scores"} if not inputs.has(need)):
            raise InputError(f"{one.name} needs {' and '.join(lacking)}, which this search does not have")
    if request.topics is None and request.query is None:
        _check_without_topics(request, chosen)
    needs = needs_together(chosen)
    for need in sorted({"vectors", "neighbours", "texts"} & needs):
        getattr(inputs, need)  # opened now
    again = request.feedback.method(request.feedback.params) if request.feedback else None
    speed = {"threads": request.threads, "batch_size": request.batch_size, "devices": request.devices}
    retrievers = [one.method(inputs, one.params, **speed, feedback=again) for one in retrieving]
    for retriever in retrievers:
        retriever.check()
    expanders = [one.method(inputs, one.params, missing=request.missing) for one in expanding]
    made = [_made(one, request, inputs) for one in rerankers]
    for method in [*expanders, *made] if given is not None else []:
        method.check(given)
    fusion = request.fusion(len(retrievers), FUSION if request.auto else None)
    named = ["+".join(names) if request.auto else request.retrieved_by]
    named += [request.feedback.name] if request.feedback else []
    return Pipeline(
        index,
        inputs,
        needs,
        retrievers,
        next(iter(expanders), None),
        made,
        ".".join(named),
        fusion,
        request.candidates,
        request.passages,
        request.hits,
        request.remove_query,
        request.devices,
    )


def _made(chosen: Chosen, request: SearchRequest, inputs: Inputs) -> Any:
    """A reranker."""
    return chosen.method(
        inputs,
        chosen.params,
        threads=request.threads,
        missing=request.missing,
        device=request.devices if chosen.method.takes_device else None,
        **sources.options(chosen),
    )


def _check_without_topics(request: SearchRequest, chosen: list[Chosen]) -> None:
    """Refuse methods that read the texts of queries, where a run alone says which queries there are."""
    reads = {"topics", "query tokens"} | ({"query vectors"} if request.encoded_queries is None else set())
    if takers := [one.name for one in chosen if one.needs & reads]:
        raise InputError(
            f"{argument('run')} without {argument('topics')}: {' and '.join(takers)} needs the texts of the queries; "
            f"give {argument('topics')}, or {argument('encoded_queries')} FILE.npy with its ids in FILE.ids"
        )


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
