"""`recover` and its command: how well each similarity ranks hidden positives above judged negatives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.errors import InputError
from rnnreranker.base.request import asked
from rnnreranker.base.tables import interval
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.recover.request import RecoverRequest, check, needs_of
from rnnreranker.lab.recover.similarities import OF_GRAPH, Similarities, Visible, visible_positives
from rnnreranker.lab.recover.teachers import scores_of
from rnnreranker.labels.export import PROBABILITIES, SIMILARITIES, by_confidence
from rnnreranker.labels.negatives import Pool, suspicion
from rnnreranker.runs.head import order_by_score

if TYPE_CHECKING:
    from rnnreranker.data.qrels import Qrels
    from rnnreranker.index.opening import IndexOnDisk

MEASURES = ("AP", "P@m", "AUC")
RATES = (0.02, 0.05, 0.1, 0.2, 0.3)
SIMILAR = {"rnn": "mixed", "joint": "joint"}  # filter → the scorer that it goes by
JOINT = (  # what joint similarity is compared with, where there is a graph from it too
    *(("joint", "query"), ("joint", "mixed"), ("joint", "joint-geometric"), ("joint-geometric", "query")),
    *((OF_GRAPH + "joint", "query"), (OF_GRAPH + "joint", "joint")),
)
BESIDE = ("query", "mixed", "joint")  # what every teacher is compared with
VARIED = "joint, "  # before what differs from joint similarity
SURE = 0.05  # p after Holm's correction, below which a difference is called one


def recover(
    index: str | Path | IndexOnDisk,
    topics: str | Path | Mapping[str, str],
    qrels: Qrels,
    **others: Any,
) -> dict[str, Any]:
    """Measure how well similarity to one positive ranks the others, as `python -m rnnreranker.recover`.

    Args:
        index, topics, qrels, others: as in `RecoverRequest`.

    Returns:
        Plain values for JSON: the settings, and what `measure_recovery` returns.

    Raises:
        InputError: all faults of the arguments; no usable query.
        UnavailableError, MissingDependencyError: an index, an encoder or a teacher is not available here.
    """
    request = asked(RecoverRequest, {"index": index, "topics": topics, "qrels": qrels, **others})
    check(request)
    return recovered(request)[0]


def recovered(request: RecoverRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """`recover` for a checked request, and fingerprints of what was read."""
    cases, inputs, teachers = cases_of(request)
    how = {"params": request.params.to_dict(), "joint_params": request.joint.to_dict(), "visible": request.visible}
    how |= {"relevant": request.relevant, "unjudged": request.unjudged}
    how |= {"teachers": teachers} if teachers else {}
    return how | measure_recovery(cases, beside=[one.name for one in request.teachers]), inputs


def cases_of(request: RecoverRequest) -> tuple[list[Visible], dict[str, str], dict[str, Any]]:
    """The cases of a request, fingerprints of what was read, and the teachers' settings; raises errors as `recover`."""
    from rnnreranker.data.qrels import qrels_of
    from rnnreranker.data.topics import topics_of
    from rnnreranker.index.opening import open_index
    from rnnreranker.methods.retrieve.dense import dense_run
    from rnnreranker.runs import Run
    from rnnreranker.search.queries import query_vectors

    teachers, threads = request.teachers, request.threads
    index = open_index(request.index, needs={"vectors"} | needs_of(teachers) if teachers else ())
    graph = index.graph if request.source == "both" else None
    qrels, texts, given = qrels_of(request.qrels), topics_of(request.topics), request.run
    run = given if given is None or isinstance(given, Run) else Run.read(given)
    judged = set(qrels["query_id"].tolist())
    chosen = {qid: text for qid, text in texts.items() if qid in judged and (run is None or qid in run)}
    if not chosen:
        shown = f"{len(texts)} topics of {request.shown('topics')} that have candidates"
        raise InputError(f"{request.shown('qrels')}: judges none of the {shown}")
    queries = query_vectors(request.encoding, index, texts, chosen, threads=threads)
    if run is None:
        run = dense_run(index.vectors, queries, request.params.context, threads=threads)
    candidates = Run.from_dict({qid: dict(run[qid][: request.params.context]) for qid in run if qid in chosen})
    own = {"documents": request.documents, "fields": request.fields, "threads": threads, "encoded_queries": queries}
    more, described = scores_of(teachers, index, candidates, chosen, **own) if teachers else (None, {})
    how = Similarities(request.params, request.joint, graph, request.ablations, more, threads)
    numbers: dict[str, Any] = {"relevant": request.relevant, "visible": request.visible, "unjudged": request.unjudged}
    cases = list(visible_positives(run, qrels, index.vectors, queries, how, **numbers))
    inputs = {"index": index.vectors.fingerprint} | ({} if graph is None else {"graph": graph.fingerprint})
    return cases, inputs, described


