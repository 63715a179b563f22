"""The objective of a tuning: one measure of a query set after reranking."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.arguments import argument
from rnnreranker.base.command import cores, progress
from rnnreranker.base.errors import InputError, ParameterError
from rnnreranker.base.files import fingerprint
from rnnreranker.base.process.phases import phase
from rnnreranker.base.process.threads import one_blas_thread
from rnnreranker.evaluate import evaluate
from rnnreranker.evaluate.protocols import protocol_of, topics_that_count
from rnnreranker.evaluate.scores import check_judged, judged_documents
from rnnreranker.parts.vectors.of_run import query_rows, vector_rows
from rnnreranker.rnn import RnnParams, reference
from rnnreranker.rnn.contexts import ContextBatch, similarities
from rnnreranker.runs import Run
from rnnreranker.runs.head import choose_head, scores_of_use, with_new_head

if TYPE_CHECKING:
    import pandas

    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk
    from rnnreranker.lab.tune.request import RerankingRequest
    from rnnreranker.parts.vectors import QueryVectors, VectorSource

MEMORY = 4 << 30  # bytes of similarities that are kept at most
STEPS = 4  # parts of the topics after each of which a hopeless trial may end
Topics = str | Path | Mapping[str, str]


class Contexts:
    """The first candidates of every query and the inner products among them and the query: trials cost no vectors.

    Args:
        run: Q queries with their candidates.
        vectors: where the candidates' vectors are; all of them must be there.
        query_vectors: (d,) float32 for every query of the run.
        deepest: candidates of a query that are kept: no context can be larger.
        threads: that compute; None = one per core. Nothing depends on it.

    Attributes:
        about: fingerprints of what it was made of.

    Raises:
        InputError: a candidate or query without a vector, vectors that are not finite, or more than 4 GiB of
            similarities (with the `deepest` that would fit).
    """

    def __init__(
        self, run: Run, vectors: VectorSource, query_vectors: QueryVectors, deepest: int, threads: int | None = None
    ) -> None:
        self.run, self.deepest, self._threads = run, deepest, threads or cores()
        docids, scores = run.docids[run.rows].tolist(), run.scores.astype("<f8").tobytes()
        asked = np.ascontiguousarray(query_vectors.vectors, dtype="<f4")
        self.about = {
            "vectors": vectors.fingerprint,
            "run": fingerprint(list(run.qids), run.offsets.astype("<i8").tobytes(), docids, scores),
            "query vectors": fingerprint(list(query_vectors.qids), list(asked.shape), asked.tobytes()),
        }
        depths = np.minimum(np.diff(run.offsets), deepest)
        needed = int((4 * (depths + 1) ** 2).sum())
        if needed > MEMORY:
            fits = int(np.sqrt(MEMORY / 4 / max(len(run), 1))) - 1
            raise InputError(
                f"{len(run)} queries with {deepest} candidates need {needed / 2**30:.1f} GiB of similarities; "
                f"expected at most {MEMORY >> 30} GiB: give {argument('hits', max(fits, 1))} or fewer queries"
            )
        rows, queries = vector_rows(vectors, run), query_rows(run, query_vectors, vectors.dimension)
        self._sizes = (depths + 1).astype(np.int64)
        self._raw: list[np.ndarray] = []
        self._shift_free: list[np.ndarray] = []  # the same array unless a constant outweighs the differences
        with one_blas_thread():
            for number, qid in enumerate(progress(run.qids, unit="queries", what="similarities")):
                first = int(run.offsets[number])
                candidates = vectors.fetch(rows[run.rows[first : first + int(depths[number])]])
                context = np.concatenate([queries[number][None], candidates]).astype(np.float32)
                if not np.isfinite(context).all():
                    raise InputError(f"query {qid}: its vector or that of a candidate has NaN or infinite values")
                raw = reference.inner_products(context)
                far = reference.outweighed(raw)
                self._raw.append(raw)
                self._shift_free.append(reference.inner_products(context, shift_free=True) if far else raw)

    def rerank(self, params: RnnParams, queries: Sequence[int] | None = None) -> Run:
        """The run of some queries as `RnnReranker` with these parameters orders it.

        Args:
            params: `context` no larger than `deepest`.
            queries: their numbers in the run; None = all.

        Raises:
            InputError: a larger context.
            ParameterError: an exponential weight that would overflow.
        """
        chosen = np.arange(len(self.run)) if queries is None else np.asarray(queries, dtype=np.int64)
        if params.context > self.deepest:
            raise InputError(f"context={params.context}: only {self.deepest} candidates of a query are kept")
        sizes = np.minimum(self._sizes[chosen], params.context + 1)
        scores = self._similarities(params, chosen, sizes)
        run = self.run if queries is None else self.run.of_queries(chosen)
        inside = np.arange(scores.shape[1]) < sizes[:, None] - 1
        return with_new_head(run, choose_head(run, params.context), scores[inside])

    def _similarities(self, params: RnnParams, chosen: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """(n, N) float32: s* of the candidates of every chosen query; what stands behind a context is undefined."""
        grams = self._shift_free if params.scale == "minmax" else self._raw

        def fill(part: slice, gram: np.ndarray, shift_free: bool = False) -> None:
            for index in range(part.start, part.stop):
                m = int(sizes[index])
                gram[index - part.start, :m, :m] = grams[int(chosen[index])][:m, :m]

        base = np.zeros((len(chosen), max(int(sizes.max(initial=1)) - 1, 1)))
        if params.uses_run:
            counts = sizes - 1
            starts = self.run.offsets[chosen] - np.concatenate([[0], np.cumsum(counts)[:-1]])
            entries = np.repeat(starts, counts) + np.arange(counts.sum())
            base[np.arange(base.shape[1]) < counts[:, None]] = self._base[entries]
        scores, problem = similarities(ContextBatch(sizes, lambda engine: fill), params, base, threads=self._threads)
        for bad in np.flatnonzero(problem != 0)[:1].tolist():
            qid = self.run.qids[int(chosen[bad])]
            if np.isnan(problem[bad]):
                raise InputError(f"query {qid}: inner products beyond the range of float32; scale the vectors down")
            raise ParameterError(f"query {qid}: {reference.too_large(problem[bad])}")
        return scores.astype(np.float32)

    @functools.cached_property
    def _base(self) -> np.ndarray:
        """(L,) float64: the scores of the run as the reranker takes them."""
        return scores_of_use(self.run.scores, self.run.offsets)


class Objective:
    """A query set that parameters are judged by.

    Judged topics without candidates score 0 for every parameter and are left out; `lacking` says how many.

    Args:
        contexts: the candidates of the queries.
        qrels: columns query_id, doc_id, relevance.
        measure: one, as `parse_measures` takes it.
        protocol: which grades count, see `apply_protocol`; None = that of the judgements.

    Attributes:
        topics: judged query ids with candidates, in the order of a hash of the id, so that the first n are no
            particular ones and halves are the same halves everywhere.

    Raises:
        InputError: more than one measure, no topic judged, no candidate judged.
    """

    def __init__(self, contexts: Contexts, qrels: pandas.DataFrame, measure: str, protocol: str | None = None) -> None:
        protocol = protocol_of(qrels, protocol)
        judged = set(topics_that_count(qrels, protocol))
        usable = [qid for qid in contexts.run if qid in judged and len(contexts.run.ranked(qid))]
        if not usable:
            raise InputError(
                f"none of the {len(contexts.run)} queries with candidates is judged; check topics and qrels"
            )
        check_judged(contexts.run, judged_documents(qrels), "qrels")
        self.contexts, self.measure, self.protocol, self._qrels = contexts, measure, protocol, qrels
        self.topics = tuple(sorted(usable, key=lambda qid: (hashlib.sha256(qid.encode()).digest(), qid)))
        self.lacking = len(judged) - len(usable)
        self._numbers = {qid: number for number, qid in enumerate(contexts.run.qids)}

    def values(self, params: RnnParams, topics: Sequence[str] | None = None) -> np.ndarray:
        """(T,) float64: the measure of each topic after reranking with the settings."""
        topics = self.topics if topics is None else topics
        return self.of(self.contexts.rerank(params, [self._numbers[qid] for qid in topics]).as_written(), topics)

    def base(self, topics: Sequence[str] | None = None) -> np.ndarray:
        """(T,) float64: the measure of each topic in the first stage."""
        return self.of(self.contexts.run, self.topics if topics is None else topics)

    def of(self, run: Run, topics: Sequence[str]) -> np.ndarray:
        """(T,) float64: the measure of each topic in a run."""
        scores = evaluate(run, self._qrels, self.measure, self.protocol, topics=topics)
        if len(scores.measures) != 1:
            raise InputError(f"{self.measure!r} names {len(scores.measures)} measures; expected one to maximise")
        return scores.per_topic(scores.measures[0])

    def mean(
        self, params: RnnParams, topics: Sequence[str], report: Callable[[int, float], None] | None = None
    ) -> float:
        """The mean over topics; `report(step, mean so far)` follows each part and may raise to stop."""
        parts: list[np.ndarray] = []
        for step, part in enumerate(_parts(topics, STEPS if report else 1)):
            parts.append(self.values(params, part))
            if report:
                report(step, float(np.concatenate(parts).mean()))
        return float(np.concatenate(parts).mean())

    def about(self, topics: Sequence[str]) -> dict[str, str]:
        """What the mean over some topics depends on, except the settings: name → fingerprint or value."""
        rows = sorted(map(list, self._qrels[["query_id", "doc_id", "relevance"]].to_numpy().tolist()))
        measured = {"measure": self.measure, "protocol": self.protocol, "deepest context": str(self.contexts.deepest)}
        return {**self.contexts.about, "topics": fingerprint(list(topics)), "qrels": fingerprint(rows), **measured}

    def folds(self, count: int) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """(train, test) topics of each fold; each topic is in one test part.

        Raises:
            InputError: fewer than 2 folds, or more folds than topics.
        """
        if not 2 <= count <= len(self.topics):
            raise InputError(f"{count} folds of {len(self.topics)} topics: expected 2 to the number of topics")
        tests = [self.topics[fold::count] for fold in range(count)]
        return [(tuple(qid for qid in self.topics if qid not in set(test)), test) for test in tests]


def judged_topics(topics: Topics, qrels: Qrels) -> dict[str, str]:
    """The topics with judgements: query id → text.

    Raises:
        InputError: unreadable files, no topic with a judgement.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of

    texts, judged = topics_of(topics), set(qrels_of(qrels)["query_id"].tolist())
    chosen = {qid: text for qid, text in texts.items() if qid in judged}
    if not chosen:
        shown = _name(topics, "topics")
        raise InputError(f"{_name(qrels, 'qrels')}: judges none of the {len(texts)} topics of {shown}")
    return chosen


