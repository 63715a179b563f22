"""The request of a search, the methods that it names, and the faults that are visible before any work."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import SOURCES, Chosen, Form, as_list, choose, choose_all, needs_together
from rnnreranker.base.device import EXACT, ComputesOnDevices
from rnnreranker.base.errors import InputError, nearest, problems_of, refuse
from rnnreranker.base.method import methods, names
from rnnreranker.base.request import Request
from rnnreranker.base.settings import setting
from rnnreranker.base.written_form import Written, read_joined
from rnnreranker.data.fields import CHOICES, FIELDS, asked_fields
from rnnreranker.data.names import QRELS, TOPICS
from rnnreranker.evaluate.protocols import CHOSEN, MEASURES, PROTOCOLS
from rnnreranker.methods.feedback.base import check_feedback
from rnnreranker.runs import FORMATS
from rnnreranker.runs.fuse import FuseParams, fusion
from rnnreranker.runs.passages import AGGREGATES, PassageParams
from rnnreranker.search.defaults import ENCODED, ENCODER, INDEX, RNN
from rnnreranker.search.queries import QueryEncoding, encoder_of

if TYPE_CHECKING:
    import numpy as np

    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run

HYBRID = ("bm25", "dense")  # what the retriever `hybrid` stands for
MODELS = {"splade": "impact", "colbert": "late", "faiss": "dense", "lucene": "bm25"}  # model or library → retriever
AUTO = "auto"  # words and vectors of the index, see `choose_parts`
KINDS = (("bm25", "bm25s", "impact"), ("dense", "late"))  # of `auto`: of each kind the first that can be searched
SAME = {"bm25s": "bm25"}  # retrievers of the same words: the absence of the first needs no line
NO_RERANKING = "none"
PASSAGES_PER_DOCUMENT = 10  # retrieved for every document asked for, as in Pyserini's experiments with passages


@dataclass(frozen=True)
class SearchRequest(ComputesOnDevices, Request):
    """A search: the arguments of `Index.search`, and the flags of the command.

    Attributes:
        index: an opened index, a folder, `pydoc`, or the name of a prebuilt index of Pyserini.
        topics: a name, a file, or qid → text; None with a run whose queries need no text. query: one text instead.
        run: candidates in place of retrieving, a Run or a file.
        encoded_queries: a .npy file of query vectors, `QueryVectors`, or (Q, d) floats in the order of the topics.
        retrieve: `auto`, `hybrid`, or retrievers in their written form, joined by + or in a list. fuse: their fusion;
            None
            = rrf, of `auto` minmax. prf, expand, rerank: methods in their written form.
        remove_query: drops the document whose docid is the id of its query from the first run, as Pyserini's
            `--remove-query`; `hits` others stay. Feedback still reads it.
        hits: documents a query in the result. A reranker with a larger `context` reads more candidates.
        encoder: of queries, `name:key=value,…`; None = the index's.
        missing: "error" or "skip" for candidates without a vector or text.
        documents: texts for rerankers; fields: "title,text" or "text" of them.
        device, compute_dtype: as of `devices_of`; None = the processor.
        aggregate: passages to documents, `maxp:passages=#,hits=5000`.
        threads: None = one per core; batch_size: queries at a time. Results depend on neither.
    """

    index: str | Path | IndexOnDisk = setting(MISSING, INDEX)
    topics: str | Path | Mapping[str, str] | None = setting(None, TOPICS)
    query: str | None = setting(None, "one query; its results are shown", metavar="TEXT")
    run: str | Path | Run | None = setting(None, "rerank this run (TREC or MS MARCO format) in place of retrieving")
    encoded_queries: str | Path | QueryVectors | np.ndarray | None = setting(None, ENCODED, metavar="NPY")
    retrieve: Form | Sequence[Form] | None = setting(
        None, ", hybrid, A+B, auto (default)", method="retriever", flag="retriever", metavar="NAME"
    )
    fuse: Form | None = setting(
        None, "rrf, mean, mean-zero, minmax, zscore (default: rrf; auto: minmax)", metavar="NAME"
    )
    prf: Form | None = setting(None, ": search again by the first documents", method="feedback", metavar="NAME")
    expand: Form | None = setting(
        None, ": more candidates, from the graph of the index", method="expander", metavar="NAME"
    )
    rerank: Form | Sequence[Form] | None = setting(
        RNN, f", {NO_RERANKING}; repeatable", method="reranker", many=True, metavar="NAME"
    )
    bm25_index: str | None = setting(None, "a Lucene index that is not inside --index", metavar="DIR")
    remove_query: bool = setting(False, "leave out a document whose id is the query's, as for ArguAna and Quora")
    hits: int = setting(1000, "documents per query in the output", at_least=1)
    encoder: Form | None = setting(None, ENCODER)
    missing: str = setting(
        "error", "candidates without what is needed of them", one_of=lambda: ["error", "skip"], metavar="WHAT"
    )
    documents: str | None = setting(None, "texts, for rerankers that read them (default: of the index)")
    fields: str | None = setting(None, FIELDS, one_of=lambda: [*CHOICES], metavar="NAMES")
    aggregate: Form | None = setting(
        None, "passages to documents: maxp, firstp, sump[:passages=#,hits=5000]", metavar="NAME"
    )
    threads: int | None = setting(None, "default: one per core", at_least=1)
    batch_size: int = setting(256, "queries at a time", at_least=1)

    @cached_property
    def auto(self) -> bool:
        """Whether the index determines the retrievers."""
        return self.run is None and self.retrieve in (None, AUTO)

    @cached_property
    def retrievers(self) -> list[Chosen]:
        """The retrievers; empty with a run or `auto`.

        Raises:
            InputError: unknown or repeated retrievers, `hybrid` or `auto` beside others.
        """
        if self.run is not None or self.auto or self.retrieve is None:
            return []
        forms = list(map(Written, HYBRID)) if self.retrieve == "hybrid" else read_joined(self.retrieve)
        shown = argument("retrieve", "+".join(map(str, forms)))
        known = [*names("retriever"), "hybrid", AUTO]
        for one in forms:
            if one.name not in known:
                hint = f"did you mean {MODELS[one.name]}?" if one.name in MODELS else nearest(one.name, known)
                raise InputError(f"{shown}: {one.name}: no such retriever; {hint}")
            if one.name in ("hybrid", AUTO):
                meaning = f"hybrid is {'+'.join(HYBRID)}" if one.name == "hybrid" else "auto is words and vectors"
                raise InputError(f"{shown}: {meaning} and stands alone; name its parts")
        if len({one.name for one in forms}) < len(forms):
            raise InputError(f"{shown}: expected different retrievers")
        return choose_all("retriever", forms, "retrieve")

    @cached_property
    def retrieved_by(self) -> str:
        """The retrievers in a run's tag; "" for `auto`."""
        return "hybrid" if self.retrieve == "hybrid" else "+".join(one.name for one in self.retrievers)

    @cached_property
    def feedback(self) -> Chosen | None:
        """The method that makes the query of a second search."""
        return None if self.prf is None else choose("feedback", self.prf, "prf")

    @cached_property
    def expander(self) -> Chosen | None:
        """The method that adds candidates before reranking."""
        return None if self.expand is None else choose("expander", self.expand, "expand")

    @cached_property
    def rerankers(self) -> list[Chosen]:
        """The rerankers in their order; may be empty."""
        forms = [form for form in as_list(self.rerank) if Written.read(form).name != NO_RERANKING]
        return choose_all("reranker", forms, "rerank")

    def fusion(self, count: int = 0) -> FuseParams:
        """The fusion of `count` runs, 0 = any number; of `auto` by scores, so that words and vectors have equal weight.

        Raises:
            InputError: unknown method or settings, another number of weights.
        """
        usual = FuseParams(fuse="minmax") if self.auto else FuseParams()
        return usual if self.fuse is None else fusion(self.fuse, count, "fuse")

    @cached_property
    def passages(self) -> PassageParams | None:
        """The aggregation of passages to documents; None without one.

        Raises:
            InputError: unknown aggregate or settings.
        """
        return None if self.aggregate is None else passages(self.aggregate)

    @property
    def candidates(self) -> int:
        """The number of candidates of a query: `hits`, or the largest context."""
        if self.passages is not None:
            return self.passages.hits or PASSAGES_PER_DOCUMENT * self.hits
        return max([self.hits, *(getattr(one.params, "context", 0) for one in self.rerankers)])

    @property
    def encoding(self) -> QueryEncoding:
        """The encoding of the queries."""
        return QueryEncoding.of(self.encoder, self.encoded_queries, self.topics, self.devices)


