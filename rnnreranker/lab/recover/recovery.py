"""`recover` and its command: how well each similarity ranks hidden positives above judged negatives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.pages import render
from rnnreranker.base.request import asked
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.query_set import read_query_set
from rnnreranker.lab.recover.request import RecoverRequest, check, needs_of
from rnnreranker.lab.recover.similarities import OF_GRAPH, Similarities, Visible, scores_of, visible_positives
from rnnreranker.labels.export import PROBABILITIES, SIMILARITIES, by_confidence
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
    cases, inputs = cases_of(request)
    how: dict[str, Any] = {"params": request.params.to_dict(), "joint_params": request.joint.to_dict()}
    how |= {name: getattr(request, name) for name in ("visible", "relevant", "unjudged")}
    if request.teachers:
        how["teachers"] = {name: chosen.params.to_dict() for name, chosen in request.teachers}
    return how | measure_recovery(cases, beside=[one.name for one in request.teachers]), inputs


def cases_of(request: RecoverRequest) -> tuple[list[Visible], dict[str, str]]:
    """The cases of a request, and fingerprints of what was read; raises errors as `recover`."""
    from rnnreranker.index.opening import open_index

    teachers, threads = request.teachers, request.threads
    index = open_index(request.index, needs={"vectors"} | needs_of(teachers) if teachers else ())
    graph = index.graph if request.source == "both" else None
    how: Any = (request.run, request.encoding, request.params.context, threads)
    run, queries, texts, qrels = read_query_set(index, request.topics, request.qrels, *how)
    own = {"documents": request.documents, "fields": request.fields, "threads": threads, "encoded_queries": queries}
    beside = scores_of(teachers, index, run, texts, **own) if teachers else None
    similarities = Similarities(request.params, request.joint, graph, request.ablations, beside, threads)
    numbers: dict[str, Any] = {name: getattr(request, name) for name in ("relevant", "visible", "unjudged")}
    cases = list(visible_positives(run, qrels, index.vectors, queries, similarities, **numbers))
    inputs = {"index": index.vectors.fingerprint} | ({} if graph is None else {"graph": graph.fingerprint})
    return cases, inputs


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
    table = pandas.DataFrame(
        {"scorer": scorer, "query": case.qid, **ranking_measures(scores, case.hidden, case.docids)}
        for case in kept
        for scorer, scores in case.scores.items()
    )
    means = table.groupby(["scorer", "query"], sort=False).mean()
    scorers = table["scorer"].unique().tolist()
    values = {(one, measure): means.loc[one][measure].to_numpy() for one in scorers for measure in MEASURES}

    def compared(pairs: Iterable[tuple[str, str]], measures: Sequence[str] = MEASURES) -> list[dict[str, Any]]:
        """The differences of scorers from others that there are, by measure: one family of tests."""
        keys = [((a, one), (b, one)) for a, b in pairs if {a, b} <= set(scorers) for one in measures]
        names = [{"scorer": a, "other": b, "measure": one, "value": float(values[a, one].mean())}
                 for (a, one), (b, _) in keys]  # fmt: skip
        return [name | gap for name, gap in zip(names, differences(values, keys), strict=True)]

    varied = [one for one in scorers if VARIED in one]
    alone = [one for one in scorers if "joint" not in one and one not in beside]
    above = {(row["scorer"], row["measure"]): row for row in compared((one, "query") for one in alone[1:])}
    plain = {key: {"scorer": key[0], "measure": key[1], "value": float(own.mean())} for key, own in values.items()}
    hidden, weights = np.concatenate([case.hidden for case in kept]), weights_of(kept)
    curves = {"similarity": ([case.scores["joint"] for case in kept], SIMILARITIES)}
    curves["mass"] = ([case.mass for case in kept], PROBABILITIES)
    return {
        "queries": table["query"].nunique(),
        "cases": len(kept),
        "hidden": int(hidden.sum()),
        "negatives": int((~hidden).sum()),
        "rows": [above.get(key, row) for key, row in plain.items() if key[0] not in varied],
        "filters": filtered(kept, rates),
        "from_graph": compared((one, one.removeprefix(OF_GRAPH)) for one in alone if one.startswith(OF_GRAPH)),
        "joint": compared(JOINT),
        "ablations": compared(((one, one.partition(",")[0]) for one in varied), MEASURES[:1]),
        "beside": compared((one, other) for one in beside for other in BESIDE),
        "reliability": [
            {"of": name, **row}
            for name, (own, edges) in curves.items()
            for row in by_confidence(np.concatenate(own), hidden, edges, weights)
        ],
    }


def answer(rows: Sequence[Mapping[str, Any]]) -> str:
    """A sentence: the best similarity, compared with the query's."""
    measure = MEASURES[0]
    query, *others = (row for row in rows if row["measure"] == measure)
    best = max((row for row in others if "difference" in row), key=lambda row: row["value"])
    return render("lab", "answer.txt.j2", best=best, query=query, sure=SURE).strip()