@phase("reading what to tune on")
def load_objective(
    request: RerankingRequest,
    index: IndexOnDisk,
    topics: Topics,
    qrels: Qrels,
    run: str | Path | Run | None = None,
    encoded: str | Path | None = None,
) -> Objective:
    """The objective of a query set; topics without judgements are not encoded.

    Raises:
        InputError: unreadable files, or files that do not belong together.
    """
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.parts.vectors.together import notice_mismatch
    from rnnreranker.search.own_documents import notice_own
    from rnnreranker.search.queries import QueryEncoding, query_vectors
    from rnnreranker.search.searching import first_stage_of

    chosen = judged_topics(topics, qrels)
    how = QueryEncoding.of(request.encoder, encoded, topics, request.devices)
    queries = query_vectors(how, index, topics_of(topics), chosen, threads=request.threads)
    if run is not None:
        candidates = first_stage_of(run).head(request.hits)
        candidates = Run.from_dict({qid: dict(candidates[qid]) for qid in candidates if qid in chosen})
        if not len(candidates):
            raise InputError(f"{_name(run, 'run')}: none of its queries is a judged topic of {_name(topics, 'topics')}")
        notice_mismatch(candidates, queries, index.vectors)
    else:
        candidates = dense_run(index.vectors, queries, request.hits, threads=request.threads).as_written()
    notice_own(candidates, f"give {argument('run')} of a search with --remove-query to leave it out")
    deepest = int(np.diff(candidates.offsets).max(initial=1))
    contexts = Contexts(candidates, index.vectors, queries, deepest, request.threads)
    return Objective(contexts, qrels_of(qrels), request.measure, request.protocol)


def _name(given: Any, name: str) -> str:
    """The given file or name for messages; the argument for an object."""
    return str(given) if isinstance(given, str | Path) else argument(name)


def _parts(topics: Sequence[str], count: int) -> Iterator[Sequence[str]]:
    size = -(-len(topics) // count)
    for first in range(0, len(topics), size):
        yield topics[first : first + size]
