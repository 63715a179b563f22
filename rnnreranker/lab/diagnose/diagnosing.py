"""`diagnose` and its command: read a run, its index and its queries, and measure them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rnnreranker.base.arguments import argument
from rnnreranker.base.chosen_method import Form, choose
from rnnreranker.base.command import notice, say
from rnnreranker.base.errors import InputError, MissingDependencyError, UnavailableError, refuse
from rnnreranker.base.request import Request, asked
from rnnreranker.base.settings import setting
from rnnreranker.data.names import TOPICS
from rnnreranker.search.defaults import ENCODED, ENCODER, INDEX
from rnnreranker.search.queries import QueryEncoding

if TYPE_CHECKING:
    import numpy as np

    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.parts.tokens.source import TokenSource
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.rnn import RnnParams
    from rnnreranker.runs import Run

RNN = "rnn"
QUERIES = 500  # of a run that are looked at
HITS, DEPTH, MOST = 100, 1024, 256  # first documents that are looked for, nearest tokens, lists at most


@dataclass(frozen=True)
class DiagnoseRequest(Request):
    """The arguments of `diagnose`, and flags of the command.

    Attributes:
        run: a Run or a file.
        index: an opened index, a folder, `pydoc`, or a prebuilt index of Pyserini.
        topics: a name, a file, or qid → text; None with `encoded_queries`.
        encoded_queries: a .npy file, `QueryVectors`, or (Q, d) floats in the order of the topics.
        encoder: of queries, `name:key=value,…`; None = the one of the index.
        rerank: the judged reranking, `rnn:k=20,preset=tas-b`.
    """

    run: str | Path | Run = setting(MISSING, "candidates (TREC or MS MARCO format)")
    index: str | Path | IndexOnDisk = setting(MISSING, INDEX)
    topics: str | Path | Mapping[str, str] | None = setting(None, TOPICS)
    encoded_queries: str | Path | QueryVectors | np.ndarray | None = setting(None, ENCODED, metavar="NPY")
    encoder: Form | None = setting(None, ENCODER)
    rerank: Form = setting(RNN, f"in its written form, {RNN}:k=20,…", metavar="NAME")
    missing: Literal["error", "skip"] = setting(
        "error", "candidates without a vector", one_of=lambda: ["error", "skip"]
    )
    sample: int = setting(QUERIES, "queries looked at, by a hash of their ids", at_least=1)
    threads: int | None = setting(None, "default: one per core; results do not depend on it", at_least=1)

    @cached_property
    def params(self) -> RnnParams:
        """The settings of the judged reranking.

        Raises:
            InputError: another reranker than rnn from vectors; unknown settings.
        """
        chosen = choose("reranker", self.rerank, "rerank")
        if chosen.name != RNN or chosen.source != "vectors" or chosen.queries is not None:
            raise InputError(f"{argument('rerank', str(self.rerank))}: expected {RNN}, from vectors")
        params: RnnParams = chosen.params
        return params

    @property
    def encoding(self) -> QueryEncoding:
        """How queries are encoded."""
        return QueryEncoding.of(self.encoder, self.encoded_queries, self.topics)


def diagnose(
    run: str | Path | Run,
    index: str | Path | IndexOnDisk,
    topics: str | Path | Mapping[str, str] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Measure a run, as `python -m rnnreranker.diagnose`; `verdict` judges the result.

    Args:
        run, index, topics, others: as in `DiagnoseRequest`.

    Returns:
        Plain values for JSON; docs/tables/diagnose.html explains each.

    Raises:
        InputError: all faults of the arguments; inputs that do not belong together.
        UnavailableError, MissingDependencyError: an index or an encoder is not available here.
    """
    request = asked(DiagnoseRequest, {"run": run, "index": index, "topics": topics, **others})
    check(request)
    return diagnosed(request)[0]


def check(request: DiagnoseRequest, *others: tuple[object, str]) -> None:
    """Check a request before any work; others: further faults.

    Raises:
        InputError: all faults; unknown settings.
    """
    topics, encoded, encoder = (argument(name) for name in ("topics", "encoded_queries", "encoder"))
    refuse(
        (
            request.topics is None and request.encoded_queries is None,
            f"give {topics} (queries to encode) or {encoded} FILE.npy (their vectors)",
        ),
        *others,
        (
            request.encoded_queries is not None and request.encoder is not None,
            f"{encoder} makes query vectors and {encoded} has them: give one of the two",
        ),
    )
    for name in ("params", "encoding"):
        getattr(request, name)  # read now: each says what is wrong with its written form


