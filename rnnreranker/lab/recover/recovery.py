"""`recover` and its command: how well each similarity ranks hidden positives above judged negatives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker import Run
from rnnreranker.base.command import phase
from rnnreranker.base.errors import InputError, argument
from rnnreranker.base.pages import render
from rnnreranker.base.settings import Written
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.recover.request import JOINT, OF_GRAPH, SINGLE, WITH_POSITIVES, RecoverRequest, check
from rnnreranker.lab.shared import read_query_set
from rnnreranker.labels.export import PROBABILITIES, SIMILARITIES, by_confidence
from rnnreranker.runs.head import order_by_score

if TYPE_CHECKING:
    import pandas

    from rnnreranker.labels import SoftLabels


@phase("ranking by the positives")
def cases_of(request: RecoverRequest) -> tuple[pandas.DataFrame, dict[str, str]]:
    """Each positive of each query in turn visible, if a hidden positive and a judged negative remain.

    With several visible positives, each is joined by those that follow it in the run, in a circle. The first `context`
    candidates form neighbourhoods; unjudged ones are ranked only if they count as negatives. The scores of a case are
    those of labels that know its visible positives alone.

    Returns:
        A row for each candidate of each case but the visible ones, in the order of the run: qid, case, visible
        (docids), docid, hidden (positive), mass (probability in joint labels), raw (inner product with the query),
        margin (raw minus that of the visible ones), and a column for each scorer.
        Fingerprints of what was read.

    Raises:
        InputError: a candidate or query without a vector, a candidate missing from the graph, no usable query.
    """
    import pandas

    from rnnreranker import QueryVectors, make_labels
    from rnnreranker.index.opening import open_index

    index, size = open_index(request.index), request.context  # type: ignore[arg-type]  # `check` refuses None
    read, rows = read_query_set(request, index, size), list[tuple[Any, ...]]()
    grades = read.qrels.set_index("doc_id").groupby("query_id")["relevance"].agg(dict).to_dict()
    of_case, shown, positive = dict[str, str](), dict[str, Any](), dict[str, Any]()  # by case, by case, by query
    for qid in read.run.qids:
        judged, names = grades.get(qid, {}), read.run.ranked(qid)
        relevant = [docid for docid in names if judged.get(docid, 0) >= request.relevant]
        ranked = [docid for docid in names if docid in judged or request.unjudged == "negative"]
        if len(relevant) <= request.visible or len(ranked) == len(relevant):
            continue
        positive[qid] = dict.fromkeys(relevant, 1)
        for number in range(len(relevant)):
            case, circle = f"{qid}, positive {number}", relevant[number:] + relevant[:number]
            of_case[case], shown[case] = qid, dict.fromkeys(circle[: request.visible], 1)
            visible = " ".join(docid for docid in relevant if docid in shown[case])
            others = (docid for docid in ranked if docid not in shown[case])
            rows += [(case, qid, number, visible, docid, docid in positive[qid]) for docid in others]
    if not rows:
        names = [argument("unjudged", "negative"), f"a lower {argument('relevant')}", argument("context")]
        raise InputError(
            f"no query has {request.visible + 1} positives and a judged negative among its first {size} candidates: "
            f"nothing can be hidden; give {', '.join(names)} or more judgements"
        )
    table = pandas.DataFrame(rows, columns=["id", "qid", "case", "visible", "docid", "hidden"])
    vector_of = dict(zip(read.queries.qids, read.queries.vectors, strict=True))

    def labels(method: Written, qrels: Mapping[str, Any], of: Mapping[str, str]) -> SoftLabels:
        """The labels of the queries of some ids."""
        queries = QueryVectors(tuple(of), np.stack([vector_of[qid] for qid in of.values()]))
        given: Any = {"topics": {one: read.texts[qid] for one, qid in of.items()}, "encoded_queries": queries}
        run = Run.from_dict({one: dict(read.run[qid]) for one, qid in of.items()})
        return make_labels(run, qrels, index, method, jobs=request.threads, depth=size, **given)

    def column(made: SoftLabels, value: str = "score", by: str = "id") -> Any:
        """A value of the labels for each row, (M,) float64."""
        known = made.frame().set_index(["qid", "docid"])[value].astype(float)
        return known.reindex(pandas.MultiIndex.from_frame(table[[by, "docid"]])).to_numpy()

    made = {name: labels(method, shown, of_case) for name, method in request.scorers.items()}
    raw = labels(request.method("query", scale="none", normalize=None), shown, of_case)
    of_visible = raw.frame().query("positive").groupby("qid")["score"].mean()
    table["mass"], table["raw"] = column(made[JOINT], "target"), column(raw)
    table["margin"] = table["raw"] - table["id"].map(of_visible)
    table = table.assign(**{name: column(one) for name, one in made.items()})
    for name, method, _ in request.teachers:
        if name == WITH_POSITIVES:
            table[name] = column(labels(method, shown, of_case))
        else:  # it knows no positive: once a query
            table[name] = column(labels(method, positive, {qid: qid for qid in positive}), by="qid")
    sources = {"index": "mixed", "graph": OF_GRAPH + "mixed"}
    return table.drop(columns="id"), {what: made[of].metadata["index"] for what, of in sources.items() if of in made}


MEASURES = ("AP", "P@m", "AUC")
RATES = (0.02, 0.05, 0.1, 0.2, 0.3)
FILTERS = {  # filter → the column that it goes by; margin and max-score are rules of `labels.negatives.suspicion`
    **{"rnn": "mixed", "joint": "joint", "rnn-graph": OF_GRAPH + "mixed", "joint-graph": OF_GRAPH + "joint"},
    **{"margin": "margin", "max-score": "raw"},
}
PAIRS = (  # what joint similarity is compared with, where there is a graph from it too
    *(("joint", "query"), ("joint", "mixed"), ("joint", "joint-geometric"), ("joint-geometric", "query")),
    *((OF_GRAPH + "joint", "query"), (OF_GRAPH + "joint", "joint")),
)
BESIDE = ("query", "mixed", "joint")  # what every teacher is compared with
VARIED = "joint, "  # before what differs from joint similarity
SURE = 0.05  # p after Holm's correction, below which a difference is called one


def recover(request: RecoverRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """Measure how well similarity to one positive ranks the others.

    Returns:
        Plain values for JSON: the settings, and what `measure_recovery` returns. Fingerprints of what was read.

    Raises:
        InputError: all faults of the arguments; no usable query.
        UnavailableError, MissingDependencyError: an index, an encoder or a teacher is not available here.
    """
    check(request)
    cases, inputs = cases_of(request)
    how: Any = {name: getattr(request, name) for name in ("visible", "relevant", "unjudged")}
    how |= {"params": request.chosen[SINGLE["mixed"]].to_dict(), "joint_params": request.chosen["joint"].to_dict()}
    teachers = {one.name: one.chosen.params.to_dict() for one in request.teachers}
    how |= {"teachers": teachers} if teachers else {}
    return how | measure_recovery(cases, beside=list(teachers)), inputs


def measure_recovery(
    cases: pandas.DataFrame, rates: Sequence[float] = RATES, beside: Collection[str] = ()
) -> dict[str, Any]:
    """Measure each case under each scorer.

    Differences have low and high (95% bootstrap interval over queries), p (paired t-test) and p_holm (within a field).

    Args:
        cases: of `cases_of`; rates: of filters; beside: names of the teachers.

    Returns:
        queries, cases; hidden, negatives: number of ranked candidates over all cases.
        rows: scorer, measure, value (mean over queries of the mean over positives); for similarities to a positive
            alone also the difference from "query".
        filters: see `filtered`.
        from_graph: scorer, measure, and the difference from the same scorer without `OF_GRAPH`.
        joint, beside: scorer, other, measure and their difference, see `PAIRS` and `BESIDE`.
        ablations: scorer, measure, value and the difference from "joint" (of the same source); AP only.
        reliability: `of` "similarity" (joint) or "mass" (in labels), and the rows of `by_confidence`.
    """
    import pandas

    columns = cases.columns.tolist()
    scorers = columns[columns.index("margin") + 1 :]
    table = pandas.DataFrame(
        {
            "scorer": scorer,
            "query": qid,
            **ranking_measures(*(own[of].to_numpy() for of in (scorer, "hidden", "docid"))),
        }
        for (qid, _), own in cases.groupby(["qid", "case"], sort=False)
        for scorer in scorers
    )
    means = table.groupby(["scorer", "query"], sort=False).mean()
    values = {(one, measure): means.loc[one][measure].to_numpy() for one in scorers for measure in MEASURES}

    plain = {key: {"scorer": key[0], "measure": key[1], "value": float(own.mean())} for key, own in values.items()}

    def compared(pairs: Iterable[tuple[str, str]], measures: Sequence[str] = MEASURES) -> list[dict[str, Any]]:
        """The differences of scorers from others that there are, by measure: one family of tests."""
        keys = [(a, b, one) for a, b in pairs if {a, b} <= set(scorers) for one in measures]
        gaps = differences(values, [((a, one), (b, one)) for a, b, one in keys])
        return [{**plain[a, one], "other": b, **gap} for (a, b, one), gap in zip(keys, gaps, strict=True)]

    varied = [one for one in scorers if VARIED in one]
    alone = [one for one in scorers if "joint" not in one and one not in beside]
    above = {(row["scorer"], row["measure"]): row for row in compared((one, "query") for one in alone[1:])}
    hidden, weights = cases["hidden"].to_numpy(), weights_of(cases)
    curves = (("similarity", "joint", SIMILARITIES), ("mass", "mass", PROBABILITIES))
    return {
        "queries": cases["qid"].nunique(),
        "cases": len(table) // len(scorers),
        "hidden": int(hidden.sum()),
        "negatives": int((~hidden).sum()),
        "rows": [above.get(key, row) for key, row in plain.items() if key[0] not in varied],
        "filters": filtered(cases, rates),
        "from_graph": compared((one, one.removeprefix(OF_GRAPH)) for one in alone if one.startswith(OF_GRAPH)),
        "joint": compared(PAIRS),
        "ablations": compared(((one, one.partition(",")[0]) for one in varied), MEASURES[:1]),
        "beside": compared((one, other) for one in beside for other in BESIDE),
        "reliability": [
            {"of": name, **row}
            for name, column, edges in curves
            for row in by_confidence(cases[column].to_numpy(), hidden, edges, weights)
        ],
    }


def answer(rows: Sequence[Mapping[str, Any]]) -> str:
    """A sentence: the best similarity, compared with the query's."""
    query, *others = (row for row in rows if row["measure"] == MEASURES[0])
    best = max((row for row in others if "difference" in row), key=lambda row: row["value"])
    return render("lab", "answer.txt.j2", best=best, query=query, sure=SURE).strip()