@dataclass(frozen=True)
class OutputRequest(Request):
    """The outputs of the command.

    Attributes:
        output: the run; tag: of the run, None = the methods.
        show: number of results that are printed for a query.
        explain: a query for the page; explain_output: the page.
        qrels, measures, protocol: of the evaluation of the stages.
    """

    output: str | None = setting(None, "run file to write (.gz compresses; -: stdout)", metavar="RUN")
    output_format: str = setting("trec", "format of the run", one_of=lambda: [*FORMATS], metavar="NAME")
    tag: str | None = setting(None, "run tag (default: retriever.reranker, or run.reranker)")
    show: int = setting(10, "results shown for --query", at_least=1)
    explain: str | None = setting(None, "write a page that shows why this query's candidates moved", metavar="QID")
    explain_output: str | None = setting(None, "default: QID.html (of --query: query.html)", metavar="HTML")
    qrels: str | None = setting(None, QRELS)
    measures: str = setting(MEASURES, "of --qrels")
    protocol: str | None = setting(None, f"which grades count ({CHOSEN})", one_of=lambda: [*PROTOCOLS], metavar="NAME")


def passages(form: Form, of: str = "aggregate") -> PassageParams:
    """The aggregation of a written form `maxp:passages=#`.

    Raises:
        InputError: unknown aggregate or settings.
    """
    written = Written.read(form)
    if written.name not in AGGREGATES:
        raise InputError(f"{argument(of, written.name)}: no such way; {nearest(written.name, AGGREGATES)}")
    return PassageParams.of(written.params, argument(of, str(written)), aggregate=written.name)


