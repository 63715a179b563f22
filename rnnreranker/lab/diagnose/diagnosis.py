"""`diagnose` and its command: measurements of the contexts of a run, and of what reranking changes."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rnnreranker.base.command import notice, phase, progress, say
from rnnreranker.base.errors import (
    InputError,
    MissingDependencyError,
    ParameterError,
    UnavailableError,
    argument,
    refuse,
)
from rnnreranker.base.method import Form, choose
from rnnreranker.base.settings import asked, setting
from rnnreranker.lab.diagnose import measures
from rnnreranker.lab.diagnose.measures import KNOWN, NEAR, PERSISTENCE, rounded, spread
from rnnreranker.lab.shared import VectorsRequest
from rnnreranker.parts.vectors.of_run import query_rows
from rnnreranker.rnn import RnnParams, reference
from rnnreranker.runs.head import order_by_score, why_useless

if TYPE_CHECKING:
    from rnnreranker.index.opening import Index
    from rnnreranker.methods.rerank import RnnReranker
    from rnnreranker.parts.neighbours import NeighbourGraph
    from rnnreranker.parts.vectors import QueryVectors
    from rnnreranker.runs import Run


UNIT = 1e-2  # a norm this near to 1 is taken for 1, so that float16 and quantised vectors count as such


def sampled(run: Run, count: int) -> Run:
    """The run of the `count` queries with the lowest SHA-256, in the order of the run."""
    chosen = {*sorted(run.qids, key=lambda qid: hashlib.sha256(qid.encode()).digest())[:count]}
    return run.of_queries([qid in chosen for qid in run.qids])


@phase("diagnosing")
def measure_run(
    run: Run,
    query_vectors: QueryVectors,
    reranker: RnnReranker,
    *,
    graph: NeighbourGraph | None = None,
) -> dict[str, Any]:
    """All measurements as plain values for JSON (docs/tables/diagnose.html explains each); `verdict` judges them.

    Args:
        run: Q queries; those with two or more candidates with vectors are measured.
        query_vectors: a vector for each query, in any order.
        reranker: gives vectors, settings, threads and the rule for candidates without a vector.
        graph: of the collection; None = no measurements of it.

    Raises:
        InputError: as `RnnReranker.rerank`; an unusable graph, no query with two candidates.
    """
    import pandas

    reranker.rows_of(run)
    params, vectors = reranker.params, reranker.vectors
    queries, rows = query_rows(run, query_vectors, vectors.dimension), vectors.rows(list(run.docids))
    useless, contexts = why_useless(run.scores, run.offsets), []
    for number in progress(range(len(run)), unit="queries", what="diagnose"):
        positions = np.arange(run.offsets[number], run.offsets[number + 1])
        positions = positions[rows[run.rows[positions]] >= 0][: params.context]
        entries, docids = run.rows[positions], run.docids[run.rows[positions]]
        if len(entries) < 2:
            continue
        vectors_of = np.vstack([queries[number][None], vectors.fetch(rows[entries])])
        if not np.isfinite(vectors_of).all():
            qid = run.qids[number]
            raise InputError(f"NaN or infinite values in a vector of query {qid}; build the index, or encode, again")
        base = np.zeros(len(entries)) if useless else run.scores[positions]
        one = _context(vectors_of, docids, base, params) | {"entries": entries}
        if graph is not None:
            one |= measures.coverage(one["lists"], graph.rows(docids.tolist()), graph)
        contexts.append(one)
    if not contexts:
        raise InputError(
            "no query of the run has two candidates with vectors: nothing to diagnose; check run and index"
        )
    table: Any = pandas.DataFrame(contexts)
    safe = bool(table["effects"].notna().all())
    covered: Any = None
    if graph is not None:
        covered = {name: table[name].mean() for name in ("pairs", "nearest")}
        covered["cap"] = measures.above_cap(graph, params.k)
    made: dict[str, Any] = {
        "schema": 1,
        "queries": {"run": len(run), "sampled": len(run), "measured": len(table)},
        "params": params.to_dict(),
        **_summary(table, params, safe),
        "order": {"agreement": table["agreement"].mean(), "only_order": useless},
        "overlap": _overlap(run, reranker.rerank(run, query_vectors), params.context) if safe else None,
        "graph": covered,
    }
    return {name: rounded(own) if name != "params" else own for name, own in made.items()}


def _context(vectors: np.ndarray, docids: np.ndarray, base: np.ndarray, params: RnnParams) -> dict[str, Any]:
    """Measure one context, vectors (m, d); docids, base: names and run scores of its m - 1 candidates.

    What depends on scores is None if the exponential weight overflows.
    """
    m, row = len(vectors), dict[str, Any](effects=None, jaccard=None, share=np.nan)
    try:
        done = reference.steps(vectors, params)
        made = reference.parts(done, params, base)
        added, weights = measures.terms(made, params)
        near, known = (
            np.sum([added.get(name, np.zeros(m - 1)) for name in names], axis=0).std() for names in (NEAR, KNOWN)
        )
        row = {"effects": measures.effects(added, weights, docids), "jaccard": made.jaccard[0]}
        row["share"] = near / (near + known) if near + known > 0 else 0.0
    except ParameterError:
        done = reference.steps(vectors, dataclasses.replace(params, weight="linear"))
    raw, lists = reference.inner_products(vectors), np.array(done.lists)
    others, named = raw[~np.eye(m, dtype=bool)].astype(np.float64), measures.listed(lists)
    occurrences = named.sum(axis=0)
    members = [done.sims[i, j] < 0 for i, own in enumerate(done.sets) for j in own if j != i]
    candidates, similarity = vectors[1:].astype(np.float64), raw[0, 1:].astype(np.float64)
    norms = np.linalg.norm(candidates, axis=1)
    by_similarity = docids[order_by_score(similarity, docids)].tolist()
    return row | {
        "lists": lists,
        "sizes": np.array([len(own - {i}) for i, own in enumerate(done.sets)]),
        "cohesion": measures.cohesion((named & named.T)[1:, 1:]),
        "skewness": measures.skewness(occurrences),
        "hub": float(occurrences[1:].max()) / (m - 1),
        "hub_docid": str(docids[occurrences[1:].argmax()]),
        "low": others.min(),
        "high": others.max(),
        "level": abs(others.mean()),
        "largest": done.sims.max(),
        "negative": np.mean(members) if members else 0.0,
        "range": np.ptp(similarity),
        "agreement": measures.rank_biased_overlap(docids.tolist(), by_similarity),
        "norms": norms,
        "query_norm": np.linalg.norm(vectors[0]),
        "sum": candidates.sum(axis=0),
        "unit": (candidates / np.where(norms > 0, norms, 1.0)[:, None]).sum(axis=0),
    }


def _summary(table: Any, params: RnnParams, safe: bool) -> dict[str, Any]:
    """The measurements over all contexts, one a row, except order, overlap and graph.

    safe: whether all of them have scores.
    """
    import pandas

    norms, sizes, unit = np.concatenate(table["norms"].tolist()), table["sizes"], np.stack(table["unit"].tolist())
    count, mean_norm, lengths = len(norms), norms.mean(), np.append(norms, table["query_norm"])
    # pairs of the same document from two queries have cosine 1 and say nothing: left out
    seen = np.bincount(np.concatenate(table["entries"].tolist()))
    repeats = int((seen * (seen - 1)).sum())
    pairs = count**2 - int((table["norms"].map(len) ** 2).sum()) - repeats
    cosine = ((unit.sum(axis=0) ** 2).sum() - (unit**2).sum() - repeats) / pairs if pairs > 0 else None
    hub, spreads, level = table.loc[table["hub"].idxmax()], table["high"] - table["low"], table["level"].mean()
    exponent = params.weight_scale * table["largest"].max()
    every = [{"term": term, **own} for of in table["effects"].dropna() for term, own in of.items()]
    by_term: Any = pandas.DataFrame(every, columns=None if every else ["term"]).groupby("term", sort=False).mean()
    return {
        "sets": {
            "query": spread(np.array([own[0] for own in sizes]), ones=True),
            "candidates": spread(np.concatenate([own[1:] for own in sizes]), ones=True),
            "jaccard_zero": (np.concatenate(table["jaccard"].tolist()) == 0).mean() if safe else None,
            "cohesion": np.nan_to_num(table["cohesion"].mean()),
        },
        "hubness": {
            "skewness": spread(table["skewness"]),
            "largest_hub": {"docid": hub["hub_docid"], "share_of_lists": hub["hub"]},
        },
        "anisotropy": {
            "mean_cosine": cosine,
            "mean_vector": np.linalg.norm(table["sum"].sum()) / count / mean_norm if mean_norm else 0.0,
        },
        "scale": {
            "lowest": table["low"].min(),
            "highest": table["high"].max(),
            "level": level,
            "spread": spread(spreads),
            "query_spread": table["range"].mean(),
            "spread_to_level": spreads.mean() / level if level > 0 else None,
            "norms": [lengths.min(), lengths.max()],
            "unit_norm": bool((abs(lengths - 1) < UNIT).all()),
            "largest_exponent": exponent,
            "exp_safe": bool(exponent <= reference.EXPONENT_LIMIT),
            "negative_weights": table["negative"].mean(),
            "jaccard_share": table["share"].mean(skipna=False),
        },
        "terms": by_term.to_dict("index"),
    }


def _overlap(before: Run, after: Run, context: int) -> dict[str, Any]:
    """How far the contexts of two runs with the same entries differ."""
    rows = []
    for qid in before:
        new = after.ranked(qid)[:context]
        rank_of = {docid: rank for rank, docid in enumerate(new)}
        old = [docid for docid in before.ranked(qid) if docid in rank_of]  # candidates without a vector went below
        if len(old) > 1:
            moved = np.mean([abs(rank - rank_of[docid]) for rank, docid in enumerate(old)])
            changed = (old[0] != new[0], set(old[:10]) != set(new[:10]))
            rows.append((measures.rank_biased_overlap(old, new), *changed, moved))
    overlap, *others = np.array(rows, dtype=np.float64).T
    names = ("top_1_changed", "top_10_changed", "mean_displacement")
    means = {name: own.mean() for name, own in zip(names, others, strict=True)}
    return {"p": PERSISTENCE, "rbo": spread(overlap), **means}


RNN = "rnn"
QUERIES = 500  # of a run that are looked at


@dataclass(frozen=True, kw_only=True)
class DiagnoseRequest(VectorsRequest):
    """The arguments of `diagnose`, and flags of the command; topics: None with `encoded_queries`."""

    run: str | Path | Run = setting(MISSING, "candidates (TREC or MS MARCO format)")
    rerank: Form = setting(RNN, f"in its written form, {RNN}:k=20,…", metavar="NAME")
    missing: Literal["error", "skip"] = setting("error", "candidates without a vector")
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
    topics, encoded = argument("topics"), argument("encoded_queries")
    refuse(
        *request.lacking("index"),
        (request.topics is None and request.encoded_queries is None, f"give {topics} or {encoded} FILE.npy"),
    )
    _ = request.params, request.encoding  # each says what is wrong with its written form


def diagnosed(request: DiagnoseRequest) -> tuple[dict[str, Any], Index]:
    """The measurements of a request, and its index."""
    check(request)
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index
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


def word_use_of(index: Index, topics: Mapping[str, str], threads: int | None = None) -> dict[str, Any]:
    """`word_use` of queries, weighed by the model of the index's impacts.

    Raises:
        UnavailableError, MissingDependencyError: the model is not available here.
    """
    from rnnreranker.base.method import Inputs
    from rnnreranker.methods.retrieve.impact import ImpactRetriever
    from rnnreranker.parts.postings.source import word_use

    source = index.given("impacts")
    retriever = ImpactRetriever(Inputs(topics=topics, impacts=source), threads=threads)
    queries = retriever.query_impacts(source, list(topics.values())).numbers
    return rounded(word_use(queries, source.document_frequencies, len(source.docids)))