def diagnosed(request: DiagnoseRequest) -> tuple[dict[str, Any], IndexOnDisk]:
    """The measurements of a checked request, and its index."""
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index
    from rnnreranker.lab.diagnose.diagnosis import measure_run, sampled
    from rnnreranker.methods.rerank import RnnReranker
    from rnnreranker.parts.vectors.together import mismatch
    from rnnreranker.search.queries import query_vectors
    from rnnreranker.search.searching import first_stage_of

    whole = first_stage_of(request.run)
    run = sampled(whole, request.sample)
    index = open_index(request.index)
    reranker = RnnReranker(index.vectors, request.params, threads=request.threads, missing=request.missing)
    reranker.check(run)
    topics = {} if request.topics is None else topics_of(request.topics)
    wanted = run.qids if request.encoded_queries is None else None  # all of a file: their order is looked at
    queries = query_vectors(request.encoding, index, topics, wanted, threads=request.threads)
    if said := mismatch(run, queries, index.vectors):
        notice(said)
    reranker.inputs.compared = queries  # reranking says nothing more
    graph = index.graph if index.has("neighbours") else None
    measured: dict[str, Any] = measure_run(run, queries, reranker, graph=graph) | ({"mismatch": said} if said else {})
    asked_topics = {qid: topics[qid] for qid in run if qid in topics}
    measured["impacts"] = _impacts(index, asked_topics, request.threads)
    measured["token_search"] = _token_search(index, asked_topics, request.threads)
    measured["queries"]["run"] = len(whole)
    named = request.index if isinstance(request.index, str | Path) else request.index.name
    return {"run": Path(request.shown("run")).name, "index": str(named), **measured}, index


def _impacts(index: IndexOnDisk, topics: dict[str, str], threads: int | None) -> dict[str, float] | None:
    """`word_use_of` if the index has impacts and the model is available, else None."""
    if not index.has("impacts") or not topics:
        return None
    try:
        return {name: round(value, 4) for name, value in word_use_of(index, topics, threads).items()}
    except (UnavailableError, MissingDependencyError) as error:
        say(f"words of queries left out: {error}")
        return None


def word_use_of(index: IndexOnDisk, topics: Mapping[str, str], threads: int | None = None) -> dict[str, float]:
    """`word_use` of queries, weighed by the model of the index's impacts.

    Raises:
        UnavailableError, MissingDependencyError: the model is not available here.
    """
    from rnnreranker.base.method import Inputs
    from rnnreranker.methods.retrieve.impact import ImpactRetriever
    from rnnreranker.parts.impacts.part import word_use

    source = index.given("impacts")
    retriever = ImpactRetriever(Inputs(topics=topics, impacts=source), threads=threads)
    queries = retriever.query_impacts(source, list(topics.values())).numbers
    return word_use(queries, source.document_frequencies, len(source.docids))


def _token_search(index: IndexOnDisk, topics: dict[str, str], threads: int | None) -> list[dict[str, Any]] | None:
    """`token_search` if the index supports it and its encoder is available, else None."""
    from rnnreranker.parts.tokens.neighbours import FILE

    if not index.has("tokens") or not topics or not (index.token_vectors.folder / FILE).is_file():
        return None
    try:
        return token_search(index.token_vectors, topics, threads)
    except (UnavailableError, MissingDependencyError) as error:
        say(f"search of tokens left out: {error}")
        return None


def token_search(
    source: TokenSource, topics: Mapping[str, str], threads: int | None = None
) -> list[dict[str, int | float]]:
    """For nprobe 1, 2, 4, …: `recall`, the share of the first 100 documents by MaxSim that the search finds, and
    `candidates`, the share of documents whose MaxSim is computed.

    Values are means over the queries that find any document. The last nprobe is the number of lists, at most 256.

    Args:
        source: tokens with a Faiss index; topics: query id → text, at least one.
        threads: None = one per core; results do not depend on it.

    Raises:
        InputError, UnavailableError: as `query_tokens`; an index of other tokens.
    """
    import numpy as np

    from rnnreranker.parts.tokens.neighbours import TokenNeighbours
    from rnnreranker.parts.tokens.source import query_tokens

    neighbours, asked = TokenNeighbours(source), query_tokens(source, topics, threads)
    wanted = source.search(asked.vectors, asked.offsets, HITS, threads)[1]
    queries = [number for number, rows in enumerate(wanted) if len(rows)]
    filled = int((np.diff(source.offsets) > 0).sum())
    most = min(neighbours.lists, MOST)
    rows: list[dict[str, Any]] = []
    for nprobe in [*(2**power for power in range(most.bit_length()) if 2**power < most), most]:
        pairs = []
        for number in queries:
            own = asked.vectors[asked.offsets[number] : asked.offsets[number + 1]]
            candidates = neighbours.documents_of(neighbours.nearest(own, DEPTH, nprobe))
            pairs.append((np.isin(wanted[number], candidates).mean(), len(candidates) / filled))
        recall, share = np.mean(pairs, axis=0).tolist() if pairs else (0.0, 0.0)
        rows.append({"nprobe": nprobe, "recall": round(recall, 4), "candidates": round(share, 4)})
    return rows