def ranking_measures(scores: np.ndarray, hidden: np.ndarray, docids: np.ndarray) -> dict[str, float]:
    """AP, precision at m (the number of hidden positives) and AUC of a ranking; ties by docid, in AUC half.

    scores: (n,); hidden: (n,) bool with both values; docids: (n,) texts.

    >>> by_hand = ranking_measures(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]), np.array(["a", "b", "c"]))
    >>> [round(value, 4) for value in by_hand.values()]
    [0.8333, 0.5, 0.5]
    """
    ranked = hidden[order_by_score(scores, docids.astype(object))]
    precision = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    gaps = scores[hidden][:, None] - scores[~hidden]
    values = precision[ranked].mean(), ranked[: ranked.sum()].mean(), ((gaps > 0) + (gaps == 0) / 2).mean()
    return dict(zip(MEASURES, map(float, values), strict=True))


def filtered(cases: pandas.DataFrame, rates: Sequence[float]) -> list[dict[str, float | str]]:
    """What each filter removes if all discard the same share of the judged candidates.

    Rows: filter, rate (requested), discarded (reached; equal doubts are all kept), positives and negatives (shares of
    hidden positives and true negatives removed). A filter has one threshold for all queries; several visible positives
    count as their mean.
    """
    rows: list[dict[str, float | str]] = []
    hidden, weights = cases["hidden"].to_numpy(), weights_of(cases)
    sides = {"discarded": np.ones_like(hidden), "positives": hidden, "negatives": ~hidden}
    for name, column in FILTERS.items():
        if column in cases:
            values = cases[column].to_numpy()
            falling = np.argsort(-values, kind="stable")
            reached = np.cumsum(weights[falling]) / weights.sum()
            for rate in rates:
                first_kept = min(int(np.searchsorted(reached, rate + 1e-9, side="right")), len(values) - 1)
                away = values > values[falling[first_kept]]
                shares = {what: float(np.average(away[own], weights=weights[own])) for what, own in sides.items()}
                rows.append({"filter": name, "rate": rate, **shares})
    return rows


def weights_of(cases: pandas.DataFrame) -> np.ndarray:
    """(M,) float64 weights of the candidates: 1 / (cases of their query)."""
    return 1.0 / cases.groupby("qid")["case"].transform("nunique").to_numpy()