def ranking_measures(scores: np.ndarray, hidden: np.ndarray, docids: Sequence[str]) -> dict[str, float]:
    """AP, precision at m (the number of hidden positives) and AUC of a ranking; ties by docid, in AUC half.

    scores: (n,); hidden: (n,) bool with both values.

    >>> by_hand = ranking_measures(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]), ["a", "b", "c"])
    >>> [round(value, 4) for value in by_hand.values()]
    [0.8333, 0.5, 0.5]
    """
    ranked = hidden[order_by_score(scores, np.array(docids, dtype=object))]
    precision = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    gaps = scores[hidden][:, None] - scores[~hidden]
    values = precision[ranked].mean(), ranked[: ranked.sum()].mean(), ((gaps > 0) + (gaps == 0) / 2).mean()
    return dict(zip(MEASURES, map(float, values), strict=True))


def filtered(cases: Sequence[Visible], rates: Sequence[float]) -> list[dict[str, float | str]]:
    """What each filter removes if all discard the same share of the judged candidates.

    Rows: filter, rate (requested), discarded (reached; equal doubts are all kept), positives and negatives (shares of
    hidden positives and true negatives removed). A filter has one threshold for all queries; several visible positives
    count as their mean. `margin` and `max-score` are the rules of `labels.negatives.suspicion`.
    """
    rows: list[dict[str, float | str]] = []
    hidden, weights = np.concatenate([case.hidden for case in cases]), weights_of(cases)
    sides = {"discarded": np.ones_like(hidden), "positives": hidden, "negatives": ~hidden}
    doubts = {how: [case.scores[of] for case in cases] for how, of in SIMILAR.items()}
    if OF_GRAPH + "mixed" in cases[0].scores:
        doubts |= {f"{how}-graph": [case.scores[OF_GRAPH + of] for case in cases] for how, of in SIMILAR.items()}
    doubts |= {"margin": [case.raw - case.positive_scores.mean() for case in cases]}
    doubts |= {"max-score": [case.raw for case in cases]}
    for name, of_cases in doubts.items():
        values = np.concatenate(of_cases)
        falling = np.argsort(-values, kind="stable")
        reached = np.cumsum(weights[falling]) / weights.sum()
        for rate in rates:
            first_kept = min(int(np.searchsorted(reached, rate + 1e-9, side="right")), len(values) - 1)
            away = values > values[falling[first_kept]]
            shares = {what: float(np.average(away[own], weights=weights[own])) for what, own in sides.items()}
            rows.append({"filter": name, "rate": rate, **shares})
    return rows


def weights_of(cases: Sequence[Visible]) -> np.ndarray:
    """(M,) weights of all candidates of all cases: 1 / (cases of their query)."""
    number = Counter(case.qid for case in cases)
    return np.concatenate([np.full(len(case.hidden), 1.0 / number[case.qid]) for case in cases])