def measure_recovery(
    cases: Iterable[Visible], rates: Sequence[float] = RATES, beside: Collection[str] = ()
) -> dict[str, Any]:
    """Measure each case under each scorer.

    Differences have low and high (95% bootstrap interval over queries), p (paired t-test) and p_holm (within a field).

    Args:
        cases: all with the same scorers; rates: of filters; beside: names of the teachers.

    Returns:
        queries, cases; hidden, negatives: number of ranked candidates over all cases.
        rows: scorer, measure, value (mean over queries of the mean over positives); for similarities to a positive
            alone also the difference from "query".
        filters: see `filtered`.
        from_graph: scorer, measure, and the difference from the same scorer without `OF_GRAPH`.
        joint, beside: scorer, other, measure and their difference, see `JOINT` and `BESIDE`.
        ablations: scorer, measure, value and the difference from "joint" (of the same source); AP only.
        reliability: `of` "similarity" (joint) or "mass" (in labels), and the rows of `by_confidence`.
    """
    import pandas

    kept = list(cases)
    scorers = tuple(kept[0].scores)
    rows_of = [
        (scorer, measure, case.qid, value)
        for case in kept
        for scorer in scorers
        for measure, value in ranking_measures(case.scores[scorer], case.hidden, case.docids).items()
    ]
    table = pandas.DataFrame(rows_of, columns=["scorer", "measure", "query", "value"])
    means = table.groupby(["scorer", "measure", "query"], sort=False)["value"].mean()
    values: dict[Any, np.ndarray] = {key: own.to_numpy() for key, own in means.groupby(level=[0, 1], sort=False)}
    varied = [scorer for scorer in scorers if VARIED in scorer]
    alone = [scorer for scorer in scorers if "joint" not in scorer and scorer not in beside]
    above = {(row["scorer"], row["measure"]): row for row in _compared(values, [(one, "query") for one in alone[1:]])}
    rows = [
        {"scorer": scorer, "measure": measure, "value": float(by_query.mean())}
        | {name: value for name, value in above.get((scorer, measure), {}).items() if name != "other"}
        for (scorer, measure), by_query in values.items()
        if scorer not in varied
    ]
    of_graph = [(one, one.removeprefix(OF_GRAPH)) for one in alone if one.startswith(OF_GRAPH)]
    return {
        "queries": table["query"].nunique(),
        "cases": len(kept),
        "hidden": int(sum(case.hidden.sum() for case in kept)),
        "negatives": int(sum((~case.hidden).sum() for case in kept)),
        "rows": rows,
        "filters": filtered(kept, rates),
        "from_graph": _compared(values, of_graph),
        "joint": _compared(values, [pair for pair in JOINT if set(pair) <= set(scorers)]),
        "ablations": _compared(values, [(scorer, scorer.partition(",")[0]) for scorer in varied], MEASURES[:1]),
        "beside": _compared(values, [(scorer, other) for scorer in beside for other in BESIDE]),
        "reliability": list(_reliability(kept)),
    }


def answer(rows: Sequence[Mapping[str, Any]]) -> str:
    """A sentence: the best similarity, compared with the query's."""
    measure = MEASURES[0]
    query = next(row["value"] for row in rows if (row["scorer"], row["measure"]) == ("query", measure))
    compared = [row for row in rows if row["measure"] == measure and "difference" in row]
    best = max(compared, key=lambda row: row["value"])
    gap = f"{interval(best['difference'], best['low'], best['high'])}, p {best['p_holm']:.3f} after Holm"
    if best["p_holm"] >= SURE:
        start = "Whether a positive helps to find the others is not clear"
    else:
        start = f"A positive {'helps' if best['difference'] > 0 else 'does not help'} to find the others"
    return (
        f"{start}: the best similarity, to {best['scorer']}, has {measure} {best['value']:.4f}, the query alone "
        f"{query:.4f} ({gap})."
    )


