"""`recover` and the command: an index, topics and judgements are opened, and what is hidden is looked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.errors import InputError
from rnnreranker.base.request import asked
from rnnreranker.lab.recover.request import RecoverRequest, check

if TYPE_CHECKING:
    import pandas

    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.lab.recover.rankings import Visible
    from rnnreranker.lab.recover.recovery import Recovery
    from rnnreranker.lab.recover.teachers import Beside
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.parts.vectors import QueryVectors, VectorSource
    from rnnreranker.runs import Run


@dataclass(frozen=True, eq=False)
class Opened:
    """What a recovery works with; graph: None without `source="both"`; beside: None without teachers."""

    run: Run
    qrels: pandas.DataFrame
    vectors: VectorSource
    queries: QueryVectors
    graph: NeighbourGraph | None
    beside: Beside | None


@dataclass(frozen=True, eq=False)
class Recovered:
    """A recovery that was made: for which request, with what, and what came out."""

    request: RecoverRequest
    opened: Opened
    recovery: Recovery

    @property
    def outcome(self) -> dict[str, Any]:
        """Everything measured and how, plain values of JSON."""
        request, beside = self.request, self.opened.beside
        how = {"params": request.params.to_dict(), "joint_params": request.joint.to_dict(), "visible": request.visible}
        how |= {"relevant": request.relevant, "unjudged": request.unjudged, **self.recovery.to_dict()}
        return how | ({} if beside is None else {"teachers": beside.describe()})

    @property
    def inputs(self) -> dict[str, str]:
        """The fingerprints of what was read."""
        graph = self.opened.graph
        return {"index": self.opened.vectors.fingerprint} | ({} if graph is None else {"graph": graph.fingerprint})


def recover(
    index: str | Path | IndexOnDisk,
    topics: str | Path | Mapping[str, str],
    qrels: Qrels,
    **others: Any,
) -> Recovery:
    """How well similarity to one positive finds the others, as `python -m rnnreranker.recover`.

    Args:
        index, topics, qrels, others: as of `RecoverRequest`.

    Raises:
        InputError: everything that can be seen to be wrong, at once; no query with enough positives and a negative,
            with what would help.
        UnavailableError, MissingDependencyError: an index, an encoder or a teacher that cannot be had here.
    """
    request = asked(RecoverRequest, {"index": index, "topics": topics, "qrels": qrels, **others})
    check(request)
    return recovered(request).recovery


def recovered(request: RecoverRequest) -> Recovered:
    """The recovery of a request that was checked; see `recover`."""
    from rnnreranker.lab.recover.recovery import measure_recovery

    opened = open_recovery(request)
    recovery = measure_recovery(cases(request, opened), beside=[one.name for one in request.teachers])
    return Recovered(request, opened, recovery)


def cases(request: RecoverRequest, opened: Opened) -> list[Visible]:
    """Every positive in turn, with the others hidden; see `visible_positives`."""
    from rnnreranker.lab.recover.rankings import visible_positives
    from rnnreranker.lab.recover.similarities import Similarities

    more = None if opened.beside is None else opened.beside.of
    how = Similarities(request.params, request.joint, opened.graph, request.ablations, more, request.threads)
    numbers: dict[str, Any] = {"relevant": request.relevant, "visible": request.visible, "unjudged": request.unjudged}
    return list(visible_positives(opened.run, opened.qrels, opened.vectors, opened.queries, how, **numbers))


def open_recovery(request: RecoverRequest) -> Opened:
    """Run, judgements, vectors of documents and queries, graph and teachers of a request.

    Raises:
        InputError, UnavailableError, MissingDependencyError: as `recover`.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index
    from rnnreranker.lab.recover.teachers import needs_of, open_beside
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.runs import Run
    from rnnreranker.search.queries import query_vectors

    teachers, threads = request.teachers, request.threads
    index = open_index(request.index, needs={"vectors"} | needs_of(teachers) if teachers else ())
    graph = index.graph if request.source == "both" else None
    qrels = qrels_of(request.qrels)
    texts = topics_of(request.topics)
    given = request.run
    run = given if given is None or isinstance(given, Run) else Run.read(given)
    judged = set(qrels["query_id"].tolist())
    chosen = {qid: text for qid, text in texts.items() if qid in judged and (run is None or qid in run)}
    if not chosen:
        raise InputError(
            f"{request.shown('qrels')}: judges none of the {len(texts)} topics of {request.shown('topics')} that have "
            "candidates"
        )
    queries = query_vectors(request.encoding, index, texts, chosen, threads=threads)
    if run is None:
        run = dense_run(index.vectors, queries, request.params.context, threads=threads)
    documents = request.documents, request.fields
    return Opened(
        run, qrels, index.vectors, queries, graph, open_beside(teachers, index, chosen, queries, documents, threads)
    )
