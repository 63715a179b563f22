"""`diagnose`: measurements of the contexts of a run, and of what reranking changes."""

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
from rnnreranker.base.settings import setting
from rnnreranker.lab.diagnose import measures
from rnnreranker.lab.diagnose.measures import KNOWN, NEAR, PERSISTENCE, rounded, spread
from rnnreranker.lab.shared import VectorsRequest
from rnnreranker.rnn import RnnParams, reference
from rnnreranker.runs.head import choose_head, order_by_score, starts_of, why_useless

if TYPE_CHECKING:
    from rnnreranker.index.opening import Index
    from rnnreranker.runs import Run


UNIT = 1e-2  # a norm this near to 1 is taken for 1, so that float16 and quantised vectors count as such
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


def diagnose(request: DiagnoseRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """Measure a run, of which queries with two or more candidates with vectors count; `verdict` judges the result.

    Returns:
        Plain values for JSON; docs/tables/diagnose.html explains each. Fingerprints of what was read.

    Raises:
        InputError: all faults of the arguments; inputs that do not belong together, an unusable graph, no query with
            two candidates.
        UnavailableError, MissingDependencyError: an index or an encoder is not available here.
    """
    check(request)
    from rnnreranker import RnnReranker
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index
    from rnnreranker.parts.vectors.together import mismatch
    from rnnreranker.search.searching import first_stage_of

    whole, index, params = first_stage_of(request.run), open_index(request.index), request.params  # type: ignore[arg-type]
    ordered = sorted(whole.qids, key=lambda qid: hashlib.sha256(qid.encode()).digest())
    run = whole.only(ordered[: request.sample])
    reranker = RnnReranker(index.vectors, params, threads=request.threads, missing=request.missing)
    usable = reranker.rows_of(run) >= 0
    topics = {} if request.topics is None else topics_of(request.topics)
    wanted = run.qids if request.encoded_queries is None else None  # all of a file: their order is looked at
    queries = request.query_vectors(index, topics, wanted)
    if said := mismatch(run, queries, index.vectors):
        notice(said)
    reranker.inputs.compared = queries  # reranking says nothing more
    useless, chosen = why_useless(run.scores, run.offsets), choose_head(run, params.context, usable)
    by_query = np.split(np.flatnonzero(chosen), starts_of(chosen, run.offsets)[1:-1])
    heads = {qid: own for qid, own in zip(run.qids, by_query, strict=True) if len(own) > 1}
    if not heads:
        raise InputError(
            "no query of the run has two candidates with vectors: nothing to diagnose; check run and index"
        )
    graph = index.graph if index.has("neighbours") else None

    def table_of(params: RnnParams, after: Run | None) -> Any:
        """The measurements of the contexts, one a row; after: the reranked run."""
        import pandas

        rows = []
        for qid, entries in progress(heads.items(), unit="queries", what="diagnose"):
            docids = run.docids_of(entries)
            vectors = np.vstack([queries.of([qid]).vectors, index.vectors.fetch(index.vectors.rows(docids.tolist()))])
            base = np.zeros(len(entries)) if useless else run.scores[entries]
            row = _context(vectors, docids, base, params) | {"entries": run.rows[entries]}
            row |= {} if graph is None else measures.coverage(row["lists"], graph.rows(docids.tolist()), graph)
            rows.append(row | ({} if after is None else _changes(docids.tolist(), after.ranked(qid))))
        return pandas.DataFrame(rows)

    with phase("diagnosing"):
        try:
            table = table_of(params, reranker.rerank(run, queries))
        except ParameterError:  # the exponential weight overflows: what depends on scores is not measured
            table = table_of(dataclasses.replace(params, weight="linear"), None)
        covered: Any = None
        if graph is not None:
            covered = {name: table[name].mean() for name in ("pairs", "nearest")}
            covered["cap"] = measures.above_cap(graph, params.k)
    texts, impacts = {qid: topics[qid] for qid in run if qid in topics}, None
    try:
        impacts = word_use_of(index, texts, request.threads) if texts and index.has("impacts") else None
    except (UnavailableError, MissingDependencyError) as error:
        say(f"impacts left out: {error}")
    named = request.index if isinstance(request.index, str | Path) else index.name
    measured = {
        "run": Path(request.shown("run")).name,
        "index": str(named),
        "schema": 1,
        "queries": {"run": len(whole), "sampled": len(run), "measured": len(table)},
        "params": {},
        **_summary(table, params),
        "order": {"agreement": table["agreement"].mean(), "only_order": useless},
        "overlap": _overlap(table) if "rbo" in table else None,
        "graph": covered,
        **({"mismatch": said} if said else {}),
        "impacts": impacts,
    }
    return rounded(measured) | {"params": params.to_dict()}, {"index": index.vectors.fingerprint}


def _context(vectors: np.ndarray, docids: np.ndarray, base: np.ndarray, params: RnnParams) -> dict[str, Any]:
    """Measure one context, vectors (m, d); docids, base: names and run scores of its m - 1 candidates."""
    m, done = len(vectors), reference.steps(vectors, params)
    made = reference.parts(done, params, base)
    added, weights = measures.terms(made, params)
    near, known = (
        np.sum([added.get(name, np.zeros(m - 1)) for name in names], axis=0).std() for names in (NEAR, KNOWN)
    )
    raw, lists = reference.inner_products(vectors), np.array(done.lists)
    others, named = raw[~np.eye(m, dtype=bool)].astype(np.float64), measures.listed(lists)
    occurrences = named.sum(axis=0)
    members = [done.sims[i, j] < 0 for i, own in enumerate(done.sets) for j in own if j != i]
    candidates, similarity = vectors[1:].astype(np.float64), raw[0, 1:].astype(np.float64)
    norms = np.linalg.norm(candidates, axis=1)
    by_similarity = docids[order_by_score(similarity, docids)].tolist()
    return {
        "effects": measures.effects(added, weights, docids),
        "jaccard": made.jaccard[0],
        "share": near / (near + known) if near + known > 0 else 0.0,
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


def _changes(before: list[str], after: list[str]) -> dict[str, Any]:
    """How far a context is changed; after: the reranked run of its query, which begins with the context."""
    after = after[: len(before)]
    return {
        "rbo": measures.rank_biased_overlap(before, after),
        "top_1_changed": before[0] != after[0],
        "top_10_changed": {*before[:10]} != {*after[:10]},
        "mean_displacement": np.mean([abs(rank - after.index(docid)) for rank, docid in enumerate(before)]),
    }


def _overlap(table: Any) -> dict[str, Any]:
    """The means of `_changes` over all contexts."""
    means = {name: table[name].mean() for name in ("top_1_changed", "top_10_changed", "mean_displacement")}
    return {"p": PERSISTENCE, "rbo": spread(table["rbo"]), **means}


def _summary(table: Any, params: RnnParams) -> dict[str, Any]:
    """The measurements over all contexts, one a row, except order, overlap and graph."""
    import pandas

    safe, norms, sizes = "rbo" in table, np.concatenate([*table["norms"]]), table["sizes"]
    count, mean_norm, lengths = len(norms), norms.mean(), np.append(norms, table["query_norm"])
    unit = np.stack([*table["unit"]])
    # pairs of the same document from two queries have cosine 1 and say nothing: left out
    seen = np.bincount(np.concatenate([*table["entries"]]))
    repeats = int((seen * (seen - 1)).sum())
    pairs = count**2 - int((table["norms"].map(len) ** 2).sum()) - repeats
    cosine = ((unit.sum(axis=0) ** 2).sum() - (unit**2).sum() - repeats) / pairs if pairs > 0 else None
    hub = table.sort_values(["hub", "hub_docid"], ascending=[False, True]).iloc[0]
    spreads, level = table["high"] - table["low"], table["level"].mean()
    exponent = params.weight_scale * table["largest"].max()
    every = [{"term": term, **own} for of in table["effects"] for term, own in of.items()]
    return {
        "sets": {
            "query": spread(np.array([own[0] for own in sizes]), ones=True),
            "candidates": spread(np.concatenate([own[1:] for own in sizes]), ones=True),
            "jaccard_zero": (np.concatenate([*table["jaccard"]]) == 0).mean() if safe else None,
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
            "unit_norm": (abs(lengths - 1) < UNIT).all(),
            "largest_exponent": exponent,
            "exp_safe": exponent <= reference.EXPONENT_LIMIT,
            "negative_weights": table["negative"].mean(),
            "jaccard_share": table["share"].mean() if safe else None,
        },
        "terms": pandas.DataFrame(every).groupby("term", sort=False).mean().to_dict("index") if safe else {},
    }


def word_use_of(index: Index, topics: Mapping[str, str], threads: int | None) -> dict[str, Any]:
    """`word_use` of queries, weighed by the model of the index's impacts.

    Raises:
        UnavailableError, MissingDependencyError: the model is not available here.
    """
    from rnnreranker.base.method import Inputs
    from rnnreranker.methods.retrieve.impact import ImpactRetriever
    from rnnreranker.parts.postings.source import word_use

    source = index.given("impacts")
    retriever = ImpactRetriever(Inputs(topics=topics, impacts=source), threads=threads)
    queries = retriever.queries().numbers
    return rounded(word_use(queries, source.document_frequencies, len(source.docids)))