def ranking_measures(scores: np.ndarray, hidden: np.ndarray, docids: Sequence[str]) -> dict[str, float]:
    """AP, precision at m (the number of hidden positives) and AUC of a ranking; ties by docid, in AUC half.

    scores: (n,); hidden: (n,) bool with both values.

    >>> by_hand = ranking_measures(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]), ["a", "b", "c"])
    >>> [round(value, 4) for value in by_hand.values()]
    [0.8333, 0.5, 0.5]
    """
    ranked = hidden[order_by_score(scores, np.array(docids, dtype=object))]
    m = int(ranked.sum())
    precision = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    positives, negatives = scores[hidden], np.sort(scores[~hidden])
    below = np.searchsorted(negatives, positives, side="left")
    level = np.searchsorted(negatives, positives, side="right") - below
    return {
        "AP": float(precision[ranked].sum() / m),
        "P@m": float(ranked[:m].sum() / m),
        "AUC": float((below + level / 2).sum() / (m * len(negatives))),
    }


def filtered(cases: Sequence[Visible], rates: Sequence[float]) -> list[dict[str, float | str]]:
    """What each filter removes if all discard the same share of the judged candidates.

    Rows: filter, rate (requested), discarded (reached; equal doubts are all kept), positives and negatives (shares of
    hidden positives and true negatives removed). A filter has one threshold for all queries.
    """
    rows: list[dict[str, float | str]] = []
    hidden, weights = np.concatenate([case.hidden for case in cases]), weights_of(cases)
    chosen = [(how, how, "") for how in SIMILAR]
    if OF_GRAPH + "mixed" in cases[0].scores:
        chosen += [(f"{how}-graph", how, OF_GRAPH) for how in SIMILAR]
    for name, how, source in [*chosen, ("margin", "margin", ""), ("max-score", "max-score", "")]:
        doubts = np.concatenate([suspicion(_as_pool(case, source), how)[0] for case in cases])
        falling = np.argsort(-doubts, kind="stable")
        reached = np.cumsum(weights[falling]) / weights.sum()
        for rate in rates:
            first_kept = min(int(np.searchsorted(reached, rate + 1e-9, side="right")), len(doubts) - 1)
            away = doubts > doubts[falling[first_kept]]
            row: dict[str, float | str] = {"filter": name, "rate": rate}
            for what, among in (("discarded", hidden | ~hidden), ("positives", hidden), ("negatives", ~hidden)):
                row[what] = float(weights[away & among].sum() / weights[among].sum())
            rows.append(row)
    return rows


def weights_of(cases: Sequence[Visible]) -> np.ndarray:
    """(M,) weights of all candidates of all cases: 1 / (cases of their query)."""
    number = Counter(case.qid for case in cases)
    return np.concatenate([np.full(len(case.hidden), 1.0 / number[case.qid]) for case in cases])


def _as_pool(case: Visible, source: str) -> Pool:
    """A case as the pool of a filter; several visible positives count as their mean. source: `OF_GRAPH` or ""."""
    similar = {how: case.scores[source + one][None] for how, one in SIMILAR.items() if source + one in case.scores}
    seen = case.positive_scores.mean(keepdims=True)
    return Pool(case.qid, case.positives[:1], case.docids, seen, case.raw, similar)


def _reliability(cases: Sequence[Visible]) -> Iterator[dict[str, Any]]:
    hidden, weights = np.concatenate([case.hidden for case in cases]), weights_of(cases)
    for name, values, edges in (
        ("similarity", [case.scores["joint"] for case in cases], SIMILARITIES),
        ("mass", [case.mass for case in cases], PROBABILITIES),
    ):
        for row in by_confidence(np.concatenate(values), hidden, edges, weights):
            yield {"of": name, **row}


def _compared(
    values: dict[tuple[str, str], np.ndarray], pairs: Sequence[tuple[str, str]], measures: Sequence[str] = MEASURES
) -> list[dict[str, Any]]:
    """The differences of (Q,) values of each scorer from another, by measure: one family of tests."""
    keys = [((scorer, measure), (other, measure)) for scorer, other in pairs for measure in measures]
    return [
        {"scorer": one[0], "other": other[0], "measure": one[1], "value": float(values[one].mean()), **row}
        for (one, other), row in zip(keys, differences(values, keys), strict=True)
    ]
