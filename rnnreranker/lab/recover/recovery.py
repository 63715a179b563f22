"""`recover` and its command: how well each similarity ranks hidden positives above judged negatives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rnnreranker.base.pages import render
from rnnreranker.base.settings import asked
from rnnreranker.evaluate.comparison import differences
from rnnreranker.lab.recover.request import RecoverRequest, check
from rnnreranker.lab.recover.similarities import OF_GRAPH, cases_of
from rnnreranker.labels.export import PROBABILITIES, SIMILARITIES, by_confidence
from rnnreranker.runs.head import order_by_score

if TYPE_CHECKING:
    import pandas

MEASURES = ("AP", "P@m", "AUC")
RATES = (0.02, 0.05, 0.1, 0.2, 0.3)
FILTERS = {  # filter → the column that it goes by; margin and max-score are rules of `labels.negatives.suspicion`
    **{"rnn": "mixed", "joint": "joint", "rnn-graph": OF_GRAPH + "mixed", "joint-graph": OF_GRAPH + "joint"},
    **{"margin": "margin", "max-score": "raw"},
}
JOINT = (  # what joint similarity is compared with, where there is a graph from it too
    *(("joint", "query"), ("joint", "mixed"), ("joint", "joint-geometric"), ("joint-geometric", "query")),
    *((OF_GRAPH + "joint", "query"), (OF_GRAPH + "joint", "joint")),
)
BESIDE = ("query", "mixed", "joint")  # what every teacher is compared with
VARIED = "joint, "  # before what differs from joint similarity
SURE = 0.05  # p after Holm's correction, below which a difference is called one


def recover(index: Any, topics: Any, qrels: Any, **others: Any) -> dict[str, Any]:
    """Measure how well similarity to one positive ranks the others, as `python -m rnnreranker.recover`.

    Args:
        index, topics, qrels, others: as in `RecoverRequest`.

    Returns:
        Plain values for JSON: the settings, and what `measure_recovery` returns.

    Raises:
        InputError: all faults of the arguments; no usable query.
        UnavailableError, MissingDependencyError: an index, an encoder or a teacher is not available here.
    """
    return recovered(asked(RecoverRequest, {"index": index, "topics": topics, "qrels": qrels, **others}))[0]


def recovered(request: RecoverRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """`recover` for a request, and fingerprints of what was read."""
    check(request)
    cases, inputs = cases_of(request)
    how: Any = {"params": request.params.to_dict(), "joint_params": request.joint.to_dict()}
    how |= {name: getattr(request, name) for name in ("visible", "relevant", "unjudged")}
    if request.teachers:
        how["teachers"] = {name: chosen.params.to_dict() for name, chosen in request.teachers}
    return how | measure_recovery(cases, beside=[one.name for one in request.teachers]), inputs


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
        joint, beside: scorer, other, measure and their difference, see `JOINT` and `BESIDE`.
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
        "joint": compared(JOINT),
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
