"""What a search is asked for: a request, and the methods that it names, checked before any work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Chosen, Form, as_list, choose, choose_all
from rnnreranker.base.device import ComputesOnDevices
from rnnreranker.base.errors import InputError, nearest, refuse
from rnnreranker.base.method import names
from rnnreranker.base.request import Request
from rnnreranker.base.settings import setting
from rnnreranker.base.written_form import Written, read_joined
from rnnreranker.data.fields import CHOICES, FIELDS
from rnnreranker.data.names import QRELS, TOPICS
from rnnreranker.evaluate.protocols import CHOSEN, MEASURES, PROTOCOLS
from rnnreranker.runs import FORMATS
from rnnreranker.runs.fuse import FuseParams, fusion
from rnnreranker.runs.passages import AGGREGATES, PassageParams
from rnnreranker.search.defaults import ENCODED, ENCODER, INDEX, RNN, Usual
from rnnreranker.search.queries import QueryEncoding

if TYPE_CHECKING:
    import numpy as np

    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run

HYBRID = ("bm25", "dense")  # what the retriever `hybrid` stands for
MODELS = {"splade": "impact", "colbert": "late", "faiss": "dense", "lucene": "bm25"}  # model or library → retriever
AUTO = "auto"  # words and vectors of the index, see `auto.py`
NO_RERANKING = "none"
PASSAGES_PER_DOCUMENT = 10  # retrieved for every document asked for, as in Pyserini's experiments with passages


@dataclass(frozen=True)
class SearchRequest(ComputesOnDevices, Request):
    """A search: the arguments of `Index.search`, and the flags of the command.

    Attributes:
        index: an opened index, a folder, `pydoc`, or the name of a prebuilt index of Pyserini.
        topics: a name, a file, or qid → text; None with a run whose queries need no text.
        query: one query's text, in place of topics.
        run: candidates in place of retrieving, a Run or a file.
        encoded_queries: a .npy file of query vectors, `QueryVectors`, or (Q, d) floats of the topics in their order.
        retrieve: `auto`, `hybrid`, or retrievers in their written form, joined by + or in a list.
        fuse: how several are fused, `rrf:k=60`; None = rrf, of `auto` minmax.
        prf: feedback in its written form; expand: an expander; rerank: rerankers in their order.
        bm25_index: a Lucene index that is not inside `index`.
        remove_query: whether an entry whose docid is the id of its query is left out of the run before anything reads
            the run, as Pyserini's `--remove-query`; `hits` others stay. Feedback still reads that document.
        hits: documents a query that come out. A reranker with a larger `context` sees that many candidates.
        encoder: of queries, `name:key=value,…`; None = the one that made the index.
        missing: candidates without what is needed of them, "error" or "skip".
        documents: texts for rerankers that read them; fields: which of theirs, "title,text" or "text".
        device, compute_dtype: where and in which type models encode queries and score, as of `devices_of`; None = on
            the processor.
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
        RNN, f", {NO_RERANKING}; again for one more", method="reranker", many=True, metavar="NAME"
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
        """Whether the index says which retrievers there are."""
        return self.run is None and self.retrieve in (None, AUTO)

    @cached_property
    def retrievers(self) -> list[Chosen]:
        """The retrievers; none with a run, and of `auto`.

        Raises:
            InputError: no such retriever, one twice, `hybrid` or `auto` beside others.
        """
        if self.run is not None or self.auto or self.retrieve is None:
            return []
        forms = list(map(Written, HYBRID)) if self.retrieve == "hybrid" else read_joined(self.retrieve)
        shown = argument("retrieve", "+".join(map(str, forms)))
        known = [*names("retriever"), "hybrid", AUTO]
        unknown = [one.name for one in forms if one.name not in known]
        hints = [f"did you mean {MODELS[name]}?" if name in MODELS else nearest(name, known) for name in unknown]
        refuse(
            *((True, f"{shown}: {name}: no such retriever; {hint}") for name, hint in zip(unknown, hints, strict=True))
        )
        for one in forms:
            if one.name in ("hybrid", AUTO):
                meaning = f"hybrid is {'+'.join(HYBRID)}" if one.name == "hybrid" else "auto is words and vectors"
                raise InputError(f"{shown}: {meaning} and stands alone; name its parts")
        if len({one.name for one in forms}) < len(forms):
            raise InputError(f"{shown}: expected different retrievers")
        return choose_all("retriever", forms, "retrieve")

    @cached_property
    def retrieved_by(self) -> str:
        """The retrievers as a run's tag names them; "" of `auto`."""
        return "hybrid" if self.retrieve == "hybrid" else "+".join(one.name for one in self.retrievers)

    @cached_property
    def feedback(self) -> Chosen | None:
        """What makes the query of a second search."""
        return None if self.prf is None else choose("feedback", self.prf, "prf")

    @cached_property
    def expander(self) -> Chosen | None:
        """What adds candidates before reranking."""
        return None if self.expand is None else choose("expander", self.expand, "expand")

    @cached_property
    def rerankers(self) -> list[Chosen]:
        """The rerankers in their order; empty for none."""
        forms = [form for form in as_list(self.rerank) if Written.read(form).name != NO_RERANKING]
        return choose_all("reranker", forms, "rerank")

    @property
    def usual_reranking(self) -> bool:
        """Whether nobody said how to rerank, so that it is left out where the index has nothing for it."""
        return isinstance(self.rerank, Usual)

    def fusion(self, count: int, usual: FuseParams | None = None) -> FuseParams:
        """How a number of runs is fused; 0 = as many as may be; usual: where nothing is said."""
        return (usual or FuseParams()) if self.fuse is None else fusion(self.fuse, count, "fuse")

    @cached_property
    def passages(self) -> PassageParams | None:
        """How passages become documents; None where they stay passages.

        Raises:
            InputError: no such way, settings that it does not have.
        """
        return None if self.aggregate is None else passages(self.aggregate)

    @property
    def candidates(self) -> int:
        """How many candidates of a query are retrieved, or kept of a given run: `hits`, or the largest context."""
        if self.passages is not None:
            return self.passages.hits or PASSAGES_PER_DOCUMENT * self.hits
        return max([self.hits, *(getattr(one.params, "context", 0) for one in self.rerankers)])

    @property
    def encoding(self) -> QueryEncoding:
        """How queries become vectors."""
        return QueryEncoding.of(self.encoder, self.encoded_queries, self.topics, self.devices)

    @property
    def topics_name(self) -> str:
        """Where the queries come from, for messages."""
        return argument("query") if self.topics is None else self.shown("topics")


@dataclass(frozen=True)
class OutputRequest(Request):
    """What the command writes and shows of a search.

    Attributes:
        output: the run; tag: of the run, None = of the methods.
        show: results of a query that are shown.
        explain: a query whose candidates a page explains; explain_output: the page.
        qrels, measures, protocol: what the stages are measured by.
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
    """How passages become documents, of a written form `maxp:passages=#`.

    Raises:
        InputError: no such way, settings that it does not have.
    """
    written = Written.read(form)
    if written.name not in AGGREGATES:
        raise InputError(f"{argument(of, written.name)}: no such way; {nearest(written.name, AGGREGATES)}")
    return PassageParams.of(written.params, argument(of, str(written)), aggregate=written.name)
