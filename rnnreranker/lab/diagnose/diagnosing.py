"""`diagnose` and its command: read a run, its index and its queries, and measure them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rnnreranker.base.command import notice, say
from rnnreranker.base.errors import InputError, MissingDependencyError, UnavailableError, argument, refuse
from rnnreranker.base.method import Form, choose
from rnnreranker.base.settings import asked, setting
from rnnreranker.lab.query_set import VectorsRequest

if TYPE_CHECKING:
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.rnn import RnnParams
    from rnnreranker.runs import Run

RNN = "rnn"
QUERIES = 500  # of a run that are looked at


@dataclass(frozen=True, kw_only=True)
class DiagnoseRequest(VectorsRequest):
    """The arguments of `diagnose`, and flags of the command; topics: None with `encoded_queries`."""

    run: str | Path | Run = setting(MISSING, "candidates (TREC or MS MARCO format)")
    rerank: Form = setting(RNN, f"in its written form, {RNN}:k=20,…", metavar="NAME")
    missing: Literal["error", "skip"] = setting(
        "error", "candidates without a vector", one_of=lambda: ["error", "skip"]
    )
    sample: int = setting(QUERIES, "queries looked at, by a hash of their ids", at_least=1)

    @cached_property
    def params(self) -> RnnParams:
        """The settings of the judged reranking.

        Raises:
            InputError: another reranker than rnn from vectors; unknown settings.
        """
        chosen: Any = choose("reranker", self.rerank, "rerank")
        if (chosen.name, chosen.source, chosen.queries) != (RNN, "vectors", None):
            raise InputError(f"{argument('rerank', str(self.rerank))}: expected {RNN}, from vectors")
        return chosen.params


def diagnose(run: Any, index: Any, topics: Any = None, **others: Any) -> dict[str, Any]:
    """Measure a run, as `python -m rnnreranker.diagnose`; `verdict` judges the result.

    Args:
        run, index, topics, others: as in `DiagnoseRequest`.

    Returns:
        Plain values for JSON; docs/tables/diagnose.html explains each.

    Raises:
        InputError: all faults of the arguments; inputs that do not belong together.
        UnavailableError, MissingDependencyError: an index or an encoder is not available here.
    """
    return diagnosed(asked(DiagnoseRequest, {"run": run, "index": index, "topics": topics, **others}))[0]


def check(request: DiagnoseRequest) -> None:
    """Check a request before any work.

    Raises:
        InputError: all faults; unknown settings.
    """
    topics, encoded, encoder = (argument(name) for name in ("topics", "encoded_queries", "encoder"))
    refuse(
        *request.lacking("index"),
        (request.topics is None and request.encoded_queries is None, f"give {topics} or {encoded} FILE.npy"),
        (request.encoded_queries is not None and request.encoder is not None, f"give one of {encoder} and {encoded}"),
    )
    _ = request.params, request.encoding  # each says what is wrong with its written form


def diagnosed(request: DiagnoseRequest) -> tuple[dict[str, Any], IndexOnDisk]:
    """The measurements of a request, and its index."""
    check(request)
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index
    from rnnreranker.lab.diagnose.diagnosis import measure_run, sampled
    from rnnreranker.methods.rerank import RnnReranker
    from rnnreranker.parts.vectors.together import mismatch
    from rnnreranker.search.queries import query_vectors
    from rnnreranker.search.searching import first_stage_of

    whole, threads, index = first_stage_of(request.run), request.threads, open_index(request.index)  # type: ignore[arg-type]
    run = sampled(whole, request.sample)
    reranker = RnnReranker(index.vectors, request.params, threads=threads, missing=request.missing)
    reranker.rows_of(run)
    topics = {} if request.topics is None else topics_of(request.topics)
    wanted = run.qids if request.encoded_queries is None else None  # all of a file: their order is looked at
    queries = query_vectors(request.encoding, index, topics, wanted, threads=threads)
    if said := mismatch(run, queries, index.vectors):
        notice(said)
    reranker.inputs.compared = queries  # reranking says nothing more
    graph = index.graph if index.has("neighbours") else None
    measured: Any = measure_run(run, queries, reranker, graph=graph) | ({"mismatch": said} if said else {})
    measured["queries"]["run"] = len(whole)
    texts = {qid: topics[qid] for qid in run if qid in topics}
    measured["impacts"] = None
    try:
        measured["impacts"] = word_use_of(index, texts, threads) if texts and index.has("impacts") else None
    except (UnavailableError, MissingDependencyError) as error:
        say(f"impacts left out: {error}")
    named = request.index if isinstance(request.index, str | Path) else index.name
    return {"run": Path(request.shown("run")).name, "index": str(named), **measured}, index


def word_use_of(index: IndexOnDisk, topics: Mapping[str, str], threads: int | None = None) -> dict[str, Any]:
    """`word_use` of queries, weighed by the model of the index's impacts.

    Raises:
        UnavailableError, MissingDependencyError: the model is not available here.
    """
    from rnnreranker.base.method import Inputs
    from rnnreranker.lab.diagnose.measures import rounded
    from rnnreranker.methods.retrieve.impact import ImpactRetriever
    from rnnreranker.parts.postings.source import word_use

    source = index.given("impacts")
    retriever = ImpactRetriever(Inputs(topics=topics, impacts=source), threads=threads)
    queries = retriever.query_impacts(source, list(topics.values())).numbers
    used = word_use(queries, source.document_frequencies, len(source.docids))
    return {name: rounded(value) for name, value in used.items()}
