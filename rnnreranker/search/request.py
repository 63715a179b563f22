"""The request of a search, the methods that it names, and the faults that are visible before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rnnreranker.base.device import ComputesOnDevices
from rnnreranker.base.errors import Fault, InputError, argument, is_utf8, nearest, refuse
from rnnreranker.base.files import FORMATS
from rnnreranker.base.method import RNN, SOURCES, Chosen, Form, as_list, choose, choose_all
from rnnreranker.base.settings import Request, Written, read_joined, setting
from rnnreranker.data.fields import TextsRequest
from rnnreranker.data.names import ENCODED, ENCODER, INDEX, QRELS, TOPICS
from rnnreranker.evaluate.protocols import MEASURES, protocol_setting

if TYPE_CHECKING:
    import numpy as np

    from rnnreranker.index.opening import Index
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run
    from rnnreranker.runs.fuse import FuseParams
    from rnnreranker.runs.passages import PassageParams
    from rnnreranker.search.queries import QueryEncoding

HYBRID = ("bm25", "dense")  # what the retriever `hybrid` stands for
AUTO = "auto"  # words and vectors of the index, see `choose_parts`
KINDS = (("bm25", "bm25s", "impact"), ("dense", "late"))  # of `auto`: of each kind the first that can be searched
SAME = {"bm25s": "bm25"}  # retrievers of the same words: the absence of the first needs no line
NO_RERANKING = "none"
GRAPH = "neighbours"  # the source of similarities
PASSAGES_PER_DOCUMENT = 10  # retrieved for every document asked for, as in Pyserini's experiments with passages


@dataclass(frozen=True, kw_only=True)
class QueriesRequest(Request):
    """An index, and queries that may become vectors.

    Attributes:
        index: an opened index, a folder, `pydoc`, or a prebuilt index of Pyserini; None if unused.
        topics: a name, a file, or qid → text; None if unused.
        encoder: `name:key=value,…`; None = that of the index.
        encoded_queries: a .npy file, `QueryVectors`, or (Q, d) floats in the order of the topics.
    """

    index: str | Path | Index | None = setting(None, INDEX)
    topics: str | Path | Mapping[str, str] | None = setting(None, TOPICS)
    encoder: Form | None = setting(None, ENCODER)
    encoded_queries: str | Path | QueryVectors | np.ndarray | None = setting(None, ENCODED, metavar="NPY")

    @cached_property
    def encoding(self) -> QueryEncoding:
        from rnnreranker.search.queries import QueryEncoding

        return QueryEncoding(self.encoder, self.encoded_queries, self.topics, getattr(self, "devices", None))


@dataclass(frozen=True, kw_only=True)
class SearchRequest(ComputesOnDevices, QueriesRequest, TextsRequest):
    """A search: the arguments of `Index.search`, and the flags of the command.

    Attributes:
        topics: None with a run whose queries need no text. query: one text instead.
        run: candidates in place of retrieving, a Run or a file.
        retrieve: `auto`, `hybrid`, or retrievers in their written form, joined by + or in a list.
        fuse: of several retrievers; None = rrf, of `auto` minmax. prf, expand, rerank: methods in their written form.
        hits: documents a query in the result. A reranker with a larger `context` reads more candidates.
        missing: "error" or "skip" for candidates without a vector or text.
        aggregate: passages to documents, `maxp:passages=#,hits=5000`.
        device, compute_dtype: as in `devices_of`; threads: None = one per core.
    """

    index: str | Path | Index = setting(MISSING, INDEX)
    query: str | None = setting(None, "one query; its results are shown", metavar="TEXT")
    run: str | Path | Run | None = setting(None, "rerank this run (TREC or MS MARCO format) in place of retrieving")
    retrieve: Form | Sequence[Form] | None = setting(
        None, ", hybrid (bm25+dense), A+B, auto (default)", method="retriever", flag="retriever", metavar="NAME"
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
    hits: int = setting(1000, "documents a query, of every first stage and of the output", at_least=1)
    missing: Literal["error", "skip"] = setting("error", "candidates without what is needed of them", metavar="WHAT")
    documents: str | None = setting(None, "texts, for rerankers that read them (default: of the index)")
    aggregate: Form | None = setting(
        None, "passages to documents: maxp, firstp, sump[:passages=#,hits=5000]", metavar="NAME"
    )
    threads: int | None = setting(None, "default: one per core", at_least=1)
    batch_size: int = setting(256, "queries at a time", at_least=1)

    @property
    def auto(self) -> bool:
        """Whether the index determines the retrievers, see `choose_parts`."""
        return self.run is None and self.retrieve in (None, AUTO)

    @cached_property
    def retrievers(self) -> list[Chosen]:
        """Empty with a run, or if the index determines them. InputError: unknown or repeated ones."""
        if self.auto or self.run is not None:
            return []
        written = read_joined(self.retrieve or ())
        forms = [one for form in written for one in (map(Written, HYBRID) if str(form) == "hybrid" else [form])]
        if len({one.name for one in forms}) < len(forms):
            raise InputError(f"{argument('retrieve', '+'.join(map(str, forms)))}: expected different retrievers")
        return choose_all("retriever", forms, "retrieve")

    @cached_property
    def feedback(self) -> Chosen | None:
        """InputError: unknown, or a retriever that cannot search again with it."""
        from rnnreranker.methods.feedback.base import check_feedback

        if self.prf is None:
            return None
        chosen = choose("feedback", self.prf, "prf")
        check_feedback(chosen.name, [one.name for one in self.retrievers])
        return chosen

    @cached_property
    def expander(self) -> Chosen | None:
        return None if self.expand is None else choose("expander", self.expand, "expand")

    @cached_property
    def rerankers(self) -> list[Chosen]:
        """In their order. InputError: unknown ones, `none` beside others, `queries` without a graph."""
        forms = [Written.read(form) for form in as_list(self.rerank)]
        kept = [form for form in forms if str(form) != NO_RERANKING]
        chosen = choose_all("reranker", kept, "rerank")
        graph = argument("from", GRAPH)
        refuse(
            (
                len(forms) > 1 and len(kept) < len(forms),
                f"{argument('rerank', 'none')} beside {', '.join(map(str, kept))}; leave none out, or give it alone",
            ),
            *(
                (
                    one.source != GRAPH and one.queries,
                    f"{argument('queries', one.queries)}: with {one.source} queries are encoded; give {graph} too",
                )
                for one in chosen
            ),
        )
        return chosen

    @cached_property
    def fusion(self) -> FuseParams:
        """Of several retrievers; of `auto` minmax, so that words and vectors have equal weight."""
        from rnnreranker.runs.fuse import FuseParams, fusion

        if self.fuse is None:
            return FuseParams(fuse="minmax") if self.auto else FuseParams()
        count = len(self.retrievers)
        if not self.auto and count < 2:
            instead = argument("retrieve", self.retrieve) if self.run is None else argument("run")
            raise InputError(f"{argument('fuse', self.fuse)}: joins several retrievers, not {instead}")
        return fusion(self.fuse, count, "fuse")

    @cached_property
    def passages(self) -> PassageParams | None:
        """The aggregation of passages to documents."""
        return None if self.aggregate is None else passages(self.aggregate)

    @cached_property
    def document_fields(self) -> tuple[str, ...] | None:
        """The fields of `documents`. InputError: also if no reranker reads them."""
        if self.documents and not any("texts" in one.needs for one in self.rerankers):
            shown = argument("documents")
            raise InputError(f"{shown} gives texts to rerankers that read them, as cross-encoder; none is asked for")
        return super().document_fields

    @property
    def depth(self) -> int:
        """The number of candidates of a query: `hits`, or the largest context."""
        hits = (self.passages.hits or PASSAGES_PER_DOCUMENT * self.hits) if self.passages else self.hits
        return max([hits, *(getattr(one.params, "context", 0) for one in self.rerankers)])

    def check(self, *others: Fault) -> None:
        """Raise InputError with all faults that are visible before any work, and `others`, see `refuse`."""
        query, run = self.query, self.run
        shown, there = argument("query"), f"not with {argument('run')}, whose candidates are there already"
        without_topics = self.topics is None and query is None
        parts = ("retrievers", "feedback", "expander", "rerankers", "fusion", "passages", "encoding", "document_fields")
        refuse(
            (
                (without_topics and run is None) or (self.topics is not None and query is not None),
                f"give either {argument('topics')} (many queries) or {shown} (one query's text)",
            ),
            (self.retrieve is not None and run is not None, f"{argument('retrieve', self.retrieve)}: {there}"),
            (self.prf is not None and run is not None, f"{argument('prf')} searches again: {there}"),
            (query is not None and not query.strip(), f"{shown} is empty: expected the text of a query"),
            (query and not is_utf8(query), f"{shown} is not UTF-8 text"),
            *(partial(getattr, self, part) for part in parts),
            *others,
        )


@dataclass(frozen=True)
class OutputRequest(Request):
    """The outputs of the command, and its flags of rnn."""

    preset: str | None = setting(None, "of rnn: tas-b, cocondenser, vectors, mixture, … or a YAML file")
    source: str | None = setting(
        None, "of rnn: where similarities come from", one_of=lambda: SOURCES["from"], flag="from", metavar="WHAT"
    )
    queries: str | None = setting(None, "of rnn from a graph", one_of=lambda: SOURCES["queries"], metavar="WHAT")
    output: str | None = setting(None, "run file to write (.gz compresses; -: stdout)", metavar="RUN")
    output_format: str = setting("trec", "format of the run", one_of=lambda: FORMATS, metavar="NAME")
    tag: str | None = setting(None, "run tag (default: retriever.reranker, or run.reranker)")
    show: int = setting(10, "results shown for --query", at_least=1)
    explain: str | None = setting(None, "write a page that shows why this query's candidates moved", metavar="QID")
    explain_output: str | None = setting(None, "default: QID.html (of --query: query.html)", metavar="HTML")
    qrels: str | None = setting(None, QRELS)
    measures: str = setting(MEASURES, "of --qrels")
    protocol: str | None = protocol_setting(metavar="NAME")


def passages(form: Form) -> PassageParams:
    """The aggregation of a written form `maxp:passages=#`; InputError: unknown aggregate or settings."""
    from rnnreranker.runs.passages import AGGREGATES, PassageParams

    written = Written.read(form)
    if written.name not in AGGREGATES:
        raise InputError(f"{argument('aggregate', written.name)}: no such way; {nearest(written.name, AGGREGATES)}")
    return PassageParams.of(written.given, argument("aggregate", str(written)), aggregate=written.name)