@dataclass(frozen=True)
class RnnFlags(Request):
    """Flags of rNN beside its settings."""

    preset: str | None = setting(None, "of rnn: tas-b, cocondenser, vectors, mixture, … or a YAML file")
    source: str | None = setting(
        None, "of rnn: where similarities come from", one_of=lambda: [*SOURCES["from"]], flag="from", metavar="WHAT"
    )
    queries: str | None = setting(None, "of rnn from a graph", one_of=lambda: [*SOURCES["queries"]], metavar="WHAT")


def is_utf8(text: str) -> bool:
    """Whether a text can be written as UTF-8; halves of surrogate pairs cannot.

    >>> is_utf8("Ada"), is_utf8("\\ud800")
    (True, False)
    """
    return text.encode(errors="ignore").decode() == text


def check(request: SearchRequest, *others: tuple[object, str]) -> None:
    """Raise all faults of a request that are visible before any work.

    others: further faults, reported behind those of the request, see `refuse`.

    Raises:
        InputError: all faults, unknown methods and settings first.
    """
    query, run, encoded = request.query, request.run, request.encoded_queries
    without_topics = request.topics is None and query is None
    of_query, there = argument("query"), f"not with {argument('run')}, whose candidates are there already"
    wrong = problems_of(
        *(partial(getattr, request, name) for name in ("retrievers", "feedback", "expander", "rerankers", "passages")),
        partial(encoder_of, request.encoder),
        partial(getattr, request, "devices"),
        partial(asked_fields, request.documents, request.fields),
    )
    refuse(
        *((True, problem) for problem in wrong),
        (
            (without_topics and run is None) or (request.topics is not None and query is not None),
            f"give either {argument('topics')} (many queries) or {of_query} (one query's text)",
        ),
        (
            without_topics and isinstance(encoded, str | Path) and not Path(encoded).with_suffix(".ids").is_file(),
            f"{argument('encoded_queries', encoded)}: which query is which row? give {argument('topics')}, or write "
            f"the query ids to {Path(str(encoded)).with_suffix('.ids')}, one a line",
        ),
        (request.retrieve is not None and run is not None, f"{argument('retrieve', request.retrieve)}: {there}"),
        (query is not None and not query.strip(), f"{of_query} is empty: expected the text of a query"),
        (query and not is_utf8(query), f"{of_query} is not UTF-8 text"),
        (request.prf is not None and run is not None, f"{argument('prf')} searches again: {there}"),
        *((True, problem) for problem in ([] if wrong else _problems_of_methods(request))),
        *others,
    )


def _problems_of_methods(request: SearchRequest) -> list[str]:
    """The faults of valid methods that do not go together."""
    retrieving, chosen = [one.name for one in request.retrievers], request.rerankers
    count = len(KINDS) if request.auto else len(retrieving)
    problems = problems_of(partial(request.fusion, 0 if request.auto else count))
    if request.fuse is not None and count < 2:
        source = argument("run") if request.run is not None else argument("retrieve", request.retrieve)
        problems = [f"{argument('fuse', request.fuse)}: joins several retrievers, not {source}"]
    if request.feedback is not None and not request.auto and request.run is None:
        problems += problems_of(partial(check_feedback, request.feedback.name, retrieving))
    forms = [Written.read(form) for form in as_list(request.rerank)]
    if len(forms) > 1 and (others := [str(one) for one in forms if one.name != NO_RERANKING]) != list(map(str, forms)):
        problems.append(f"{argument('rerank', 'none')} beside {', '.join(others)}; leave none out, or give it alone")
    if any(one == other for one, other in itertools.pairwise(forms)):
        problems.append(f"{argument('rerank')}: the same reranker twice in a row would change nothing; give it once")
    if request.documents and not any("texts" in one.needs for one in chosen):
        shown = " ".join(argument("rerank", str(one)) for one in forms) or argument("rerank", "none")
        takers = " and ".join(name for name, kind in methods("reranker").items() if "texts" in kind.needs)
        problems.append(f"{argument('documents')} gives texts to {takers}: not with {shown}")
    for one in chosen:
        if one.source != "neighbours" and one.queries is not None:
            of_graph = argument("from", "neighbours")
            problems.append(
                f"{argument('queries', one.queries)}: with {one.source} queries are encoded; give {of_graph} too"
            )
    if request.auto or (request.device is None and request.compute_dtype == EXACT):
        return problems
    together = [*request.retrievers, *([request.expander] if request.expander else []), *chosen]
    needs = needs_together(together) - (set() if request.encoded_queries is None else {"query vectors"})
    if not {"query vectors", "query tokens", "impacts"} & needs and not any(one.method.takes_device for one in chosen):
        given = ("compute_dtype", request.compute_dtype) if request.device is None else ("device", request.device)
        named = " and ".join(one.name for one in together) or "nothing"
        where = "queries are encoded there, and rerankers of models compute"
        problems.append(f"{argument(*given)}: {where}; here {named} works alone")
    return problems
